"""Runs two programs in turns, records both, and stops when it is known which is slower."""
