"""Programs with other places: bytes that change, and bytes that come to the end."""

from __future__ import annotations

import struct
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.errors import ModelError
from orchestrator.program import edit
from orchestrator.program.edit import EditError, with_methods
from orchestrator.program.reader import read_program
from orchestrator.program.values import Allocation, TensorValue
from tests.conftest import CASES, model_bytes
from tests.unit.program.program_writer import program_json, write_program

if TYPE_CHECKING:
    from orchestrator.program.program import Method, Program


def read(data: bytes) -> Program:
    return read_program(data, file="a.pte")


def moved(method: Method, by: int) -> Method:
    """The method with all planned tensors further back."""
    return replace(
        method,
        values=tuple(
            replace(
                v,
                allocation=Allocation(
                    memory_id=v.allocation.memory_id, offset_bytes=v.allocation.offset_bytes + by
                ),
            )
            if isinstance(v, TensorValue) and v.allocation is not None
            else v
            for v in method.values
        ),
        arena_bytes=(0, *(size + by for size in method.arena_bytes[1:])),
    )


def same_data(one: Program, other: Program) -> bool:
    """Whether constants, initial state and what delegates get are the same."""
    tensors = [v for m in one.methods for v in m.values if isinstance(v, TensorValue)]
    constants = (t for t in tensors if t.is_constant or t.is_mutable_state)
    return all(one.data_bytes(t) == other.data_bytes(t) for t in constants) and all(
        one.segment_bytes(n) == other.segment_bytes(n) for n in range(len(one.segments))
    )


@pytest.mark.parametrize("case", CASES)
def test_every_tensor_of_the_corpus_can_move(case: str) -> None:
    program = read(model_bytes(case))
    methods = tuple(moved(m, 160) for m in program.methods)
    found = with_methods(program, methods)
    assert found.methods == methods
    assert same_data(program, found)
    # And back: what was added stays, and is used.
    again = with_methods(found, program.methods)
    assert again.methods == program.methods
    assert len(again.data) == len(found.data)
    assert with_methods(program, program.methods) is program


@pytest.mark.parametrize("case", CASES)
def test_segments_stay_aligned(case: str) -> None:
    program = read(model_bytes(case))
    found = with_methods(program, [moved(m, 16) for m in program.methods])
    if program.header is None:
        assert found.header is None
        return
    assert found.header is not None
    assert found.header.program_bytes >= program.header.program_bytes
    if program.header.segment_base:
        shift = found.header.segment_base - program.header.segment_base
        assert len(found.data) - len(program.data) == shift
        step = min(program.header.segment_base & -program.header.segment_base, 128)
        assert shift % step == 0


def test_numbers_that_are_there_are_written_in_place() -> None:
    program = read(model_bytes("mlp"))
    (method,) = program.methods
    values = list(method.values)
    places = [
        n
        for n, v in enumerate(values)
        if isinstance(v, TensorValue) and v.allocation and v.allocation.offset_bytes
    ]
    for n in places:
        values[n] = moved(method, 32).values[n]
    methods = [replace(method, values=tuple(values), arena_bytes=(0, 4000))]
    found = with_methods(program, methods)
    assert len(found.data) == len(program.data)
    changed = sum(a != b for a, b in zip(bytes(found.data), bytes(program.data), strict=True))
    assert 0 < changed <= 4 * len(places) + 8


def test_sizes_change() -> None:
    program = read(model_bytes("mlp"))
    (method,) = program.methods
    at = next(n for n, v in enumerate(method.values) if getattr(v, "is_planned", False))
    value = method.values[at]
    assert isinstance(value, TensorValue)
    values = list(method.values)
    values[at] = replace(value, sizes=(1,) * len(value.sizes))
    methods = (replace(method, values=tuple(values)),)
    found = with_methods(program, methods)
    assert found.methods == methods
    assert len(found.data) == len(program.data)


