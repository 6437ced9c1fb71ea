"""tachograph: record a Python program where it runs, read the recording anywhere else.

pytest would warn that it cannot rewrite this module, which a recorded interpreter imports first: PYTEST_DONT_REWRITE
"""

__version__ = "0.1.0"
