"""What makes the commands pleasant: completion, examples, plain output where it is not a terminal, widths."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

import tachograph
from support.warm_command import run_command
from tachograph.cli import SUBCOMMANDS, main

RECORDING = Path(__file__).parents[3] / "format-spec" / "vectors" / "memory.tacho"
SHOWN = [
    ["analyze", RECORDING],
    ["analyze", RECORDING, "--memory"],
    ["info", RECORDING],
    ["diff", RECORDING, RECORDING],
]
RUN = "import sys; sys.argv[0] = 'tachograph'; from tachograph.start import run; run()"


def tachograph_says(*args: str | Path, **variables: str) -> bytes:
    """Standard output of the command, which is a pipe."""
    paths = os.pathsep.join(filter(None, [str(Path(tachograph.__file__).parent.parent), os.environ.get("PYTHONPATH")]))
    done = subprocess.run(
        [sys.executable, "-c", RUN, *map(str, args)],
        env={**os.environ, "PYTHONPATH": paths, "PYTHONIOENCODING": "utf-8", **variables},
        stdout=subprocess.PIPE,
        timeout=60,
        check=True,
    )
    return done.stdout


def shown(arguments: list[str | Path], **variables: str) -> str:
    """What one of SHOWN writes to a pipe."""
    done = run_command([*map(str, arguments)], Path.cwd(), {**os.environ, **variables}, 60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def command(name: str) -> click.Command:
    found = main.get_command(click.Context(main), name)
    assert found is not None
    return found


@pytest.mark.parametrize("name", SUBCOMMANDS)
def test_help_has_examples_that_parse(name: str) -> None:
    found = command(name)
    text = CliRunner().invoke(found, ["--help"], prog_name=f"tachograph {name}").output
    assert "Examples:" in text
    lines = [
        line.strip().partition("  ")[0] for line in text[text.index("Examples:") :].splitlines()[1:] if line.strip()
    ]
    assert lines
    for line in lines:
        assert line.startswith(f"tachograph {name}"), line
        if name not in ("record", "standby"):  # what follows the program is the program's
            typed = {
                word.partition("=")[0]
                for word in line.partition("|")[0].partition(" -- ")[0].split()
                if word.startswith("--")
            }
            meant = found.commands[line.split()[2]] if isinstance(found, click.Group) else found
            options = {each for parameter in meant.params for each in (*parameter.opts, *parameter.secondary_opts)}
            assert typed <= options, line


def test_the_help_of_all_imports_none_of_them() -> None:
    code = "import sys; from tachograph.cli import main\ntry: main(['--help'])\nexcept SystemExit: pass\n"
    code += (
        "print(*sorted(name for name in sys.modules if 'analyzer' in name or name in ('pandas', 'rich', 'pyarrow')))"
    )
    paths = os.pathsep.join(filter(None, [str(Path(tachograph.__file__).parent.parent), os.environ.get("PYTHONPATH")]))
    environment = {**os.environ, "PYTHONPATH": paths}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert "Examples:" in done.stdout
    assert done.stdout.endswith("\n\n")


@pytest.mark.recording
@pytest.mark.parametrize("arguments", SHOWN, ids=lambda arguments: str(arguments[0]))
def test_a_pipe_gets_plain_text(arguments: list[str | Path]) -> None:
    assert "\x1b" not in shown(arguments, COLUMNS="80")


@pytest.mark.recording
@pytest.mark.parametrize("arguments", SHOWN, ids=lambda arguments: str(arguments[0]))
def test_no_color_wins_over_forced_colours(arguments: list[str | Path]) -> None:
    coloured = shown(arguments, FORCE_COLOR="1", TERM="xterm-256color", COLUMNS="80")
    assert any(code in coloured for code in ("\x1b[3", "\x1b[9", ";3", ";9"))
    plain = shown(arguments, FORCE_COLOR="1", TERM="xterm-256color", COLUMNS="80", NO_COLOR="1")
    # Bold and dim are no colours.
    codes = {code for part in plain.split("\x1b[")[1:] for code in part.partition("m")[0].split(";")}
    assert codes <= {"0", "1", "2", "3", "7"}


@pytest.mark.recording
@pytest.mark.parametrize("width", [60, 120])
@pytest.mark.parametrize("arguments", SHOWN, ids=lambda arguments: str(arguments[0]))
def test_nothing_is_wider_than_the_terminal(arguments: list[str | Path], width: int) -> None:
    text = shown(arguments, COLUMNS=str(width))
    assert max(map(len, text.splitlines())) <= width


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("ana", "plain,analyze"),
        ("analyze --so", "plain,--sort"),
        ("analyze --sort w", "plain,wait"),
        ("analyze run", "file,run"),
        ("export sp", "plain,speedscope"),
        ("record --sam", "plain,--sampler"),
        ("record --sampler s", "plain,signal"),
        ("record prog", "file,prog"),
        ("record prog.py da", "file,da"),
        ("diff old", "file,old"),
    ],
)
def test_completion(words: str, expected: str) -> None:
    count = str(len(words.split()))
    said = tachograph_says(COMP_WORDS=f"tachograph {words}", COMP_CWORD=count, _TACHOGRAPH_COMPLETE="bash_complete")
    assert said.decode().split() == [expected]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_line_for_a_shell(shell: str) -> None:
    script = tachograph_says(_TACHOGRAPH_COMPLETE=f"{shell}_source").decode()
    assert "_tachograph_completion" in script
    assert f"_TACHOGRAPH_COMPLETE={shell}_complete" in script


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("analyse", "no such command 'analyse': did you mean 'analyze'?"),
        ("anaylze", "no such command 'anaylze': did you mean 'analyze'?"),
        ("hyperfine", "no such command 'hyperfine': did you mean 'compare'?"),
        ("work.py", "no such command 'work.py': did you mean 'tachograph record work.py'?"),
        ("xyzzy", "no such command 'xyzzy'; see '"),
    ],
)
def test_near_misses_get_a_suggestion(typed: str, said: str) -> None:
    done = subprocess.run([sys.executable, "-m", "tachograph", typed], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith(f"tachograph: {said}")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["analyze", "--json"], "option '--json' requires an argument (FILE|-); see 'tachograph analyze --help'"),
        (["diff", "a", "b", "--html"], "option '--html' requires an argument (FILE); see 'tachograph diff --help'"),
        (
            ["analyze", "--json", "--scope", "all", "a"],
            "option '--json' took '--scope' for its FILE|-; see 'tachograph analyze --help'",
        ),
    ],
)
def test_an_option_without_its_value_says_what_it_wants(arguments: list[str], line: str) -> None:
    done = CliRunner().invoke(main, arguments, prog_name="tachograph")
    assert (done.exit_code, done.stderr) == (2, f"tachograph: {line}\n")
