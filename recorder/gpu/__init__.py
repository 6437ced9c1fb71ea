"""Reads the GPUs while the program runs: in the recording command, never in the program."""
