import time

import pytest

from tachograph.format.spool.masking import (
    CUT,
    MASK,
    MAX_ARGUMENTS,
    MAX_LENGTH,
    is_suspicious,
    mask_arguments,
    mask_text,
)


@pytest.mark.parametrize(
    ("line", "masked"),
    [
        ("app.py --password hunter2 --verbose", "app.py --password *** --verbose"),
        ("app.py --password=hunter2", "app.py --password=***"),
        ("app.py --db-passwd x y", "app.py --db-passwd *** y"),
        ("app.py --api-key AAA --apiKey=BBB", "app.py --api-key *** --apiKey=***"),
        ("app.py -token abc", "app.py -token ***"),
        ("app.py --auth --verbose", "app.py --auth --verbose"),
        ("app.py --password-file /etc/pw", "app.py --password-file /etc/pw"),
        ("app.py --max-tokens 100 --tokenizer bert", "app.py --max-tokens 100 --tokenizer bert"),
        ("app.py --keyboard de --monkey 3", "app.py --keyboard de --monkey 3"),
        ("app.py SECRET_KEY=abc key=abc name=abc", "app.py SECRET_KEY=*** key=*** name=abc"),
        ("app.py postgres://me:pw@host/db", "app.py postgres://***@host/db"),
        ("app.py https://h/p?user=1&token=abc&x=2", "app.py https://h/p?user=1&token=***&x=2"),
        ("app.py https://h/p --user me", "app.py https://h/p --user me"),
        ("app.py ghp_0123456789abcdefghijABCDEFGHIJ", "app.py ***"),
        ("app.py --url=https://u:p@h/ -n 5", "app.py --url=https://***@h/ -n 5"),
        ("app.py dGhpcyBpcyBhIHNlY3JldCBvZiAzMiBieXRlcw", "app.py ***"),
        ("app.py /usr/lib/python3/Dist/Packages123/aVeryLongNameOfAFile99.txt", None),
        ("app.py 3f786850e387550fdab836ed7e6dc881de23001b", None),
    ],
)
def test_mask(line: str, masked: str | None) -> None:
    assert " ".join(mask_arguments(line.split())) == (line if masked is None else masked)


@pytest.mark.parametrize(
    ("argument", "masked"),
    [
        ("Authorization: Bearer abc.def", "Authorization: ***"),
        ('{"password": "a b c", "n": 1}', '{"password": ***, "n": 1}'),
        ("import x; token = 'abc'; x.run(token)", "import x; token = ***; x.run(token)"),
        ("print('hello')", "print('hello')"),
        ("-----BEGIN RSA PRIVATE KEY-----\nabc", MASK),
        ('password="a b c', "password=***"),
        ("2nd.password=abc", "2nd.password=***"),
        ("1+https://me:pw@h", "1+https://***@h"),
        ("x-eyJhbGciOiJI.eyJzdWIiOiIx.c2lnbmF0dXJl rest", "x-*** rest"),
        ("a.b.eyJhbGciOiJI.eyJzdWIiOiIx.c2lnbmF0dXJl", "a.b.***"),
    ],
)
def test_mask_inside_one_argument(argument: str, masked: str) -> None:
    assert mask_arguments([argument]) == [masked]


def test_long_arguments_are_cut() -> None:
    (stored,) = mask_arguments(["x " * MAX_LENGTH])
    assert len(stored) == MAX_LENGTH + 1


def test_no_secret_is_cut_in_two() -> None:
    for secret in ("https://me:pass-word@host/", "token=abcdefgh", "sk-aaaaaaaaaaaaaaaaaaaaaaaaaaaa"):
        for left in range(len(secret)):
            stored = mask_text("x" * (MAX_LENGTH - left - 1) + " " + secret + " y" * 2 * MAX_LENGTH)
            assert len(stored) <= MAX_LENGTH + len(CUT)
            assert not {"pass-", "abc", "aaa"} & {stored[at : at + size] for at in range(4000, 4100) for size in (3, 5)}


def test_a_secret_at_the_end_of_what_is_searched_is_not_kept() -> None:
    many = " ".join(f"token={'z' * 400}" for _ in range(100))
    assert "z" not in mask_text(many)
    for size in range(8100, 8200):  # masked, it is far shorter than what may be kept
        assert "hunter2" not in mask_text(f"token={'z' * (size - 40)} http://me:hunter2" + "x" * 9000 + "@host")


def test_only_so_many_arguments_are_kept() -> None:
    assert mask_arguments(["x"] * MAX_ARGUMENTS) == ["x"] * MAX_ARGUMENTS
    assert mask_arguments(["x"] * 200_000) == ["x"] * MAX_ARGUMENTS + [CUT]


HOSTILE = [
    "a", "A1", "-", "_", ".", "0.", " ", "a ", "a=", "a='", 'a="', "a=\"'", "a: ", "token=Bearer ", "a://", "a://b",
    "eyJ", "eyJeyJeyJ.", "eyJaaaaaaaa.", "-----BEGIN", "-----BEGIN PRIVATE KEY", "sk-", "ghp_", "key=", "Ab1+", "Ab1/",
    "\n", "\0", "\u00e9", "\u2028", "\udc80",
]  # fmt: skip


@pytest.mark.parametrize("piece", HOSTILE)
def test_megabytes_take_no_time(piece: str) -> None:
    """Quadratic patterns took over ten minutes for ten such arguments."""
    long = piece * ((2 << 20) // len(piece))
    began = time.process_time()
    assert len(mask_text(long)) <= MAX_LENGTH + len(CUT)
    mask_arguments([f"--{long}", f"--{long}=x", *[long + end for end in "=@!"]])
    assert time.process_time() - began < 2


@pytest.mark.parametrize("piece", HOSTILE)
def test_every_pattern_is_linear(piece: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Were nothing cut, megabytes would still be searched in a time that grows as they do."""
    monkeypatch.setattr("tachograph.format.spool.masking.MAX_LENGTH", 1 << 30)
    began = time.process_time()
    mask_text(piece * ((1 << 19) // len(piece)))
    assert time.process_time() - began < 3


@pytest.mark.parametrize("name", ["password", "DB_PASSWORD", "access-key", "sessionId", "X-Auth-Token", "pin"])
def test_suspicious_names(name: str) -> None:
    assert is_suspicious(name)


@pytest.mark.parametrize("name", ["keyword", "key-count", "passenger", "author", "pinned", "token-limit", "compass"])
def test_harmless_names(name: str) -> None:
    assert not is_suspicious(name)
