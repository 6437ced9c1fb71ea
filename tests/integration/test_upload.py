"""Recordings that are sent to a real S3 server while they are made."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tachograph.analyzer
from integration import support
from support.s3 import s3_server

pytestmark = [pytest.mark.native, pytest.mark.recording]

SECRET = "wJalrXUtnFEMI-K7MDENG-bPxRfiCY"
PROGRAM = "sum(n % 7 for n in range(3_000_000))"
WINDOWS = """
import time
from tachograph.recorder import snapshot
for _ in range(3):
    sum(n % 7 for n in range(2_000_000))
    snapshot()
    time.sleep(2.5)
"""


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The URL of an S3 server on this machine."""
    with s3_server() as url:
        yield url


def variables(url: str) -> dict[str, str]:
    return {
        **support.environment(),
        "AWS_ACCESS_KEY_ID": "AKIAIOSFODNN7EXAMPLE",
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_DEFAULT_REGION": "us-east-1",
        "FSSPEC_S3_ENDPOINT_URL": url,
    }


def store(url: str) -> Any:
    import fsspec

    return fsspec.filesystem(
        "s3", endpoint_url=url, key="AKIAIOSFODNN7EXAMPLE", secret=SECRET, use_listings_cache=False
    )


def tachograph_run(arguments: list[str], folder: Path, url: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tachograph", *arguments]
    return subprocess.run(
        command, cwd=folder, env=variables(url), capture_output=True, text=True, check=False, timeout=120
    )


def texts(recording: Path) -> str:
    """All that is in a recording, unpacked."""
    import zipfile

    import pyarrow.parquet as pq

    found = []
    with zipfile.ZipFile(recording) as archive:
        for name in archive.namelist():
            with archive.open(name) as member:
                found.append(
                    str(pq.read_table(member).to_pydict()) if name.endswith(".parquet") else str(member.read())
                )
    return "\n".join(found)


def test_a_recording_goes_to_the_store_without_secrets(server: str, tmp_path: Path) -> None:
    files = store(server)
    files.mkdir("profiles")
    told = tachograph_run(["record", "--output", "s3://profiles/shop", "-c", PROGRAM], tmp_path, server)
    assert told.returncode == 0, told.stderr
    (sent,) = files.ls("profiles/shop")
    assert f"in s3://{sent}; nothing lost; next: tachograph fleet top s3://profiles/shop" in told.stderr
    assert list(tmp_path.iterdir()) == []
    files.get_file(sent, str(tmp_path / "sent.tacho.zip"))
    with tachograph.analyzer.open(tmp_path / "sent.tacho.zip") as recording:
        assert recording.lines()["cpu_s"].sum() > 0.05
    everything = texts(tmp_path / "sent.tacho.zip")
    assert "sum(n % 7" in everything
    for secret in (SECRET, "AKIAIOSFODNN7EXAMPLE", server):
        assert secret not in everything


def test_a_store_that_is_away(server: str, tmp_path: Path) -> None:
    """There is no such bucket: the recording is kept, the line says how it is sent later, and the status is its own."""
    arguments = ["record", "--quiet", "--output", "s3://later/shop/a.tacho", "-c", f"{PROGRAM}; raise SystemExit(7)"]
    told = tachograph_run(arguments, tmp_path, server)
    assert told.returncode == 7
    (kept,) = tmp_path.iterdir()
    assert f"kept here: to try again, tachograph upload {kept.name} s3://later/shop/a.tacho" in told.stderr
    with tachograph.analyzer.open(kept) as recording:
        assert recording.lines()["cpu_s"].sum() > 0.05
    store(server).mkdir("later")
    told = tachograph_run(["upload", "--remove", kept.name, "s3://later/shop/a.tacho"], tmp_path, server)
    assert told.returncode == 0, told.stderr
    assert store(server).ls("later/shop") == ["later/shop/a.tacho.zip"]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_windows_go_one_by_one(server: str, tmp_path: Path) -> None:
    import tachograph.analyzer.fleet as fleets

    files = store(server)
    files.mkdir("windows")
    arguments = ["record", "--rotate", "1h", "--output", "s3://windows/shop", "-c", WINDOWS]
    told = tachograph_run(arguments, tmp_path, server)
    assert told.returncode == 0, told.stderr
    assert list(tmp_path.iterdir()) == []
    sent = files.ls("windows/shop")
    assert len(sent) >= 2
    assert f"(the last window; {len(sent) - 1} before it, {len(sent) - 1} sent)" in told.stderr
    options = {"endpoint_url": server, "key": "AKIAIOSFODNN7EXAMPLE", "secret": SECRET}
    fleet = fleets.open("s3://windows/shop", storage_options=options, index=str(tmp_path / "index"))
    assert fleet.left_out.empty
    assert len(fleet.recordings) == len(sent)
    assert fleet.recordings["cpu_s"].sum() > 0.2
