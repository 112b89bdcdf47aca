"""The request to the process that exports a model."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
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


# Operators that have a kernel, and which of them an export asked for.


class Offered:
    """Operators that the profile's libraries have kernels of.

    Notes every question: an export stays valid while the answers are the same, whatever
    else changes in the libraries.

    Args:
        names: Out variants, such as `aten::add.out`.
    """

    def __init__(self, names: Collection[str]) -> None:
        self._names = frozenset(names)
        self.asked: dict[str, bool] = {}

    def __contains__(self, name: str) -> bool:
        """Whether an operator has a kernel."""
        return self.asked.setdefault(name, name in self._names)


def changed_answer(asked: Mapping[str, bool], names: Collection[str]) -> str:
    """What changed since an export asked for operators, "" if nothing.

    Args:
        asked: By operator: whether it had a kernel.
        names: The operators that have one now.
    """
    for name, had in sorted(asked.items()):
        if had is not (name in names):
            return f"{name} {'lost its' if had else 'now has a'} kernel"
    return ""
