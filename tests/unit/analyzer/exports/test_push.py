"""``export --push`` against a server on this machine: what it is sent has the form that each receiver documents."""

from __future__ import annotations

import base64
import contextlib
import email
import email.policy
import gzip
import json
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tachograph.analyzer.commands.export import export
from tachograph.analyzer.exports.protobuf import Message
from tachograph.analyzer.exports.push import PushError
from tachograph.analyzer.exports.push.http_client import Answer, Request, parse_address, send
from unit.analyzer.exports import program
from unit.analyzer.exports.conftest import pprof_module
from unit.analyzer.exports.stand_in_server import Received, Reply, Server, server

SECRET = "s3cr3t-token"


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return program.write(tmp_path_factory.mktemp("push") / "run.tacho")


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")
    for name in ("TACHOGRAPH_PUSH_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_PROFILES_HEADERS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    yield
    assert [path for path in tmp_path.iterdir() if path.suffix not in (".gz", ".pb")] == []


Push = Callable[..., Result]


@pytest.fixture
def push(recording: Path) -> Push:
    def push(name: str, url: str, *more: str) -> Result:
        return CliRunner().invoke(export, [name, str(recording), "--push", url, *more])

    return push


def taken(result: Result, target: Server) -> Received:
    """The one request of a push that succeeded, and what the user is told."""
    assert result.exit_code == 0, result.output
    (received,) = target.received
    assert result.output.splitlines()[-1].endswith(f" of run.tacho pushed to {target.url}{received.path}")
    assert received.method == "POST"
    assert received.headers["user-agent"].startswith("tachograph/")
    return received


def refusal(result: Result) -> str:
    assert result.exit_code == 2, result.output
    (line,) = result.output.splitlines()
    return line.removeprefix("tachograph: ")


def form(received: Received) -> dict[str, bytes]:
    """The files of a form, by their fields."""
    head = f"Content-Type: {received.headers['content-type']}\r\n\r\n".encode()
    message = email.message_from_bytes(head + received.body, policy=email.policy.HTTP)
    assert message.get_content_type() == "multipart/form-data"
    parts = list(message.iter_parts())
    assert all(part.get_content_disposition() == "form-data" and part.get_filename() for part in parts)
    return {
        str(part.get_param("name", header="content-disposition")): bytes(part.get_payload(decode=True))
        for part in parts
    }


def pprof(data: bytes, folder: Path) -> Any:
    profile = pprof_module(folder).Profile()
    profile.ParseFromString(gzip.decompress(data))
    return profile


def test_pyroscope_gets_a_form_and_the_time(push: Push, tmp_path_factory: pytest.TempPathFactory) -> None:
    with server() as target:
        received = taken(push("pprof", f"{target.url}/ingest"), target)
    assert received.path == "/ingest"
    assert received.query == {
        "name": ["program.py{}"],
        "from": ["1700000000"],
        "until": ["1700000010"],
        "format": ["pprof"],
        "spyName": ["tachograph"],
    }
    files = form(received)
    # Pyroscope knows CPU time by itself.
    assert [*files] == ["profile"]
    profile = pprof(files["profile"], tmp_path_factory.mktemp("parser"))
    assert sum(sample.value[1] for sample in profile.sample) == sum(program.CPU.own.values())


def test_pyroscope_is_told_of_types_that_it_does_not_know(push: Push) -> None:
    with server() as target:
        files = form(taken(push("pprof", f"{target.url}/prefix/ingest/", "--metric", "wait"), target))
    assert json.loads(files["sample_type_config"]) == {
        "wait": {"units": "samples", "aggregation": "sum", "display-name": "wait", "sampled": False}
    }
    with server() as target:
        files = form(taken(push("pprof", f"{target.url}/ingest", "--metric", "heap"), target))
    assert [*files] == ["profile"]


def test_parameters_of_the_url_win(push: Push) -> None:
    with server() as target:
        received = taken(push("pprof", f"{target.url}/ingest?name=shop%7Bregion%3Deu%7D&token={SECRET}"), target)
    assert received.query["name"] == ["shop{region=eu}"]
    assert received.query["token"] == [SECRET]


def test_parca_gets_its_json(push: Push, tmp_path_factory: pytest.TempPathFactory) -> None:
    with server(Reply(200, b"{}", {"Content-Type": "application/json"})) as target:
        received = taken(push("pprof", f"{target.url}/api/profiles/writeraw", "--metric", "heap"), target)
    assert received.headers["content-type"] == "application/json"
    document = json.loads(received.body)
    (series,) = document.pop("series")
    assert document == {"normalized": True}
    assert {each["name"]: each["value"] for each in series["labels"]["labels"]} == {
        "__name__": "memory",
        "job": "program.py",
    }
    (sample,) = series["samples"]
    profile = pprof(base64.b64decode(sample["rawProfile"], validate=True), tmp_path_factory.mktemp("parser"))
    assert sum(each.value[3] for each in profile.sample) == sum(program.LIVE.own.values())


def test_a_collector_gets_otlp(push: Push) -> None:
    from opentelemetry.proto.collector.profiles.v1development import profiles_service_pb2

    with server(Reply(200, b"", {"Content-Type": "application/x-protobuf"})) as target:
        received = taken(push("otlp", target.url), target)
    assert received.path == "/v1development/profiles"
    assert received.headers["content-type"] == "application/x-protobuf"
    assert received.headers["content-encoding"] == "gzip"
    request = profiles_service_pb2.ExportProfilesServiceRequest()
    request.ParseFromString(gzip.decompress(received.body))
    (profile, _) = request.resource_profiles[0].scope_profiles[0].profiles
    assert sum(each.values[0] for each in profile.samples) == sum(program.CPU.own.values())
    with server() as target:
        assert taken(push("otlp", f"{target.url}/else/where"), target).path == "/else/where"


def test_a_file_as_well_where_one_is_named(push: Push, tmp_path: Path) -> None:
    with server() as target:
        result = push("otlp", target.url, "-o", "run.otlp.pb")
    assert "CPU time of run.tacho in run.otlp.pb" in result.output
    assert gzip.decompress(target.received[0].body) == (tmp_path / "run.otlp.pb").read_bytes()


def test_credentials_are_sent_and_never_shown(push: Push, monkeypatch: pytest.MonkeyPatch) -> None:
    echo = Reply(401, f"no such token: {SECRET}; nor {base64.b64encode(b'me:pass%word').decode()}".encode())
    with server(echo) as target:
        address = target.url.replace("http://", "http://me:pass%25word@")
        said = refusal(push("otlp", f"{address}?key={SECRET}"))
    code = base64.b64encode(b"me:pass%word").decode()
    assert target.received[0].headers["authorization"] == f"Basic {code}"
    shown = f"{target.url}/v1development/profiles"
    assert said == f"{shown} answered 401 Unauthorized: no such token: ***; nor ***"
    monkeypatch.setenv("TACHOGRAPH_PUSH_HEADERS", f"Authorization=Bearer%20{SECRET}, X-Scope-OrgID=team")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-scope-orgid=other,x-more=1")
    with server(echo) as target:
        assert SECRET not in refusal(push("otlp", target.url))
        assert SECRET not in refusal(push("pprof", f"{target.url}/ingest"))
    of_otlp, of_pprof = (each.headers for each in target.received)
    assert of_otlp["authorization"] == of_pprof["authorization"] == f"Bearer {SECRET}"
    assert (of_otlp["x-scope-orgid"], of_otlp["x-more"]) == ("other", "1")
    assert of_pprof["x-scope-orgid"] == "team"
    assert "x-more" not in of_pprof


@pytest.mark.parametrize("text", ["Authorization", "a b=c", "a=b%0d%0ac: d", "=x"])
def test_headers_that_are_none(push: Push, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("TACHOGRAPH_PUSH_HEADERS", f"ok=1,{text}")
    said = refusal(push("otlp", "http://127.0.0.1:1"))
    assert said == "entry 2 of TACHOGRAPH_PUSH_HEADERS is not NAME=VALUE of a header"


@pytest.mark.parametrize(
    "url", ["", "localhost:4318", "ftp://host/ingest", "http://", "http://host:99999", "http://a b/", "http://[::1"]
)
def test_urls_that_are_none(push: Push, url: str) -> None:
    assert refusal(push("otlp", url)).startswith("--push wants a URL such as http://localhost:4318")


def test_what_does_not_go_together(push: Push) -> None:
    assert refusal(push("speedscope", "http://host")) == ("--push sends pprof or otlp; speedscope is written to a file")
    assert "the URL has to end with /ingest (Pyroscope) or /api/profiles/writeraw (Parca)" in refusal(
        push("pprof", "http://me:secret@host/other")
    )


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (Reply(404, b"<html>", {"Content-Type": "text/html"}), "answered 404 Not Found"),
        (Reply(403), "answered 403 Forbidden: credentials are missing or wrong"),
        (
            Reply(302, b"", {"Location": "http://127.0.0.1:1/"}),
            "answered 302 Found: name the URL that it redirects to",
        ),
        (
            Reply(400, b'{"code":3,"message":"profile\\ntoo old","details":[]}', {"Content-Type": "application/json"}),
            "answered 400 Bad Request: profile too old",
        ),
        (Reply(422, b"line one\n\x1b[31mline two"), "answered 422 Unprocessable"),
        (Reply(799), "answered 799"),
    ],
)
def test_refusals_are_one_line(push: Push, reply: Reply, said: str) -> None:
    with server(reply) as target:
        line = refusal(push("pprof", f"{target.url}/ingest"))
    assert line.startswith(f"{target.url}/ingest {said}")
    assert "\x1b" not in line
    assert len(target.received) == 1


