"""Opens recordings and reads their facts: tables, time windows, filters, process lifetimes, quality."""
