"""Other profilers, one module each; see `harness.peers`."""
