"""Works beside the program: collects what it wrote, reads sources, and finishes the recording."""
