"""Programs whose true profile is known, recorded and analysed as real subprocesses."""
