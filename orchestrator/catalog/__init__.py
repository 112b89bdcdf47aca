"""Kernel catalog: `functions.yaml` texts to every kernel on offer."""

from orchestrator.catalog.model import Catalog, LibraryText
from orchestrator.catalog.read import read_catalog, read_library

__all__ = ["Catalog", "LibraryText", "read_catalog", "read_library"]
