"""Shows profiles in a terminal."""
