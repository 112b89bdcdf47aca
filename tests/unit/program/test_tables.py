"""Flatbuffers of ours, read by the package `flatbuffers`."""

from __future__ import annotations

import struct
from typing import Any

import flatbuffers
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.program.encode import Tables
from orchestrator.program.flatbuffer import NUMBERS, Kind

CODES = {name: struct.format[1:] for name, struct in NUMBERS.items()}
"""Struct code of each type."""


@st.composite
def _numbers(draw: st.DrawFn) -> tuple[str, Any]:
    kind = draw(st.sampled_from(sorted(CODES)))
    size = struct.calcsize(f"<{CODES[kind]}")
    zero = draw(st.booleans())
    data = bytes(size) if zero else draw(st.binary(min_size=size, max_size=size))
    (number,) = struct.unpack(f"<{CODES[kind]}", data)
    return kind, number


_ROWS = st.lists(
    _numbers()
    | st.tuples(st.just("data"), st.none() | st.binary(max_size=40))
    | st.tuples(st.just("string"), st.none() | st.text(max_size=9)),
    max_size=9,
)


def _read(data: bytes, table: int, fields: list[tuple[str, Any]]) -> None:
    """Compare a table with what was written; everything is aligned."""
    found = flatbuffers.table.Table(bytearray(data), table)
    for slot, (kind, field) in enumerate(fields):
        at = found.Offset(4 + 2 * slot)
        if field is None:
            assert at == 0
        elif kind in CODES:
            code = f"<{CODES[kind]}"
            assert at or not field
            if at:
                assert (table + at) % struct.calcsize(code) == 0
                stored = data[table + at : table + at + struct.calcsize(code)]
                assert stored == struct.pack(code, field)
        elif kind == "string":
            assert found.String(table + at).decode() == field
            assert (table + at) % 4 == 0
        else:
            start = found.Vector(at)
            assert start % 16 == 0
            assert data[start : start + found.VectorLen(at)] == field


def _kind(name: str, *types: str) -> Kind:
    return Kind(name, {f"field{at}": type_ for at, type_ in enumerate(types)})


@given(st.lists(_ROWS, max_size=6))
def test_tables_are_what_the_flatbuffers_package_reads(rows: list[list[tuple[str, Any]]]) -> None:
    names = [f"Row{number}" for number in range(len(rows))]
    kinds = {
        name: _kind(name, *(kind for kind, _ in row)) for name, row in zip(names, rows, strict=True)
    }
    kinds["Root"] = _kind("Root", *names, "[long]")
    tables = Tables(kinds)
    fields = [[field for _, field in row] for row in rows]
    data = tables.finish(tables.table("Root", [*fields, range(-3, 4)]), b"ABCD")
    assert len(data) % 16 == 0
    assert data[4:8] == b"ABCD"
    root = flatbuffers.table.Table(bytearray(data), *struct.unpack_from("<I", data))
    for index, row in enumerate(rows):
        _read(data, root.Indirect(root.Pos + root.Offset(4 + 2 * index)), row)
    start = root.Vector(root.Offset(4 + 2 * len(rows)))
    assert start % 8 == 0
    assert struct.unpack_from("<7q", data, start) == (-3, -2, -1, 0, 1, 2, 3)


def test_a_vector_of_tables_is_what_the_flatbuffers_package_reads() -> None:
    tables = Tables({"Root": _kind("Root", "[Row]"), "Row": _kind("Row", "int")})
    data = tables.finish(tables.table("Root", [[(7,), (8,)]]), b"ABCD")
    root = flatbuffers.table.Table(bytearray(data), *struct.unpack_from("<I", data))
    vector = root.Offset(4)
    assert root.VectorLen(vector) == 2
    for index in range(2):
        _read(data, root.Indirect(root.Vector(vector) + 4 * index), [("int", 7 + index)])


def test_what_is_equal_is_there_once() -> None:
    types = ("string", "string", "string", "[int]", "[int]", "[int]", "[uint]")
    tables = Tables({"Root": _kind("Root", *types)})
    fields = ("one", "one", "two", (1, 2), (1, 2), (1, 3), (1, 2))
    data = tables.finish(tables.table("Root", fields), b"ABCD")
    root = flatbuffers.table.Table(bytearray(data), *struct.unpack_from("<I", data))
    one, same, two, ints, again, others, unsigned = (
        root.Vector(root.Offset(4 + 2 * slot)) for slot in range(len(types))
    )
    assert one == same != two
    assert ints == again
    assert len({ints, others, unsigned}) == 3


def test_tables_of_one_layout_have_it_in_common() -> None:
    """Only the first has it before it."""
    tables = Tables({"Row": _kind("Row", "int", "long")})
    starts = [tables.table("Row", (n, n)) for n in (1, 2, 3)]
    assert starts[1] - starts[0] == 16 + 8
    assert starts[2] - starts[1] == 16
