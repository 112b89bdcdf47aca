"""The ledger of passes: counts, and a table for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from orchestrator.method.ledger import MethodPasses, PassCounts, PassRecord
from orchestrator.method.linked import LinkedCall
from orchestrator.program.program import KernelCall
from orchestrator.program.values import TensorValue

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from orchestrator.method.linked import LinkedMethod
    from orchestrator.program.program import Method, Program

NOT_WANTED: Final = "named in prelink.skip"
NO_OPERATOR: Final = "no call of its operators"


def counts_of(method: LinkedMethod) -> PassCounts:
    """What a method is made of."""
    return PassCounts(
        calls=sum(isinstance(i, LinkedCall) for i in method.instructions),
        values=len(method.values),
        constant_bytes=sum(map(len, method.constants)),
    )


def ledger_of(methods: Iterable[LinkedMethod]) -> tuple[MethodPasses, ...]:
    """What passes did to methods, in their order."""
    return tuple(
        MethodPasses(model=m.model, method=m.name, passes=m.passes) for m in methods
    )


def not_run(
    model: str,
    program: Program,
    passes: Iterable[str],
    wanted: Collection[str],
    reason: str,
) -> tuple[MethodPasses, ...]:
    """The ledger of a program that no pass has looked at.

    Args:
        model: Its name.
        program: The program.
        passes: Names of all passes, in order.
        wanted: Those that would run.
        reason: Why they did not.
    """
    return tuple(
        MethodPasses(
            model=model,
            method=method.name,
            passes=tuple(
                PassRecord(
                    name=name,
                    skipped=reason if name in wanted else NOT_WANTED,
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
    """What a method of a program is made of."""
    tensors = (v for v in method.values if isinstance(v, TensorValue))
    data = {
        program.data_bytes(t).tobytes()
        for t in tensors
        if t.is_constant or t.is_mutable_state or program.has_data(t)
    }
    return PassCounts(
        calls=sum(isinstance(i, KernelCall) for i in method.instructions),
        values=len(method.values),
        constant_bytes=sum(map(len, data)),
    )


def ledger_lines(ledger: Iterable[MethodPasses]) -> Iterator[str]:
    """A table for each method: what each pass left of it."""
    for of in ledger:
        title = f"{of.model}.{of.method}"
        yield f"{title:<24} {'calls':>13} {'values':>15} {'constant bytes':>23}"
        for record in of.passes:
            yield f"  {record.name:<22} {_text(record)}"


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
