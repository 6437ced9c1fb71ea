"""Differences between CPython versions in recorded code: opcode classes, and how line tables are encoded."""
