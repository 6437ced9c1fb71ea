"""The rules by theme. Each is a generator of findings, and a row in ``table.RULES``."""
