"""The one exception that benchmarks show as a single line."""


class BenchmarkError(Exception):
    """Something that the user has to correct; the message is one line and says how."""
