"""The one stream of attributed samples, and the sums of it that every report is made of."""
