"""Code that runs inside the profiled program. It imports the standard library and the extension module only."""
