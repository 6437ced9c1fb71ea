"""General suggestions: what kind of work a hot line is, by the library's names and the loops around it.

They know no case. ``verbs`` sorts functions by their names, ``rounds`` follows the recorded callers of a line to the
loops that run it, and tells what stays the same there. What they say is likely, and is said to be no more.
"""
