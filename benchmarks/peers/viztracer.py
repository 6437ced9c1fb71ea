"""VizTracer: traces every call, and keeps the last million of them."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

from harness.peers import Peer, Shares, shares


def functions(recording: Path, _: Path) -> Shares:
    """Own times of functions in Python, with those of the C functions that they call."""
    return shares(own_times(json.loads(written(recording).read_text(encoding="utf-8"))["traceEvents"]))


def calls(recording: Path, _: Path) -> Counter[str]:
    """Calls of functions in Python."""
    events = json.loads(written(recording).read_text(encoding="utf-8"))["traceEvents"]
    return Counter(each["name"].partition(" (")[0] for each in events if each["ph"] == "X" and " (" in each["name"])


def written(recording: Path) -> Path:
    """The file that it wrote, whose name must say what it is."""
    return recording.with_name(recording.name + ".json")


def own_times(events: list[dict[str, Any]]) -> Counter[str]:
    """By function, in microseconds. Those of Python have their file in the name: `f (file.py:7)`."""
    calls = [each for each in events if each["ph"] == "X" and " (" in each["name"]]
    calls.sort(key=lambda each: (each["tid"], each["ts"], -each["dur"]))
    own: Counter[str] = Counter()
    around: list[tuple[Any, float, str]] = []
    """Thread, end and name of the calls that are not over."""
    for call in calls:
        name, end = call["name"].partition(" (")[0], call["ts"] + call["dur"]
        while around and (around[-1][0] != call["tid"] or around[-1][1] < end):
            around.pop()
        if around:
            own[around[-1][2]] -= call["dur"]
        own[name] += call["dur"]
        around.append((call["tid"], end, name))
    return own


PEER = Peer(
    package="viztracer",
    arms={"VizTracer": "{bin}/viztracer --quiet -o {recording}.json {program}"},
    functions=functions,
    calls=calls,
    slow=("VizTracer",),
)
