"""Inputs and outputs as the profile says: what cannot be, and what came of it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from orchestrator.errors import Diagnostic, ModelError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from orchestrator.core.border import ModelIo
    from orchestrator.errors import SourceSpan
    from orchestrator.method.linked import Linkage
    from orchestrator.method.passes import BorderError
    from orchestrator.method.replan import Adapted
    from orchestrator.program.program import Method, Program

    Span = Callable[..., SourceSpan]


def border_problem(
    model: str, error: BorderError, names: Sequence[str], span: Span
) -> Diagnostic:
    """Why an input or output cannot be as the profile says.

    Args:
        model: Name of the model.
        error: What a pass found.
        names: Of all models, in the profile's order.
        span: Where the profile says something.
    """
    port = error.port
    wish = "stay readable" if not port.reuse else f"be {port.dtype or 'int8'}"
    wish = error.wish or wish
    return Diagnostic(
        code="bad-io",
        message=f'{port.name} of model "{model}", method {error.method}, cannot {wish}',
        where=span("models", names.index(model), "io", port.name),
        notes=(("found", error.found),),
        hint=error.hint,
    )


def unknown_ports(
    programs: Mapping[str, Program],
    io: Mapping[str, ModelIo],
    names: Sequence[str],
    span: Span,
) -> Iterator[Diagnostic]:
    """Inputs and outputs in the profile that no method of the model has."""
    for model, wanted in io.items():
        methods = programs[model].methods
        for port in wanted.ports:
            counts = [len(m.inputs if port.is_input else m.outputs) for m in methods]
            if port.index >= max(counts, default=0):
                yield Diagnostic(
                    code="bad-io",
                    message=f'model "{model}" has no {port.name}',
                    where=span("models", names.index(model), "io", port.name),
                    notes=(
                        ("found", f"methods with at most {max(counts, default=0)}"),
                    ),
                    hint="`orchestrator inspect` lists inputs and outputs",
                )


def need_borders(
    model: str, adapted: Adapted, io: ModelIo, names: Sequence[str], span: Span
) -> None:
    """Raise an error if a loaded model keeps its inputs and outputs though it must not.

    Raises:
        ModelError: No pass could run on the program (`bad-io`).
    """
    reasons = {
        record.skipped
        for of in adapted.ledger
        for record in of.passes
        if record.name == "quantized_io" and record.skipped
    }
    if io and reasons:
        raise ModelError(
            Diagnostic(
                code="bad-io",
                message=f'inputs and outputs of model "{model}" cannot be changed',
                where=span("models", names.index(model), "io"),
                notes=(("found", ", ".join(sorted(reasons))),),
                hint="leave out models.io, or export the model without it",
            )
        )


def with_borders(adapted: Adapted, linkage: Linkage | None) -> Adapted:
    """The model whose program has the inputs and outputs that passes made."""
    if linkage is None or linkage.problems:
        return adapted
    methods = []
    for index, method in enumerate(adapted.program.methods):
        linked = adapted.linked or linkage.methods
        borders = linked[index].borders
        if adapted.linked is not None and borders:
            method = _with_ports(method, adapted, index)  # noqa: PLW2901
        methods.append(replace(method, borders=borders))
    return replace(adapted, program=replace(adapted.program, methods=tuple(methods)))


def _with_ports(method: Method, adapted: Adapted, index: int) -> Method:
    """A method that was linked with the inputs and outputs of the linked one."""
    assert adapted.linked is not None  # noqa: S101  # it was linked
    linked = adapted.linked[index]
    values = list(method.values)
    for slots, now in (
        (method.inputs, linked.inputs),
        (method.outputs, linked.outputs),
    ):
        for slot, value in zip(slots, now, strict=True):
            values[slot] = linked.values[value]
    return replace(method, values=tuple(values))
