"""Profiles: the answers to a question about a recording, as tidy frames."""
