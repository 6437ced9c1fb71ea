"""Programs that work on this repository."""
