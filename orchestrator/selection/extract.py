"""Extract: which operators, kernel keys and delegates a program uses."""

from __future__ import annotations

from typing import Final

from orchestrator.core.kernel import TensorMeta
from orchestrator.core.operator import OPTIONAL_ITEMS, ArgKind
from orchestrator.program.program import DelegateCall, KernelCall, Method, Program
from orchestrator.program.values import (
    BoolListValue,
    BoolValue,
    DoubleListValue,
    DoubleValue,
    IntListValue,
    IntValue,
    NoneValue,
    OptionalTensorListValue,
    StringValue,
    TensorListValue,
    TensorValue,
    Value,
)
from orchestrator.selection.op_info import CallPattern, DelegateUse, OpCall, OpInfo

_LETTERS: Final[dict[type[Value], str]] = {
    TensorValue: ArgKind.TENSOR.value,
    TensorListValue: ArgKind.TENSOR_LIST.value,
    OptionalTensorListValue: ArgKind.TENSOR_LIST.value,
    IntValue: ArgKind.INT.value,
    DoubleValue: ArgKind.FLOAT.value,
    BoolValue: ArgKind.BOOL.value,
    StringValue: ArgKind.STRING.value,
    IntListValue: ArgKind.INT_LIST.value,
    DoubleListValue: ArgKind.FLOAT_LIST.value,
    BoolListValue: ArgKind.BOOL_LIST.value,
    NoneValue: "N",
}


def extract(program: Program, *, model: str) -> OpInfo:
    """Operators, kernel keys and delegates of every method of a program.

    Args:
        program: As the reader gives it; its indices are trusted.
        model: Name of the model in the profile.

    Returns:
        Operators in the order each method lists them, calls in the order of the
        instructions, methods in the order of the program.

    Source: ExecuTorch `codegen/tools/gen_oplist.py` (what counts as used) and
    `runtime/kernel/operator_registry.h` (kernel keys).
    """
    operators, calls, delegates = [], [], []
    for method in program.methods:
        operators += [(method.name, operator) for operator in method.operators]
        shapes = _Shapes(method.values)
        used: set[int] = set()
        for index, instruction in enumerate(method.instructions):
            match instruction:
                case KernelCall(operator=operator, args=args):
                    calls.append(
                        OpCall(
                            operator=method.operators[operator],
                            pattern=shapes.pattern(args),
                            method=method.name,
                            instruction=index,
                        )
                    )
                case DelegateCall(delegate=delegate):
                    used.add(delegate)
                    delegates.append(_use(method, delegate, index))
                case _:
                    pass
        unused = sorted(set(range(len(method.delegates))) - used)
        delegates += [_use(method, delegate, -1) for delegate in unused]
    return OpInfo(
        model=model, operators=tuple(operators), calls=tuple(calls), delegates=tuple(delegates)
    )


def _use(method: Method, delegate: int, instruction: int) -> DelegateUse:
    return DelegateUse(
        backend=method.delegates[delegate].backend, method=method.name, instruction=instruction
    )


def call_pattern(values: tuple[Value, ...], args: tuple[int, ...]) -> CallPattern:
    """The kernel key of a call with these arguments, values given by index."""
    return _Shapes(values).pattern(args)


class _Shapes:
    """Letter and meta of each value of a method, worked out once."""

    def __init__(self, values: tuple[Value, ...]) -> None:
        self._letters = [_LETTERS[type(value)] for value in values]
        self._metas = [
            TensorMeta(value.dtype, value.dim_order) if isinstance(value, TensorValue) else None
            for value in values
        ]
        self._further: dict[int, tuple[TensorMeta, ...]] = {}
        for index, value in enumerate(values):
            if isinstance(value, TensorListValue | OptionalTensorListValue):
                metas = [self._metas[item] for item in value.items if item >= 0]
                found = [meta for meta in metas if meta is not None]
                if len(found) < len(value.items):
                    self._letters[index] = OPTIONAL_ITEMS
                # The first tensor of a list stands for it in the kernel key.
                self._metas[index] = found[0] if found else None
                self._further[index] = tuple(found[1:])

    def pattern(self, args: tuple[int, ...]) -> CallPattern:
        metas = self._metas
        tensors = [
            (position, meta)
            for position, arg in enumerate(args)
            if (meta := metas[arg]) is not None
        ]
        letters = self._letters
        further = [
            (position, meta)
            for position, arg in enumerate(args)
            for meta in self._further.get(arg, ())
        ]
        return CallPattern(
            kinds="".join([letters[arg] for arg in args]),
            tensors=tuple(tensors),
            list_items=tuple(further),
        )
