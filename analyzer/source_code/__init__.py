"""Source texts: what parsing them proves. No source is executed."""
