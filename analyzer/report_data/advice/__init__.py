"""Suggestions by rule: what to write instead, where what was measured and the source text leave no doubt.

``table`` lists the rules and asks them, ``facts`` has what was measured; what the text says is in ``recording.syntax``.
A source that is missing, or cannot be parsed, is silence.
"""
