"""Rotates a recording: windows that are closed while the program runs."""
