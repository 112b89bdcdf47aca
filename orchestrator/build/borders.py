"""Inputs and outputs as the profile says: what cannot be, and what came of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from orchestrator.core.border import Border, ModelIo, border_of
from orchestrator.core.bounds import SizeBound
from orchestrator.errors import Diagnostic, ModelError, SourceSpan
from orchestrator.method.linked import Linkage, LinkedMethod
from orchestrator.method.passes import BorderError
from orchestrator.method.replan import Adapted
from orchestrator.program.program import Method, Program
from orchestrator.program.reader import read_program
from orchestrator.program.values import TensorValue

Span: TypeAlias = Callable[..., SourceSpan]


def border_problem(model: str, error: BorderError, names: Sequence[str], span: Span) -> Diagnostic:
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
    return Diagnostic.of(
        "bad-io",
        f'{port.name} of model "{model}", method {error.method}, cannot {wish}',
        where=span("models", names.index(model), "io", port.name),
        found=error.found,
        hint=error.hint,
    )


def unknown_ports(
    programs: Mapping[str, Program], io: Mapping[str, ModelIo], names: Sequence[str], span: Span
) -> Iterator[Diagnostic]:
    """Inputs and outputs in the profile that no method of the model has."""
    for model, wanted in io.items():
        methods = programs[model].methods
        for port in wanted.ports:
            counts = [len(m.inputs if port.is_input else m.outputs) for m in methods]
            if port.index >= max(counts, default=0):
                yield Diagnostic.of(
                    "bad-io",
                    f'model "{model}" has no {port.name}',
                    where=span("models", names.index(model), "io", port.name),
                    found=f"methods with at most {max(counts, default=0)}",
                    hint="`orchestrator inspect` lists inputs and outputs",
                )


def unaligned_ports(
    models: Mapping[str, Adapted], io: Mapping[str, ModelIo], names: Sequence[str], span: Span
) -> Iterator[Diagnostic]:
    """Inputs and outputs that do not lie where the profile wants them."""
    for model, wanted in io.items():
        adapted = models[model]
        for method in adapted.linked or adapted.program.methods:
            for port in wanted.ports:
                values = method.inputs if port.is_input else method.outputs
                if not port.align or port.index >= len(values):
                    continue
                value = method.values[values[port.index]]
                # Looked at after planning: whether offsets could be chosen depends on
                # planner, pins and the program's own plan, and here all of them have
                # had their say.
                place = value.allocation if isinstance(value, TensorValue) else None
                if place is not None and place.offset_bytes % port.align == 0:
                    continue
                yield Diagnostic.of(
                    "bad-io",
                    f"{port.name} of method {method.name} cannot begin at a"
                    f" multiple of {port.align}",
                    where=span("models", names.index(model), "io", port.name),
                    model=model,
                    found="it is in no arena"
                    if place is None
                    else f"byte {place.offset_bytes} of arena"
                    f" {place.memory_id}, which keeps its plan",
                    hint="align the array that the application gives"
                    if place is None
                    else 'leave align out, or let the build plan it: planner = "best"',
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
    if io.needs_passes and reasons:
        raise ModelError.of(
            "bad-io",
            f'inputs and outputs of model "{model}" cannot be changed',
            where=span("models", names.index(model), "io"),
            found=", ".join(sorted(reasons)),
            hint="leave out models.io, or export the model without it",
        )


def with_borders(adapted: Adapted, linkage: Linkage) -> Adapted:
    """The model whose program has the inputs and outputs that passes made."""
    if linkage.problems or not linkage.methods:
        return adapted
    methods = []
    for index, method in enumerate(adapted.program.methods):
        linked = adapted.linked or linkage.methods
        borders = linked[index].borders
        if adapted.linked is not None and borders:
            method = _with_ports(method, linked[index])  # noqa: PLW2901
        methods.append(replace(method, borders=borders))
    return replace(adapted, program=replace(adapted.program, methods=tuple(methods)))


def with_bounds(adapted: Adapted, bounds: Mapping[str, tuple[SizeBound, ...]]) -> Adapted:
    """The model whose inputs may have the sizes that its export knows, by method."""
    program = adapted.program
    methods = (replace(m, bounds=bounds.get(m.name, ())) for m in program.methods)
    return replace(adapted, program=replace(program, methods=tuple(methods)))


def stream_model(
    model: str, program: Program, io: ModelIo, names: Sequence[str], span: Span
) -> Program:
    """The program with the input that is a stream, if the profile wants one.

    Args:
        model: Name of the model.
        program: Of windows.
        io: What the profile says of the model.
        names: Of all models, in the profile's order.
        span: Where the profile says something.

    Raises:
        ModelError: The input cannot be one (`bad-io`).
    """
    from orchestrator.streams import StreamError, streamed  # noqa: PLC0415

    for port in io.ports:
        if port.stream is None:
            continue
        try:
            program = streamed(program, port.index, port.stream)
        except StreamError as error:
            where = span("models", names.index(model), "io", port.name, "stream")
            raise ModelError.of(
                "bad-io",
                f'{port.name} of model "{model}", method {error.method}, cannot be a stream',
                where=where,
                found=error.found,
                hint=error.hint,
            ) from error
    return program


def with_streams(adapted: Adapted, program: Program, io: ModelIo) -> Adapted:
    """The model with what callers have to know of its stream.

    Args:
        adapted: The model.
        program: As it was read, whose file is that of windows.
        io: What the profile says of the model.
    """
    port = next((p for p in io.ports if p.stream is not None), None)
    if port is None or port.stream is None:
        return adapted
    # The file as it was exported: the program itself already has the sizes of one call.
    windows = read_program(program.file, file="").methods
    methods = []
    for method, window in zip(adapted.program.methods, windows, strict=True):
        borders = method.borders
        if port.index < len(window.inputs):
            value = window.values[window.inputs[port.index]]
            assert isinstance(value, TensorValue)  # noqa: S101  # it became a stream
            # Rounded up: outputs are those of a window once all of it has come
            # (decision 0028).
            calls = -(-value.sizes[port.stream.axis] // port.stream.hop)
            old = border_of(borders, port.index, is_input=True)
            new = old or Border(is_input=True, index=port.index)
            others = (b for b in borders if b is not old)
            borders = (*others, replace(new, warm_calls=calls))
        methods.append(replace(method, borders=borders))
    return replace(adapted, program=replace(adapted.program, methods=tuple(methods)))


def _with_ports(method: Method, linked: LinkedMethod) -> Method:
    """A method with the inputs and outputs that it has when it is linked."""
    values = list(method.values)
    for slots, now in ((method.inputs, linked.inputs), (method.outputs, linked.outputs)):
        for slot, value in zip(slots, now, strict=True):
            values[slot] = linked.values[value]
    return replace(method, values=tuple(values))
