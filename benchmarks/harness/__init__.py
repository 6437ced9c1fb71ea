"""What the benchmarks share: installing programs, running one process, keeping results, summing them up."""
