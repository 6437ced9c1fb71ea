"""The questions: each a pure function from the index's tables to a frame."""
