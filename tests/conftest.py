"""What every test begins with: the signals of the keyboard and of a terminal that closes, as a shell has them."""

import signal


def pytest_configure() -> None:
    """In the background of a shell they are ignored, which every program under test would inherit."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_DFL)
