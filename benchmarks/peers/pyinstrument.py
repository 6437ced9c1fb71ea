"""pyinstrument: wall-clock samples, as a call tree."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

from harness.peers import Peer, Shares, shares


def functions(recording: Path, _: Path) -> Shares:
    """What of each frame's time is not its children's."""
    own: Counter[str] = Counter()
    pending: list[dict[str, Any]] = [json.loads(recording.read_text(encoding="utf-8"))["root_frame"]]
    while pending:
        frame = pending.pop()
        children = frame["children"]
        rest = frame["time"] - sum(child["time"] for child in children if child["function"] != "[self]")
        own[frame["function"]] += rest
        pending += [child for child in children if child["function"] != "[self]"]
    return shares(own)


PEER = Peer(
    package="pyinstrument",
    arms={"pyinstrument": "{bin}/pyinstrument -r json -o {recording} {program}"},
    functions=functions,
    slow=("pyinstrument",),
)
