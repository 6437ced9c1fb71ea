"""Long runs, for `make soak`: what a short test cannot show."""
