"""What keeps a wrong tag from being released."""

from __future__ import annotations

from pathlib import Path

import pytest
from release_version import obstacle, version


@pytest.mark.parametrize(
    ("tag", "heading", "said"),
    [
        ("v1.2.0", "## [1.2.0] - 2026-11-23", ""),
        ("v1.2.1", "## [1.2.0] - 2026-11-23", "the tag is v1.2.1, and the package v1.2.0 (src/tachograph/__init__.py)"),
        ("v1.2.0", "## [Unreleased]", "CHANGELOG.md has no section '## [1.2.0] - YYYY-MM-DD'"),
        ("v1.2.0", "## [1.2.0]", "CHANGELOG.md has no section '## [1.2.0] - YYYY-MM-DD'"),
        ("v1.2.0", "## [1x2.0] - 2026-11-23", "CHANGELOG.md has no section '## [1.2.0] - YYYY-MM-DD'"),
    ],
)
def test_a_tag_agrees_with_package_and_change_log(tmp_path: Path, tag: str, heading: str, said: str) -> None:
    (tmp_path / "src" / "tachograph").mkdir(parents=True)
    (tmp_path / "src" / "tachograph" / "__init__.py").write_text(
        '"""Doc."""\n\n__version__ = "1.2.0"\n', encoding="utf-8"
    )
    (tmp_path / "CHANGELOG.md").write_text(f"# Changelog\n\n{heading}\n\n- more\n", encoding="utf-8")
    assert obstacle(tag, tmp_path) == said


def test_the_version_is_that_of_the_package() -> None:
    from tachograph import __version__

    assert version() == __version__
