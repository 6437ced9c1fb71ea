"""Sends finished recordings to a store: ``record --output s3://...``, ``tachograph upload``."""
