"""What runs inside the profiled program. It imports the standard library and the extension module, and no more."""
