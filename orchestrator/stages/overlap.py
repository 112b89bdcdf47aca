"""Operators that several models bring, where the profile refuses them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.errors import Diagnostic, KernelError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from orchestrator.core.op_info import OpInfo
    from orchestrator.core.operator import OperatorName
    from orchestrator.errors import SourceSpan


def check_overlap(infos: Iterable[OpInfo], *, where: SourceSpan) -> None:
    """Refuse every operator that two models list or call, whatever the kernel keys.

    Args:
        infos: Operators each model uses, in any order.
        where: The profile line that refuses them.

    Raises:
        KernelError: One `overlap` per operator, with all of its models.
    """
    models: dict[OperatorName, set[str]] = {}
    for info in infos:
        called = (call.operator for call in info.calls)
        for name in (*(name for _, name in info.operators), *called):
            models.setdefault(name, set()).add(info.model)
    problems = [
        Diagnostic(
            code="overlap",
            message=f"{len(names)} models bring {operator}",
            where=where,
            notes=(
                ("found", ", ".join(sorted(names))),
                ("expected", 'each operator from one model, as overlap = "error" says'),
            ),
            hint='write overlap = "allow" to let models share kernels',
        )
        for operator, names in sorted(models.items())
        if len(names) > 1
    ]
    if problems:
        raise KernelError(problems)
