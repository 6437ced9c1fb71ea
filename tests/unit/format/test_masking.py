import pytest

from tachograph.format.masking import MASK, MAX_LENGTH, is_suspicious, mask_arguments


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
    ],
)
def test_mask_inside_one_argument(argument: str, masked: str) -> None:
    assert mask_arguments([argument]) == [masked]


def test_long_arguments_are_cut() -> None:
    (stored,) = mask_arguments(["x " * MAX_LENGTH])
    assert len(stored) == MAX_LENGTH + 1


@pytest.mark.parametrize("name", ["password", "DB_PASSWORD", "access-key", "sessionId", "X-Auth-Token", "pin"])
def test_suspicious_names(name: str) -> None:
    assert is_suspicious(name)


@pytest.mark.parametrize("name", ["keyword", "key-count", "passenger", "author", "pinned", "token-limit", "compass"])
def test_harmless_names(name: str) -> None:
    assert not is_suspicious(name)
