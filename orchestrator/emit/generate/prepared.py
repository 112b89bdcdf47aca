"""The structs of prepared calls in C++: one constant each, with a comment."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from math import isinf, isnan

from orchestrator.emit.artifact import row_comment
from orchestrator.method.linked import LinkedCall, Numbers, Prepared, Shape
from orchestrator.program.values import TensorValue, Value


def prepared_header(prepared: Prepared) -> str:
    """The header that declares the struct, as generated code includes it."""
    _, *library, _ = prepared.struct.split("::")
    return f"{''.join(library) or 'util'}/prepared.h"


def prepared_declaration(function: str) -> str:
    """Declaration of a kernel's function for prepared calls."""
    namespace, _, name = function.rpartition("::")
    arguments = "const orch::PreparedCall& call"
    return f"namespace {namespace} {{\nvoid {name}({arguments});\n}}"


def prepared_block(
    call: LinkedCall,
    prepared: Prepared,
    *,
    name: str,
    number: int,
    tensors: Sequence[Value],
    memory: Sequence[str],
    shape: str,
) -> str:
    """Definition of the struct of a call, in the namespace orch.

    Args:
        call: The call.
        prepared: What it gives its kernel.
        name: Of the struct.
        number: Of the instruction.
        tensors: Its arguments.
        memory: C++ expressions of their addresses.
        shape: Name of its shape, if it has one.
    """
    arguments = ", ".join(
        f"{argument}={_shown(tensors[at])}" for argument, at in prepared.memory if at is not None
    )
    members = [
        *((n, "nullptr" if at is None else memory[at]) for n, at in prepared.memory),
        *([("shape", f"&{shape}")] if prepared.shape else []),
        *((member, _numbers(value)) for member, value in prepared.numbers),
    ]
    rows = ",\n".join(f"    /* {member} */ {text}" for member, text in members)
    return (
        f"{row_comment(f'{number}: {call.operator}({arguments})', indent='')}"
        f"constexpr {prepared.struct.removeprefix('orch::')} {name} = {{\n"
        # The function first: PreparedCall is the first member of every such struct
        # (decision 0025).
        f"    {{{call.function}}},\n{rows}}};"
    )


def shape_block(shape: Shape, name: str) -> str:
    """Definition of a shape, in the namespace orch."""
    rows = ",\n".join(f"    /* {n} */ {_numbers(value)}" for n, value in shape.numbers)
    return f"constexpr {shape.struct.removeprefix('orch::')} {name} = {{\n{rows}}};"


def number_bytes(members: tuple[tuple[str, Numbers], ...]) -> bytes:
    """The bytes of numbers in a struct."""
    return b"".join(_words(members))


def number_block(prepared: Prepared, name: str) -> tuple[str, bytes] | None:
    """Where the numbers of a struct begin, and their bytes; None if it has none."""
    if not prepared.numbers:
        return None
    # Numbers lie behind all addresses without a gap, so that one block covers them;
    # addresses are the linker's.
    member = prepared.numbers[0][0]
    return f"&{name}.{member}", number_bytes(prepared.numbers)


def _shown(value: Value) -> str:
    """Dtype and sizes of a tensor."""
    if not isinstance(value, TensorValue):
        return "?"
    return f"{value.dtype.name}{[*value.sizes]}"


def _numbers(value: Numbers) -> str:
    """A number, or a struct with the names of its members."""
    if isinstance(value, tuple):
        return f"{{{', '.join(f'/* {name} */ {_numbers(v)}' for name, v in value)}}}"
    return exact(value, "f") if isinstance(value, float) else str(value)


def exact(number: float, suffix: str = "") -> str:
    """An exact C++ literal of a double, or with the suffix `f` of a float."""
    if isnan(number):
        return f'__builtin_nan{suffix}("")'
    if isinf(number):
        return f"{'-' * (number < 0)}__builtin_inf{suffix}()"
    # Hexadecimal: the very bits, where decimal digits would be read by the compiler's
    # rounding.
    return number.hex() + suffix.upper()


def _words(members: tuple[tuple[str, Numbers], ...]) -> Iterator[bytes]:
    for _, value in members:
        if isinstance(value, tuple):
            yield from _words(value)
        else:
            yield struct.pack("<f" if isinstance(value, float) else "<i", value)
