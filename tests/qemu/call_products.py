"""Products of methods that each make one call, and what they give on a target."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from orchestrator.core.dtype import ScalarType
from orchestrator.method.passes import unlink_program
from orchestrator.program.reader import read_program
from orchestrator.program.values import Allocation, TensorValue
from tests.opinfo.programs import NUMPY, program_of
from tests.product import Product
from tests.unit.method.recorded_calls import Call, Tensor, method_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from orchestrator.method.linked import LinkedMethod
    from orchestrator.program.program import Method, Program

GUARD_BYTES: Final = 16


def write_calls(
    folder: Path, calls: Sequence[tuple[Call, frozenset[int]]], *, guards: bool
) -> None:
    """Write a program of a method for each call, and a scenario that calls them all.

    Args:
        folder: Gets nets.pte, scenario.json and files of inputs.
        calls: Each with the positions of the arguments that are inputs of the method;
            other tensors are constants.
        guards: Whether methods return what lies in front of the output and behind it,
            which they got as inputs.
    """
    made = [
        _method(call, inputs, f"m{number}", guards=guards)
        for number, (call, inputs) in enumerate(calls)
    ]
    program = replace(made[0][1], methods=tuple(method for method, _, _ in made))
    found = unlink_program(program, tuple(linked for _, _, linked in made))
    (folder / "nets.pte").write_bytes(bytes(found.data))
    guard = np.arange(1, GUARD_BYTES + 1, dtype="u1")
    np.save(folder / "guard.npy", guard)
    runs = []
    for number, (call, places) in enumerate(calls):
        inputs = []
        for place in sorted(places):
            _save(folder / f"in{number}_{place}.npy", call.args[place])
            inputs.append({"kind": "tensor", "file": f"in{number}_{place}.npy"})
        inputs += 2 * guards * [{"kind": "tensor", "file": "guard.npy"}]
        runs.append({"method": f"m{number}", "inputs": inputs})
    scenario = {"runs": runs, "tolerance": {"atol": 0, "rtol": 0}}
    (folder / "scenario.json").write_text(json.dumps(scenario))


def _save(path: Path, tensor: Tensor) -> None:
    """A tensor as NumPy has it."""
    items = np.frombuffer(tensor.data, NUMPY[tensor.dtype])
    lying = items.reshape([tensor.sizes[d] for d in tensor.order])
    np.save(path, lying.transpose(np.argsort(tensor.order)))


def _method(
    call: Call, places: frozenset[int], name: str, *, guards: bool
) -> tuple[Method, Program, LinkedMethod]:
    """A method that takes tensors of a call and returns its output."""
    program = read_program(program_of(call, dynamic=False)[0], file="")
    linked = method_of([call])
    (instruction,) = linked.instructions
    args = instruction.args  # type: ignore[union-attr]
    inputs, out = [args[place] for place in sorted(places)], args[-1]
    values, end = [*linked.values], 0

    def put(index: int) -> None:
        nonlocal end
        value = values[index]
        assert isinstance(value, TensorValue)
        place = Allocation(memory_id=1, offset_bytes=end)
        values[index] = replace(value, allocation=place, data_buffer_index=0)
        end += -(-value.size_bytes // 16) * 16

    def guard() -> int:
        """A tensor that lies at the end of what is placed so far."""
        value = values[out]
        assert isinstance(value, TensorValue)
        size = (GUARD_BYTES,)
        new = replace(value, dtype=ScalarType.Byte, sizes=size, dim_order=(0,))
        values.append(new)
        put(len(values) - 1)
        return len(values) - 1

    around = [guard()] if guards else []
    put(out)
    around += [guard()] if guards else []
    for index, value in enumerate(linked.values):
        is_planned = isinstance(value, TensorValue) and value.allocation is not None
        if index in inputs or (is_planned and index != out):
            put(index)
    linked = replace(
        linked,
        name=name,
        values=tuple(values),
        inputs=(*inputs, *around),
        outputs=(out, *around),
        data=tuple((i, d) for i, d in linked.data if i not in inputs),
    )
    (method,) = program.methods
    method = replace(
        method,
        name=name,
        inputs=linked.inputs,
        outputs=linked.outputs,
        arena_bytes=(0, end),
    )
    return method, program, linked


def run_calls(
    folder: Path, cpu: str, toolchain: str, *, name: str = "", keys: str = ""
) -> tuple[Product, dict[str, bytes]]:
    """Build the program of `write_calls` for a target, and run its scenario.

    Args:
        folder: The folder.
        cpu: The core.
        toolchain: The compiler.
        name: What the product's name begins with.
        keys: Tables of the profile.

    Returns:
        The product, and by name the files of its outputs.
    """
    name = f"{name}{cpu}-{toolchain}"
    profile = folder / f"{name}.toml"
    profile.write_text(
        f'schema = 1\nname = "{name}"\n'
        f'[target]\ncpu = "{cpu}"\ntoolchain = "{toolchain}"\n'
        '[kernels]\nlibraries = ["cortex_m", "quantized", "portable"]\n'
        f'[[models]]\nname = "nets"\npath = "nets.pte"\nload = "prelinked"\n{keys}'
    )
    product = Product(profile=profile, out=folder / name)
    outputs = folder / f"{name}.outputs"
    scenario = ("--scenario", str(folder / "scenario.json"))
    assert product.run("run", *scenario, "--output-dir", str(outputs)) == 0
    return product, {path.name: path.read_bytes() for path in outputs.iterdir()}
