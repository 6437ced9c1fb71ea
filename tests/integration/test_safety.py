"""A recording is its owner's: no other user reads it, writes into it or moves it, and it keeps no environment."""

import os
import stat
from pathlib import Path

import pytest

from integration import support

NOBODY = 65534

LOOKS = """
import os, sys, time
recording = sys.argv[1]
end = time.monotonic() + 30
while time.monotonic() < end and not any(name.endswith(".seg") for name in os.listdir(recording + "/spool")):
    time.sleep(0.01)
print(sorted({f"{os.stat(folder).st_mode & 0o777:o}" for folder, _, _ in os.walk(recording)}))
print(sorted({f"{os.stat(os.path.join(folder, name)).st_mode & 0o777:o}"
              for folder, _, names in os.walk(recording) for name in names}))
print(any(name.endswith(".seg") for name in os.listdir(recording + "/spool")))
"""


@pytest.fixture
def shared(open_folder: Path) -> Path:
    """A folder in which every user may write, as /tmp is one."""
    if os.geteuid() != 0:
        pytest.skip("only root can be two users")
    place = open_folder / "shared"
    place.mkdir()
    place.chmod(0o1777)
    return place


def as_nobody(code: str, target: Path) -> str:
    """What ``code`` leaves in ``done``, a list, when another user runs it; ``target`` is a path as text."""

    def run() -> object:
        names: dict[str, object] = {"os": os, "target": str(target), "done": []}
        exec(code, names)  # noqa: S102
        return names["done"]

    return support.as_user(NOBODY, run)


def test_private_while_it_is_written(tmp_path: Path, sampler: str) -> None:
    """Also where the umask would let every user in, and for a program that sets another one."""
    before = os.umask(0)
    try:
        done = support.record(["-c", LOOKS, tmp_path / "run.tacho"], tmp_path, "--sampler", sampler)
    finally:
        os.umask(before)
    assert done == support.Outcome(0, "['700']\n['600']\nTrue\n", "")
    modes = {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "run.tacho").iterdir()}
    assert modes == {0o600}


TRIES = """
def attempt(name, function):
    try:
        function()
        done.append(name)
    except OSError:
        pass
attempt("list", lambda: os.listdir(target))
attempt("manifest", lambda: open(target + "/manifest.json", "r+"))
attempt("new file", lambda: open(target + "/cpu.parquet", "w"))
attempt("spool", lambda: os.listdir(target + "/spool"))
attempt("into the spool", lambda: os.symlink("/etc/passwd", target + "/spool/1-1.ctl"))
attempt("rename", lambda: os.rename(target, target + ".taken"))
attempt("mode", lambda: os.chmod(target, 0o777))
"""


@pytest.mark.native
def test_another_user_cannot_touch_it(shared: Path) -> None:
    target = shared / "run.tacho"
    with support.start([support.PROGRAMS / "ticker.py", shared, "20"], shared) as command:
        support.wait_for((shared / "spent").exists, "the program's first round")
        assert as_nobody(TRIES, target) == "[]"
        (shared / "stop").touch()
        command.communicate(timeout=60)
    assert as_nobody(TRIES, target) == "[]"
    assert (target / "cpu.parquet").exists()


TRAPS = {
    "a folder of theirs": "os.mkdir(target); os.chmod(target, 0o777)",
    "a link to a folder": "os.mkdir(real := target + '.real'); os.chmod(real, 0o777); os.symlink(real, target)",
    "a link to nothing": "os.symlink(target + '.later', target)",
    "a file": "open(target, 'w').close()",
    "a fifo": "os.mkfifo(target)",
}


@pytest.mark.parametrize(
    ("trap", "force"),
    [
        pytest.param(
            trap,
            ("--force",) if force else (),
            id=f"{trap}-{'force' if force else ''}",
            marks=[pytest.mark.slow] if force == bool(number % 2) else [],
        )
        for number, trap in enumerate(TRAPS)
        for force in (True, False)
    ],
)
def test_what_another_user_has_laid_out_is_not_used(shared: Path, trap: str, force: tuple[str, ...]) -> None:
    """One line, nothing started, and nothing written through it."""
    target = shared / "run.tacho"
    as_nobody(TRAPS[trap], target)
    before = sorted(path.name for path in shared.iterdir())
    outcome = support.record(["-c", "print('started')"], shared, *force, "--sampler", "signal", output=str(target))
    support.one_line(outcome, "run.tacho")
    assert outcome.stdout == ""
    assert sorted(path.name for path in shared.iterdir()) == before
    if (shared / "run.tacho.real").is_dir():
        assert not list((shared / "run.tacho.real").iterdir())


@pytest.mark.native
def test_nothing_of_the_environment_is_kept(tmp_path: Path) -> None:
    """Neither in the spool while the program runs, nor in the recording."""
    code = (
        "import os, sys, time\n"
        "end = time.process_time() + 0.1\n"
        "while time.process_time() < end: pass\n"
        "spool = sys.argv[1] + '/spool'\n"
        "print(any(b'v3ry-' b's3cr3t' in open(spool + '/' + name, 'rb').read() for name in os.listdir(spool)\n"
        "          if os.path.isfile(spool + '/' + name)))\n"
    )
    env = support.environment(API_TOKEN="v3ry-s3cr3t-token", LESSOPEN="v3ry-s3cr3t-other")
    done = support.record(["-c", code, tmp_path / "run.tacho"], tmp_path, env=env)
    assert (done.status, done.stdout) == (0, "False\n"), done.stderr
    for path in (tmp_path / "run.tacho").iterdir():
        if path.suffix == ".parquet":
            rows = str(support.rows(tmp_path / "run.tacho", path.stem))
            assert "v3ry-s3cr3t" not in rows, path.name
        else:
            assert b"v3ry-s3cr3t" not in path.read_bytes(), path.name
