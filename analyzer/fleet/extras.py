"""Imports the packages of ``tachograph[fleet]``, with one line of error where they are missing."""

from __future__ import annotations

from importlib.util import find_spec

from tachograph.format import FormatError

NEEDED = ("pandas", "dask", "fsspec", "duckdb")
"""Modules that every question needs."""

BY_PROTOCOL = {"s3": "s3fs", "gs": "gcsfs", "gcs": "gcsfs", "abfs": "adlfs", "az": "adlfs", "http": "aiohttp"}
"""Modules that URLs need, by their protocol. ``tachograph[fleet]`` brings s3fs."""


def require(*modules: str) -> None:
    """Raise FormatError, one line with the command to install it, if a module is missing."""
    missing = [name for name in modules if find_spec(name) is None]
    if missing:
        raise FormatError(f"a fleet needs {' and '.join(missing)}: pip install 'tachograph[fleet]'")


def require_for(url: str) -> None:
    """Raise FormatError if a module for questions about ``url`` is missing."""
    require(*NEEDED)
    protocol, separator, _ = url.partition("://")
    module = BY_PROTOCOL.get(protocol.partition("::")[0]) if separator else None
    if module is not None and find_spec(module) is None:
        package = "'tachograph[fleet]'" if module == "s3fs" else module
        raise FormatError(f"{protocol}:// needs {module}: pip install {package}")
