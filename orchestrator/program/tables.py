"""Writes the tables, vectors and texts of a flatbuffer.

Not built on the `flatbuffers` package: its versions lay tables out differently, and a
program's bytes are in locks. The tests hold both to the same content.

Source: flatbuffers `docs/source/internals.md` (binary encoding).
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct, pack
from typing import TYPE_CHECKING, Final, NewType, TypeAlias

if TYPE_CHECKING:
    from orchestrator.core.lazy_bytes import Bytes

Ref = NewType("Ref", int)
"""A table, vector or text that was written: where it begins, in bytes from the end."""
Field: TypeAlias = "tuple[str, int | float] | Ref | None"
"""A number with its type, what an offset leads to, or nothing."""

_NUMBERS: Final = {
    "Bool": Struct("<?"),
    "Int8": Struct("<b"),
    "Uint8": Struct("<B"),
    "Int32": Struct("<i"),
    "Uint32": Struct("<I"),
    "Int64": Struct("<q"),
    "Uint64": Struct("<Q"),
    "Float64": Struct("<d"),
}
_OFFSET_BYTES: Final = 4
_MOST_ALIGNMENT: Final = 16
"""Of anything in a flatbuffer; its size is a multiple of it."""


class Tables:
    """A flatbuffer, written from its end: offsets lead to what was written before.

    Vectors of numbers and texts that are equal are written once.
    """

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0
        self._known: dict[tuple[str, bytes], Ref] = {}

    def table(self, *fields: Field) -> Ref:
        """A table with these fields, by slot; zeros are left out."""
        widths = [_width(field) for field in fields]
        places, table_bytes = _places(widths)
        # Fields are aligned, not the offset before them.
        fields_bytes = table_bytes - _OFFSET_BYTES
        alignment = max([*widths, _OFFSET_BYTES])
        start = self._padded(fields_bytes, alignment) + _OFFSET_BYTES
        body = bytearray(table_bytes)
        for field, at in zip(fields, places, strict=True):
            if at and isinstance(field, tuple):
                kind, number = field
                _NUMBERS[kind].pack_into(body, at, number)
            elif at and not isinstance(field, tuple) and field is not None:
                body[at : at + _OFFSET_BYTES] = pack("<I", start - at - field)
        while places and not places[-1]:
            places.pop()
        slots = pack(f"<{len(places)}H", *places)
        vtable = pack("<HH", 4 + len(slots), table_bytes) + slots
        known = self._known.get(("vtable", vtable))
        where = known or Ref(start + len(vtable))
        body[:_OFFSET_BYTES] = pack("<i", where - start)
        self._prepend(bytes(body))
        if known is None:
            self._prepend(vtable)
            self._known["vtable", vtable] = where
        return Ref(start)

    def tables(self, tables: Sequence[Ref]) -> Ref:
        """A vector of tables."""
        start = self._padded(_OFFSET_BYTES * len(tables), _OFFSET_BYTES)
        offsets = [start - _OFFSET_BYTES * number - table for number, table in enumerate(tables)]
        self._prepend(pack(f"<{len(tables)}I", *offsets))
        return self._counted(len(tables))

    def numbers(self, kind: str, numbers: Sequence[float]) -> Ref:
        """A vector of numbers of a type."""
        packer = _NUMBERS[kind]
        data = b"".join(packer.pack(number) for number in numbers)
        return self._shared(kind, data, len(numbers), packer.size)

    def text(self, text: str) -> Ref:
        """A text."""
        data = text.encode()
        return self._shared("text", data + b"\0", len(data), 1)

    def data(self, data: Bytes, *, alignment: int = 1) -> Ref:
        """A vector of bytes that begins at a multiple of the alignment, up to 16."""
        self._padded(len(data), max(alignment, _OFFSET_BYTES))
        self._prepend(bytes(data))
        return self._counted(len(data))

    def finish(self, root: Ref, identifier: bytes) -> bytes:
        """All of it."""
        start = self._padded(_OFFSET_BYTES + len(identifier), _MOST_ALIGNMENT)
        self._prepend(pack("<I", start - root) + identifier)
        return b"".join(reversed(self._parts))

    def _shared(self, kind: str, data: bytes, items: int, width: int) -> Ref:
        """A vector that is written once."""
        known = self._known.get((kind, data))
        if known is None:
            self._padded(len(data), max(width, _OFFSET_BYTES))
            self._prepend(data)
            known = self._known[kind, data] = self._counted(items)
        return known

    def _counted(self, items: int) -> Ref:
        """The vector whose items were written last, with their count before them."""
        self._prepend(pack("<I", items))
        return Ref(self._size)

    def _padded(self, size_bytes: int, alignment: int) -> int:
        """Where something begins that is written next, aligned, from the end."""
        self._prepend(bytes(-(self._size + size_bytes) % alignment))
        return self._size + size_bytes

    def _prepend(self, data: bytes) -> None:
        self._parts.append(data)
        self._size += len(data)


def _width(field: Field) -> int:
    """Bytes of a field in its table; 0 if it is left out."""
    if field is None:
        return 0
    if not isinstance(field, tuple):
        return _OFFSET_BYTES
    kind, number = field
    # A double is always written: -0.0 is not the default, but equal to it.
    return _NUMBERS[kind].size if number or kind == "Float64" else 0


def _places(widths: Sequence[int]) -> tuple[list[int], int]:
    """Offset of each field, 0 for those left out, and the bytes of the table.

    The widest come first, so that there is no gap.
    """
    places, end = [0] * len(widths), _OFFSET_BYTES
    for slot in sorted(range(len(widths)), key=lambda s: -widths[s]):
        if widths[slot]:
            places[slot] = end
            end += widths[slot]
    return places, end
