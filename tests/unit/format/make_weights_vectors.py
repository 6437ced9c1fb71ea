"""Makes the golden recordings of version 1.2: ``python -m unit.format.make_weights_vectors [NAME...]``, in tests.

They are about the weights of samples, and their files say what they are in their own metadata.
"""

from __future__ import annotations

import json
from typing import Any

from support.vectors import (
    LINES,
    MS,
    PICKS,
    T0,
    Rows,
    derived,
    expect,
    fresh,
    make,
    manifest,
    tables_entry,
    values,
    whole_rows,
    write_json,
    write_parquet,
)
from unit.format.make_tree_vectors import SCHEMAS

UNITS = {
    "size": "bytes",
    "instruction": "bytes",
    "file_offset": "bytes",
    "offset": "bytes",
    "max_resident_bytes": "bytes",
}


def write(name: str, rows: Rows, weights: dict[int, int], **changes: Any) -> None:
    """A complete recording of these rows; ``weights`` are those of rows of ``cpu`` that are not their ``cpu_ns``."""
    path = fresh(name)
    sampler = changes["parameters"]["sampler"]
    process = (*rows["processes"][0][:-1], sampler)
    rows["processes"] = [(*process, None, "python3 main.py", "python", "first", None, None, None)]
    rows["stacks"] = [(*row, None) for row in rows["stacks"]]
    document = manifest(format_version="1.2", **changes)
    for table, content in rows.items():
        columns = [field[0] for field in SCHEMAS[table]]
        units = {column: "ns" if column.endswith("_ns") else UNITS.get(column) for column in columns}
        metadata = {
            "tachograph.format_version": "1.2",
            "tachograph.uuid": document["uuid"],
            "tachograph.table": table,
            "tachograph.units": json.dumps({column: unit for column, unit in units.items() if unit}),
        }
        write_parquet(path, table, content, schemas=SCHEMAS, metadata=metadata)
    counts = {table: len(content) for table, content in rows.items()}
    document["tables"] = tables_entry(path, counts)
    write_json(path / "manifest.json", document)
    picks = {**PICKS, "threads": list(range(counts["threads"])), "cpu": list(range(counts["cpu"]))}
    expect(
        name,
        state="complete",
        rows=counts,
        sums={"cpu_ns": sum(row[4] for row in rows["cpu"]), "off_cpu_ns": 173 * MS},
        values=values(rows, picks, SCHEMAS),
        lines=LINES,
        derived=derived(rows, weights=weights),
        quality=document["quality"],
    )


def sample(ms: int, thread: int, stack: int | None, cpu_ms: int, **changes: Any) -> tuple[Any, ...]:
    """A sample in the evaluation loop, but for ``changes``."""
    row = {"frame": 0, "system": 0, "overruns": 0, "gil": True, "opcode": 93, "origin": 0, "state": 0, **changes}
    return (T0 + ms * MS, thread, stack, row.pop("frame"), cpu_ms * MS, *row.values())


def make_weights() -> None:
    """The schedule is stationary: the first sample of a thread stands for the interval, and for threads without any."""
    rows = whole_rows()
    rows["threads"] += [(number, 0, 4242 + number, None, None, False, T0, None, None) for number in (2, 3, 4)]
    rows["cpu"] = [
        sample(3, 0, 2, 4, system=MS),  # counts 10 ms, of which 2.5 in the kernel
        sample(12, 0, 2, 10),
        sample(15, 2, 3, 5, overruns=1, frame=2, system=MS),  # 20 ms, of which 4 in the kernel
        sample(22, 0, 3, 9, frame=1, opcode=None, state=2),
        sample(23, 3, None, 2, origin=1, frame=None, opcode=None, state=1, gil=None),  # read from outside: 2 ms
        sample(24, 3, None, 7, frame=2, opcode=None, state=1, gil=False),  # not the first of its thread
        sample(31, 4, 1, 8, system=None),
    ]
    parameters = {**manifest()["parameters"], "schedule": "stationary"}
    write("weights", rows, {0: 10 * MS, 2: 20 * MS, 6: 10 * MS}, parameters=parameters)


def make_signal() -> None:
    """The signal sampler: all rows of one time are of one signal, whose time they share."""
    rows = whole_rows()
    signal: dict[str, Any] = {"frame": None, "system": None, "origin": 2}
    other = {**signal, "origin": 3, "gil": None}
    rows["threads"] += [(2, 0, 4244, "helper", True, False, T0, None, None)]
    rows["cpu"] = [
        sample(10, 0, 2, 10, **signal),
        sample(22, 0, 3, 12, **signal),
        sample(22, 1, 1, 12, **other),
        sample(37, 0, 2, 15, **signal),
        sample(37, 1, 1, 15, **other),
        sample(37, 2, 0, 15, **other),
    ]
    parameters = {**manifest()["parameters"], "sampler": "signal"}
    write("signal", rows, {1: 6 * MS, 2: 6 * MS, 3: 5 * MS, 4: 5 * MS, 5: 5 * MS}, parameters=parameters)


MAKERS = {"weights": make_weights, "signal": make_signal}

if __name__ == "__main__":
    make(MAKERS)
