"""Hostile recordings: mutations of the golden ones, and the readers that must bear them."""
