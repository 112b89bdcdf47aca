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
    "byte": ("Int8", -(2**7), 2**7 - 1),
    "ubyte": ("Uint8", 0, 2**8 - 1),
    "int": ("Int32", -(2**31), 2**31 - 1),
    "uint": ("Uint32", 0, 2**32 - 1),
    "long": ("Int64", -(2**63), 2**63 - 1),
    "ulong": ("Uint64", 0, 2**64 - 1),
}
"""By type: the package's name, the least and the largest."""


def _root(data: bytes, *types: str) -> Table:
    """The root table, with fields of these types, named as they are."""
    kinds = {"Any": Kind("Any", dict(zip(types, types, strict=True)))}
    return Buffer(data, len(data), kinds).root()


def _finish(builder: flatbuffers.Builder, table: int, *types: str) -> Table:
    builder.Finish(table)
    return _root(bytes(builder.Output()), *types)


def _vector(builder: Any, name: str, width: int, items: list[Any]) -> int:
    builder.StartVector(width, len(items), width)
    for item in reversed(items):
        getattr(builder, f"Prepend{name}")(item)
    return int(builder.EndVector())


@given(st.tuples(*(st.integers(low, high) for _, low, high in _INTS.values())))
def test_scalars_are_what_the_flatbuffers_package_wrote(values: tuple[int]) -> None:
    builder = flatbuffers.Builder(64)
    builder.StartObject(len(values))
    for slot, ((name, _, _), value) in enumerate(zip(_INTS.values(), values, strict=True)):
        getattr(builder, f"Prepend{name}Slot")(slot, value, 0)
    table = _finish(builder, builder.EndObject(), *_INTS)
    assert table.values() == list(values)


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
    types = ("string", "[ubyte]", "[int]", "[long]", "[double]")
    table = _finish(builder, builder.EndObject(), *types)
    assert table.values() == [text, raw, tuple(ints), tuple(longs), tuple(doubles)]


def test_what_is_missing_is_the_default() -> None:
    builder = flatbuffers.Builder(64)
    builder.StartObject(1)
    defaults = {
        **dict.fromkeys((*_INTS, "double"), 0),
        "bool": False,
        "string": "",
        "[ubyte]": b"",
        "[int]": (),
        "data": (0, 0),
        "Any": None,
        "[Any]": (),
    }
    table = _finish(builder, builder.EndObject(), *defaults)
    assert table.values() == [*defaults.values()]


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
    builder.Finish(builder.EndObject())
    kinds = {
        "Both": Kind("Both", {"small": "Small", "large": "Large"}),
        "Small": Kind("Small", {"number": "int"}),
        "Large": Kind("Large", {"number": "double"}),
    }
    data = bytes(builder.Output())
    table = Buffer(data, len(data), kinds).root()
    assert table["small"]["number"] == 7
    assert table["large"]["number"] == 0.5


@pytest.mark.parametrize("offset", [2, 9, 0xFFFF])
def test_a_field_outside_the_program_is_refused(offset: int) -> None:
    data = _HEAD[:8] + struct.pack("<H", offset) + _HEAD[10:]
    with pytest.raises(DecodeError, match="a field lies outside the program"):
        _root(data, "int")["int"]


def test_a_vector_that_is_too_long_is_refused_before_it_is_read() -> None:
    data = _HEAD + struct.pack("<I2i", 0x7FFFFFFF, 1, 2)
    with pytest.raises(DecodeError, match="a vector runs past the end") as caught:
        _root(data, "[int]")["[int]"]
    assert caught.value.expected == "at most 2 items"


def test_a_vector_whose_count_is_cut_off_is_refused() -> None:
    data = _HEAD + b"\0\0"
    with pytest.raises(DecodeError, match="a vector lies outside the program"):
        _root(data, "[int]")["[int]"]


def test_a_vector_must_be_aligned_to_its_items() -> None:
    data = _HEAD + struct.pack("<Iq", 1, 7)
    assert _root(data, "[long]")["[long]"] == (7,)
    shifted = struct.pack("<I4HiI4xIq", 12, 6, 8, 4, 0, 8, 8, 1, 7)
    with pytest.raises(DecodeError, match="a vector is not aligned to its items"):
        _root(shifted, "[long]")["[long]"]
    tables = _HEAD[:16] + struct.pack("<I2xIIi", 6, 1, 4, 26)
    with pytest.raises(DecodeError, match="a vector is not aligned to its items"):
        _root(tables, "[Any]")["[Any]"]


def test_a_string_must_be_utf8() -> None:
    data = _HEAD + struct.pack("<I", 2) + b"\xc3("
    with pytest.raises(DecodeError, match="a string is not UTF-8"):
        _root(data, "string")["string"]


def test_bytes_after_the_flatbuffer_are_not_touched() -> None:
    data = _HEAD + struct.pack("<I2i", 2, 1, 2)
    assert _root(data, "[int]")["[int]"] == (1, 2)
    with pytest.raises(DecodeError, match="a vector runs past the end"):
        _root(data[:-4], "[int]")["[int]"]


def test_shared_vectors_are_read_once() -> None:
    data = _HEAD + struct.pack("<I", 4000) + bytes(16000)
    table = _root(data, "[int]")
    first = table["[int]"]
    assert first == (0,) * 4000
    for _ in range(1000):
        assert table["[int]"] is first


def test_overlapping_vectors_cannot_blow_up_memory() -> None:
    data = struct.pack("<I", 1000) * 4000
    buffer = Buffer(data, len(data), {})
    for position in range(0, 160 * 4, 4):
        assert len(buffer.vector_at(position, "[int]")) == 1000
    buffer.vector_at(160 * 4, "[int]")
    with pytest.raises(DecodeError, match="over and over"):
        buffer.vector_at(161 * 4, "[int]")


def test_a_shared_string_is_decoded_once() -> None:
    data = _HEAD + struct.pack("<I", 16000) + b"a" * 16000
    table = _root(data, "string")
    first = table["string"]
    assert all(table["string"] is first for _ in range(100))
