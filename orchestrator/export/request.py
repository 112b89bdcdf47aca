"""The request to the process that exports a model."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any

from orchestrator.profile.lowering import NO_VELA, Activations, Quantize, Vela, Weights

LEFT_IN_FLOAT = "left-in-float"
"""Code of the warning that a quantized program computes with floats."""
STEP_FILE = "step.txt"
"""In the folder of the result, while the process runs: what it does now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One model to export.

    Args:
        file: Absolute path of the Python file.
        function: Callable in it.
        folder: Absolute path of the profile's folder, in which the code runs.
        lowering: One of `core.lowering.LOWERINGS`.
        cpu: Key of `targets.CPUS`.
        isa: Of that cpu.
        quantize: How; None does not quantize the model.
        vela: Options of Vela; its file relative to `folder`.
        offered: Operators that have kernels, such as `aten::add.out`; None if unknown:
            nothing is decomposed then.
        accelerate: Use `orchestrator.lowering.accelerated`.
        verify: Lower both with and without it, and compare.
    """

    file: str
    function: str
    folder: str
    lowering: str
    cpu: str
    isa: str
    quantize: Quantize | None = None
    vela: Vela = NO_VELA
    offered: tuple[str, ...] | None = None
    accelerate: bool = True
    verify: bool = False

    def text(self) -> str:
        """As JSON."""
        return json.dumps(asdict(self), indent=1)


def parse_request(text: str) -> Request:
    """Read what `Request.text` wrote."""
    data: dict[str, Any] = json.loads(text)
    found = data["quantize"]
    if found is not None:
        data["quantize"] = Quantize(
            activations=Activations(found["activations"]),
            weights=Weights(found["weights"]),
            dynamic=found["dynamic"],
        )
    if data["offered"] is not None:
        data["offered"] = tuple(data["offered"])
    vela = data["vela"]
    data["vela"] = Vela(**{**vela, "flags": tuple(vela["flags"])})
    return Request(**data)
