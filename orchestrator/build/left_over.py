"""What a lowering left to portable kernels, with what that costs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from orchestrator.core.dtype import FLOATING
from orchestrator.core.operator import OperatorName, OpSchema
from orchestrator.export.request import LEFT_IN_FLOAT, Request
from orchestrator.method.passes.views import moves_items
from orchestrator.plain_table import table_lines
from orchestrator.profile.lowering import CORTEX_M, PORTABLE
from orchestrator.program.interface import macs_of, with_items
from orchestrator.program.program import DelegateCall, KernelCall, Method, Program
from orchestrator.program.values import TensorValue

SPEEDS: Final = Path(__file__).parent / "speeds.json"
"""By operator: `item` or `product`, and instructions for each on an M4 and on an M55.

`nox -s speeds` writes it, and the same as docs/kernel-speeds.md.
"""
# Beginnings of names: borders between int8 and floats, which a lowering writes itself.
_CONVERTS: Final = ("quantize", "dequantize", "choose_qparams")
_COPIES: Final = ("copy", "copy_", "clone", "_clone_dim_order", "_to_dim_order_copy")
_POOLS: Final = ("avg_pool2d", "max_pool2d")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Left:
    """A call that computes with floats.

    Args:
        operator: What it calls.
        sizes: Of its first result.
        size_bytes: Of its results.
        instructions: About how many it takes; None if that is not known.
        is_heavy: It is a sum of products or a pooling.
    """

    operator: str
    sizes: tuple[int, ...]
    size_bytes: int
    instructions: int | None
    is_heavy: bool


def left_over(
    program: Program, request: Request, schemas: Mapping[str, OpSchema]
) -> list[tuple[str, str]]:
    """Warnings about what a lowering did not take, with their codes.

    Of a quantized program these are all calls that compute with floats; where floats
    are what was asked for, those for which users choose a backend.

    Args:
        program: What was exported.
        request: How.
        schemas: Of the operators that have a kernel.
    """
    if request.lowering == PORTABLE:
        return []
    # A backend that takes nothing is mostly a wrong option or a missing quantization:
    # ExecuTorch says nothing of it.
    if request.lowering != CORTEX_M and not any(m.delegates for m in program.methods):
        text = f"no part of the model was lowered for {request.lowering}"
        return [("left-over", text)]
    # Columns of speeds.json: 0 says `item` or `product`, 1 is an M4, 2 an M55. Other
    # cores are taken for the one with their instruction set.
    column = 2 if request.isa == "mve" else 1
    speeds = json.loads(SPEEDS.read_text(encoding="utf-8"))
    costs = {name: (row[0] == "item", row[column]) for name, row in speeds.items()}
    found = [x for m in program.methods for x in _computing(m, costs, schemas)]
    code = LEFT_IN_FLOAT
    if not (request.quantize or _is_quantized(program)):
        # Floats were asked for: only what a backend might have taken is worth a line.
        found, code = [left for left in found if left.is_heavy], "left-over"
    if not found:
        return []
    core = "an M55" if request.isa == "mve" else "an M4"
    known = [left.instructions for left in found if left.instructions is not None]
    least = "about" if len(known) == len(found) else "at least"
    cost = f", {least} {sum(known):,} instructions on {core}" if known else ""
    text = (
        f"{request.lowering} left {_calls(len(found))} to kernels for floats:"
        f" {sum(left.size_bytes for left in found):,} bytes of results{cost};"
        " see docs/export.md"
    )
    if code == LEFT_IN_FLOAT:
        text += "#what-stays-in-float; --deny-float makes this an error"
    return [(code, "\n    ".join((text, *_table(found))))]


def _calls(count: int) -> str:
    return "1 call" if count == 1 else f"{count} calls"


def _table(found: Iterable[_Left]) -> list[str]:
    """A line for each operator, the costliest first."""
    rows: dict[str, list[_Left]] = {}
    for left in found:
        rows.setdefault(left.operator, []).append(left)
    lines = []
    for operator, calls in rows.items():
        size = sum(left.size_bytes for left in calls)
        known = [n for left in calls if (n := left.instructions) is not None]
        instructions = f"{sum(known):,}" if len(known) == len(calls) else "-"
        first = "x".join(map(str, calls[0].sizes))
        cells = [operator, str(len(calls)), first, f"{size:,}", instructions]
        lines.append((sum(known), size, cells))
    head = ["operator", "calls", "first result", "bytes", "instructions"]
    rest = (cells for *_, cells in sorted(lines, reverse=True))
    return table_lines([head, *rest], right=(1, 3, 4))


def _is_quantized(program: Program) -> bool:
    return any(_converts(name) for m in program.methods for name in m.operators)


def _converts(name: OperatorName) -> bool:
    return name.base.startswith(_CONVERTS)


def _computing(
    method: Method, costs: Mapping[str, tuple[bool, float]], schemas: Mapping[str, OpSchema]
) -> Iterator[_Left]:
    """Calls that compute with floats; moving inputs and outputs is none of that."""
    calls = [i for i in method.instructions if isinstance(i, KernelCall)]
    moving = _moving_ends(method, calls)
    for call in calls:
        name = method.operators[call.operator]
        results = {*with_items(method, call.args[-1:])}
        given = _floats(method, {*with_items(method, call.args)} - results)
        made = _floats(method, results)
        if not given or not made or _converts(name) or id(call) in moving:
            continue
        schema = schemas.get(str(name))
        macs = None
        if schema is not None:
            macs = macs_of(schema, call.args, method.values)
        by_item, cost = costs.get(str(name), (True, None))
        # Measured per item of the larger side, or per product (`nox -s speeds`); an
        # estimate, as kernels take some instructions per call besides.
        units = max(tensor.numel for tensor in (*given, *made)) if by_item else macs
        yield _Left(
            operator=str(name),
            sizes=made[0].sizes,
            size_bytes=sum(tensor.size_bytes for tensor in made),
            instructions=None if cost is None or units is None else round(cost * units),
            is_heavy=macs is not None or name.base in _POOLS,
        )


def _moving_ends(method: Method, calls: list[KernelCall]) -> set[int]:
    """Calls that only move or convert inputs, outputs, state or values of delegates."""
    values = enumerate(method.values)
    ends = {i for i, v in values if isinstance(v, TensorValue) and v.is_mutable_state}
    ends |= {a for i in method.instructions if isinstance(i, DelegateCall) for a in i.args}
    given, wanted, found = {*method.inputs} | ends, {*method.outputs} | ends, set()
    moving = [call for call in calls if _moves(method.operators[call.operator])]
    for call in moving:
        if not given.isdisjoint(call.args[:-1]):
            given.add(call.args[-1])
            found.add(id(call))
    # Backwards for outputs as forwards for inputs: a chain of copies to an output is no
    # layer that was left.
    for call in reversed(moving):
        if call.args[-1] in wanted or id(call) in found:
            wanted.update(call.args[:-1])
            found.add(id(call))
    return found


def _moves(name: OperatorName) -> bool:
    return moves_items(name) or name.base in _COPIES or _converts(name)


def _floats(method: Method, indices: set[int]) -> list[TensorValue]:
    """Tensors of floats among values."""
    values = (method.values[index] for index in sorted(indices))
    return [v for v in values if isinstance(v, TensorValue) and v.dtype in FLOATING]
