"""The spans in the terminal report."""

from __future__ import annotations

import math
from collections.abc import Iterator

from rich.text import Text

from ...profile.profile import Profile
from ...recording.frame import Row
from ...recording.text import printable
from ...report_data.numbers import short_seconds, short_size
from .style import Style

MAX_SPANS = 15


def span_lines(profile: Profile, style: Style, width: int) -> Iterator[Text]:
    """The section about spans; nothing if there are none."""
    if not profile.frames.spans:
        return
    spans = list(profile.frames.spans.rows())
    text = Text().append(" Spans ", "bold reverse" if style.colour else "bold")
    yield text.append(style.plain("  with the spans within them; of their own threads only"), "dim")
    yield Text(f"{'count':>8}{'time':>8}{'CPU':>8}{'wait':>8}{'alloc.':>9}{'kept':>9}{'copied':>9}  span", "dim")
    named = spans[:-1]
    for row in named[:MAX_SPANS]:
        yield _span(row, width)
    if len(named) > MAX_SPANS:
        yield Text(f"{'':>8}and {len(named) - MAX_SPANS} more (--json has them all)", "dim")
    yield _span(spans[-1], width)
    yield Text()


def _span(row: Row, width: int) -> Text:
    count = "" if row["count"] is None else f"{row['count']}"
    text = Text(f"{count:>8}")
    text.append(f"{'' if math.isnan(row['duration_s']) else short_seconds(row['duration_s']):>8}")
    text.append(f"{short_seconds(row['total_cpu_s']):>8}", "bold").append(f"{short_seconds(row['total_wait_s']):>8}")
    for name in ("allocated_bytes", "live_at_end_bytes", "copied_bytes"):
        text.append(f"{short_size(row[f'total_{name}']):>9}")
    return text.append("  ").append(printable(str(row["name"]), max(8, width - text.cell_len - 3)))
