"""Functions that give the pointers of inputs and outputs, or take them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.pte.values import TensorValue
from orchestrator.stages.generate.caller import set_function
from orchestrator.stages.generate.ports import C_TYPES

if TYPE_CHECKING:
    from orchestrator.stages.generate.ports import ApiMethod, Port


def accessors(entry: str, method: ApiMethod, ports: list[Port]) -> list[str]:
    """What gives the pointers of tensors, or takes them."""
    body: list[str] = []
    for port in ports:
        if not isinstance(port.value, TensorValue):
            continue
        if port.is_given:
            body += ["", *set_function(entry, method, port)]
            continue
        const = "" if port.is_input else "const "
        c_type = C_TYPES[port.value.dtype]
        side = "input" if port.is_input else "output"
        body += [
            "",
            f"{const}{c_type}* {method.base}_{port.name}(void) {{",
            f"  const orch::ModelMethod& method = {entry};",
            "  if (orch::prepare(method) != orch::Error::Ok) return nullptr;",
            f"  return orch::{side}(method, {port.index}).tensor()"
            f".mutable_data<{c_type}>();",
            "}",
        ]
    return body
