"""The whole suite over every supported CPython that is found: `nox`, or `nox -s tests-3.13`.

Interpreters are found on PATH (`python3.12`, ...); those that are missing are skipped.
"""

import runpy

import nox

nox.options.sessions = ["tests"]
nox.options.error_on_missing_interpreters = False
nox.options.default_venv_backend = "venv"

OLDEST, NEWEST = runpy.run_path("cmake/recording_support.py")["supported"]()
PYTHONS = [f"3.{minor}" for minor in range(OLDEST[1], NEWEST[1] + 1)]


@nox.session(python=PYTHONS)
def tests(session: nox.Session) -> None:
    """Installs the package as a user would, warnings being errors, and runs the tests."""
    session.install(".[test]", "--config-settings", "cmake.define.TACHOGRAPH_WERROR=ON")
    session.run("pytest", *session.posargs)


@nox.session(python="3.11")
def lint(session: nox.Session) -> None:
    """What `make lint` does, in an environment of nox's own."""
    session.install(".[dev]")
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    session.run("python", "tools/check_includes.py")
    session.run("python", "tools/lint_imports.py")
    session.run("mypy", "-p", "tachograph")
    session.run("mypy", "benchmarks", "cmake", "examples", "noxfile.py", "tests", "tools")
    session.run("mypy", "docs/case-studies")
