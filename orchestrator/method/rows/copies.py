"""Prepared calls that only move items, for some rows of what they fill.

Concatenations, slices and repetitions of images are such calls, one for each part.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, TypeAlias

from orchestrator.method.linked import LinkedCall, Prepared
from orchestrator.method.windows import Image, RowTable

if TYPE_CHECKING:
    from orchestrator.method.linked import Numbers


Images: TypeAlias = tuple[Image, Image]

# Numbers of structs by their path: names of structs in structs are joined by dots.

Members: TypeAlias = "tuple[tuple[str, Numbers], ...]"


def number_at(members: Members, path: str) -> int:
    """A whole number of a struct."""
    value = _at(members, path)
    assert isinstance(value, int)  # noqa: S101  # its struct says so
    return value


def real_at(members: Members, path: str) -> float:
    """A number of a struct."""
    value = _at(members, path)
    assert not isinstance(value, tuple)  # noqa: S101  # its struct says so
    return value


def _at(members: Members, path: str) -> Numbers:
    value: Numbers = members
    for name in path.split("."):
        assert isinstance(value, tuple)  # noqa: S101  # its struct says so
        value = dict(value)[name]
    return value


def edited(members: Members, changed: Mapping[str, int]) -> Members:
    """The members of a struct with other numbers at some paths."""
    found: list[tuple[str, Numbers]] = []
    for name, value in members:
        inner = {
            path.removeprefix(f"{name}."): number
            for path, number in changed.items()
            if path.startswith(f"{name}.")
        }
        new: Numbers = changed.get(name, value)
        found.append((name, edited(value, inner) if inner and isinstance(value, tuple) else new))
    return tuple(found)


COPY: Final = "orch::CopyCall"
_LOOPS: Final = ("outer", "middle", "inner")
_BLOCK: Final = "block_bytes"


@dataclass(frozen=True, slots=True, kw_only=True)
class CopiedRows:
    """Which rows a call moves, and where to.

    Args:
        path: Of the number of its shape that grows with the rows.
        each: What that number is for a row.
        count: Rows that are moved.
        source: The first of them, and how far each is from the one before.
        target: The same of the output.
        offsets: Bytes from the beginning of a row, of the input and of the output.
        is_spread: Whether each row of the input goes to one of the output in blocks
            of one size, equally far apart, the first one at the beginning.
    """

    path: str
    each: int
    count: int
    source: tuple[int, int]
    target: tuple[int, int]
    offsets: tuple[int, int]
    is_spread: bool = False

    def window(self, size: int, out: int) -> RowTable:
        """The rows that each row of the output needs."""
        (first, step), (to, to_step) = self.source, self.target
        rows = ((to + i * to_step, first + i * step) for i in range(self.count))
        return RowTable.of({row: (at, at) for row, at in rows}, size=size, out=out)

    def band(
        self, prepared: Prepared, rows: tuple[int, int], low: int, images: Images
    ) -> Prepared | None:
        """The call for some rows; None if it moves none of them.

        Args:
            prepared: The call.
            rows: First and last row of the output, inclusive.
            low: The row of the input that its address is of.
            images: Its input and its output.
        """
        (first, step), (to, to_step) = self.source, self.target
        # The first row that is not above the band: the quotient is rounded up.
        begin = max(-((to - rows[0]) // to_step), 0)
        end = min((rows[1] - to) // to_step, self.count - 1)
        if begin > end:
            return None
        assert prepared.shape is not None  # noqa: S101  # copies have one
        moved = edited(prepared.shape.numbers, {self.path: (end - begin + 1) * self.each})
        read = (first + begin * step - low) * images[0].row_bytes
        written = (to + begin * to_step - rows[0]) * images[1].row_bytes
        offsets = {"input_offset": self.offsets[0] + read, "out_offset": self.offsets[1] + written}
        return replace(
            prepared,
            shape=replace(prepared.shape, numbers=moved),
            numbers=edited(prepared.numbers, offsets),
        )


def is_spread(call: LinkedCall, images: Images) -> bool:
    """Whether a call moves items in order, none to where a later one comes from.

    Provided that its input is the end of its output, a part of it.

    Args:
        call: A prepared call.
        images: Its input and its output.
    """
    if call.prepared is None or call.prepared.struct != COPY:
        return False
    found = copied_rows(call.prepared, images)
    return found is not None and found.is_spread


def copied_rows(prepared: Prepared, images: Images) -> CopiedRows | None:
    """The rows that a call moves; None if it takes rows apart.

    Args:
        prepared: A `CopyCall`.
        images: Its input and its output.
    """
    assert prepared.shape is not None  # noqa: S101  # copies have one
    shape = prepared.shape.numbers
    row, out_row = (image.row_bytes for image in images)
    loops = [(f"{name}.count", axis) for name in _LOOPS if (axis := _axis_of(shape, name))[0] > 1]
    block = each = number_at(shape, _BLOCK)
    path, count, read, written = _BLOCK, 1, row, out_row
    inner = [axis for _, axis in loops]
    if loops:
        path, (number, read, written) = loops[0]
        each = max(out_row // written, 1)
        count, rest = divmod(number, each)
        if rest:
            return None
        # What the outermost loop does in a row.
        inner[0] = each, read, written
        read, written = read * each, written * each
    # Whole rows in one block: it is cut into rows.
    elif block % row == 0 and row == out_row:
        count, block, each = block // row, row, row
    if read % row or written % out_row:
        return None
    first, input_offset = divmod(number_at(prepared.numbers, "input_offset"), row)
    to, out_offset = divmod(number_at(prepared.numbers, "out_offset"), out_row)
    reach = input_offset + block + sum((n - 1) * step for n, step, _ in inner)
    out_reach = out_offset + block + sum((n - 1) * step for n, _, step in inner)
    # A row of the output takes items from two rows of the input, or goes into two.
    if reach > row or out_reach > out_row:
        return None
    source, target = (first, read // row), (to, written // out_row)
    is_spread = (
        source == target == (0, 1)
        and (input_offset, out_offset) == (0, 0)
        and inner == [(each, block, out_row // each)]
        and (each * block, out_row % each) == (row, 0)
    )
    return CopiedRows(
        path=path,
        each=each,
        count=count,
        source=source,
        target=target,
        offsets=(input_offset, out_offset),
        is_spread=is_spread,
    )


def _axis_of(shape: Members, loop: str) -> tuple[int, int, int]:
    """A `BlockAxis`."""
    count, read, written = (
        number_at(shape, f"{loop}.{name}") for name in ("count", "read", "written")
    )
    return count, read, written
