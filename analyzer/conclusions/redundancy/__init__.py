"""Redundant loads and stores: lines whose native calls do again what was done before, and how.

``findings`` judges the pairs, ``borders`` tells where native code begins, ``categories`` reads the source.
"""
