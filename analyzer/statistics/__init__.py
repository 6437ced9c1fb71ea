"""Statistics: distributions, intervals, sums by group, how much runs differ, and ratios of sums over recordings."""
