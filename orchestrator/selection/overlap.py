"""Operators of several models or libraries, where the profile forbids overlaps."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from orchestrator.errors import Diagnostic, KernelError, SourceSpan

if TYPE_CHECKING:
    from orchestrator.catalog.model import Catalog
    from orchestrator.core.operator import OperatorName
    from orchestrator.selection.op_info import OpInfo, Selection


def check_overlap(infos: Iterable[OpInfo], *, where: SourceSpan) -> None:
    """Reject every operator that two models list or call, with any kernel keys.

    Args:
        infos: Operators each model uses, in any order.
        where: The profile line that forbids overlaps.

    Raises:
        KernelError: One `overlap` per operator, with all of its models.
    """
    models: dict[OperatorName, set[str]] = {}
    for info in infos:
        called = (call.operator for call in info.calls)
        for name in (*(name for _, name in info.operators), *called):
            models.setdefault(name, set()).add(info.model)
    problems = [
        Diagnostic.of(
            "overlap",
            f"{len(names)} models use {operator}",
            where=where,
            found=", ".join(sorted(names)),
            expected='each operator from one model, as overlap = "error" says',
            hint='write overlap = "allow" to let models share kernels',
        )
        for operator, names in sorted(models.items())
        if len(names) > 1
    ]
    if problems:
        raise KernelError(problems)


def check_library_overlap(selection: Selection, catalog: Catalog, *, where: SourceSpan) -> None:
    """Reject every selected operator for which two libraries are tried.

    Args:
        selection: All requests.
        catalog: Kernels on offer.
        where: The profile line that forbids overlaps.

    Raises:
        KernelError: One `overlap` per operator, with all of its libraries.
    """
    names = {selected.name for selected in selection.operators}
    if selection.every_operator:
        names.update(catalog.operators)
    problems = []
    for operator in sorted(names):
        offers = catalog.offers(operator)
        if len(offers) > 1:
            first = [kernels[0] for kernels in offers]
            choice = f'"{operator}" = ["{first[0].library}"]'
            problems.append(
                Diagnostic(
                    code="overlap",
                    message=f"{len(offers)} kernel libraries have {operator}",
                    where=where,
                    notes=tuple(("found", f"{k.library}, {k.entry}") for k in first),
                    hint=f"choose one: {choice} in [kernels.operators]",
                )
            )
    if problems:
        raise KernelError(problems)
