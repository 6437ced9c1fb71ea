"""What differs between CPython versions, as seen from a recording: which opcodes are calls, how lines are encoded."""