def test_otlp_answers_in_protocol_buffers(push: Push) -> None:
    from opentelemetry.proto.collector.profiles.v1development import profiles_service_pb2

    kind = {"Content-Type": "application/x-protobuf"}
    # google.rpc.Status: code and message.
    status = Message().number(1, 3).text(2, "no such signal").to_bytes()
    with server(Reply(400, status, kind)) as target:
        assert refusal(push("otlp", target.url)).endswith("answered 400 Bad Request: no such signal")
    answer = profiles_service_pb2.ExportProfilesServiceResponse()
    answer.partial_success.rejected_profiles = 2
    answer.partial_success.error_message = "too large"
    with server(Reply(200, answer.SerializeToString(), kind)) as target:
        result = push("otlp", target.url)
    assert "tachograph: 2 profiles were refused: too large\n" in result.output
    assert result.exit_code == 0
    # Damaged ones say nothing, and end.
    for data in (b"\x0a\xff", b"\x80" * 20, b"\x0a\x05ab", b"\x07\x07"):
        with server(Reply(200, data, kind)) as target:
            assert push("otlp", target.url).exit_code == 0


def test_a_busy_server_is_asked_again(push: Push) -> None:
    busy = Reply(503, b"busy", {"Retry-After": "0"})
    with server(busy, Reply(429, b"", {"Retry-After": "0"}), Reply()) as target:
        assert push("otlp", target.url).exit_code == 0
    assert len({each.body for each in target.received}) == 1
    assert len(target.received) == 3
    with server(busy) as target:
        assert refusal(push("otlp", target.url)).endswith("answered 503 Service Unavailable, 3 times: busy")
    with server(Reply(503, b"", {"Retry-After": "3600"})) as target:
        assert refusal(push("otlp", target.url)).endswith("answered 503 Service Unavailable")
    assert len(target.received) == 1


