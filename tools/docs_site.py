"""Makes what mkdocs builds the documentation's site from: `make docs`.

The pages lie in the site as they do in the repository, so that links between them, and to the specification, the
change log and the examples, lead where they lead there. Changed is only what Python-Markdown reads in another way than
GitHub does: a link to a folder goes to a list of its files, and a `|` in code within a table needs no backslash.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SINGLE = (
    "README.md",
    "AGENTS.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "LICENSE",
    "format-spec/SPEC.md",
    "format-spec/SPOOL.md",
    "format-spec/WRITING.md",
    "format-spec/CHANGES.md",
    "format-spec/vectors/README.md",
    "tests/soak/README.md",
)
FOLDERS = ("docs", "editors", "examples", "skills")
SECTIONS = {
    "How-to": "docs/how-to",
    "Reference": "docs/reference",
    "Explanation": "docs/explanation",
    "Case studies": "docs/case-studies",
}
SPECIFICATION = tuple(
    Path("format-spec") / name for name in ("SPEC.md", "SPOOL.md", "WRITING.md", "CHANGES.md", "vectors/README.md")
)
GLOSSARY = Path("docs/glossary.md")
LINK = re.compile(r"\]\(([^)#\s]+)((?:#[^)]*)?)\)")
CODE = re.compile(r"`[^`\n]*`")


def copy_sources(root: Path, target: Path) -> list[Path]:
    """Copies pages and what they show and link to; returns the pages, relative to `target`."""
    for name in SINGLE:
        place = target / name
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(root / name, place)
    for name in FOLDERS:
        shutil.copytree(
            root / name, target / name, ignore=shutil.ignore_patterns("__pycache__", "node_modules", "out", ".*")
        )
    pages = sorted(target.rglob("*.md"))
    for page in pages:
        page.write_text(converted(page.read_text(encoding="utf-8"), page), encoding="utf-8")
    return [page.relative_to(target) for page in sorted(target.rglob("*.md"))]


def converted(text: str, page: Path) -> str:
    """A page as Python-Markdown wants it."""

    def link(match: re.Match[str]) -> str:
        place = page.parent / match[1]
        if "://" in match[1] or not place.is_dir():
            return match[0]
        _list_files(place)
        return f"]({match[1].rstrip('/')}/index.md{match[2]})"

    rows = (
        CODE.sub(lambda code: code[0].replace("\\|", "|"), line) if line.startswith("|") else line
        for line in text.split("\n")
    )
    return LINK.sub(link, "\n".join(rows))


def _list_files(folder: Path) -> None:
    """Writes a page with links to all files of a folder."""
    files = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    links = "\n".join(f"- [{name}]({name})" for name in files if name != "index.md")
    (folder / "index.md").write_text(f"# Files of {folder.name}\n\n{links}\n", encoding="utf-8")


def title(page: Path) -> str:
    """A page's first heading, without marks of code."""
    found = re.search(r"^# (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return found[1].replace("`", "") if found else page.stem


def navigation(source: Path, pages: list[Path]) -> list[dict[str, object]]:
    """What the site's menu has: every page once."""
    menu: list[dict[str, object]] = [
        {"Home": "README.md"},
        {"Documentation": "docs/README.md"},
        {"Tutorial": "docs/tutorial.md"},
    ]
    for name, folder in SECTIONS.items():
        inside = [page for page in pages if page.parent == Path(folder)]
        extra = [page for page in (*SPECIFICATION, GLOSSARY) if page in pages and name == "Reference"]
        menu.append({name: [{title(source / page): page.as_posix()} for page in (*inside, *extra)]})
    menu.append({"Benchmarks": "docs/benchmarks.md"})
    listed = set(re.findall(r'"([^"]+\.md)"', json.dumps(menu)))
    rest = [page for page in pages if page.as_posix() not in listed and page.name != "index.md"]
    return [*menu, {"Project": [{title(source / page): page.as_posix()} for page in rest]}]


def list_for_models(source: Path, pages: list[Path]) -> str:
    """The text of ``llms.txt``: the pages as Markdown, which ``make docs`` puts beside the HTML."""
    sections = {"Use": [Path("skills/tachograph/SKILL.md"), Path("docs/README.md"), Path("docs/tutorial.md")]}
    sections |= {name: [page for page in pages if page.parent == Path(folder)] for name, folder in SECTIONS.items()}
    lists = (
        f"## {name}\n\n" + "".join(f"- [{title(source / page)}]({page.as_posix()})\n" for page in inside)
        for name, inside in sections.items()
    )
    about = "> A two-phase profiler for Python: record where the program runs, analyze on any other machine."
    return "\n".join([f"# tachograph\n\n{about}\n", *lists])


def main(target: Path) -> None:
    """Writes the sources and the settings of mkdocs into a folder, which is made anew."""
    shutil.rmtree(target, ignore_errors=True)
    source = target / "source"
    source.mkdir(parents=True)
    pages = copy_sources(ROOT, source)
    (source / "llms.txt").write_text(list_for_models(source, pages), encoding="utf-8")
    settings = {
        "INHERIT": str(ROOT / "mkdocs.yml"),
        "docs_dir": str(source),
        "site_dir": str(target.parent / "html"),
        "nav": navigation(source, pages),
    }
    (target / "mkdocs.yml").write_text(json.dumps(settings, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
