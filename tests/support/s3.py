"""An S3 server on this machine (moto)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest


@contextmanager
def s3_server() -> Iterator[str]:
    """The URL of a server without buckets; moto keeps what it stores for the whole process, so it is emptied at first.

    Skips the test where moto or s3fs is not installed.
    """
    module = pytest.importorskip("moto.server")
    pytest.importorskip("s3fs")
    from moto.moto_api._internal.models import moto_api_backend

    moto_api_backend.reset()
    server = module.ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    try:
        host, port = server.get_host_and_port()
        yield f"http://{host}:{port}"
    finally:
        server.stop()
