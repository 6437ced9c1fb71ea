"""``python -m tachograph``."""

from tachograph.cli import run

run()
