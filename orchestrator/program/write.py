"""Writes `.pte` programs: the reverse of `reader.py`.

Source: ExecuTorch `schema/program.fbs` and `extended_header.h` (ET12).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from struct import Struct
from typing import Final

from orchestrator.core.lazy_bytes import Bytes, joined, part_of
from orchestrator.program.encode import encode_program
from orchestrator.program.program import Program, Segment, SubsegmentOffsets

_HEADER_AT: Final = 8
"""After the root offset and the file identifier."""
_HEADER: Final = Struct("<4sIQQQ")
_ROOT: Final = Struct("<I")
_ALIGNMENT: Final = 16
_MOST_ALIGNMENT: Final = 128
"""Of segments, by default of exporters."""


def write_program(program: Program, *, constants: Sequence[Bytes] | None = None) -> Bytes:
    """The file of a program.

    The same program gives the same bytes. Constants begin at multiples of 16, segments
    at multiples of what they began at in the program's own bytes, from 16 to 128.

    Args:
        program: Any that the reader gives, or one with other methods.
        constants: Data of its constant tensors, by data buffer index, the reserved
            first one left out; None: that of the program.

    Returns:
        A file from which the reader gives an equal program, but for where data lies.
    """
    contents = _Contents.of(program)
    if constants is not None:
        contents = contents.with_constants(program, constants)
    segments, data = _laid_out(contents)
    written = replace(program, segments=segments, constants=contents.constants)
    flatbuffer = encode_program(
        written, inline_constants=contents.inline_constants, inline_data=contents.inline_data
    )
    if program.header is None and not len(data):
        return flatbuffer
    alignment = max((a for _, a in contents.segments), default=_ALIGNMENT)
    return _with_header(flatbuffer, data, alignment)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Contents:
    """What a file has besides its facts.

    Args:
        segments: (data, alignment) of each.
        constants: Where constant tensors lie in one.
        inline_constants: Constants that lie in the flatbuffer.
        inline_data: Data of delegates that lies there.
    """

    segments: tuple[tuple[Bytes, int], ...]
    constants: SubsegmentOffsets | None
    inline_constants: tuple[Bytes, ...]
    inline_data: tuple[Bytes, ...]

    @staticmethod
    def of(program: Program) -> _Contents:
        """Those of a program as it was read."""
        return _Contents(
            segments=tuple(
                (program.segment_bytes(i), _alignment(program.segment_offset(i)))
                for i in range(len(program.segments))
            ),
            constants=program.constants,
            inline_constants=tuple(
                part_of(program.data, at, size) for at, size in program.inline_constants
            ),
            inline_data=tuple(part_of(program.data, at, size) for at, size in program.inline_data),
        )

    def with_constants(self, program: Program, constants: Sequence[Bytes]) -> _Contents:
        """The same with other constants, in the segment that had them."""
        if program.has_inline_constants:
            return replace(self, inline_constants=(b"", *constants))
        data, offsets = _joined(constants)
        index = len(self.segments)
        if program.constants is not None:
            index = min(program.constants.segment_index, index)
        if index in _named(program):
            index = len(self.segments)
        segments = dict(enumerate(self.segments))
        _, alignment = segments.get(index, (b"", _ALIGNMENT))
        segments[index] = (data, alignment)
        return replace(
            self,
            segments=tuple(segments.values()),
            constants=SubsegmentOffsets(segment_index=index, offsets=(0, *offsets)),
        )


def _named(program: Program) -> set[int]:
    """Segments that something else than constants lies in."""
    found = {s.segment_index for s in program.mutable_segments}
    found.update(d.segment_index for d in program.named_data)
    delegates = (d for method in program.methods for d in method.delegates)
    return found | {d.data_index for d in delegates if not d.is_inline}


def _alignment(position: int) -> int:
    """The largest power of two up to the most that a position is a multiple of."""
    own = position & -position or _MOST_ALIGNMENT
    return min(max(own, _ALIGNMENT), _MOST_ALIGNMENT)


def _joined(constants: Sequence[Bytes]) -> tuple[Bytes, tuple[int, ...]]:
    """All constants, and where each begins."""
    parts: list[Bytes] = []
    offsets, end = [], 0
    for constant in constants:
        padding = -end % _ALIGNMENT
        offsets.append(end + padding)
        parts += (bytes(padding), constant)
        end += padding + len(constant)
    return joined(parts), tuple(offsets)


def _laid_out(contents: _Contents) -> tuple[tuple[Segment, ...], Bytes]:
    """Segments with their places, and what stands there."""
    parts: list[Bytes] = []
    segments, end = [], 0
    for block, alignment in contents.segments:
        if len(block):
            parts.append(bytes(-end % alignment))
            end += len(parts[-1])
        segments.append(Segment(offset=end if len(block) else 0, size_bytes=len(block)))
        parts.append(block)
        end += len(block)
    return tuple(segments), joined(parts)


def _with_header(flatbuffer: bytes, data: Bytes, alignment: int) -> Bytes:
    """The file: an extended header behind the identifier, segments at the end."""
    size = len(flatbuffer) + _HEADER.size
    base = -(-size // alignment) * alignment if data else 0
    (root,) = _ROOT.unpack_from(flatbuffer)
    header = _HEADER.pack(b"eh00", _HEADER.size, size, base, len(data))
    head = _ROOT.pack(root + _HEADER.size) + flatbuffer[_ROOT.size : _HEADER_AT]
    start = (head + header + flatbuffer[_HEADER_AT:]).ljust(base, b"\0")
    return joined((start, data))
