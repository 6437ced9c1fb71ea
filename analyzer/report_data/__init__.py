"""The data that HTML reports and figures are drawn from: a profile in bins of time, and a reduced call tree.

``build_report_data`` is fed by the same stream as the profile, and keeps what fits on a page. Its sums over all bins
are those of the profile.
"""
