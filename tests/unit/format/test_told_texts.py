"""Texts of code that no file has: from the spool into the table of files."""

import hashlib
import json
from pathlib import Path

from support.written_spools import write_spool
from tachograph.format import SpoolDirectory, assemble, load_specification
from tachograph.format.spool.told_texts import ToldText, encode_texts

CELL = "<ipython-input-3-abc>"


def spool_of(tmp_path: Path, *files: bytes) -> SpoolDirectory:
    write_spool(tmp_path, 3, file=CELL)
    for number, data in enumerate(files):
        (tmp_path / f"texts.{number:06}.jsonl").write_bytes(data)
    return SpoolDirectory(tmp_path)


def test_a_told_text_is_the_source_and_no_file_is_read(tmp_path: Path) -> None:
    text = "x = 'é\udc80'\n"
    spool = spool_of(tmp_path, encode_texts({CELL: ToldText(text, 3, "an-id"), "<other>": ToldText("1")}))

    def read_source(path: str, codes: object) -> bytes | None:
        assert path != CELL
        return None

    made = assemble(spool, load_specification(), read_source=read_source)
    (row,) = [row for row in made.table("files").to_pylist() if row["path"] == CELL]
    data = text.encode("utf-8", "surrogatepass")
    assert (row["sha256"], row["size"]) == (hashlib.sha256(data).hexdigest(), len(data))
    assert (row["source"], row["cell"], row["cell_id"]) == ("x = 'é\\udc80'\n", 3, "an-id")
    assert "<other>" not in made.table("files").column("path").to_pylist()
    assert made.quality == []


def test_without_sources_only_their_digest_is_kept(tmp_path: Path) -> None:
    made = assemble(
        spool_of(tmp_path, encode_texts({CELL: ToldText("x = 1\n", 3)})), load_specification(), store_sources=False
    )
    (row,) = made.table("files").to_pylist()
    assert (row["source"], row["size"], row["cell"], row["cell_id"]) == (None, 6, 3, None)


def test_the_last_text_counts(tmp_path: Path) -> None:
    spool = spool_of(tmp_path, encode_texts({CELL: ToldText("old", 3)}), encode_texts({CELL: ToldText("new", 4)}))
    assert spool.told_texts() == ({CELL: ToldText("new", 4)}, 0)


def test_damaged_lines_are_counted_and_the_others_are_read(tmp_path: Path) -> None:
    whole = {"path": CELL, "text": "x"}
    bad = [
        b"\xff", b"[" * 100_000, b"[]", b'{"path": 1, "text": "x"}', b'{"path": "a"}',
        json.dumps({**whole, "cell": -1}).encode(), json.dumps({**whole, "cell": True}).encode(),
        json.dumps({**whole, "cell": 1 << 32}).encode(), json.dumps({**whole, "cell_id": "x" * 300}).encode(),
    ]  # fmt: skip
    spool = spool_of(tmp_path, b"\n".join([*bad, json.dumps(whole).encode()]))
    (tmp_path / "texts.000001.jsonl").symlink_to("/etc/passwd")
    assert spool.told_texts() == ({CELL: ToldText("x")}, len(bad) + 1)
    made = assemble(spool, load_specification())
    assert made.quality == [{"process": None, "loss": "records_torn", "count": len(bad) + 1}]
