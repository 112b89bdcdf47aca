"""Functions that take signed updates of a model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from orchestrator.emit.generate.ports import update_names

if TYPE_CHECKING:
    from orchestrator.emit.generate.ports import ApiMethod

_PARAMETERS = (
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


def update_declarations(profile: str, model: str) -> str:
    """What the header has."""
    check, load = update_names(profile, model)
    return f"""\
/* Whether an update for model {model} is what `orchestrator update pack` signed for
 * this product, not below a version. It lies at a multiple of 16. */
orch_update_result {check}({_PARAMETERS});
/* The same, then loads all methods of the model out of it, as the functions
 * that end in _load do: it stays there. If it is refused, nothing changes; if
 * the loader rejects it, the linked model runs. */
orch_update_result {load}({_PARAMETERS});"""


def update_functions(
    profile: str, model: str, target: UpdateTarget, methods: Sequence[ApiMethod]
) -> str:
    """What the source has.

    Args:
        profile: Name of the product.
        model: Name of the model.
        target: Which updates it accepts.
        methods: Of the model.
    """
    check, load = update_names(profile, model)
    numbers = ", ".join(f"0x{byte:02x}" for byte in target.identity)
    loads = "".join(
        f"""
  if (error == ORCH_OK) error = {method.base}_load(program, program_size);"""
        for method in methods
    )
    unloads = "".join(f"  (void){m.base}_load(nullptr, 0);\n" for m in methods)
    return f"""\
static constexpr orch::UpdateTarget {check}_target = {{
    {{{numbers}}},
    "{model}", {target.firmware_version}u}};

orch_update_result {check}({_PARAMETERS}) {{
  return orch::check_update({check}_target, update, size,
                            lowest_version, *trust);
}}

orch_update_result {load}({_PARAMETERS}) {{
  const orch_update_result found =
      {check}(update, size, lowest_version, trust);
  if (found != ORCH_UPDATE_OK) return found;
  const uint8_t* const program =
      static_cast<const uint8_t*>(update) + ORCH_UPDATE_HEADER_BYTES;
  const uint32_t program_size = size - ORCH_UPDATE_HEADER_BYTES;
  orch_status error = ORCH_OK;{loads}
  if (error == ORCH_OK) return ORCH_UPDATE_OK;
{unloads}  return ORCH_UPDATE_NOT_LOADED;
}}"""
