"""``--markdown``: summaries for assistants and scripts, within a bound of tokens.

``document`` has the parts of a document and what fits into it, ``profile`` and ``difference`` what is said of a profile
and of a diff.
"""
