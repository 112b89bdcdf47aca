"""What makes a prelinked method smaller without changing a bit of its outputs."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from orchestrator.pte.linked import LinkedCall, LinkedMethod
from orchestrator.pte.program import JumpFalseCall, MoveCall
from orchestrator.pte.values import (
    IntListValue,
    IntValue,
    OptionalTensorListValue,
    TensorListValue,
    TensorValue,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from orchestrator.pte.linked import LinkedInstruction
    from orchestrator.pte.values import Value

_LISTS = (IntListValue, TensorListValue, OptionalTensorListValue)
_PERMUTE: Final = "aten::permute_copy.out"


def fold_permutes(method: LinkedMethod) -> LinkedMethod:
    """Permute constants at build time.

    The output becomes a constant where nothing else writes it and it is no output of
    the method. A method with jumps is left as it is.
    """
    if any(isinstance(i, JumpFalseCall) for i in method.instructions):
        return method
    data = dict(method.data)
    values = list(method.values)
    kept: list[LinkedInstruction] = []
    for instruction in method.instructions:
        folded = _permuted(method, values, data, instruction)
        if folded is None:
            kept.append(instruction)
            continue
        out, content = folded
        tensor = values[out]
        assert isinstance(tensor, TensorValue)  # noqa: S101  # _permuted looked
        values[out] = replace(tensor, allocation=None, data_buffer_index=1)
        data[out] = content
    return replace(
        method,
        values=tuple(values),
        instructions=tuple(kept),
        data=tuple(sorted(data.items())),
    )


def _permuted(
    method: LinkedMethod,
    values: list[Value],
    data: Mapping[int, bytes],
    instruction: LinkedInstruction,
) -> tuple[int, bytes] | None:
    """Output and bytes of a permutation of a constant; None for all else."""
    if not isinstance(instruction, LinkedCall) or str(instruction.operator) != _PERMUTE:
        return None
    source, dims, out = instruction.args
    tensor, order, result = values[source], values[dims], values[out]
    if not (
        isinstance(tensor, TensorValue)
        and isinstance(order, IntListValue)
        and isinstance(result, TensorValue)
    ):
        return None
    axes = [values[i] for i in order.items]
    numbers = [a.value for a in axes if isinstance(a, IntValue)]
    written = method.written - set(instruction.outs)
    times = sum(out in i.outs for i in method.instructions if isinstance(i, LinkedCall))
    plain = (
        source in data
        and tensor.allocation is None
        and not {source, dims, *order.items} & method.written
        and not result.is_dynamic
        and not result.is_mutable_state
        and result.dtype is tensor.dtype
        and tensor.is_contiguous
        and result.is_contiguous
        and len(numbers) == len(tensor.sizes)
        and times == 1
        and out not in written
        and out not in method.outputs
    )
    if not plain:
        return None
    rank = len(tensor.sizes)
    axes_ = [n + rank if n < 0 else n for n in numbers]
    if sorted(axes_) != list(range(rank)):
        return None  # the kernel refuses it
    if tuple(tensor.sizes[a] for a in axes_) != result.sizes:
        return None
    return out, _permute(data[source], tensor.sizes, axes_, tensor.dtype.item_bytes)


def _permute(data: bytes, sizes: tuple[int, ...], axes: list[int], item: int) -> bytes:
    """Items of a contiguous tensor in the order of its permutation."""
    strides = [1] * len(sizes)
    for i in range(len(sizes) - 2, -1, -1):
        strides[i] = strides[i + 1] * sizes[i + 1]
    offsets = [0]
    for axis in axes:
        steps = range(0, sizes[axis] * strides[axis], strides[axis])
        offsets = [offset + step for offset in offsets for step in steps]
    return b"".join(data[o * item : (o + 1) * item] for o in offsets)


def share_values(method: LinkedMethod) -> LinkedMethod:
    """Let values that are equal and never change have one slot."""
    targets = {i.target for i in method.instructions if isinstance(i, MoveCall)}
    written = method.written
    data = dict(method.data)
    given = method.given
    first: dict[object, int] = {}
    new_index: dict[int, int] = {}

    def place(index: int) -> int:
        if index < 0 or index in new_index:
            return new_index.get(index, index)
        value = method.values[index]
        key: object
        if isinstance(value, TensorValue):
            shareable = index not in targets | given and not value.is_dynamic
            key = (replace(value, data_buffer_index=0, extra=None), data.get(index))
        else:
            shareable = index not in written
            if isinstance(value, _LISTS):
                value = type(value)(tuple(map(place, value.items)))
            key = repr(value)  # tells 0.0 from -0.0, and 1 from true
        new_index[index] = first.setdefault(key, index) if shareable else index
        return new_index[index]

    for index in range(len(method.values)):
        place(index)
    return _renumbered(method, new_index)


def drop_values(method: LinkedMethod) -> LinkedMethod:
    """Leave out slots that nothing names."""
    used: set[int] = set()

    def use(indices: Iterable[int]) -> None:
        for index in indices:
            if index >= 0 and index not in used:
                used.add(index)
                value = method.values[index]
                if isinstance(value, _LISTS):
                    use(value.items)

    use((*method.inputs, *method.outputs))
    for instruction in method.instructions:
        match instruction:
            case LinkedCall(args=args):
                use(args)
            case MoveCall(source=source, target=target):
                use((source, target))
            case JumpFalseCall(condition=condition):
                use((condition,))
    kept = sorted(used)
    new_index = {old: new for new, old in enumerate(kept)}
    moved = _renumbered(method, new_index)
    return replace(
        moved,
        values=tuple(moved.values[old] for old in kept),
        data=tuple((new_index[i], d) for i, d in method.data if i in used),
    )


def _renumbered(method: LinkedMethod, new_index: Mapping[int, int]) -> LinkedMethod:
    """The method with other numbers for its values; the slots stay where they are."""

    def new(index: int) -> int:
        return new_index.get(index, index)

    def of_value(value: Value) -> Value:
        if isinstance(value, _LISTS):
            return type(value)(tuple(map(new, value.items)))
        return value

    def of_instruction(instruction: LinkedInstruction) -> LinkedInstruction:
        match instruction:
            case LinkedCall(args=args, outs=outs):
                return replace(
                    instruction,
                    args=tuple(map(new, args)),
                    outs=tuple(map(new, outs)),
                )
            case MoveCall(source=source, target=target):
                return MoveCall(source=new(source), target=new(target))
            case JumpFalseCall(condition=condition):
                return replace(instruction, condition=new(condition))

    return replace(
        method,
        values=tuple(map(of_value, method.values)),
        instructions=tuple(map(of_instruction, method.instructions)),
        inputs=tuple(map(new, method.inputs)),
        outputs=tuple(map(new, method.outputs)),
    )


PASSES: Final[Mapping[str, Callable[[LinkedMethod], LinkedMethod]]] = MappingProxyType(
    {
        "fold_permutes": fold_permutes,
        "share_values": share_values,
        "drop_values": drop_values,
    }
)
"""By name, in the order they run in."""


def run_passes(method: LinkedMethod, names: Iterable[str]) -> LinkedMethod:
    """A method after the passes of these names; the order is that of `PASSES`."""
    wanted = frozenset(names)
    for name, change in PASSES.items():
        if name in wanted:
            method = change(method)
    return method
