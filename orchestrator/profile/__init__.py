"""The profile: one TOML file per product, checked at the edge.

Importing this package is cheap; its functions import pydantic when they are used,
so that commands that need no profile do not pay for it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from orchestrator.profile.checked import (
    Budget,
    CustomLibrary,
    DelegateEntry,
    DtypeRequest,
    DtypeRequests,
    DtypeSelect,
    Integrity,
    KernelChoice,
    KeyPath,
    Load,
    Memory,
    ModelEntry,
    NamedFile,
    OperatorRequests,
    Optimize,
    Overlap,
    Profile,
    Registry,
    Scratch,
    TargetChoice,
    Trace,
)

if TYPE_CHECKING:
    from orchestrator.profile.load import load_profile
    from orchestrator.profile.reference import reference_page, schema_text

__all__ = [
    "Budget",
    "CustomLibrary",
    "DelegateEntry",
    "DtypeRequest",
    "DtypeRequests",
    "DtypeSelect",
    "Integrity",
    "KernelChoice",
    "KeyPath",
    "Load",
    "Memory",
    "ModelEntry",
    "NamedFile",
    "OperatorRequests",
    "Optimize",
    "Overlap",
    "Profile",
    "Registry",
    "Scratch",
    "TargetChoice",
    "Trace",
    "load_profile",
    "reference_page",
    "schema_text",
]

_HOMES = {
    "load_profile": "orchestrator.profile.load",
    "reference_page": "orchestrator.profile.reference",
    "schema_text": "orchestrator.profile.reference",
}


def __getattr__(name: str) -> object:
    """Import what needs pydantic on first use (PEP 562)."""
    if name not in _HOMES:
        raise AttributeError(name)
    return getattr(import_module(_HOMES[name]), name)
