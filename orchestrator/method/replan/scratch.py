"""Scratch tensors of the size that calls need on the target."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from orchestrator.errors import Diagnostic
from orchestrator.method.replan.layout import ALIGNMENT
from orchestrator.planner.policy import ScratchPolicy
from orchestrator.program.values import Allocation, TensorValue

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from orchestrator.errors import SourceSpan
    from orchestrator.program.program import Method
    from orchestrator.scratch.need import ScratchNeed


def scratch_problems(
    needs: Iterable[ScratchNeed],
    policy: ScratchPolicy,
    *,
    model: str,
    isa: str,
    where: SourceSpan | None,
) -> Iterator[Diagnostic]:
    """What keeps the scratch memory of a program from being right for a target.

    Args:
        needs: Of the program.
        policy: `plan` can change what nothing else touches, `verify` nothing, and
            `keep` asks nothing.
        model: Its name.
        isa: Of the target.
        where: The profile line that names the model.

    Yields:
        `scratch-mismatch` of `verify`: the program has more or less than is needed.
        `scratch-too-small` of `plan`: it has too little, and that cannot be changed.
    """
    for need in needs:
        differs = need.reserved_bytes != need.needed_bytes
        if policy is ScratchPolicy.VERIFY and differs:
            code = "scratch-mismatch"
            hint = (
                'write policy = "plan" in [scratch], or export the model for this core'
            )
        elif policy is ScratchPolicy.PLAN and need.size_bytes < need.needed_bytes:
            code = "scratch-too-small"
            hint = "export the model again: something else uses this scratch tensor"
        else:
            continue
        yield Diagnostic(
            code=code,
            message=f'model "{model}" has {need.reserved_bytes} bytes of scratch'
            f" memory where {need.operator} needs {need.needed_bytes}",
            where=where,
            notes=(
                ("method", need.method),
                ("instruction", f"{need.instruction}, argument {need.argument}"),
                ("found", f"{need.reserved_bytes} bytes (value {need.value})"),
                ("expected", f"{need.needed_bytes} bytes with {isa}"),
            ),
            hint=hint,
        )


def sized(method: Method, needs: Iterable[ScratchNeed]) -> Method:
    """The method with scratch tensors of the sizes that are needed.

    One that becomes smaller stays where it is. One that grows gets a place behind
    everything else: the method is right as it is, if not small.

    Args:
        method: The method.
        needs: Of its calls.
    """
    values = list(method.values)
    arenas = list(method.arena_bytes)
    for need in needs:
        value = values[need.value]
        if need.size_bytes == need.reserved_bytes or not isinstance(value, TensorValue):
            continue
        place = value.allocation
        if place is None:
            continue
        changed = _with_bytes(value, need.size_bytes)
        if changed.size_bytes > value.size_bytes:
            begin = -(-arenas[place.memory_id] // ALIGNMENT) * ALIGNMENT
            arenas[place.memory_id] = begin + changed.size_bytes
            allocation = Allocation(memory_id=place.memory_id, offset_bytes=begin)
            changed = replace(changed, allocation=allocation)
        values[need.value] = changed
    return replace(method, values=tuple(values), arena_bytes=tuple(arenas))


def _with_bytes(value: TensorValue, size_bytes: int) -> TensorValue:
    """A tensor of as many items as fit so many bytes: all in its first dimension."""
    items = -(-size_bytes // value.dtype.item_bytes)
    sizes = (items, *(1 for _ in value.sizes[1:]))
    return replace(value, sizes=sizes)
