"""The memory limit of the control groups that the recording command is in."""

from __future__ import annotations

import builtins
import io
from collections.abc import Mapping
from typing import Any

import pytest

from tachograph.recorder.command.manifests import memory_limit


@pytest.mark.parametrize(
    ("files", "limit"),
    [
        ({"/proc/self/cgroup": "0::/a/b\n", "/sys/fs/cgroup/a/memory.max": "1000\n"}, 1000),
        (
            {
                "/proc/self/cgroup": "0::/a/b\n",
                "/sys/fs/cgroup/a/memory.max": "max\n",
                "/sys/fs/cgroup/a/b/memory.max": "3000\n",
                "/sys/fs/cgroup/memory.max": "5000\n",
            },
            3000,
        ),
        (
            {
                "/proc/self/cgroup": "5:cpu:/c\n4:memory,hugetlb:/m\n0::/\n",
                "/sys/fs/cgroup/memory/m/memory.limit_in_bytes": "700\n",
                "/sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
            },
            700,
        ),
        ({"/proc/self/cgroup": "0::/\n", "/sys/fs/cgroup/memory.max": "max\n"}, None),
        ({"/proc/self/cgroup": "nonsense\n"}, None),
        ({}, None),
    ],
)
def test_the_least_limit_counts(monkeypatch: pytest.MonkeyPatch, files: Mapping[str, str], limit: int | None) -> None:
    def opened(path: str, *_: Any, **__: Any) -> io.StringIO:
        if path not in files:
            raise FileNotFoundError(path)
        return io.StringIO(files[path])

    monkeypatch.setattr(builtins, "open", opened)
    assert memory_limit() == limit
