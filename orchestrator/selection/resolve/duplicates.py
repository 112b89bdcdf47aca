"""C++ functions that two libraries of a product define."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.errors import Diagnostic

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from orchestrator.catalog.model import Catalog
    from orchestrator.core.kernel import Kernel


def duplicate_functions(
    catalog: Catalog, used: Mapping[str, Collection[str]]
) -> list[Diagnostic]:
    """Functions that sources of two libraries define: they cannot be linked together.

    Args:
        catalog: Kernels on offer.
        used: By library: the sources that are compiled.
    """
    first: dict[str, Kernel] = {}
    problems: dict[str, Diagnostic] = {}
    for library, kernels in catalog.libraries:
        for kernel in kernels:
            if set(kernel.sources).isdisjoint(used.get(library, ())):
                continue
            other = first.setdefault(kernel.function, kernel)
            if other.library != library:
                problems[kernel.function] = Diagnostic.of(
                    "duplicate-function",
                    f"two libraries define {kernel.function}",
                    first=f"{other.operator} in {other.entry}",
                    again=f"{kernel.operator} in {kernel.entry}",
                    hint=f"give {library} its own namespace",
                )
    return list(problems.values())
