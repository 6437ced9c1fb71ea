"""``tachograph lsp``: figures of a recording beside the code, in an editor."""
