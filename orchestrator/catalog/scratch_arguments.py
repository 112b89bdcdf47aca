"""The scratch arguments of operators."""

from __future__ import annotations

from orchestrator.core.kernel import Kernel
from orchestrator.core.operator import ArgKind, Argument, OpSchema
from orchestrator.errors import Diagnostic, SourceSpan


def is_scratch(argument: Argument) -> bool:
    """Whether an argument is scratch memory.

    It is a tensor named `scratch`, or one whose name ends in `_scratch`, that is no
    out argument.
    """
    return (
        argument.kind is ArgKind.TENSOR
        and not argument.is_out
        and (argument.name == "scratch" or argument.name.endswith("_scratch"))
    )


def scratch_arguments(schema: OpSchema) -> tuple[tuple[int, Argument], ...]:
    """(position, argument) of every scratch argument of an operator."""
    return tuple((n, a) for n, a in enumerate(schema.arguments) if is_scratch(a))


def missing_size(kernel: Kernel) -> Diagnostic:
    """The problem of a kernel without scratch sizes."""
    named = dict(kernel.scratch)
    names = [a.name for _, a in scratch_arguments(kernel.schema) if a.name not in named]
    return Diagnostic.of(
        "missing-scratch-size",
        f"no scratch size is given for {kernel.operator}",
        where=entry_of(kernel),
        found=f"{', '.join(names)} in {kernel.schema.text}",
        hint="add `scratch` to this entry, see docs/scratch.md",
    )


def entry_of(kernel: Kernel) -> SourceSpan:
    """The line of `functions.yaml` at which a kernel's entry begins."""
    file, _, line = kernel.entry.rpartition(":")
    return SourceSpan(file=file, line=int(line))
