"""The profile: one TOML file per product, checked at the edge.

In: the texts of a profile and of its base. Out: one frozen `Profile`, whose
tables the rest of the program uses, with the line of every value. `load` reads
a `document` with lines, validates each value with `tables`, then runs the rules
over several values, which are beside the tables.
Importing this package is cheap: its names import pydantic on first use, so that
commands without a profile do not pay for it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from orchestrator.profile.choices import (
        PASSES,
        CheckImage,
        DtypeSelect,
        Load,
        Optimize,
        Overlap,
    )
    from orchestrator.profile.delegates import DelegateTable
    from orchestrator.profile.kernels import (
        CustomTable,
        DtypeRequest,
        DtypesTable,
        KernelsTable,
        OperatorsTable,
    )
    from orchestrator.profile.load import load_profile
    from orchestrator.profile.memory import MemoryTable
    from orchestrator.profile.models import ModelTable
    from orchestrator.profile.paths import NamedFile, PythonCallable
    from orchestrator.profile.reference import schema_text
    from orchestrator.profile.source_map import KeyPath
    from orchestrator.profile.tables import (
        BudgetTable,
        IntegrityTable,
        PassesTable,
        Profile,
        RegistryTable,
        ScratchTable,
        TestTable,
        TraceTable,
    )
    from orchestrator.profile.target import TargetTable

__all__ = [
    "PASSES",
    "BudgetTable",
    "CheckImage",
    "CustomTable",
    "DelegateTable",
    "DtypeRequest",
    "DtypeSelect",
    "DtypesTable",
    "IntegrityTable",
    "KernelsTable",
    "KeyPath",
    "Load",
    "MemoryTable",
    "ModelTable",
    "NamedFile",
    "OperatorsTable",
    "Optimize",
    "Overlap",
    "PassesTable",
    "Profile",
    "PythonCallable",
    "RegistryTable",
    "ScratchTable",
    "TargetTable",
    "TestTable",
    "TraceTable",
    "load_profile",
    "schema_text",
]

_CHEAP = ("choices", "source_map")  # without pydantic
_OTHERS = ("tables", "kernels", "paths", "load", "reference")


def __getattr__(name: str) -> object:
    """Import what needs pydantic on first use (PEP 562)."""
    if name not in __all__:
        raise AttributeError(name)
    for module in (*_CHEAP, *_OTHERS):
        found = vars(import_module(f"{__name__}.{module}"))
        if name in found:
            return found[name]
    raise AttributeError(name)
