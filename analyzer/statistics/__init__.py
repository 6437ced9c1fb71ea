"""Statistics: distributions, intervals, ratios, and the spread between runs."""
