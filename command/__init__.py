"""tachograph: record a Python program where it runs, read the recording anywhere else."""

__version__ = "0.1.0"
