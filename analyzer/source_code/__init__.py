"""Source text as evidence: statements, loops and names of a file, read without running it."""
