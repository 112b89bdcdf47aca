"""The facts about a product that answers are built from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePosixPath

from orchestrator.catalog.entry import Catalog
from orchestrator.core.kernel import Kernel
from orchestrator.core.operator import OperatorName
from orchestrator.errors import Diagnostic
from orchestrator.measure.size import Contributor, ContributorKind, SizeReport
from orchestrator.selection.op_info import SelectedOperator, Selection
from orchestrator.selection.resolution import Binding, Resolution, ResolvedDelegate


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The result of resolving one operator alone: kernels, or gaps."""

    bindings: tuple[Binding, ...] = ()
    gaps: tuple[Diagnostic, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Facts about a product.

    Args:
        profile: Name of the profile.
        file: Its file, as the user named it.
        selection: All requests.
        resolution: Which kernels serve it; operators with gaps are left out.
        gaps: Requested operators that no kernel serves, with their problems.
        catalog: Kernels of the profile's libraries.
        elsewhere: Kernels of all libraries.
        resolve: Resolves one operator with the kernels of a catalog.
        report: What the last build costs; None if nothing is built.
        left_out: Operators all of whose calls passes left out.
        named_data: Model, key and bytes of what delegates find by name.
    """

    profile: str
    file: str
    selection: Selection
    resolution: Resolution
    gaps: tuple[tuple[OperatorName, tuple[Diagnostic, ...]], ...]
    catalog: Catalog
    elsewhere: Catalog
    resolve: Callable[[SelectedOperator, Catalog], Outcome]
    report: SizeReport | None
    left_out: frozenset[OperatorName] = frozenset()
    named_data: tuple[tuple[str, str, int], ...] = ()

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """Every kernel there is, those of the profile's libraries first."""
        libraries = (*self.catalog.libraries, *self.elsewhere.libraries)
        return tuple(dict.fromkeys(k for _, kernels in libraries for k in kernels))

    @property
    def operators(self) -> tuple[OperatorName, ...]:
        """Every operator that is requested or on offer; sorted by its text."""
        found = {selected.name for selected in self.selection.operators}
        found |= {kernel.operator for kernel in self.kernels}
        return tuple(sorted(found, key=str))

    @property
    def bound(self) -> tuple[tuple[OperatorName, Binding], ...]:
        """Every kernel that is linked, with the operator it serves."""
        return tuple(
            (operator.name, binding)
            for operator in self.resolution.operators
            for binding in operator.bindings
        )

    def data_of(self, delegate: ResolvedDelegate) -> tuple[tuple[str, str, int], ...]:
        """What a delegate can find by name: model, key and bytes."""
        models = {o.source for o in delegate.origins if delegate.code.named_data}
        return tuple(block for block in self.named_data if block[0] in models)

    def delegate_costs(self, backend: str) -> tuple[Contributor, ...] | None:
        """What the sources of a delegate cost; None if nothing is built."""
        if self.report is None:
            return None
        return tuple(
            c
            for c in self.report.contributors
            if c.kind is ContributorKind.DELEGATE and c.name.startswith(f"{backend}/")
        )

    def costs(self, kernel: Kernel) -> tuple[Contributor, ...] | None:
        """What the sources of a kernel cost; None if nothing is built.

        The linker drops what nothing calls, so a source may have no part.
        """
        if self.report is None:
            return None
        return kernel_parts(self.report, kernel)


def kernel_parts(report: SizeReport, kernel: Kernel) -> tuple[Contributor, ...]:
    """What the sources of a kernel cost."""
    stems = {PurePosixPath(source).with_suffix("") for source in kernel.sources}
    names = {f"{kernel.library}/{stem}" for stem in stems}
    # A member whose name two libraries share has only that name.
    names |= {stem.name for stem in stems}
    return tuple(
        c for c in report.contributors if c.kind is ContributorKind.KERNEL and c.name in names
    )
