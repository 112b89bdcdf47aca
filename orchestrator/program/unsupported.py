"""What a method needs that the runtime does not support."""

from __future__ import annotations

import re
from collections.abc import Iterable

from orchestrator.errors import Diagnostic, SourceSpan
from orchestrator.program.caller import caller_problems
from orchestrator.program.program import Method, Program
from orchestrator.program.values import TensorValue

_IDENTIFIER = re.compile("[A-Za-z_][A-Za-z0-9_]*")


def unsupported(
    model: str, program: Program, method: Method, span: SourceSpan | None
) -> Iterable[Diagnostic]:
    """What keeps a method from running.

    Args:
        model: Name of the model.
        program: That has the method.
        method: Of the program.
        span: The profile line that names the model.
    """

    def problem(message: str, hint: str, values: list[int] | None = None) -> Diagnostic:
        notes = (("found", f"values {', '.join(map(str, values))}"),) if values else ()
        return Diagnostic(
            code="unsupported-program",
            message=f'model "{model}", method {method.name}: {message}',
            where=span,
            notes=notes,
            hint=hint,
        )

    if not _IDENTIFIER.fullmatch(method.name):
        yield problem(
            "its name cannot be part of the name of a C function",
            "export it under a name of letters, digits and _",
        )
    tensors = [(i, v) for i, v in enumerate(method.values) if isinstance(v, TensorValue)]
    if external := [i for i, v in tensors if v.is_external and not program.has_data(v)]:
        yield problem(
            "tensors have their data outside the program",
            "name its .ptd files in `data` of [[models]], or export without external constants",
            external,
        )
    for message, hint, values in caller_problems(method):
        yield problem(message, hint, values)
