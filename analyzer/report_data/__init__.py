"""What HTML reports and figures are drawn from: a profile divided into spans of time, and a reduced call tree.

``draw_up`` reads the long tables once more, a batch at a time, and keeps what fits on a page. Its sums over all spans
are those of the profile.
"""
