"""What recorded source text says, without being run: statements, loops, and what names stand for."""
