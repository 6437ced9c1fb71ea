"""Sends an export to a server, in the form that the server documents.

``receivers`` makes the requests for Pyroscope, Parca and OTLP, ``http_client`` reads the URL and speaks HTTP.
Credentials come from the URL or the environment, go into one header, and are in no message.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...recording.question_options import ExportFormat
from ..extract import Extract
from .http_client import PushError, masked, parse_address, send
from .receivers import make_request

__all__ = ["PUSHABLE", "PushError", "push"]

PUSHABLE = (ExportFormat.PPROF, ExportFormat.OTLP)


def push(name: str, extract: Extract, data: bytes, url: str, environment: Mapping[str, str]) -> tuple[str, list[str]]:
    """Send an export in the format ``name``; returns its destination, and remarks.

    Errors:
        PushError: the URL is of no use, or the server did not take it.
    """
    request = make_request(name, extract, data, parse_address(url), environment)
    answer = send(request)
    return request.shown, [masked(request, each) for each in request.remarks(answer)]
