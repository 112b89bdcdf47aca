"""Functions that take signed updates of a model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

PARAMETERS: Final = (
    "const void* update, uint32_t size, uint32_t lowest_version, const orch_update_trust* trust"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateTarget:
    """Which updates a firmware accepts for a model.

    Args:
        identity: Of product and interface, 32 bytes.
        firmware_version: Packed.
    """

    identity: bytes
    firmware_version: int
