"""Programs with other places, sizes and arenas: a few bytes of the file change.

Numbers that the file has are written where they are. What it leaves out, because it is
the default, or has once for several tensors that differ now, is added at the end of
the flatbuffer and pointed to; segments move on by as much as is needed, and stay
aligned.

Source: ExecuTorch `schema/program.fbs` and `extended_header.h` (ET12), flatbuffers
`docs/source/internals.md` (binary encoding).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from operator import is_
from struct import Struct
from typing import Final

from orchestrator.core.layout import ALIGNMENT
from orchestrator.core.lazy_bytes import Bytes, joined
from orchestrator.errors import ModelError
from orchestrator.program.encode import segment_alignment
from orchestrator.program.flatbuffer import PROGRAM, Table
from orchestrator.program.problems import DecodeError
from orchestrator.program.program import ExtendedHeader, Method, Program
from orchestrator.program.reader import flatbuffer_of, read_program
from orchestrator.program.values import Allocation, TensorValue

_NUMBER: Final = {4: Struct("<I"), 8: Struct("<q")}
# Size of the vtable (10), size of the table (16), offsets of three fields; two bytes to
# align the table; then the offset back to the vtable and the fields.
_ALLOCATION_TABLE: Final = Struct("<HHHHHxxiIII")
"""A vtable with three fields, and the table after it."""
_VTABLE_BYTES: Final = 12
# In the extended header, which begins at byte 8: magic 4, length 4, size of the program
# 8, base of segments 8 (extended_header.h).
_PROGRAM_BYTES_AT: Final = 16
_SEGMENT_BASE_AT: Final = 24
_UINT64: Final = Struct("<Q")
_WORD: Final = 1 << 32


class EditError(Exception):
    """The file has one table for things that would differ, or is malformed.

    No exporter writes such a file.
    """


def with_methods(program: Program, methods: Sequence[Method]) -> Program:
    """The program with other methods, in its own bytes.

    Args:
        program: As it was read.
        methods: Its methods; sizes and places of planned tensors and sizes of arenas
            may be others, and nothing else.

    Returns:
        What is read from the new bytes.

    Raises:
        EditError: The bytes cannot be changed so.
    """
    if all(map(is_, methods, program.methods)):
        return program
    # Marks such as `is_kept` are not part of equality: bytes stay, facts of the build
    # change.
    if tuple(methods) == program.methods:
        return replace(program, methods=tuple(methods))  # with their marks
    editor = _Editor(program)
    try:
        editor.methods(methods)
        data = editor.result()
        found = read_program(data, file="")
    except (DecodeError, ModelError) as error:
        raise EditError(str(error)) from error
    found = replace(found, external=program.external)
    # Read back by the reader that trusts nothing: an edit that went wrong is an error
    # here, and not a program that computes something else.
    if replace(found, header=None) != replace(program, methods=tuple(methods), header=None):
        raise EditError("the new bytes read as another program")
    return replace(found, methods=tuple(methods))  # with their marks


class _Editor:
    def __init__(self, program: Program) -> None:
        header = program.header
        self._program = program
        self._buffer = flatbuffer_of(program.data, header)
        self._size = size = self._buffer.size
        # Inline constants and data in the flatbuffer keep their alignment: nothing that
        # was there moves.
        self._start = -(-size // ALIGNMENT) * ALIGNMENT
        self._tail = bytearray()
        self._writes: dict[int, bytes] = {}
        self._added: dict[tuple[int, ...], int] = {}

    def methods(self, methods: Sequence[Method]) -> None:
        """Note what has to be written."""
        root = self._buffer.root()
        for entry, method in zip(root["execution_plan"], methods, strict=True):
            table = root.entry("execution_plan", entry)
            self._numbers(table, "non_const_buffer_sizes", method.arena_bytes, 8)
            for at, value in zip(table["values"], method.values, strict=True):
                if isinstance(value, TensorValue) and value.allocation is not None:
                    self._tensor(table.entry("values", at)["val"], value.sizes, value.allocation)

    def _tensor(self, table: Table, sizes: Sequence[int], place: Allocation) -> None:
        allocation = table["allocation_info"]
        if allocation is None:
            raise EditError("a tensor has no place")
        self._numbers(table, "sizes", sizes, 4)
        high, low = divmod(place.offset_bytes, _WORD)
        wanted = (place.memory_id, low, high)
        writes = {}
        for name, number in zip(PROGRAM["AllocationDetails"].types, wanted, strict=True):
            at = allocation.place(name)
            if at:
                writes[at] = _NUMBER[4].pack(number)
            # A field that is left out because it is 0 has no place to write to; one
            # that stays 0 needs none.
            elif number:
                break
        else:
            if self._write(writes):
                return
        self._point(table, "allocation_info", self._allocation(wanted))

    def _numbers(self, table: Table, field: str, numbers: Sequence[int], width: int) -> None:
        """Write a vector in place, or a new one if that is longer or another's too."""
        start, count = self._buffer.vector(self._buffer.target(table.place(field)), width)
        packed = [_NUMBER[width].pack(n) for n in numbers]
        writes = {start + width * n: p for n, p in enumerate(packed)}
        if count != len(numbers) or not self._write(writes):
            self._point(table, field, self._vector(numbers, width))

    def _write(self, writes: dict[int, bytes]) -> bool:
        """Note bytes by position; False, and nothing noted, if others go there."""
        # Exporters share equal vectors and tables between tensors: two tensors that now
        # differ cannot both be written there.
        if any(self._writes.get(at, new) != new for at, new in writes.items()):
            return False
        self._writes |= writes
        return True

    def _point(self, table: Table, field: str, target: int) -> None:
        at = table.place(field)
        if not self._write({at: _NUMBER[4].pack(target - at)}):
            raise EditError("two tensors are one table")

    def _vector(self, numbers: Sequence[int], width: int) -> int:
        """Position of a new vector of numbers."""
        key = (width, *numbers)
        if key not in self._added:
            # Its items are aligned, its count stands before them.
            # Eight for vectors of longs; the count takes four bytes before the first
            # item.
            self._tail += bytes(-(len(self._tail) + 4) % 8)
            self._added[key] = self._start + len(self._tail)
            self._tail += _NUMBER[4].pack(len(numbers))
            self._tail += b"".join(_NUMBER[width].pack(n) for n in numbers)
        return self._added[key]

    def _allocation(self, fields: tuple[int, int, int]) -> int:
        """Position of a new table with memory id and both words of the offset."""
        key = (0, *fields)
        if key not in self._added:
            self._tail += bytes(-len(self._tail) % 4)
            self._added[key] = self._start + len(self._tail) + _VTABLE_BYTES
            self._tail += _ALLOCATION_TABLE.pack(10, 16, 4, 8, 12, _VTABLE_BYTES, *fields)
        return self._added[key]

    def result(self) -> Bytes:
        """The new file."""
        data = self._program.data
        flatbuffer = bytearray(self._buffer.data[: self._size])
        for at, new in self._writes.items():
            flatbuffer[at : at + len(new)] = new
        if not self._tail:
            return joined((bytes(flatbuffer), data[self._size :]))
        header = self._program.header
        flatbuffer += bytes(self._start - self._size) + self._tail
        if header is None:
            return bytes(flatbuffer)
        rest = data[self._size :]
        _UINT64.pack_into(flatbuffer, _PROGRAM_BYTES_AT, len(flatbuffer))
        # Segments move on together, so their offsets, which count from the base, stay.
        if header.segment_base:
            base = _new_base(header, len(flatbuffer))
            _UINT64.pack_into(flatbuffer, _SEGMENT_BASE_AT, base)
            rest = data[header.segment_base :]
            flatbuffer += bytes(base - len(flatbuffer))
        elif self._program.segments:
            raise EditError("segments lie in the flatbuffer")
        return joined((bytes(flatbuffer), rest))


def _new_base(header: ExtendedHeader, flatbuffer_bytes: int) -> int:
    """Where segments begin now, aligned as they were."""
    base = header.segment_base
    step = segment_alignment(base)
    missing = max(flatbuffer_bytes - base, 0)
    return base + -(-missing // step) * step
