"""The sources of the documentation's site; mkdocs itself is needed by `make docs` only."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from docs_site import LINK, converted, main, navigation


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site") / "made"
    main(folder)
    return folder


def test_every_page_is_in_the_menu_once(site: Path) -> None:
    source = site / "source"
    menu = json.loads((site / "mkdocs.yml").read_text("utf-8"))["nav"]
    listed = re.findall(r'"([^"]+\.md)"', json.dumps(menu))
    pages = {page.relative_to(source).as_posix() for page in source.rglob("*.md") if page.name != "index.md"}
    assert sorted(listed) == sorted(pages)
    assert {"README.md", "docs/glossary.md", "format-spec/SPEC.md", "CHANGELOG.md"} <= pages
    sections = [name for entry in menu for name in entry]
    assert sections[:4] == ["Home", "Documentation", "Tutorial", "How-to"]


def test_links_lead_to_files_of_the_site(site: Path) -> None:
    pages = [*(site / "source").rglob("*.md")]
    links = [(page, match[1]) for page in pages for match in LINK.finditer(page.read_text("utf-8"))]
    local = [(page, target) for page, target in links if "://" not in target]
    assert len(local) > 100
    assert [(page.name, target) for page, target in local if not (page.parent / target).is_file()] == []


def test_the_list_for_models_leads_to_pages(site: Path) -> None:
    source = site / "source"
    links = re.findall(r"\]\((.+)\)$", (source / "llms.txt").read_text("utf-8"), re.MULTILINE)
    assert "skills/tachograph/SKILL.md" in links
    assert len(links) > 40
    assert [link for link in links if not (source / link).is_file()] == []


def test_what_python_markdown_reads_in_another_way(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a.txt").write_text("a", encoding="utf-8")
    page = tmp_path / "page.md"
    assert converted("| `a\\|b` | x \\| y |\n`c\\|d` [data](data)", page) == (
        "| `a|b` | x \\| y |\n`c\\|d` [data](data/index.md)"
    )
    assert (tmp_path / "data" / "index.md").read_text("utf-8") == "# Files of data\n\n- [a.txt](a.txt)\n"


def test_pages_without_a_section_are_of_the_project(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    for name, text in (("docs/more.md", "text\n# `More` of it\n"), ("docs/none.md", "")):
        (tmp_path / name).write_text(text, encoding="utf-8")
    menu = [each for each in navigation(tmp_path, [Path("docs/more.md"), Path("docs/none.md")]) if "Project" in each]
    assert menu == [{"Project": [{"More of it": "docs/more.md"}, {"none": "docs/none.md"}]}]
