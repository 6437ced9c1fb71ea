"""Names of requests where no framework tells its route."""


def route_of_path(path: object) -> str:
    """A path whose parts that hold digits are ``{}``: most of these are ids, and each would be a name of its own."""
    if not isinstance(path, str):
        return ""
    parts = path.split("/")
    return "/".join("{}" if any("0" <= letter <= "9" for letter in part) else part for part in parts)
