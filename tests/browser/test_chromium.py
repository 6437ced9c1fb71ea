"""The browser is found, or brought, or the run of the tests says that there is none."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from browser import chromium

APT = r"""#!/bin/sh
echo "$@" >> {log}
case "$1" in
install) test -e {log}.updated && printf '#!/bin/sh\n' > {bin}/chromium && chmod +x {bin}/chromium ;;
update) touch {log}.updated ;;
esac
"""


@pytest.fixture
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is all there is in PATH, for a user without a cache."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for tool in ("sh", "touch", "chmod"):
        (folder / tool).symlink_to(f"/usr/bin/{tool}")
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return folder


def executable(path: Path, text: str = "#!/bin/sh\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)
    return path


def test_found_by_name(empty: Path) -> None:
    assert chromium.find() is None
    assert chromium.bring() is None  # there is no apt-get
    browser = executable(empty / "google-chrome")
    assert chromium.find() == chromium.bring() == str(browser)


def test_playwrights_own(empty: Path, tmp_path: Path) -> None:
    browser = executable(tmp_path / "cache" / "ms-playwright" / "chromium-1200" / "chrome-linux" / "chrome")
    assert chromium.find() == str(browser)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root installs")
def test_debians_is_installed(empty: Path, tmp_path: Path) -> None:
    """Also where the lists of packages are missing, as in an image of a container."""
    log = tmp_path / "log"
    executable(empty / "apt-get", APT.format(log=log, bin=empty))
    assert chromium.bring() == str(empty / "chromium")
    assert [line.split()[0] for line in log.read_text(encoding="utf-8").splitlines()] == [
        "install",
        "update",
        "install",
    ]


@pytest.mark.parametrize("needed", ["", "1"])
def test_a_run_without_a_browser_says_so_or_fails(empty: Path, needed: str) -> None:
    """In its last lines."""
    pytest.importorskip("playwright.sync_api")
    folder = Path(__file__).parents[2]
    report = folder / "tests" / "browser" / "test_report.py"
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            f"{report}::test_a_page_without_spans_has_no_table_of_them",
        ],
        cwd=folder,
        env={**os.environ, chromium.NEEDED: needed, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    last = "\n".join(done.stdout.splitlines()[-6:])
    assert done.returncode == (1 if needed else 0), done.stdout[-2000:]
    assert chromium.MISSING in last
