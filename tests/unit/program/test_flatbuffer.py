from __future__ import annotations

import struct
from typing import Any

import flatbuffers
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.program.flatbuffer import Buffer, Kind, Table
from orchestrator.program.problems import DecodeError

_INTS = {
    "Int8": (-(2**7), 2**7 - 1),
    "Uint8": (0, 2**8 - 1),
    "Int32": (-(2**31), 2**31 - 1),
    "Uint32": (0, 2**32 - 1),
    "Int64": (-(2**63), 2**63 - 1),
    "Uint64": (0, 2**64 - 1),
}


_KINDS = {"Any": Kind(name="Any", fields=("field",) * 40, tables=dict.fromkeys(range(40), "Any"))}


def _root(data: bytes) -> Table:
    return Buffer(data, len(data), _KINDS).root()


def _finish(builder: flatbuffers.Builder, table: int) -> Table:
    builder.Finish(table)
    data = bytes(builder.Output())
    return _root(data)


def _vector(builder: Any, name: str, width: int, items: list[Any]) -> int:
    builder.StartVector(width, len(items), width)
    for item in reversed(items):
        getattr(builder, f"Prepend{name}")(item)
    return int(builder.EndVector())


@given(st.tuples(*(st.integers(low, high) for low, high in _INTS.values())))
def test_scalars_are_what_the_flatbuffers_package_wrote(values: tuple[int]) -> None:
    builder = flatbuffers.Builder(64)
    builder.StartObject(len(values))
    for slot, (name, value) in enumerate(zip(_INTS, values, strict=True)):
        getattr(builder, f"Prepend{name}Slot")(slot, value, 0)
    table = _finish(builder, builder.EndObject())
    read = [getattr(table, name.lower())(slot) for slot, name in enumerate(_INTS)]
    assert read == list(values)


@given(
    st.text(),
    st.binary(),
    st.lists(st.integers(-(2**31), 2**31 - 1)),
    st.lists(st.integers(-(2**63), 2**63 - 1)),
    st.lists(st.floats(allow_nan=False)),
)
def test_references_are_what_the_flatbuffers_package_wrote(
    text: str, raw: bytes, ints: list[int], longs: list[int], doubles: list[float]
) -> None:
    builder = flatbuffers.Builder(64)
    offsets = [
        builder.CreateString(text),
        builder.CreateByteVector(raw),
        _vector(builder, "Int32", 4, ints),
        _vector(builder, "Int64", 8, longs),
        _vector(builder, "Float64", 8, doubles),
    ]
    builder.StartObject(len(offsets))
    for slot, offset in enumerate(offsets):
        builder.PrependUOffsetTRelativeSlot(slot, offset, 0)
    table = _finish(builder, builder.EndObject())
    assert table.string(0) == text
    assert table.uint8s(1) == raw
    assert table.int32s(2) == tuple(ints)
    assert table.int64s(3) == tuple(longs)
    assert table.float64s(4) == tuple(doubles)


def test_what_is_missing_is_the_default() -> None:
    builder = flatbuffers.Builder(64)
    builder.StartObject(2)
    table = _finish(builder, builder.EndObject())
    for slot in (0, 7):
        assert table.int32(slot) == table.uint64(slot) == table.uint8(slot) == 0
        assert table.boolean(slot) is False
        assert table.float64(slot) == 0.0
        assert table.string(slot) is None
        assert table.table(slot) is None
        assert table.int32s(slot) is None
        assert table.uint8s(slot) is None
        assert table.entries(slot) is None


# A table with one field at offset 4: vtable at 4, table at 12, field at 16.
_HEAD = struct.pack("<I4HiI", 12, 6, 8, 4, 0, 8, 4)


@pytest.mark.parametrize(
    ("data", "message", "found"),
    [
        (b"", "an offset lies outside the program", "byte 0"),
        (struct.pack("<I", 0), "an offset points outside the program", "offset 0 at byte 0"),
        (struct.pack("<I", 4), "an offset points outside the program", "offset 4"),
        (struct.pack("<IH", 4, 0), "a table lies outside the program", "byte 4"),
        (struct.pack("<Ii", 4, 5), "a vtable lies outside the program", "byte -1"),
        (struct.pack("<Ii", 4, -4), "a vtable lies outside the program", "byte 8"),
        (struct.pack("<IixHH", 4, -5, 4, 4), "a vtable is not aligned", "byte 9"),
        (struct.pack("<IiHH", 4, -4, 3, 4), "a vtable has an impossible size", "3 bytes at byte 8"),
        (struct.pack("<IiHH", 4, -4, 6, 4), "a vtable has an impossible size", "6 bytes at byte 8"),
    ],
)
def test_a_damaged_root_is_refused(data: bytes, message: str, found: str) -> None:
    with pytest.raises(DecodeError) as caught:
        _root(data)
    assert caught.value.message == message
    assert found in caught.value.found


