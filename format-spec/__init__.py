"""The contract between the recorder and the analyzer: specification, manifest, spool, tables, containers.

``SPEC.md`` beside this file says what a recording is; ``tables.toml`` is its machine-readable half. Names are imported
when they are used, and pyarrow only by what needs it, so ``import tachograph.format`` costs next to nothing.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .container import Container, open_container
    from .errors import FormatError
    from .manifest import Manifest
    from .parquet import TableWriter, write_table
    from .schema import ColumnSpec, EnumValue, LossSpec, Specification, TableSpec, load_specification
    from .spool.assembly import Assembled, assemble, finished_manifest, write_recording
    from .spool.directory import ControlFile, Part, SpoolDirectory, SpoolProcess, decode_control
    from .spool.native_frames import NativePlace
    from .spool.parts import write_part
    from .spool.segment import Segment, read_segment
    from .validation import check_batch, check_depth, check_schema, complete

_HOMES = {
    "spool.assembly": ("Assembled", "assemble", "finished_manifest", "write_recording"),
    "container": ("Container", "open_container"),
    "errors": ("FormatError",),
    "manifest": ("Manifest",),
    "parquet": ("TableWriter", "write_table"),
    "spool.native_frames": ("NativePlace",),
    "spool.parts": ("write_part",),
    "spool.segment": ("Segment", "read_segment"),
    "schema": ("ColumnSpec", "EnumValue", "LossSpec", "Specification", "TableSpec", "load_specification"),
    "spool.directory": ("ControlFile", "Part", "SpoolDirectory", "SpoolProcess", "decode_control"),
    "validation": ("check_batch", "check_depth", "check_schema", "complete"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "Assembled",
    "ColumnSpec",
    "Container",
    "ControlFile",
    "EnumValue",
    "FormatError",
    "LossSpec",
    "Manifest",
    "NativePlace",
    "Part",
    "Segment",
    "Specification",
    "SpoolDirectory",
    "SpoolProcess",
    "TableSpec",
    "TableWriter",
    "assemble",
    "check_batch",
    "check_depth",
    "check_schema",
    "complete",
    "decode_control",
    "finished_manifest",
    "load_specification",
    "open_container",
    "read_segment",
    "write_part",
    "write_recording",
    "write_table",
]


def __getattr__(name: str) -> object:
    if name in _HOME_OF:
        from importlib import import_module

        value = globals()[name] = getattr(import_module(f".{_HOME_OF[name]}", __name__), name)
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
