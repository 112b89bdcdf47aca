"""The kernels of several libraries, in the order in which they are tried."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from orchestrator.core.kernel import Kernel
from orchestrator.core.operator import OperatorName


@dataclass(frozen=True, slots=True, kw_only=True)
class LibraryText:
    """A kernel library's `functions.yaml`.

    Args:
        name: Name of the library, as the profile writes it.
        file: Path of the file, for messages.
        text: Its text.
        folder: Folder of the file in the library, POSIX; "" for the library's folder.
        sources: Files compiled with every kernel, relative to the library's folder.
        files: All files of the library; None if unknown.
    """

    name: str
    file: str
    text: str
    folder: str = ""
    sources: tuple[str, ...] = ()
    files: frozenset[str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalog:
    """All kernels of the libraries.

    Within one library an (operator, kernel key) occurs once, and all libraries agree
    on the signature of an operator: `read_catalog` checks both.

    Args:
        libraries: (name, kernels), in the order in which they are tried.
        order: (operator, libraries that are tried for it instead of all).
    """

    libraries: tuple[tuple[str, tuple[Kernel, ...]], ...] = ()
    order: tuple[tuple[OperatorName, tuple[str, ...]], ...] = ()
    _offers: Mapping[OperatorName, tuple[tuple[Kernel, ...], ...]] = field(
        init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        offers: dict[OperatorName, dict[str, list[Kernel]]] = {}
        for library, kernels in self.libraries:
            for kernel in kernels:
                by_library = offers.setdefault(kernel.operator, {})
                by_library.setdefault(library, []).append(kernel)
        for operator, names in self.order:
            found = offers.get(operator, {})
            offers[operator] = {name: found[name] for name in names if name in found}
        frozen = {
            name: tuple(tuple(kernels) for kernels in by_library.values())
            for name, by_library in offers.items()
            if by_library
        }
        object.__setattr__(self, "_offers", MappingProxyType(frozen))

    @property
    def operators(self) -> tuple[OperatorName, ...]:
        """Every operator that has a kernel, sorted by the text of its name."""
        return tuple(sorted(self._offers, key=str))

    def offers(self, name: OperatorName) -> tuple[tuple[Kernel, ...], ...]:
        """Kernels of an operator, by library; libraries without one are left out."""
        return self._offers.get(name, ())
