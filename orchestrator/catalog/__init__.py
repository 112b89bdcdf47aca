"""Kernels on offer: `functions.yaml` texts, and what their entries require of a call.

In: the YAML of kernel libraries. Out: a `Catalog` of kernels with their keys, the
conditions on their arguments and the sizes of their scratch memory as expressions.
"""

from orchestrator.catalog.entry import Catalog, LibraryText
from orchestrator.catalog.read import read_catalog, read_library

__all__ = ["Catalog", "LibraryText", "read_catalog", "read_library"]
