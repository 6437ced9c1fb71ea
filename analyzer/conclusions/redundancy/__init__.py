"""Redundant loads and stores: lines whose native calls repeat earlier work, by category.

``findings`` judges the pairs, ``borders`` tells where native code begins, ``categories`` reads the source. They are
imported for recordings that have such accesses: most have none, and that is all that is asked of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ...recording.opened import Recording

COLUMNS = (
    *("file", "line", "function", "partner_file", "partner_line", "kind", "category", "why", "remedy"),
    *("quantity_s", "quantity_s_low", "quantity_s_high", "redundant_share", "base_rate", "traps"),
    *("native_path", "partner_native_path", "line_cpu_s", "score", "witnesses"),
)
"""Columns of ``Profile.redundancies``."""


def was_watched(recording: Recording) -> bool:
    """True if any access was watched: no row means no watchpoints from the kernel, or no sampled Python thread."""
    return recording.recorded("redundancies") and recording.rows("redundancies") > 0
