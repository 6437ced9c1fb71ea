"""The one exception that benchmarks show as a single line."""


class BenchmarkError(Exception):
    """Something that the person at the keyboard has to mend; the message is one line and says how."""
