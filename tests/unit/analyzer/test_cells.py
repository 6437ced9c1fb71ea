"""Cells of a notebook are shown by their numbers."""

from pathlib import Path

from tachograph.analyzer import Recording
from tachograph.analyzer.profile.build import build_profile
from tachograph.analyzer.profile.question import Question
from unit.analyzer.recordings import Builder


def test_lines_of_cells_have_the_numbers_of_the_cells(tmp_path: Path) -> None:
    builder = Builder(tmp_path / "cells.tacho")
    places = [
        builder.file("/tmp/ipykernel_7/12.py", "a = 1\nb = 2\n", 3, cell_id="id"),
        builder.file("<ipython-input-3-ab>", "c = 3\n", 3),
        builder.file("/srv/module.py", "d = 4\n"),
    ]
    for place in places:
        builder.cpu(builder.stack((builder.code(place, "<module>"), 0)))
    with Recording.open(builder.write()) as recording:
        lines = build_profile(recording, Question()).lines
    assert dict(zip(lines["file"], lines["source"], strict=True)) == {
        "In [3]": "a = 1",
        "In [3] (2)": "c = 3",
        "/srv/module.py": "d = 4",
    }
