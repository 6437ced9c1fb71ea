"""What reports say of native threads: what they used, and how much of that is charged to lines, and how."""

from __future__ import annotations

from ..profile.profile import Totals
from .numbers import percent, seconds

LEAST_SHARE = 0.005
"""Native threads are mentioned if they used this part of the CPU time."""


def charges_pools(totals: Totals) -> bool:
    """Whether enough of the CPU time is charged to lines as native threads' to have a column of its own."""
    charged = totals.pool_cpu_s - totals.pool_unattributed_s
    return charged > 0 and charged >= LEAST_SHARE * totals.cpu_s


def pool_facts(totals: Totals) -> list[tuple[str, str]]:
    """Amounts, each with what it is; none where native threads did hardly anything."""
    pool = totals.pool_cpu_s
    if pool <= 0 or pool < LEAST_SHARE * totals.cpu_s:
        return []

    def share(part: float) -> str:
        return f"{percent(part / pool) or '0'} %"

    charged, other = pool - totals.pool_unattributed_s, totals.pool_unattributed_s - totals.pool_waiting_s
    facts = [(seconds(pool), "CPU")]
    if charged > 0:
        facts.append((share(charged), "charged to the lines that asked, by where Python threads were"))
    if totals.pool_shared_s > 0:
        facts.append((share(totals.pool_shared_s), "shared out among several that may have asked"))
    if totals.pool_waiting_s > 0:
        facts.append((share(totals.pool_waiting_s), "waiting for work"))
    if other > 0:
        facts.append((share(other), "unattributed"))
    return facts
