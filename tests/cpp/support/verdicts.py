"""What the build says of a program, and what the device may say of the same one.

Diagnostic codes of the build and errors of the device, as docs/errors.md has them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from orchestrator.errors import ModelError, OrchestratorError
from orchestrator.method.checks import check_writes
from orchestrator.program.caller import caller_problems
from orchestrator.program.decode import decode_program
from orchestrator.program.flatbuffer import PROGRAM, Buffer
from orchestrator.program.problems import DecodeError, Problems
from orchestrator.program.reader import read_program
from orchestrator.program.values import TensorValue
from orchestrator.selection.extract import aggregate, extract
from orchestrator.selection.resolve import resolve
from tests.cpp.support.native import linked_catalog

if TYPE_CHECKING:
    from collections.abc import Iterable

    from orchestrator.errors import Diagnostic
    from orchestrator.program.program import Method

ERRORS: Final = {
    "bad-program": frozenset({"InvalidProgram"}),
    "unsupported-program": frozenset({"UnsupportedProgram"}),
    "newer-program": frozenset({"UnsupportedProgram"}),
    "call-mismatch": frozenset({"InvalidProgram"}),
    "write-to-constant": frozenset({"InvalidProgram"}),
    "no-kernel": frozenset({"OperatorMissing"}),
    "no-kernel-for-dtype": frozenset({"DtypeNotSelected"}),
    "no-kernel-for-dim-order": frozenset({"DtypeNotSelected"}),
    "no-delegate": frozenset({"DelegateMissing"}),
}
"""Errors of the device by diagnostic code of the build."""

_SAID_OTHERWISE: Final = {
    # The device tells no other file from another version of the format, and no dtype
    # that nobody has from one that it does not have.
    "not an ExecuTorch program": "UnsupportedProgram",
    "a tensor has an unknown dtype": "UnsupportedProgram",
}
"""Messages of `bad-program` with another error besides."""

_NAMES: Final = {
    "an operator has an impossible name",
    "the name of an operator is missing",
    "a string is not UTF-8",
}
"""Operators are text to the device: of an impossible name there is no kernel."""

_STRUCTURE: Final = {
    "a field lies outside the program",
    "a table lies outside the program",
    "a vtable lies outside the program",
    "a vtable is not aligned",
    "a vtable has an impossible size",
    "an offset points outside the program",
    "a vector runs past the end of the program",
    "a vector is not aligned to its items",
    "the program refers to the same bytes over and over",
}
"""Where the reader knows no more of what it reads: the device may read another value
there, and refuse that."""

NOT_READ: Final = {
    # Parts that the device has no use for: names of inputs and source lines, named
    # data, delegates and operators that are not called, arenas without a tensor.
    "a field lies outside the program",
    "a table lies outside the program",
    "a vtable lies outside the program",
    "a vtable is not aligned",
    "an offset points outside the program",
    "a vector runs past the end of the program",
    "a vector is not aligned to its items",
    "an operator has an impossible name",
    "the name of an operator is missing",
    "an arena has an impossible size",
    "an arena lies on another device than the CPU",
    "a tensor lies on another device than the CPU",
    "a segment ends after the segment data of the file",
    "a table of data offsets leads to a segment that is not there",
    "the data of a delegate is missing",
    "the data of a delegate is at an unknown location",
    "the backend of a delegate is missing",
    "a delegate has no backend or no data",
    "the key of named data is missing",
    "named data leads to a segment that is not there",
    "two blocks of named data have the same name",
    # Text is compared byte by byte, and methods are found by their index.
    "a string is not UTF-8",
    "the name of a method is missing",
    "a method has an impossible name",
    # What is missing is empty.
    "the list of values is missing",
    "the list of inputs is missing",
    "the list of outputs is missing",
    "the list of operators is missing",
    "the list of instructions is missing",
    "the list of arena sizes is missing",
    "the list of sizes of a tensor is missing",
    "the dim order of a tensor is missing",
    "the text of a string is missing",
    "the list of items of an int list is missing",
    "the list of items of a double list is missing",
    "the list of items of a bool list is missing",
    "the list of items of a tensor list is missing",
    "the list of items of a list of optional tensors is missing",
    # So are their fields, known or not.
    "the file has a field that this version does not know",
    # Sizes that vtables give of themselves and their tables bound nothing here.
    "a vtable has an impossible size",
    # Limits for the tools, which take more time for each than a device does.
    "the program has too many methods",
    "a method has more inputs and outputs than a C function can take",
    "a method has too many arenas",
    "a method has too many loops",
    "a method has too many jumps for its tensors, or tensors for its jumps",
    "calls of a method join too many tensors",
    "moves pass values on through too many others",
    # Time is bounded by the state that a method is given.
    "the program refers to the same bytes over and over",
}
"""What the Python reader refuses and the device may load, with no harm done."""


_NO_FURTHER: Final = {
    "a tensor is not stored densely from the start of its buffer",
    "a tensor has a dtype that the runtime does not have",
    "a tensor has an unknown dtype",
    "a method has not exactly one chain of instructions",
    "a value is of an unknown kind",
    "an instruction is of an unknown kind",
}
"""What the reader says before it looks at what the parts of a program mean together."""


def build_verdict(data: bytes) -> tuple[Diagnostic, ...]:
    """Why a build refuses a program that is all there is in a product; () if not."""
    try:
        program = read_program(data, file="m.pte")
        resolution = resolve(
            aggregate([extract(program, model="m")]),
            linked_catalog(),
            every_dtype=True,
            span_of=lambda _: None,
        )
        check_writes({"m": program}, resolution, {})
    except OrchestratorError as error:
        return error.diagnostics
    return ()


def reader_verdict(data: bytes) -> tuple[Diagnostic, ...]:
    """Why the reader refuses a program; () if it does not."""
    try:
        read_program(data, file="m.pte")
    except ModelError as error:
        return error.diagnostics
    return ()


def messages_of(diagnostics: Iterable[Diagnostic]) -> set[str]:
    """What is wrong, less how much more of it there is."""
    messages = {d.message for d in diagnostics}
    return {m for m in messages if not m.endswith("more problems in the same file")}


def allowed_errors(data: bytes, diagnostics: Iterable[Diagnostic]) -> set[str]:
    """What the device may answer where the build has these objections to a program.

    A build tells everything at once, the device the first thing it comes to: the answer
    is that of one of the diagnostics.
    """
    allowed: set[str] = set()
    for diagnostic in diagnostics:
        message = diagnostic.message
        allowed |= ERRORS[diagnostic.code]
        if message in _SAID_OTHERWISE:
            allowed.add(_SAID_OTHERWISE[message])
        if message in _NAMES:
            allowed.add("OperatorMissing")
        if message in _STRUCTURE or message in NOT_READ:
            allowed |= {"InvalidProgram", "UnsupportedProgram", "OperatorMissing"}
        if message in _NO_FURTHER:
            allowed.add("InvalidProgram")
    if "UnsupportedProgram" not in allowed and _is_unsupported(data):
        allowed.add("UnsupportedProgram")
    return allowed


def lacks_memory(method: Method) -> bool:
    """Whether a tensor lies where no product of the tests has anything.

    That is outside of the program, or nowhere without being an input or output, which
    the caller can give memory for.
    """
    tensors = [v for v in method.values if isinstance(v, TensorValue)]
    return any(t.is_external for t in tensors) or any(caller_problems(method))


def _is_unsupported(data: bytes) -> bool:
    """Whether a damaged program is of another version, or has such a tensor, as well.

    As far as it can be read.
    """
    buffer = Buffer(data, len(data), PROGRAM)
    try:
        program = decode_program(buffer, data, header=None, problems=Problems("m.pte"))
    except DecodeError:
        return False
    try:
        return program.version != 0 or any(map(lacks_memory, program.methods))
    except IndexError:  # inputs or outputs that do not exist
        return False
