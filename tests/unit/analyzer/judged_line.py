"""A line of source that repeats native work, as it is judged from its text and the native functions on its paths."""

from __future__ import annotations

import textwrap

from tachograph.analyzer.conclusions.redundancy.candidates import Evidence, Kind
from tachograph.analyzer.conclusions.redundancy.categories import Verdict, categorise
from tachograph.analyzer.source_code.names import Names
from tachograph.analyzer.source_code.source import parse

INDEX = ["prepare_index", "array_subscript"]
POWER = ["DOUBLE_power", "ufunc_generic_fastcall"]
PRODUCT = ["dgemm_kernel", "DOUBLE_matmul_matrixmatrix"]
COPY = ["_aligned_strided_to_contig_size8", "array_assign_subscript"]
GENERIC = ["PyUFunc_DefaultLegacyInnerLoopSelector", "ufunc_generic_fastcall"]


def judged(
    source: str,
    path: list[str],
    *,
    kind: Kind = "load",
    partner: int | None = None,
    callers: tuple[int, ...] = (),
    grows: bool = False,
) -> Verdict:
    """The verdict on the line with a ``#`` at its end, all pairs of which were in one native path.

    ``callers`` are lines of the source, from 1.
    """
    text = "import numpy as np\n" + textwrap.dedent(source)
    line = next(number for number, each in enumerate(text.split("\n"), 1) if each.endswith("#"))
    module = parse(text)
    assert module is not None
    before = text.index(source) if source in text else len("import numpy as np\n")
    shift = text.count("\n", 0, before)
    partner = line if partner is None else partner
    names = Names(module)
    outer = [(names, shift + caller) for caller in callers]
    return categorise(names, Evidence(kind, [path] * 20, [path[0]] * 20, line, partner, outer, grows))
