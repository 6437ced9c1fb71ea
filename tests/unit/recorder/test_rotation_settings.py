import signal

import pytest

from tachograph.recorder.rotation.rotation_settings import parse_keep, parse_rotate, parse_signal


@pytest.mark.parametrize(
    ("typed", "seconds", "size"),
    [
        ("1s", 1, None),
        ("10m", 600, None),
        ("2h", 7200, None),
        ("30d", 30 * 86400, None),
        ("100KB", None, 100_000),
        ("200MB", None, 200_000_000),
        (" 1GB ", None, 10**9),
        ("1.5h", 5400, None),
        ("90 s", 90, None),
        ("2 min", 120, None),
        ("2500ms", 2.5, None),
        ("1.5MiB", None, 3 << 19),
    ],
)
def test_times_and_sizes(typed: str, seconds: float | None, size: int | None) -> None:
    rotate = parse_rotate(typed)
    assert (rotate.seconds, rotate.size) == (seconds, size)


@pytest.mark.parametrize("typed", ["", "10", "10M", "10kb", "m", "-1s", "500ms", "0s", "31d", "99KB", "1001GB", "١٠m"])
def test_what_is_neither(typed: str) -> None:
    with pytest.raises(ValueError, match=r"1s|100KB|30s"):
        parse_rotate(typed)


@pytest.mark.parametrize("typed", ["0", "-1", "x", "", "1.0", "10000", "٣", "123456789012"])
def test_what_is_no_number_of_windows(typed: str) -> None:
    assert parse_keep("3") == 3
    with pytest.raises(ValueError, match="between 1 and 9999"):
        parse_keep(typed)


@pytest.mark.parametrize(
    ("typed", "number"),
    [
        ("USR1", signal.SIGUSR1),
        (" sigusr2 ", signal.SIGUSR2),
        ("SIGRTMIN", signal.SIGRTMIN),
        ("rtmin+3", signal.SIGRTMIN + 3),
    ],
)
def test_signals(typed: str, number: int) -> None:
    assert parse_signal(typed) == number


@pytest.mark.parametrize("typed", ["", "10", "INT", "SIGKILL", "CHLD", "USR1+1", "USR3", "RTMIN+", "RTMIN+31", "SIG"])
def test_what_is_no_signal_for_us(typed: str) -> None:
    with pytest.raises(ValueError, match="is not a signal that can be taken"):
        parse_signal(typed)