def request(url: str) -> Request:
    return Request(url, url, {}, b"body", lambda answer: answer.body.decode(), lambda _: [])


def test_waits_grow_where_the_server_does_not_say() -> None:
    waits: list[float] = []
    with server(Reply(502)) as target, pytest.raises(PushError, match="answered 502 Bad Gateway, 3 times"):
        send(request(target.url), sleep=waits.append)
    assert 0.75 <= waits[0] <= 1.25 < 1.5 <= waits[1] <= 2.5
    with server(Reply(429, b"", {"Retry-After": "Mon, 01 Jan 2001 00:00:00 GMT"}), Reply()) as target:
        assert send(request(target.url), sleep=waits.append) == Answer(200, "", b"")
    assert waits[2:] == [0.0]


def test_a_server_that_is_not_there(push: Push) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    said = refusal(push("otlp", f"http://127.0.0.1:{port}"))
    assert said == f"cannot push to http://127.0.0.1:{port}/v1development/profiles: Connection refused"


def test_a_server_that_says_nothing() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        with pytest.raises(PushError, match=f"cannot push to {url}: no answer within 0.05 s"):
            send(request(url), timeout_s=0.05)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (b"220 mail.example ESMTP\r\n", "it does not speak HTTP"),
        (b"", "it does not speak HTTP|Connection reset by peer"),
        (b"HTTP/1.1 200 OK\r\n\r\n" + bytes(5 << 20), "answered 200 and more than 4 MiB"),
    ],
)
def test_a_server_of_another_kind(answer: bytes, said: str) -> None:
    def serve() -> None:
        connection, _ = listening.accept()
        with connection:
            # What is not read when the connection is closed would reset it.
            asked = b""
            while not asked.endswith(b"body"):
                asked += connection.recv(1 << 16)
            # The client may have had enough.
            with contextlib.suppress(OSError):
                connection.sendall(answer)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=serve)
        thread.start()
        with pytest.raises(PushError, match=said):
            send(request(f"http://127.0.0.1:{listening.getsockname()[1]}"))
        thread.join()


def test_addresses() -> None:
    address = parse_address("https://me:p%40ss@[::1]:4318/a/b?x=1&y=2")
    assert address.url == "https://[::1]:4318/a/b?x=1&y=2"
    assert address.shown == "https://[::1]:4318/a/b"
    assert address.authorization == f"Basic {base64.b64encode(b'me:p@ss').decode()}"
