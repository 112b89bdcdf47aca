"""The ledger of passes: counts of a method after each pass, as records and a table."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from orchestrator.method.ledger import MethodPasses, PassCounts, PassRecord
from orchestrator.method.linked import LinkedCall, LinkedMethod
from orchestrator.program.program import KernelCall, Method, Program
from orchestrator.program.values import TensorValue

NOT_WANTED: Final = "named in passes.skip"
OPTIONAL: Final = MappingProxyType(
    {"fold_batch_norm": "changes bits: passes.fold_batch_norm is false"}
)
"""Passes that only run where the profile wants them, and why they did not."""
NO_OPERATOR: Final = "no call of its operators"
NO_PLAN: Final = "memory is not planned"
NO_IO: Final = "nothing in models.io"
NO_ROUNDING: Final = "changes bits: no models.weights"


def not_wanted(name: str) -> str:
    """Why a pass did not run that the profile does not want."""
    return OPTIONAL.get(name, NOT_WANTED)


def counts_of(method: LinkedMethod) -> PassCounts:
    """Calls, values and bytes of constants of a method."""
    used = method.used(prepared=True)
    data = tuple((index, data) for index, data in method.data if index in used)
    return PassCounts(
        calls=sum(isinstance(i, LinkedCall) for i in method.instructions),
        values=len(method.values),
        constant_bytes=sum(map(len, replace(method, data=data).constants)),
    )


def ledger_of(methods: Iterable[LinkedMethod]) -> tuple[MethodPasses, ...]:
    """The passes of each method, in the order of methods."""
    return tuple(MethodPasses(model=m.model, method=m.name, passes=m.passes) for m in methods)


def not_run(
    model: str, program: Program, passes: Iterable[str], wanted: Collection[str], reason: str
) -> tuple[MethodPasses, ...]:
    """The ledger of a program on which no pass ran.

    Args:
        model: Name of the model.
        program: The program.
        passes: Names of all passes, in order.
        wanted: Passes that the profile does not skip.
        reason: Why these did not run.
    """
    return tuple(
        MethodPasses(
            model=model,
            method=method.name,
            passes=tuple(
                PassRecord(
                    name=name,
                    skipped=reason if name in wanted else not_wanted(name),
                    changed=False,
                    before=counts,
                    after=counts,
                )
                for name in passes
            ),
        )
        for method in program.methods
        for counts in [_program_counts(program, method)]
    )


def _program_counts(program: Program, method: Method) -> PassCounts:
    """Calls, values and bytes of constants of a method that is not linked."""
    tensors = (v for v in method.values if isinstance(v, TensorValue))
    data = {
        program.data_bytes(t)
        for t in tensors
        if t.is_constant or t.is_mutable_state or program.has_data(t)
    }
    return PassCounts(
        calls=sum(isinstance(i, KernelCall) for i in method.instructions),
        values=len(method.values),
        constant_bytes=sum(map(len, data)),
    )


def ledger_lines(ledger: Iterable[MethodPasses]) -> Iterator[str]:
    """A table per method: calls, values and constants before and after each pass."""
    for of in ledger:
        title = f"{of.model}.{of.method}"
        yield f"{title:<24} {'calls':>13} {'values':>15} {'constant bytes':>23}"
        for record in of.passes:
            yield f"  {record.name:<22} {_text(record)}"
            yield from (f"    {note}" for note in record.notes)


def _text(record: PassRecord) -> str:
    if record.skipped:
        return f"skipped: {record.skipped}"
    if not record.changed:
        return "changed nothing"
    before, after = record.before, record.after
    calls = f"{before.calls:,} -> {after.calls:,}"
    values = f"{before.values:,} -> {after.values:,}"
    constants = f"{before.constant_bytes:,} -> {after.constant_bytes:,}"
    return f"{calls:>13} {values:>15} {constants:>23}"
