"""Tables, vectors and texts of a flatbuffer on its way.

Built on the `flatbuffers` package, which is imported when something is written.

Source: flatbuffers `docs/source/internals.md` (binary encoding).
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Any, Final, NewType, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Sequence

Ref = NewType("Ref", int)
"""A table, vector or text that was written."""
Field: TypeAlias = "tuple[str, int | float] | Ref | None"
"""A number with its type, what an offset leads to, or nothing."""

_NUMBERS: Final = {
    "Uint8": Struct("<B"),
    "Int32": Struct("<i"),
    "Int64": Struct("<q"),
    "Uint64": Struct("<Q"),
    "Float64": Struct("<d"),
}
_NO_DEFAULT: Final = float("nan")
"""A double is always written: -0.0 is not the default, but equal to it."""


class Tables:
    """A flatbuffer, written from its end.

    What is written before is what later tables point to. Vectors of numbers and texts
    that are equal are written once.
    """

    def __init__(self) -> None:
        from flatbuffers import Builder  # noqa: PLC0415  # imports numpy

        self._builder: Any = Builder(1024)
        self._vectors: dict[tuple[str, bytes], Ref] = {}

    def table(self, *fields: Field) -> Ref:
        """A table with these fields, by slot; zeros are left out."""
        builder = self._builder
        builder.StartObject(len(fields))
        for slot, field in enumerate(fields):
            if isinstance(field, tuple):
                kind, number = field
                default = _NO_DEFAULT if kind == "Float64" else 0
                getattr(builder, f"Prepend{kind}Slot")(slot, number, default)
            elif field is not None:
                builder.PrependUOffsetTRelativeSlot(slot, field, 0)
        return Ref(builder.EndObject())

    def tables(self, tables: Sequence[Ref]) -> Ref:
        """A vector of tables."""
        builder = self._builder
        builder.StartVector(4, len(tables), 4)
        for table in reversed(tables):
            builder.PrependUOffsetTRelative(table)
        return Ref(builder.EndVector())

    def numbers(self, kind: str, numbers: Sequence[float]) -> Ref:
        """A vector of numbers of a type."""
        packer = _NUMBERS[kind]
        data = b"".join(packer.pack(number) for number in numbers)
        return self._vector(kind, data, len(numbers), packer.size)

    def text(self, text: str) -> Ref:
        """A text."""
        return Ref(self._builder.CreateSharedString(text))

    def data(self, data: bytes | memoryview, *, alignment: int = 1) -> Ref:
        """A vector of bytes that begins at a multiple of the alignment."""
        self._builder.Prep(alignment, len(data))
        return Ref(self._builder.CreateByteVector(bytes(data)))

    def finish(self, root: Ref, identifier: bytes) -> bytes:
        """All of it."""
        self._builder.Finish(root, file_identifier=identifier)
        return bytes(self._builder.Output())

    def _vector(self, kind: str, data: bytes, count: int, width: int) -> Ref:
        known = self._vectors.get((kind, data))
        if known is not None:
            return known
        builder = self._builder
        builder.StartVector(width, count, width)
        prepend = getattr(builder, f"Prepend{kind}")
        for (number,) in reversed([*_NUMBERS[kind].iter_unpack(data)]):
            prepend(number)
        found = self._vectors[kind, data] = Ref(builder.EndVector())
        return found
