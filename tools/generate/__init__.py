"""Makes what follows from format-spec/tables.toml and records.toml."""
