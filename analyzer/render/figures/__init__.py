"""Figures for slides and papers, with matplotlib: PNG and SVG of each, in the colours of the HTML report."""
