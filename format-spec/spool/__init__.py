"""The spool: what recorded processes write, and how it becomes the tables of a recording."""
