"""The kernels of several libraries, in the order in which they are tried."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from orchestrator.core.kernel import Kernel
    from orchestrator.core.operator import OperatorName


@dataclass(frozen=True, slots=True, kw_only=True)
class LibraryText:
    """A kernel library's `functions.yaml`.

    Args:
        name: Name of the library, as the profile writes it.
        file: Path of the file, for messages.
        text: Its text.
    """

    name: str
    file: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalog:
    """Every kernel on offer.

    Within one library an (operator, kernel key) occurs once, and all libraries agree
    on the signature of an operator: `read_catalog` checks both.

    Args:
        libraries: (name, kernels), the library tried first comes first.
    """

    libraries: tuple[tuple[str, tuple[Kernel, ...]], ...] = ()
    _offers: Mapping[OperatorName, tuple[tuple[Kernel, ...], ...]] = field(
        init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        offers: dict[OperatorName, dict[int, list[Kernel]]] = {}
        for index, (_, kernels) in enumerate(self.libraries):
            for kernel in kernels:
                by_library = offers.setdefault(kernel.operator, {})
                by_library.setdefault(index, []).append(kernel)
        frozen = {
            name: tuple(tuple(kernels) for kernels in by_library.values())
            for name, by_library in offers.items()
        }
        object.__setattr__(self, "_offers", MappingProxyType(frozen))

    @property
    def operators(self) -> tuple[OperatorName, ...]:
        """Every operator that has a kernel, sorted by the text of its name."""
        return tuple(sorted(self._offers, key=str))

    def offers(self, name: OperatorName) -> tuple[tuple[Kernel, ...], ...]:
        """Kernels of an operator, by library; libraries without one are left out."""
        return self._offers.get(name, ())
