"""Op schemas of the kernel libraries."""

from __future__ import annotations

from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING

from orchestrator.catalog import read_catalog
from orchestrator.catalog.entry import LibraryText
from orchestrator.shell.sources import library_file, library_names

if TYPE_CHECKING:
    from collections.abc import Mapping

    from orchestrator.core.operator import OperatorName, OpSchema


@cache
def schemas() -> Mapping[OperatorName, OpSchema]:
    """By operator, of all libraries."""
    catalog = read_catalog(
        [
            LibraryText(name=name, file=name, text=library_file(name).read_text())
            for name in library_names()
        ]
    )
    return MappingProxyType(
        {k.operator: k.schema for _, kernels in catalog.libraries for k in kernels}
    )
