"""Suggestions by rule: what to do next, where a rule is sure."""
