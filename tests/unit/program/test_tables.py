"""Flatbuffers of ours, read by the package `flatbuffers`."""

from __future__ import annotations

import struct
from typing import Any

import flatbuffers
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.program.encode import Tables

KINDS = {
    "Bool": "?",
    "Int8": "b",
    "Uint8": "B",
    "Int32": "i",
    "Uint32": "I",
    "Int64": "q",
    "Uint64": "Q",
    "Float64": "d",
}
"""Struct code of each type."""


@st.composite
def _numbers(draw: st.DrawFn) -> tuple[str, Any]:
    kind = draw(st.sampled_from(sorted(KINDS)))
    size = struct.calcsize(f"<{KINDS[kind]}")
    zero = draw(st.booleans())
    data = bytes(size) if zero else draw(st.binary(min_size=size, max_size=size))
    (number,) = struct.unpack(f"<{KINDS[kind]}", data)
    return kind, number


FIELDS = st.lists(st.none() | _numbers() | st.binary(max_size=40) | st.text(max_size=9), max_size=9)


def _read(data: bytes, table: int, fields: list[Any]) -> None:
    """Compare a table with what was written; everything is aligned."""
    found = flatbuffers.table.Table(bytearray(data), table)
    for slot, field in enumerate(fields):
        at = found.Offset(4 + 2 * slot)
        if field is None:
            assert at == 0
        elif isinstance(field, tuple):
            kind, number = field
            code = f"<{KINDS[kind]}"
            assert at or not number
            if at:
                assert (table + at) % struct.calcsize(code) == 0
                stored = data[table + at : table + at + struct.calcsize(code)]
                assert stored == struct.pack(code, number)
        elif isinstance(field, str):
            assert found.String(table + at).decode() == field
            assert (table + at) % 4 == 0
        else:
            start = found.Vector(at)
            assert start % 16 == 0
            assert data[start : start + found.VectorLen(at)] == field


@given(st.lists(FIELDS, max_size=6))
def test_tables_are_what_the_flatbuffers_package_reads(rows: list[list[Any]]) -> None:
    tables = Tables()
    refs = []
    for fields in rows:
        written = [
            tables.data(f, alignment=16)
            if isinstance(f, bytes)
            else tables.text(f)
            if isinstance(f, str)
            else f
            for f in fields
        ]
        refs.append(tables.table(*written))
    numbers = tables.numbers("Int64", range(-3, 4))
    data = tables.finish(tables.table(tables.tables(refs), numbers), b"ABCD")
    assert len(data) % 16 == 0
    assert data[4:8] == b"ABCD"
    root = flatbuffers.table.Table(bytearray(data), *struct.unpack_from("<I", data))
    vector = root.Offset(4)
    assert root.VectorLen(vector) == len(rows)
    for index, fields in enumerate(rows):
        _read(data, root.Indirect(root.Vector(vector) + 4 * index), fields)
    start = root.Vector(root.Offset(6))
    assert start % 8 == 0
    assert struct.unpack_from("<7q", data, start) == (-3, -2, -1, 0, 1, 2, 3)


def test_what_is_equal_is_there_once() -> None:
    tables = Tables()
    assert tables.text("one") == tables.text("one") != tables.text("two")
    assert tables.numbers("Int32", (1, 2)) == tables.numbers("Int32", (1, 2))
    assert tables.numbers("Int32", (1, 2)) != tables.numbers("Uint32", (1, 2))
    # Tables of one layout have it in common: only the first has it before it.
    starts = [tables.table(("Int32", n), ("Int64", n)) for n in (1, 2, 3)]
    assert starts[1] - starts[0] == 16 + 8
    assert starts[2] - starts[1] == 16
