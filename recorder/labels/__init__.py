"""Labels: what a recording is of, as the user, the environment and the repository say."""
