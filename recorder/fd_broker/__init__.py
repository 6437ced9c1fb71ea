"""Makes spool files for processes that may not make them, and hands over the descriptors."""
