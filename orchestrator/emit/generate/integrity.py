"""Checksums of a product's flash, and the functions that check them.

docs/runtime.md says what is covered and why: all bytes of a program, and of a prelinked
method all that the build knows, which is everything except addresses. Each method has a
function of its own that refers to nothing else, so that the linker can drop both.
"""

from __future__ import annotations

import struct
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING
from zlib import crc32

from orchestrator.core.lazy_bytes import Bytes, chunks_of
from orchestrator.emit.generate.prelinked import argument_table
from orchestrator.emit.generate.tables import external_symbols, model_symbol
from orchestrator.method.compact import WIDE_TABLES, TableLayout
from orchestrator.method.linked import LinkedCall, LinkedInstruction, LinkedMethod, Prepared
from orchestrator.program.program import JumpFalseCall, MoveCall, Program
from orchestrator.program.values import (
    VALUE_KINDS,
    BoolValue,
    DoubleValue,
    IntValue,
    NoneValue,
    StringValue,
    TensorValue,
    Value,
)

if TYPE_CHECKING:
    from orchestrator.emit.generate.ports import ApiMethod
    from orchestrator.emit.generate.prelinked import PrelinkedText

# Must change with runtime/include/orch/tensor.h and instruction.h;
# tests/qemu/test_integrity.py compares what the device reads with these words.
_DYNAMIC, _CONTIGUOUS, _READ_ONLY, _CALLER = 1, 2, 4, 8  # flags of orch::Tensor
_KERNEL, _MOVE, _JUMP_FALSE, _PREPARED = 0, 1, 2, 5  # orch::Instruction::Kind


def table_words(
    method: LinkedMethod, *, layout: TableLayout = WIDE_TABLES
) -> list[tuple[int, int, int]]:
    """The contents of a method's tables without addresses, for `check_tables`.

    In compact tables a call has an index instead of the address of its arguments. Where
    all instructions are prepared calls, they are addresses and nothing else; methods by
    rows have none.

    Returns:
        Three words per slot, then three per instruction; as unsigned 32-bit numbers.
    """
    given = method.given
    words = [
        _value_words(
            value, is_given=index in given, is_fixed=index not in given or index in method.inputs
        )
        for index, value in enumerate(method.values[: method.slots])
    ]
    starts = argument_table(method)[1] if layout.compact else {}
    if layout.kernel_calls and not method.by_rows:
        words += [_instruction_words(i, starts) for i in method.instructions]
    return words


def _value_words(value: Value, *, is_given: bool, is_fixed: bool) -> tuple[int, int, int]:
    tag, words = int(VALUE_KINDS[type(value)]), (0, 0)
    match value:
        case TensorValue():
            flags = _CONTIGUOUS if value.is_contiguous else 0
            flags |= _READ_ONLY if value.allocation is None and is_fixed else 0
            flags |= _CALLER if is_given else 0
            flags |= _DYNAMIC if value.is_dynamic else 0
            # One word as the members of a Tensor lie in memory on a little-endian
            # machine: tag, dtype, rank, flags.
            tag |= int(value.dtype) << 8 | len(value.sizes) << 16 | flags << 24
        case NoneValue():
            pass
        case IntValue(value=number):
            words = struct.unpack("<II", struct.pack("<q", number))
        case BoolValue(value=truth):
            words = (int(truth), 0)
        case DoubleValue(value=real):
            # Bits, so that -0 and NaN count as they are.
            words = struct.unpack("<II", struct.pack("<d", real))
        case StringValue(value=text):
            words = (len(text.encode()), 0)
        case _:
            words = (len(value.items), 0)
    return (tag, *words)


def _instruction_words(
    instruction: LinkedInstruction, starts: Mapping[tuple[int, ...], int]
) -> tuple[int, int, int]:
    match instruction:
        case MoveCall(source=source, target=target):
            return _MOVE, source, target
        case JumpFalseCall(condition=condition, destination=destination):
            return _JUMP_FALSE, condition, destination
        case LinkedCall(prepared=Prepared()):
            return _PREPARED, 0, 0
    args = instruction.args
    return _KERNEL | len(args) << 8, starts.get(args, 0), 0


def intact_functions(
    methods: Sequence[ApiMethod],
    programs: Mapping[str, Program],
    linked: Mapping[str, Sequence[LinkedMethod]],
    texts: Mapping[str, PrelinkedText],
    *,
    ready: Container[ApiMethod],
    layout: TableLayout = WIDE_TABLES,
) -> str:
    """Checksums and a function per method, in the anonymous namespace of `orch`.

    Args:
        methods: Methods of the product.
        programs: By model name.
        linked: By name of a prelinked model: its methods.
        texts: By base name of a prelinked method: its tables.
        ready: Methods that are checked before their first call, each alone.
        layout: Of the tables of prelinked methods.
    """
    parts = [
        _blocks(
            model_symbol(name),
            [
                (model_symbol(name), program.data),
                *zip(
                    external_symbols(programs, name),
                    (external.data for external in program.external),
                    strict=True,
                ),
            ],
        )
        for name, program in programs.items()
        if name not in linked
    ]
    for method in methods:
        if method.model in linked:
            made = linked[method.model][method.index]
            text = texts[method.base]
            parts.append(_prelinked(method.base, made, text, layout=layout))
            start = "start_prelinked"
        else:
            checked = f"{model_symbol(method.model)}_checked"
            parts.append(_function(method.base, [f"return check_bytes({checked});"]))
            start = "load_linked"
        if method in ready:
            parts.append(
                f"Error {method.base}_ready(const ModelMethod& method) {{\n"
                f"  ORCH_TRY({method.base}_intact());\n"
                f"  return {start}(method);\n}}"
            )
    return "\n\n".join(parts)


def _blocks(name: str, blocks: Iterable[tuple[str, Bytes]]) -> str:
    rows = [f"    {{{s}, {len(d)}, {_crc32(d):#010x}U}}" for s, d in blocks]
    table = ",\n".join(rows)
    return f"constexpr CheckedBytes {name}_checked[{len(rows)}] = {{\n{table}}};"


def _crc32(data: Bytes) -> int:
    found = 0
    for chunk in chunks_of(data):
        # zlib's CRC-32 (polynomial 0xEDB88320), as runtime/src/integrity.cpp computes
        # it; it finds damage, not an attacker.
        found = crc32(chunk, found)
    return found


def _function(base: str, lines: Iterable[str]) -> str:
    body = "".join(f"  {line}\n" for line in lines)
    return f"Error {base}_intact() {{\n{body}}}"


def _prelinked(base: str, method: LinkedMethod, text: PrelinkedText, *, layout: TableLayout) -> str:
    rows = table_words(method, layout=layout)
    # Words are unsigned on the device.
    words = [word & 0xFFFFFFFF for row in rows for word in row]
    crc = crc32(struct.pack(f"<{len(words)}I", *words))
    values = f"{{{text.values}, {method.slots}}}" if method.slots else "{}"
    instructions = text.instructions or "{}"
    lines = [
        f"return check_tables({values}, {instructions},",
        f"                    {crc:#010x}U);",
    ]
    if not text.blocks:
        return _function(base, lines)
    check = f"ORCH_TRY(check_bytes({base}_checked));"
    return f"{_blocks(base, text.blocks)}\n\n{_function(base, [check, *lines])}"
