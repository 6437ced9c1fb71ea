"""Redundant loads and stores: lines whose native calls repeat earlier work, by category.

``findings`` judges the pairs, ``borders`` tells where native code begins, ``categories`` reads the source.
"""