def _shared() -> bytes:
    """A program in which two tensors have one table for place, and one for sizes."""
    program = program_json("add_mul")
    for method in program["execution_plan"]:
        for value in method["values"]:
            place = value["val"].get("allocation_info")
            if place:
                place["memory_offset_low"] = 0
                place["memory_offset_high"] = 0
    data = bytearray(write_program(program))
    found = read(bytes(data))
    editor = edit._Editor(found)  # noqa: SLF001  # finds the tables
    tables = []
    root = editor._buffer.root()  # noqa: SLF001
    for entry in root["execution_plan"]:
        table = root.entry("execution_plan", entry)
        values = (table.entry("values", at)["val"] for at in table["values"])
        tables += [value for value in values if value.kind == "Tensor"]
    one, other = tables[:2]
    for field in ("sizes", "allocation_info"):
        first, second = (t.place(field) for t in (one, other))
        # Offsets lead forward: both go to what lies further back.
        last = max(at + struct.unpack_from("<I", data, at)[0] for at in (first, second))
        for at in (first, second):
            struct.pack_into("<I", data, at, last - at)
    return bytes(data)


def test_what_tensors_share_is_not_changed_for_both() -> None:
    program = read(_shared())
    (method,) = program.methods
    tensors = [n for n, v in enumerate(method.values) if isinstance(v, TensorValue)]
    values = list(method.values)
    for step, n in enumerate(tensors):
        value = values[n]
        assert isinstance(value, TensorValue)
        place = Allocation(memory_id=1, offset_bytes=16 * step)
        values[n] = replace(value, sizes=(1 + step, 1), allocation=place)
    methods = (replace(method, values=tuple(values), arena_bytes=(0, 256)),)
    found = with_methods(program, methods)
    assert found.methods == methods
    assert len(found.data) > len(program.data)


def test_two_values_that_are_one_tensor_cannot_differ() -> None:
    program = program_json("add_mul")
    data = bytearray(write_program(program))
    editor = edit._Editor(read(bytes(data)))  # noqa: SLF001
    root = editor._buffer.root()  # noqa: SLF001
    (entry,) = root["execution_plan"]
    values = [*root.entry("execution_plan", entry)["values"]]
    last = max(at + struct.unpack_from("<I", data, at)[0] for at in values[:2])
    for at in values[:2]:
        struct.pack_into("<I", data, at, last - at)
    found = read(bytes(data))
    (method,) = found.methods
    one, other = method.values[:2]
    assert one == other
    assert isinstance(one, TensorValue)
    place = Allocation(memory_id=1, offset_bytes=160)
    changed = (replace(one, allocation=place), *method.values[1:])
    methods = [replace(method, values=changed, arena_bytes=(0, 256))]
    with pytest.raises(EditError):
        with_methods(found, methods)
    # Together they can move.
    both = moved(method, 48)
    assert with_methods(found, [both]).methods == (both,)


def _header_without_segments() -> bytes:
    data = bytearray(write_program(program_json("add_mul"), b""))
    struct.pack_into("<QQ", data, 24, 0, 0)
    return bytes(data)


def test_a_header_without_segments() -> None:
    program = read(_header_without_segments())
    found = with_methods(program, [moved(m, 16) for m in program.methods])
    assert found.header is not None
    assert found.header.segment_base == 0
    assert found.methods == tuple(moved(m, 16) for m in program.methods)


def test_places_that_a_reader_refuses() -> None:
    program = read(model_bytes("mlp"))
    methods = [replace(moved(m, 4096), arena_bytes=m.arena_bytes) for m in program.methods]
    with pytest.raises(EditError):
        with_methods(program, methods)


def test_a_tensor_without_a_place_gets_none() -> None:
    program = read(model_bytes("mlp"))
    (method,) = program.methods
    place = Allocation(memory_id=1, offset_bytes=0)
    values = tuple(
        replace(v, allocation=place) if isinstance(v, TensorValue) and v.allocation is None else v
        for v in method.values
    )
    with pytest.raises(EditError, match="a tensor has no place"):
        with_methods(program, [replace(method, values=values)])


@given(
    case=st.sampled_from(["add_mul", "views", "kv_cache"]),
    flips=st.lists(st.tuples(st.integers(0, 4000), st.integers(0, 255)), min_size=1, max_size=3),
)
def test_damaged_programs_are_edited_right_or_not_at_all(
    case: str, flips: list[tuple[int, int]]
) -> None:
    data = bytearray(model_bytes(case))
    for at, byte in flips:
        data[at % len(data)] = byte
    try:
        program = read(bytes(data))
    except ModelError:  # not about the reader
        return
    methods = tuple(moved(m, 48) for m in program.methods)
    try:
        found = with_methods(program, methods)
    except EditError:
        return
    assert found.methods == methods
    assert same_data(program, found)
