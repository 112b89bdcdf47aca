"""Programs that once differed, in files: a program, its calls, and what they give."""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING

import numpy as np

from orchestrator.running.npy import Array
from orchestrator.running.protocol import DeviceError
from orchestrator.running.values import Call
from tests.differential.exported import exported
from tests.differential.judge import built, carried_out, logical, meant, write_profile

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tests.differential.judge import Place
    from tests.differential.program import Model


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A program with a session of calls.

    Args:
        program: A `.pte` file.
        calls: (method, inputs, items of the outputs) of each call.
    """

    program: bytes
    calls: tuple[tuple[str, tuple[Array, ...], tuple[bytes, ...]], ...]


def keep(model: Model, path: Path) -> None:
    """Write a model to `path`.pte, and its calls to `path`.json.

    The outputs are those that the model means, never those of a product.
    """
    (want,) = meant([model], path.parent / "meant")
    calls = []
    for (number, inputs), outputs in zip(model.session, want, strict=True):
        method = model.methods[number]
        pairs = zip(method.inputs, inputs, strict=True)
        arrays = (logical(value, data) for value, data in pairs)
        calls.append(
            {
                "method": method.name,
                "inputs": [
                    {"dtype": a.dtype, "sizes": [*a.shape], "items": a.data.hex()} for a in arrays
                ],
                "outputs": [data.hex() for data in outputs],
            }
        )
    path.with_suffix(".pte").write_bytes(exported(model))
    path.with_suffix(".json").write_text(json.dumps(calls, indent=1) + "\n")


def read_kept(path: Path) -> Kept:
    """What `keep` wrote."""
    calls = []
    for call in json.loads(path.with_suffix(".json").read_text()):
        inputs = tuple(
            Array.of(np.frombuffer(bytes.fromhex(x["items"]), x["dtype"]).reshape(x["sizes"]))
            for x in call["inputs"]
        )
        outputs = tuple(map(bytes.fromhex, call["outputs"]))
        calls.append((call["method"], inputs, outputs))
    return Kept(program=path.with_suffix(".pte").read_bytes(), calls=tuple(calls))


def wrong_calls(kept: Sequence[Kept], place: Place, folder: Path) -> list[list[int]]:
    """By program: calls of which a product gives other outputs, or none."""
    programs = [one.program for one in kept]
    profile, out = write_profile(folder, programs, place.target, place.load)
    product = built(profile, out)
    assert product is not None, f"{profile} cannot be built"
    methods = {(m.model, m.name): m for m in product.methods}
    calls = [
        (number, at, Call(method=methods[f"p{number}", name], inputs=inputs), outputs)
        for number, one in enumerate(kept)
        for at, (name, inputs, outputs) in enumerate(one.calls)
    ]
    found: list[list[int]] = [[] for _ in kept]
    results = carried_out(product, out, [call for _, _, call, _ in calls])
    for (number, at, _, outputs), result in zip_longest(calls, results):
        if (
            result is None
            or result.error is not DeviceError.Ok
            or tuple(o.data for o in result.outputs if isinstance(o, Array)) != outputs
        ):
            found[number].append(at)
    return found
