"""Memory-planning problems and plans as CSV, in the format of MiniMalloc.

Source: github.com/google/minimalloc, README; `alignment` is ours.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from orchestrator.errors import Diagnostic, SourceSpan, UsageError
from orchestrator.planner.blocks import Block, BlockPlan

_NEEDED = ("id", "lower", "upper", "size")
_COLUMNS = (*_NEEDED, "alignment")
_MOST = 1 << 48
_EXAMPLE = "the first line is id,lower,upper,size and may add alignment"


def read_blocks(text: str, *, file: str) -> tuple[Block, ...]:
    """Blocks of a CSV file, in its order.

    Args:
        text: Lifetimes are from `lower` to `upper`, upper ends exclusive; columns may
            come in any order, an `offset` is not read.
        file: As messages name it.

    Raises:
        UsageError: The first line that is wrong.
    """
    lines = text.splitlines()
    rows = csv.reader(io.StringIO(text), strict=True)
    blocks: list[Block] = []
    seen: dict[str, int] = {}
    columns: list[str] | None = None
    try:
        for row in rows:
            line = rows.line_num
            if not row:
                continue
            at = SourceSpan(file=file, line=line, text=lines[line - 1])
            if columns is None:
                columns = _header([cell.strip() for cell in row], at)
                continue
            block = _block(columns, [cell.strip() for cell in row], at)
            if block.name in seen:
                raise _wrong(
                    f'id "{block.name}" is used twice',
                    at,
                    ("first", f"line {seen[block.name]}"),
                    "give each block an id of its own",
                )
            seen[block.name] = line
            blocks.append(block)
    except csv.Error as error:
        at = SourceSpan(file=file, line=rows.line_num)
        raise _wrong(
            "invalid CSV", at, ("found", str(error)), "write one block per line"
        ) from error
    if columns is None:
        raise _wrong(
            "the file is empty",
            SourceSpan(file=file),
            ("expected", "a line of column names, then one line per block"),
            _EXAMPLE,
        )
    return tuple(blocks)


def _header(columns: list[str], at: SourceSpan) -> list[str]:
    wrong = [c for c in columns if c not in (*_COLUMNS, "offset")]
    missing = [c for c in _NEEDED if c not in columns]
    twice = sorted({c for c in columns if columns.count(c) > 1})
    for names, what in (
        (wrong, "unknown column"),
        (missing, "no column"),
        (twice, "more than one column"),
    ):
        if names:
            raise _wrong(
                f"{what} {', '.join(names)}",
                at,
                ("known", ", ".join((*_COLUMNS, "offset"))),
                _EXAMPLE,
            )
    return columns


def _block(columns: list[str], row: list[str], at: SourceSpan) -> Block:
    if len(row) != len(columns):
        raise _wrong(
            f"{len(row)} cells where the first line has {len(columns)}",
            at,
            ("columns", ",".join(columns)),
            "write one cell per column",
        )
    cells = dict(zip(columns, row, strict=True))

    def number(column: str, least: int) -> int:
        cell = cells[column]
        # int() also takes digits of other scripts, and underscores.
        digits = cell.removeprefix("-")
        if not (digits.isascii() and digits.isdigit() and len(digits) <= len("1" * 18)):
            raise _wrong(
                f"{column} is not a whole number",
                at,
                ("found", f'"{cell}"'),
                "write decimal digits only",
            )
        value = int(cell)
        if not least <= value <= _MOST:
            raise _wrong(
                f"{column} is out of range",
                at,
                ("found", cell),
                f"write a number from {least} to {_MOST}",
            )
        return value

    lower, upper = number("lower", -_MOST), number("upper", -_MOST)
    if upper <= lower:
        raise _wrong(
            "the block is never live",
            at,
            ("found", f"from {lower} to {upper}"),
            "upper is exclusive: write at least lower + 1",
        )
    alignment = number("alignment", 1) if "alignment" in cells else 1
    if alignment & (alignment - 1):
        raise _wrong(
            "alignment is not a power of two",
            at,
            ("found", str(alignment)),
            "write 1, 2, 4, 8, 16 or a greater power of two",
        )
    return Block(
        name=cells["id"],
        first=lower,
        last=upper - 1,
        size_bytes=number("size", 0),
        alignment=alignment,
    )


def _wrong(message: str, where: SourceSpan, note: tuple[str, str], hint: str) -> UsageError:
    return UsageError(
        Diagnostic(code="bad-blocks", message=message, where=where, notes=(note,), hint=hint)
    )


def write_blocks(blocks: Sequence[Block], plan: BlockPlan) -> str:
    """The blocks with their offsets, in the order of the blocks."""
    aligned = any(block.alignment != 1 for block in blocks)
    text = io.StringIO()
    out = csv.writer(text, lineterminator="\n")
    out.writerow([*_NEEDED, *(["alignment"] if aligned else []), "offset"])
    for block, offset in zip(blocks, plan.offsets, strict=True):
        life = (block.first, block.last + 1)
        alignment = [block.alignment] if aligned else []
        out.writerow([block.name, *life, block.size_bytes, *alignment, offset])
    return text.getvalue()
