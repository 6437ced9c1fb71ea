"""The page of suggestions: under each rule's heading, what stands under *after* has the same result as *before*."""

from __future__ import annotations

import gc
import re
import runpy
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "suggestions.md"
SECTION = re.compile(
    r"^### (?P<rule>[a-z-]+)$(?P<text>.*?)(?=^##|\Z)",
    re.MULTILINE | re.DOTALL,
)
BLOCK = re.compile(r"^<!-- (setup|before|after) -->\n```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
EXAMPLES = {
    match["rule"]: dict(BLOCK.findall(match["text"])) for match in SECTION.finditer(PAGE.read_text(encoding="utf-8"))
}


NOT_INSTALLED = {
    *("compiled-each-call", "compiled-each-run", "single-loader", "lazy-relation"),
    *("call-for-each-pair", "call-for-each-element", "made-again", "slower-form"),
    *("list-for-compiled", "hash-in-tests", "transformed-again", "one-row-each-time", "sparse-by-element"),
    *("compiled-steps", "encoded-in-python", "untyped-elements"),
    *("each-pair", "lazy-in-loop", "compiled-again", "pool-waits"),
}
"""Rules about libraries that the tests do without: their sections have no forms to run."""


def test_all_others_have_both_forms() -> None:
    assert {rule for rule, blocks in EXAMPLES.items() if not blocks} == NOT_INSTALLED


@pytest.fixture(autouse=True)
def _collector() -> Iterator[None]:
    """The collector is left as it was found."""
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)
    gc.unfreeze()


def outcome(program: Path, *texts: str) -> Any:
    """What the blocks have in ``result``, one after the other."""
    program.write_text("\n".join(texts), encoding="utf-8")
    if "__main__" in texts[-1]:
        # Its workers import the program, which must be the main one.
        with program.open("a", encoding="utf-8") as file:
            file.write("    print(result)\n")
        return subprocess.run([sys.executable, program], capture_output=True, text=True, check=True).stdout
    # In a thread of its own: tests with a browser leave an event loop running in this one.
    with ThreadPoolExecutor(1) as threads:
        result = threads.submit(runpy.run_path, str(program)).result()["result"]
    return result.tolist() if hasattr(result, "tolist") else result


@pytest.mark.parametrize("rule", [rule for rule, blocks in EXAMPLES.items() if blocks])
def test_both_forms_have_the_same_result(rule: str, tmp_path: Path) -> None:
    blocks = {"setup": "", **EXAMPLES[rule]}
    if "numpy" in blocks["setup"] or "pandas" in blocks["setup"]:
        pytest.importorskip("pandas")
    before, after = (outcome(tmp_path / f"{name}.py", blocks["setup"], blocks[name]) for name in ("before", "after"))
    assert before == after
    assert before not in (None, 0, [], "", "[]")
