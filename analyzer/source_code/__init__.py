"""Facts that parsing proves about source texts. No source is executed."""
