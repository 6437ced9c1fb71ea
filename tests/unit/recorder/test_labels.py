"""Labels: how they are written, where they come from, and that none of them keeps a program from starting."""

from __future__ import annotations

from pathlib import Path

import pytest

from tachograph.recorder.command.command_line import read
from tachograph.recorder.labels.label_text import MAX_KEY, MAX_LABELS, MAX_LIST, MAX_VALUE, parse_label, parse_labels
from tachograph.recorder.labels.labels import gather_labels, read_environment
from tachograph.recorder.problems import Refused


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("version=1.4", ("version", "1.4")),
        (" a = b ", ("a", "b")),
        ("app.kubernetes.io/name=shop", ("app.kubernetes.io/name", "shop")),
        ("query=a=b", ("query", "a=b")),
        ("city=Köln", ("city", "Köln")),
        (f"{'k' * MAX_KEY}={'v' * MAX_VALUE}", ("k" * MAX_KEY, "v" * MAX_VALUE)),
    ],
)
def test_a_label(text: str, label: tuple[str, str]) -> None:
    assert parse_label(text) == label


@pytest.mark.parametrize(
    "text",
    [
        *("", "=", "a", "=b", "a=", "a= ", "1a=b", "a b=c", "ä=b", "a=b\nc", "a=\x1b[31m", "a=\udc80"),
        *(f"{'k' * (MAX_KEY + 1)}=v", f"k={'v' * (MAX_VALUE + 1)}", "x" * 10**6),
    ],
)
def test_what_is_no_label_is_told_in_one_short_line(text: str) -> None:
    with pytest.raises(ValueError) as caught:
        parse_label(text)
    message = str(caught.value)
    assert message.isprintable()
    assert len(message) < 200


def test_a_list() -> None:
    assert parse_labels("a=1, b=x%2Cy%20z,,a=2,c=%C3%A4") == {"a": "2", "b": "x,y z", "c": "ä"}
    assert parse_labels("") == {}


@pytest.mark.parametrize(
    "text", ["a", "a=1,b", "a=%FF", "a=%0A", "a=1" * MAX_LIST, ",".join(f"k{n}=v" for n in range(MAX_LABELS + 1))]
)
def test_what_is_no_list(text: str) -> None:
    with pytest.raises(ValueError):
        parse_labels(text)


def test_what_other_tools_say() -> None:
    environment = {
        "RANK": "3",
        "WORLD_SIZE": "8",
        "SLURM_PROCID": "3",
        "SLURM_JOB_NAME": "night run",
        "POD_NAME": "shop-7d4b9-x2lqz",
        "KUBERNETES_SERVICE_HOST": "10.0.0.1",
        "OTEL_RESOURCE_ATTRIBUTES": "service.name=other,service.version=1.4,deployment.environment=prod",
        "OTEL_SERVICE_NAME": "shop",
    }
    assert read_environment(environment).labels == {
        "rank": "3",
        "world_size": "8",
        "slurm.procid": "3",
        "slurm.job_name": "night run",
        "k8s.pod.name": "shop-7d4b9-x2lqz",
        "service.name": "shop",
        "service.version": "1.4",
        "deployment.environment": "prod",
    }


def test_variables_that_mean_something_else_give_no_labels() -> None:
    found = read_environment({"RANK": "sergeant", "WORLD_SIZE": "-1", "NODE_NAME": "built-in", "POD_NAME": "x"})
    assert (found.labels, found.notes) == ({}, ())
    assert read_environment({"OMPI_COMM_WORLD_RANK": "2", "SLURM_JOB_NAME": "a\nb"}).labels == {"rank": "2"}


def test_a_broken_variable_of_another_tool_is_noted_and_ours_is_refused() -> None:
    found = read_environment({"OTEL_RESOURCE_ATTRIBUTES": "a=1,nonsense", "OTEL_SERVICE_NAME": "shop"})
    assert found.labels == {"service.name": "shop"}
    assert found.notes == ("OTEL_RESOURCE_ATTRIBUTES gave no labels: 'nonsense' is not KEY=VALUE, such as version=1.4",)
    with pytest.raises(Refused, match=r"^TACHOGRAPH_LABELS: 'nonsense' is not KEY=VALUE"):
        read_environment({"TACHOGRAPH_LABELS": "nonsense"})


def test_what_is_typed_goes_before_the_environment() -> None:
    options = read(["--label", "a=typed", "--label=b=first", "--label", "b=second", "x.py"]).options({})
    found = gather_labels(
        options.labels, {"TACHOGRAPH_LABELS": "a=ours,c=ours", "OTEL_RESOURCE_ATTRIBUTES": "c=otel,d=otel"}
    )
    assert found.given == {"a": "typed", "b": "second", "c": "ours", "d": "otel"}


def test_too_many() -> None:
    with pytest.raises(Refused, match=f"^there are {MAX_LABELS + 1} labels, more than {MAX_LABELS}: leave some out$"):
        gather_labels([(f"k{number}", "v") for number in range(MAX_LABELS)], {"RANK": "0"})


def test_secrets_are_masked() -> None:
    labels = gather_labels([("api.token", "abc"), ("url", "https://me:pw@host/x"), ("version", "1.4")], {})
    assert labels.masked() == {"api.token": "***", "url": "https://***@host/x", "version": "1.4"}


def test_a_commit_that_was_given_is_not_looked_up(tmp_path: Path) -> None:
    assert gather_labels([("git.commit", "abc")], {}, [str(Path(__file__).parent)]).of_repository() == {}
    assert gather_labels([], {}, [str(tmp_path)]).of_repository() == {}
