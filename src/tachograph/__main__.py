"""``python -m tachograph``."""

from tachograph.start import run

run()
