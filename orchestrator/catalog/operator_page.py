"""The operators that have a kernel, as a table beside ExecuTorch's lists."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from orchestrator.catalog.executorch_operators import CORTEX_M, CUSTOM, PORTABLE, QUANTIZED
from orchestrator.catalog.keys import tensor_arguments
from orchestrator.core.dtype import ALL, DTYPE_GROUPS, ScalarType
from orchestrator.core.kernel import Kernel

LISTS: Final = {
    "portable": PORTABLE,
    "quantized": QUANTIZED,
    "custom": CUSTOM,
    "cortex_m": CORTEX_M,
}
"""ExecuTorch's lists by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorRow:
    """An operator that has a kernel.

    Args:
        operator: Its name.
        library: The library that has the kernel.
        dtypes: Dtypes of its tensors, in words.
        dim_orders: `any`, `same` or `contiguous`.
        isas: Instruction sets with code of their own.
        error: Largest error of its floats; `exact`: the bits of PyTorch.
        limits: What its numbers must be, as conditions.
        executorch: The list of ExecuTorch that has it; empty if none does.
    """

    operator: str
    library: str
    dtypes: str
    dim_orders: str
    isas: tuple[str, ...]
    error: str
    limits: tuple[str, ...]
    executorch: str


def operator_rows(kernels: Iterable[Kernel]) -> tuple[OperatorRow, ...]:
    """A row for each operator of a library, by name."""
    rows = {
        (str(kernel.operator), kernel.library): OperatorRow(
            operator=str(kernel.operator),
            library=kernel.library,
            dtypes=dtypes_of(kernel),
            dim_orders=kernel.dim_orders,
            isas=kernel.isas,
            error=kernel.error or "exact",
            limits=limits_of(kernel),
            executorch=_list_of(str(kernel.operator)),
        )
        for kernel in kernels
    }
    return tuple(rows[key] for key in sorted(rows))


def missing(rows: Sequence[OperatorRow]) -> dict[str, list[str]]:
    """By list of ExecuTorch: operators that have no kernel here."""
    here = {row.operator for row in rows}
    return {name: sorted(listed - here) for name, listed in LISTS.items()}


def counts(rows: Sequence[OperatorRow]) -> dict[str, tuple[int, int]]:
    """By list of ExecuTorch: operators that have a kernel here, of how many."""
    gone = missing(rows)
    return {name: (len(listed) - len(gone[name]), len(listed)) for name, listed in LISTS.items()}


def dtypes_of(kernel: Kernel) -> str:
    """`real, Bool`, or by argument if they differ: `self: real; out: floating`."""
    given: dict[str, list[str]] = {}
    for argument, dtypes in kernel.dtypes:
        given.setdefault(_in_groups(dtypes), []).append(argument)
    if not given:
        return "no tensors"
    if len(given) == 1:
        return next(iter(given))
    return "; ".join(f"{', '.join(names)}: {text}" for text, names in given.items())


def limits_of(kernel: Kernel) -> tuple[str, ...]:
    """Conditions on numbers alone, without those that only bound 32 or 64 bits."""
    tensors = {*tensor_arguments(kernel.schema), "result"}
    found = []
    for condition in kernel.requires:
        nodes = [*ast.walk(ast.parse(condition, mode="eval"))]
        names = {node.id for node in nodes if isinstance(node, ast.Name)}
        numbers = [node.value for node in nodes if isinstance(node, ast.Constant)]
        if not names & tensors and not any(
            isinstance(number, int) and number >= _HUGE for number in numbers
        ):
            found.append(condition)
    return tuple(found)


_HUGE: Final = 1 << 30


def _in_groups(dtypes: frozenset[ScalarType]) -> str:
    if dtypes >= ALL:
        return "all"
    found, left = [], set(dtypes)
    for name in ("real", "integral", "floating", "complex"):
        if left >= DTYPE_GROUPS[name]:
            found.append(name)
            left -= DTYPE_GROUPS[name]
    return ", ".join([*found, *(d.name for d in sorted(left))])


def _list_of(operator: str) -> str:
    return next((name for name, listed in LISTS.items() if operator in listed), "")
