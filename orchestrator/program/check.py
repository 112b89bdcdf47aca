"""Checks what a decoded program says as a whole: segments, data, method names.

What is checked here and in `check_method.py` is what later stages, and the tables
they generate, trust without looking again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.program.check_method import check_method

if TYPE_CHECKING:
    from collections.abc import Iterable

    from orchestrator.program.problems import Problems
    from orchestrator.program.program import Program, SubsegmentOffsets


def check_program(program: Program, problems: Problems) -> None:
    """Note in `problems` everything in a decoded program that cannot be."""
    if program.version != 0:
        problems.unsupported(
            "the program has an unknown schema version",
            found=f"version {program.version}",
            expected="version 0",
            hint="export the model with a version of ExecuTorch that writes version 0",
        )
    _check_segments(program, problems)
    _check_data_tables(program, problems)
    if not program.methods:
        problems.damaged("the program has no method")
    seen: set[str] = set()
    for index, method in enumerate(program.methods):
        if not method.name or "\0" in method.name or method.name in seen:
            problems.damaged(
                "a method has an impossible name",
                place=f"method {index}",
                found=ascii(method.name),
                expected="a name that is not empty, unique, and without NUL",
            )
        seen.add(method.name)
        check_method(program, method, problems)


def _check_segments(program: Program, problems: Problems) -> None:
    header = program.header
    if header is None:
        available = 0
    elif header.segment_data_bytes is None:
        available = program.size_bytes - header.segment_base
    else:
        available = header.segment_data_bytes
    if header is not None and header.segment_base == 0:
        available = 0
    for index, segment in enumerate(program.segments):
        if segment.offset + segment.size_bytes > available:
            problems.damaged(
                "a segment ends after the segment data of the file",
                place=f"segment {index}",
                found=f"offset {segment.offset}, {segment.size_bytes} bytes",
                expected=f"to end at most at {available}"
                if available
                else "no segment data, there is no extended header that names any",
            )


def _check_data_tables(program: Program, problems: Problems) -> None:
    """Tables that lead to segments; offsets are checked where tensors use them."""
    if program.constants is not None:
        _check_segment_index(program, [program.constants], "constants", problems)
    _check_segment_index(program, program.mutable_segments, "mutable segment", problems)
    keys: set[str] = set()
    for index, named in enumerate(program.named_data):
        if named.segment_index >= len(program.segments):
            problems.damaged(
                "named data leads to a segment that is not there",
                place=f"named data {index}",
                found=f"segment {named.segment_index}",
                expected=f"below {len(program.segments)}",
            )
        if named.key in keys:
            problems.damaged(
                "two blocks of named data have the same name",
                place=f"named data {index}",
                found=ascii(named.key),
            )
        keys.add(named.key)


def _check_segment_index(
    program: Program,
    tables: Iterable[SubsegmentOffsets],
    place: str,
    problems: Problems,
) -> None:
    for index, table in enumerate(tables):
        # A table of nothing but the reserved entry leads nowhere.
        if table.segment_index >= len(program.segments) and len(table.offsets) > 1:
            problems.damaged(
                "a table of data offsets leads to a segment that is not there",
                place=f"{place} {index}",
                found=f"segment {table.segment_index}",
                expected=f"below {len(program.segments)}",
            )
