"""Suggestions by rule: what to write instead, where what was measured and the source text leave no doubt.

``table`` lists and runs the rules, ``facts`` has the measurements, ``analyzer/source_code`` reads the source text.
A source that is missing, or cannot be parsed, is silence.
"""
