"""Reads `.ptd` data files: bytes in, where each named tensor lies out.

Source: ExecuTorch `extension/flat_tensor/serialize/flat_tensor.fbs` and
`flat_tensor_header.h` (FT01).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from math import prod
from struct import Struct
from typing import Final

from orchestrator.core.dtype import ScalarType
from orchestrator.core.lazy_bytes import Bytes, part_of
from orchestrator.program.flatbuffer import Buffer, Table
from orchestrator.program.foreign import foreign_error
from orchestrator.program.problems import DecodeError, Problems
from orchestrator.program.schema import DATA_FILE

_IDENTIFIER: Final = b"FT01"
_MAGIC: Final = b"FH01"
_HEADER_AT: Final = 8
_HEADER: Final = Struct("<4sIQQQQ")


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredTensor:
    """A tensor in a data file.

    Args:
        name: By which programs name it.
        dtype: Element type; None for data that is not a tensor.
        sizes: Outermost dimension first.
        dim_order: Dimensions from outermost to innermost in memory.
        data: Its bytes.
    """

    name: str
    dtype: ScalarType | None
    sizes: tuple[int, ...]
    dim_order: tuple[int, ...]
    data: Bytes = field(repr=False)


def is_data_file(data: Bytes) -> bool:
    """Whether bytes say that they are such a file."""
    return bytes(data[4:8]) == _IDENTIFIER


def read_flat_tensors(data: Bytes, *, file: str) -> tuple[StoredTensor, ...]:
    """What is in the bytes of a `.ptd` file, in its order.

    Nothing in the file is trusted: every offset, index, count and size is checked.

    Args:
        data: The whole file.
        file: Its name, for messages.

    Raises:
        ModelError: Not such a file, or a damaged one (`bad-program`).
    """
    problems = Problems(file)
    try:
        tensors = _read(data)
    except DecodeError as error:
        problems.undecodable(error, "data file")
        raise problems.error() from error
    return tensors


def _read(data: Bytes) -> tuple[StoredTensor, ...]:
    head = bytes(data[: _HEADER_AT + _HEADER.size])
    if head[4:8] != _IDENTIFIER:
        raise foreign_error(bytes(data), "data file", ".ptd")
    if len(data) < _HEADER_AT + _HEADER.size:
        raise DecodeError("the header is cut off", found=f"{len(data)} bytes")
    magic, length, offset, size, base, base_bytes = _HEADER.unpack_from(head, _HEADER_AT)
    if magic != _MAGIC or length < _HEADER.size:
        raise DecodeError("the header is none", found=f"magic {magic!r}, {length} bytes")
    # Offsets count from the start of the file: the header lies in the flatbuffer.
    size += offset
    if not _HEADER_AT + length <= size <= len(data):
        raise DecodeError(
            "the flatbuffer does not lie inside the file",
            found=f"to byte {size}",
            expected=f"{_HEADER_AT + length} to {len(data)}",
        )
    if base < size or base + base_bytes > len(data):
        raise DecodeError(
            "the segments do not lie behind the flatbuffer, inside the file",
            found=f"{base_bytes} bytes at byte {base}",
            expected=f"from byte {size} to {len(data)}",
        )
    root = Buffer(bytes(data[:size]), size, DATA_FILE).root()
    if root.uint32(0) != 0:
        raise DecodeError("the file has another version", found=str(root.uint32(0)), expected="0")
    segments = [_segment(root.entry(1, at), base, base_bytes) for at in root.entries(1) or ()]
    found = [_tensor(root.entry(2, at), segments, data) for at in root.entries(2) or ()]
    names = Counter(tensor.name for tensor in found)
    if twice := next((name for name, count in names.items() if count > 1), ""):
        raise DecodeError("a name is there twice", found=f'"{twice}"')
    return tuple(found)


def _segment(table: Table, base: int, base_bytes: int) -> tuple[int, int]:
    """Where a segment begins and ends in the file."""
    offset, size = table.uint64(0), table.uint64(1)
    if offset + size > base_bytes:
        raise DecodeError(
            "a segment leaves the file",
            found=f"offset {offset}, {size} bytes",
            expected=f"to end at most at {base_bytes}",
        )
    return base + offset, base + offset + size


def _tensor(table: Table, segments: list[tuple[int, int]], data: Bytes) -> StoredTensor:
    name, index, layout = table.string(0), table.uint32(1), table.table(2)
    if not name or index >= len(segments):
        raise DecodeError(
            "an entry has no name, or a segment that is not there",
            found=f'"{name or ""}", segment {index}',
            expected=f"a name, a segment below {len(segments)}",
        )
    begin, end = segments[index]
    content = part_of(data, begin, end - begin)
    if layout is None:
        return StoredTensor(name=name, dtype=None, sizes=(), dim_order=(), data=content)
    code = layout.int8(0)
    sizes = layout.int32s(1) or ()
    dim_order = tuple(layout.uint8s(2) or b"")
    if code not in set(ScalarType):
        raise DecodeError("a tensor has an unknown dtype", found=f'"{name}", {code}')
    dtype = ScalarType(code)
    if sorted(dim_order) != list(range(len(sizes))) or min(sizes, default=0) < 0:
        raise DecodeError(
            "a tensor has impossible sizes",
            found=f'"{name}", {list(sizes)} in order {list(dim_order)}',
        )
    if prod(sizes) * dtype.item_bytes != end - begin:
        raise DecodeError(
            "a tensor is not as large as its data",
            found=f'"{name}", {prod(sizes) * dtype.item_bytes} bytes',
            expected=f"{end - begin} bytes",
        )
    return StoredTensor(name=name, dtype=dtype, sizes=sizes, dim_order=dim_order, data=content)
