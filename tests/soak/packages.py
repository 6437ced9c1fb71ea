"""The test suites of public packages with C extensions, bare and recorded.

They are installed into a virtual environment of their own, which knows nothing of tachograph: the preloaded library
finds its way into its interpreter, as it does for users.
"""

import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from integration import support
from soak import outcomes

SUITES: Mapping[str, str] = {
    "bitarray": "bitarray.test_bitarray",
    "bottleneck": "bottleneck.tests",
    "greenlet": "greenlet.tests",
    "h5py": "h5py.tests",
    "numexpr": "numexpr.tests",
    "numpy": "numpy",
    "pandas": "pandas.tests",
    "pyarrow": "pyarrow.tests",
    "regex": "regex",
    "shapely": "shapely.tests",
}
"""The module that holds each package's tests, which come with its wheel."""

NEEDED = ("pytest", "pytest-timeout", "hypothesis", "pytz", "objgraph", "psutil")
TEST_S = 600
LEAST_WELL = 0.9
"""The part of a suite's tests that pass or are skipped bare: with less it was not the suite that ran."""


def compare(folder: Path, names: Sequence[str]) -> tuple[int, list[outcomes.Difference]]:
    """How many tests there are in these packages' suites (none named: in all), and those that differ.

    ``pandas=pandas.tests.frame`` is a part of a suite.
    """
    parts = [name.partition("=") for name in names or SUITES]
    modules = {name: module or SUITES.get(name, "") for name, _, module in parts}
    if strangers := modules.keys() - SUITES.keys():
        raise SystemExit(f"no suite is known of {', '.join(sorted(strangers))}; there are {', '.join(SUITES)}")
    packages = list(modules)
    python = _install(folder / "environment", packages)

    def run(arm: str, some: Sequence[str]) -> outcomes.Results:
        found: dict[str, str] = {}
        for name in some:
            results = _run(folder, python, arm, name, modules[name])
            well = sum(result != "failed" for result in results.values())
            if arm == "bare" and well <= LEAST_WELL * len(results):
                raise SystemExit(f"{name}: {well} of {len(results)} tests pass or are skipped bare")
            found.update(results)
        return found

    return outcomes.compare(run, packages, lambda test: test.partition(".")[0])


def _install(place: Path, packages: Sequence[str]) -> Path:
    """A virtual environment with the packages; its interpreter."""
    subprocess.run([sys.executable, "-m", "venv", place], check=True)
    python = place / "bin" / "python"
    install = [python, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", *NEEDED, *packages]
    done = subprocess.run(list(map(str, install)), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"the packages could not be installed: {done.stderr[-1000:]}")
    return python


def _run(folder: Path, python: Path, arm: str, name: str, module: str) -> outcomes.Results:
    report = folder / f"{name}-{arm}.xml"
    report.unlink(missing_ok=True)
    command = [str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:randomly", "-W", "ignore"]
    # numpy has modules that fail where there is no meson; without this nothing else would be run.
    command += ["--continue-on-collection-errors"]
    command += [f"--timeout={TEST_S}", f"--junit-xml={report}", "--pyargs", module]
    if arm == "recorded":
        command = [*support.COMMAND, "record", "-q", "--force", "-o", str(folder / f"{name}.tacho"), *command]
    with (folder / f"{name}-{arm}.txt").open("w", encoding="utf-8") as output:
        subprocess.run(command, cwd=folder, env=support.environment(), stdout=output, stderr=output, check=False)
    if not report.exists():
        raise SystemExit(f"{name} did not run {arm}: {(folder / f'{name}-{arm}.txt').read_text('utf-8')[-2000:]}")
    return outcomes.read_junit(report, prefix=name)
