"""The page of results: text, tables and figures, made of the data of the benchmarks and of nothing else."""
