"""Replaces what gives away who ran what and where, and keeps what the analysis asks of it."""

from __future__ import annotations

import re
from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from ...samples.native_frames import GPU_DRIVER, RECORDER, RUNTIME
from ...samples.scope import Scope

PLACE = "/scrubbed"
"""Where everything that had a path is put."""

_NO_NAME = re.compile(r"<[a-z ]{1,20}>")
"""Names that Python gives by itself: <module>, <lambda>, <string>."""

_SUFFIX = re.compile(r"\.(py|pyc|pyx|so)$")


def without_sources(files: pa.Table) -> pa.Table:
    """Files without text, and without what would identify it."""
    return _nulled(files, "source", "sha256", "size")


def without_paths(tables: dict[str, pa.Table], project: Scope) -> dict[str, pa.Table]:
    """All paths made up: a file of Python stays in or out of the project, a library what it is."""
    files, modules, processes = (tables[name] for name in ("files", "modules", "processes"))

    def file(number: int, path: str) -> str:
        if _NO_NAME.fullmatch(path):
            return path
        folder = PLACE if project.includes(path) else f"{PLACE}/lib/python3.0/site-packages"
        suffix = _SUFFIX.search(path)
        return f"{folder}/file_{number}{suffix[0] if suffix else ''}"

    def module(number: int, path: str) -> str:
        name = path.rpartition("/")[2]
        if path.startswith("["):
            return name
        own = RECORDER.match(path)
        known = RUNTIME.match(name) or GPU_DRIVER.match(name) or own
        return f"{PLACE}/{own[2] if own else name}" if known else f"{PLACE}/module_{number}"

    programs = _numbered(_texts(processes, "executable"), lambda number, _: f"{PLACE}/bin/program_{number}")
    listed = [how == "listed" for how in _texts(processes, "recorded")]
    executable = pa.array(
        [path if path is None or seen else f"{PLACE}/bin/python" for path, seen in zip(programs, listed, strict=True)]
    )
    libraries = _numbered(_texts(modules, "path"), module)
    frames = tables["native_frames"]
    for name in ("source", "function_source"):
        masked = _numbered(_texts(frames, name), lambda number, _: f"{PLACE}/source_{number}")
        frames = _with(frames, name, pa.array(masked, "string"))
    return tables | {
        "files": _with(files, "path", pa.array(_numbered(_texts(files, "path"), file), "string")),
        "modules": _nulled(_with(modules, "path", pa.array(libraries, "string")), "build_id"),
        "native_frames": frames,
        "processes": _with(processes, "executable", executable.cast("string")),
    }


def without_commands(processes: pa.Table) -> pa.Table:
    """Processes without their command lines."""
    return _nulled(processes, "command")


def _is_public(path: str) -> bool:
    """Whether a module's functions have names that every process has: the C library, and the recorder."""
    return bool(RUNTIME.match(path.rpartition("/")[2]) or RECORDER.match(path))


def without_names(tables: dict[str, pa.Table]) -> dict[str, pa.Table]:
    """Functions, threads and tasks with made-up names.

    Native functions keep theirs in the interpreter and the C library.
    """
    codes, stacks, threads, frames = (tables[name] for name in ("codes", "stacks", "threads", "native_frames"))

    def function(number: int, name: str) -> str:
        return name if _NO_NAME.fullmatch(name) else f"function_{number}"

    def thread(number: int, name: str) -> str:
        return name if name == "MainThread" else f"thread_{number}"

    modules = tables["modules"]
    paths = modules.column("path").to_pylist()
    marked = {path for path, inside in zip(paths, modules.column("interpreter").to_pylist(), strict=True) if inside}
    public = [path in marked or _is_public(path) for path in paths]
    kept = [module is not None and public[module] for module in frames.column("module").to_pylist()]
    made_up = _numbered(_texts(frames, "symbol"), lambda number, _: f"symbol_{number}")
    symbols = [old if keep else new for keep, old, new in zip(kept, _texts(frames, "symbol"), made_up, strict=True)]
    tasks = _numbered(_texts(stacks, "task"), lambda number, _: f"task_{number}")
    return tables | {
        "stacks": _with(stacks, "task", pa.array(tasks, "string")),
        "codes": _with(codes, "qualname", pa.array(_numbered(_texts(codes, "qualname"), function), "string")),
        "threads": _with(threads, "name", pa.array(_numbered(_texts(threads, "name"), thread), "string")),
        "native_frames": _with(frames, "symbol", pa.array(symbols, "string")),
    }


def without_identity(devices: pa.Table) -> pa.Table:
    """GPUs without what tells one from all others in the world."""
    return _nulled(devices, "uuid")


def without_labels(labels: dict[str, str]) -> dict[str, str]:
    """Labels without all that are texts: the numbers of ranks are left, which tell recordings of a run apart."""
    return {name: labels[name] for name in ("rank", "world_size", "local_rank") if labels.get(name, "").isdecimal()}


def without_texts(spans: pa.Table) -> pa.Table:
    """Spans with made-up names, and without the values that the program gave them."""
    names = _numbered(_texts(spans, "name"), lambda number, _: f"span_{number}")
    return _nulled(_with(spans, "name", pa.array(names, "string")), "fields")


def within(table: pa.Table, start_ns: int, end_ns: int) -> pa.Table:
    """Processes or threads whose lifetimes are cut to a window; what was counted until their end is not known."""
    start = table.column("start_ns")
    table = _with(table, "start_ns", pc.max_element_wise(start, start_ns, skip_nulls=False))
    table = _with(table, "end_ns", pc.min_element_wise(table.column("end_ns"), end_ns, skip_nulls=False))
    if "exiting_ns" in table.column_names:
        exiting = table.column("exiting_ns")
        inside = pc.fill_null(pc.less(exiting, end_ns), False)  # noqa: FBT003  # a value
        table = _with(table, "exiting_ns", pc.if_else(inside, exiting, pa.scalar(None, exiting.type)))
        table = _nulled(table, "user_ns", "system_ns", "max_resident_bytes")
    return _nulled(table, "cpu_ns") if "cpu_ns" in table.column_names else table


def _numbered(texts: list[str | None], replace: Callable[[int, str], str]) -> list[str | None]:
    """Texts with replacements, equal ones for equal texts; a replacement is made of a number and the text."""
    numbers: dict[str, int] = {}
    return [None if text is None else replace(numbers.setdefault(text, len(numbers)), text) for text in texts]


def _texts(table: pa.Table, name: str) -> list[str | None]:
    texts: list[str | None] = table.column(name).to_pylist()
    return texts


def _nulled(table: pa.Table, *names: str) -> pa.Table:
    for name in names:
        table = _with(table, name, pa.nulls(table.num_rows, table.schema.field(name).type))
    return table


def _with(table: pa.Table, name: str, values: pa.Array) -> pa.Table:
    return table.set_column(table.schema.get_field_index(name), table.schema.field(name), values)


__all__ = [
    "PLACE",
    "within",
    "without_commands",
    "without_identity",
    "without_labels",
    "without_names",
    "without_paths",
    "without_sources",
    "without_texts",
]
