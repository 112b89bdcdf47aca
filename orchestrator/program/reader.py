"""Reads `.pte` programs: bytes in, checked `Program` out.

Source: ExecuTorch `schema/program.fbs` and `extended_header.h` (ET12).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from struct import Struct
from typing import Final

from orchestrator.core.lazy_bytes import Bytes
from orchestrator.errors import Diagnostic, ModelError
from orchestrator.program.check import check_program
from orchestrator.program.decode import decode_program
from orchestrator.program.encode import write_program
from orchestrator.program.flatbuffer import PROGRAM, Buffer
from orchestrator.program.foreign import foreign_error
from orchestrator.program.prim_ops import settle_results
from orchestrator.program.problems import DecodeError, Problems, UnsupportedError
from orchestrator.program.program import ExtendedHeader, Program, UnknownInstruction
from orchestrator.program.values import UnknownValue

_IDENTIFIER: Final = b"ET12"
_ANY_IDENTIFIER: Final = re.compile(rb"ET\d\d")
_MAGIC: Final = b"eh00"
# Magic, length of the header, bytes of the flatbuffer, base of the segments; then, in
# headers long enough, bytes of segment data.
_HEADER: Final = Struct("<4sIQQ")
_SEGMENT_DATA_BYTES: Final = Struct("<Q")
_HEAD_BYTES: Final = 64
"""With the extended header, as far as it is known."""
_HEADER_AT: Final = 8
"""After the root offset and the file identifier."""


def read_program(data: Bytes, *, file: str) -> Program:
    """The program in the bytes of a `.pte` file.

    Nothing in the file is trusted: every offset, index, count and size is checked
    before it is used, and time and memory grow no faster than the flatbuffer. In the
    result all of them are in range. The data of segments is neither copied nor read.

    Scratch memory of delegates, which ExecuTorch 1.6 plans beside the values, becomes
    values, and the program is written anew with them: see `decode.py`.

    Args:
        data: The whole file. Bytes after the last segment do not matter.
        file: Its name, for messages.

    Raises:
        ModelError: Not a program, or a damaged one (`bad-program`); it needs what
            the runtime does not support (`unsupported-program`), or has a field that
            is newer than this version (`newer-program`). With every problem.
    """
    problems = Problems(file)
    program = _decoded(data, problems)
    problems.raise_if_any()
    return _without_scratch(program, data, file)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadProgram:
    """A program to look at, with everything that is wrong with it.

    Args:
        program: As far as it can be read.
        problems: Why `read_program` refuses it; empty if it does not.
        is_sound: Every index and size is in range, and nothing is unknown: problems
            are of what the runtime does not support.
        has_gaps: Something was left out, so that indices say nothing.
    """

    program: Program
    problems: tuple[Diagnostic, ...]
    is_sound: bool
    has_gaps: bool


def read_to_show(data: Bytes, *, file: str) -> ReadProgram:
    """Like `read_program`, but for a program that is shown, not built.

    Raises:
        ModelError: Not a program, or nothing of it can be read.
    """
    problems = Problems(file)
    program = _decoded(data, problems)
    # `inspect` then lists operators as well: nothing in it is damaged, this version
    # only cannot run it.
    is_sound = problems.are_unsupported and not any(
        isinstance(part, UnknownValue | UnknownInstruction)
        for method in program.methods
        for part in (*method.values, *method.instructions)
    )
    try:
        problems.raise_if_any()
        program = _without_scratch(program, data, file)
    except ModelError as error:
        found = error.diagnostics
    else:
        found = ()
    return ReadProgram(
        program=program,
        problems=found,
        is_sound=is_sound and not problems.has_gaps,
        has_gaps=problems.has_gaps,
    )


def _decoded(data: Bytes, problems: Problems) -> Program:
    """The program; notes everything that is wrong, as far as it can be checked.

    Raises:
        ModelError: It cannot be decoded at all.
    """
    try:
        header = _read_header(data)
        buffer = flatbuffer_of(data, header)
        program = decode_program(buffer, data, header=header, problems=problems)
    except DecodeError as error:
        problems.undecodable(error, "program")
        raise problems.error() from error
    if problems.has_gaps:
        return program
    # Before the checks: they compare a result with what the kernel gives.
    methods = tuple(settle_results(method) for method in program.methods)
    program = replace(program, methods=methods)
    check_program(program, problems)
    return program


def _without_scratch(program: Program, data: Bytes, file: str) -> Program:
    """The program as the device loads it."""
    if program.original is None:
        return program
    # The device knows no `scratch`: it gets a program in which these tensors are
    # values, and the reader has to accept that one, too.
    written = read_program(write_program(program), file=file)
    return replace(written, methods=program.methods, original=data)


def flatbuffer_of(data: Bytes, header: ExtendedHeader | None) -> Buffer:
    """The flatbuffer at the start of a file, which is read."""
    size = len(data) if header is None else header.program_bytes
    # Segments of a large file stay unread (core/lazy_bytes.py).
    read = data if isinstance(data, bytes) else bytes(data[:size])
    return Buffer(read, size, PROGRAM)


def _read_header(file: Bytes) -> ExtendedHeader | None:
    """The extended header; None if there is none.

    Raises:
        DecodeError: Not a program, or the header does not fit the file.
    """
    data, size = bytes(file[:_HEAD_BYTES]), len(file)
    identifier = data[4:8]
    if identifier != _IDENTIFIER:
        if _ANY_IDENTIFIER.fullmatch(identifier):
            raise UnsupportedError(
                "the program has another format version",
                found=identifier.decode(),
                expected=_IDENTIFIER.decode(),
                hint="export the model with a version of ExecuTorch that writes ET12",
            )
        raise foreign_error(bytes(file), "program", ".pte")
    if data[_HEADER_AT : _HEADER_AT + 4] != _MAGIC:
        return None
    if len(data) < _HEADER_AT + _HEADER.size:
        raise DecodeError("the extended header is cut off", found=f"{size} bytes")
    _, length, program_bytes, segment_base = _HEADER.unpack_from(data, _HEADER_AT)
    if not _HEADER_AT + _HEADER.size <= program_bytes <= size:
        raise DecodeError(
            "the flatbuffer does not lie inside the file",
            found=f"{program_bytes} bytes",
            expected=f"{_HEADER_AT + _HEADER.size} to {size}",
        )
    if not _HEADER.size <= length <= program_bytes - _HEADER_AT:
        raise DecodeError(
            "the extended header has an impossible length",
            found=f"{length} bytes",
            expected=f"{_HEADER.size} to {program_bytes - _HEADER_AT}",
        )
    segment_data_bytes = None
    if length >= _HEADER.size + _SEGMENT_DATA_BYTES.size:
        (segment_data_bytes,) = _SEGMENT_DATA_BYTES.unpack_from(data, _HEADER_AT + _HEADER.size)
    file_bytes = segment_base + (segment_data_bytes or 0)
    if file_bytes > size:
        raise DecodeError(
            "the file is too short for its segments",
            found=f"{size} bytes",
            expected=f"at least {file_bytes}",
        )
    # Base 0 means that there are no segments.
    if 0 < segment_base < program_bytes:
        raise DecodeError(
            "the segments overlap the flatbuffer",
            found=f"segments from byte {segment_base}",
            expected=f"from {program_bytes}",
        )
    return ExtendedHeader(
        length=length,
        program_bytes=program_bytes,
        segment_base=segment_base,
        segment_data_bytes=segment_data_bytes,
    )
