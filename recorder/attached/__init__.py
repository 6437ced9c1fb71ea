"""Recording that a running program begins and ends itself."""
