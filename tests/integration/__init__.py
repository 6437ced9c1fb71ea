"""The recording command around real programs, as real subprocesses."""