def test_tables_of_different_sizes_may_share_a_vtable() -> None:
    # The builder in Python tells vtables apart by the places of fields alone.
    builder = flatbuffers.Builder(64)
    builder.StartObject(1)
    builder.PrependInt32Slot(0, 7, 0)
    small = builder.EndObject()
    builder.StartObject(1)
    builder.PrependFloat64Slot(0, 0.5, 0.0)
    large = builder.EndObject()
    builder.StartObject(2)
    builder.PrependUOffsetTRelativeSlot(0, small, 0)
    builder.PrependUOffsetTRelativeSlot(1, large, 0)
    table = _finish(builder, builder.EndObject())
    first, second = table.table(0), table.table(1)
    assert first is not None
    assert second is not None
    assert first.int32(0) == 7
    assert second.float64(0) == 0.5


@pytest.mark.parametrize("offset", [2, 9, 0xFFFF])
def test_a_field_outside_the_program_is_refused(offset: int) -> None:
    data = _HEAD[:8] + struct.pack("<H", offset) + _HEAD[10:]
    with pytest.raises(DecodeError, match="a field lies outside the program"):
        _root(data).int32(0)


def test_a_vector_that_is_too_long_is_refused_before_it_is_read() -> None:
    data = _HEAD + struct.pack("<I2i", 0x7FFFFFFF, 1, 2)
    with pytest.raises(DecodeError, match="a vector runs past the end") as caught:
        _root(data).int32s(0)
    assert caught.value.expected == "at most 2 items"


def test_a_vector_whose_count_is_cut_off_is_refused() -> None:
    data = _HEAD + b"\0\0"
    with pytest.raises(DecodeError, match="a vector lies outside the program"):
        _root(data).int32s(0)


def test_a_vector_must_be_aligned_to_its_items() -> None:
    data = _HEAD + struct.pack("<Iq", 1, 7)
    assert _root(data).int64s(0) == (7,)
    shifted = struct.pack("<I4HiI4xIq", 12, 6, 8, 4, 0, 8, 8, 1, 7)
    with pytest.raises(DecodeError, match="a vector is not aligned to its items"):
        _root(shifted).int64s(0)
    tables = _HEAD[:16] + struct.pack("<I2xIIi", 6, 1, 4, 26)
    with pytest.raises(DecodeError, match="a vector is not aligned to its items"):
        _root(tables).entries(0)


def test_a_string_must_be_utf8() -> None:
    data = _HEAD + struct.pack("<I", 2) + b"\xc3("
    with pytest.raises(DecodeError, match="a string is not UTF-8"):
        _root(data).string(0)


def test_bytes_after_the_flatbuffer_are_not_touched() -> None:
    data = _HEAD + struct.pack("<I2i", 2, 1, 2)
    assert _root(data).int32s(0) == (1, 2)
    with pytest.raises(DecodeError, match="a vector runs past the end"):
        _root(data[:-4]).int32s(0)


def test_shared_vectors_are_read_once() -> None:
    data = _HEAD + struct.pack("<I", 4000) + bytes(16000)
    table = _root(data)
    first = table.int32s(0)
    assert first == (0,) * 4000
    for _ in range(1000):
        assert table.int32s(0) is first


def test_overlapping_vectors_cannot_blow_up_memory() -> None:
    data = struct.pack("<I", 1000) * 4000
    buffer = Buffer(data, len(data), _KINDS)
    for position in range(0, 160 * 4, 4):
        assert len(buffer.numbers_at(position, "i", 4)) == 1000
    buffer.numbers_at(160 * 4, "i", 4)
    with pytest.raises(DecodeError, match="over and over"):
        buffer.numbers_at(161 * 4, "i", 4)


def test_a_shared_string_is_decoded_once() -> None:
    data = _HEAD + struct.pack("<I", 16000) + b"a" * 16000
    table = _root(data)
    first = table.string(0)
    assert all(table.string(0) is first for _ in range(100))
