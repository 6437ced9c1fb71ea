"""Conclusions from the facts of a recording: memory, leaks, copies and GPUs."""
