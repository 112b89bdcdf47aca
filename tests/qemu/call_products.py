"""Products of methods that make a few calls, and what these give on a target."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from orchestrator.build import BuildOptions, Project, load, open_build, table
from orchestrator.core.dtype import ScalarType
from orchestrator.method.linked import LinkedCall
from orchestrator.method.passes import unlink_program
from orchestrator.program.program import KernelCall
from orchestrator.program.reader import read_program
from orchestrator.program.values import Allocation, TensorValue
from tests.opinfo.programs import NUMPY, program_of
from tests.product import Product
from tests.unit.method.recorded_calls import Call, Tensor, method_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from orchestrator.method.linked import LinkedMethod
    from orchestrator.program.program import Method

GUARD: Final = np.arange(1, 17, dtype="u1")
"""What lies in front of outputs and behind them."""
Guarded = tuple[bytes, bytes, bytes]
"""Files of an output, and of the guards in front of it and behind it."""


def write_calls(
    folder: Path, calls: Sequence[tuple[Call, frozenset[int]]], *, together: int = 1
) -> None:
    """Write a program that makes the calls, and a scenario of all its methods.

    The methods also return what lies in front of each output and behind it, which they
    got as inputs.

    Args:
        folder: Gets nets.pte, scenario.json and files of inputs.
        calls: Each with the positions of the arguments that are inputs of the method;
            other tensors are constants.
        together: Calls of a method. A compiler takes longer for the interface of a
            method than for its calls, but passes may weigh one call against others.
    """
    groups = [calls[at : at + together] for at in range(0, len(calls), together)]
    base = read_program(program_of(calls[0][0], dynamic=False)[0], file="")
    made = [_method(group, f"m{number}", base.methods[0]) for number, group in enumerate(groups)]
    program = replace(base, methods=tuple(method for method, _ in made))
    found = unlink_program(program, tuple(linked for _, linked in made))
    (folder / "nets.pte").write_bytes(bytes(found.data))
    np.save(folder / "guard.npy", GUARD)
    runs = []
    for number, group in enumerate(groups):
        files = ["guard.npy"]
        for place_of, (call, places) in enumerate(group):
            for place in sorted(places):
                files.append(f"in{number}_{place_of}_{place}.npy")
                _save(folder / files[-1], call.args[place])
            files.append("guard.npy")
        inputs = [{"kind": "tensor", "file": file} for file in files]
        runs.append({"method": f"m{number}", "inputs": inputs})
    scenario = {"runs": runs, "tolerance": {"atol": 0, "rtol": 0}}
    (folder / "scenario.json").write_text(json.dumps(scenario))


def _save(path: Path, tensor: Tensor) -> None:
    """A tensor as NumPy has it."""
    items = np.frombuffer(tensor.data, NUMPY[tensor.dtype])
    lying = items.reshape([tensor.sizes[d] for d in tensor.order])
    np.save(path, lying.transpose(np.argsort(tensor.order)))


def _method(
    calls: Sequence[tuple[Call, frozenset[int]]], name: str, base: Method
) -> tuple[Method, LinkedMethod]:
    """A method that takes tensors of calls and returns their outputs between guards."""
    linked = method_of(call for call, _ in calls)
    code = [c for c in linked.instructions if isinstance(c, LinkedCall)]
    values, end = [*linked.values], 0

    def put(index: int) -> int:
        nonlocal end
        value = values[index]
        assert isinstance(value, TensorValue)
        place = Allocation(memory_id=1, offset_bytes=end)
        values[index] = replace(value, allocation=place, data_buffer_index=0)
        end += -(-value.size_bytes // 16) * 16
        return index

    def guard() -> int:
        """A tensor that lies at the end of what is placed so far."""
        value = values[code[0].args[-1]]
        assert isinstance(value, TensorValue)
        size = (len(GUARD),)
        values.append(replace(value, dtype=ScalarType.Byte, sizes=size, dim_order=(0,)))
        return put(len(values) - 1)

    inputs = [guard()]
    outputs = [*inputs]
    for (_, places), instruction in zip(calls, code, strict=True):
        out = put(instruction.args[-1])
        behind = guard()
        inputs += (*(instruction.args[place] for place in sorted(places)), behind)
        outputs += (out, behind)
    for index, value in enumerate(linked.values):
        is_planned = isinstance(value, TensorValue) and value.allocation is not None
        if index in inputs or (is_planned and index not in outputs):
            put(index)
    operators = tuple(dict.fromkeys(c.operator for c in code))
    linked = replace(
        linked,
        name=name,
        values=tuple(values),
        inputs=tuple(inputs),
        outputs=tuple(outputs),
        data=tuple((i, d) for i, d in linked.data if i not in inputs),
    )
    method = replace(
        base,
        name=name,
        values=linked.values,
        inputs=linked.inputs,
        outputs=linked.outputs,
        arena_bytes=(0, end),
        operators=operators,
        instructions=tuple(
            KernelCall(operator=operators.index(c.operator), args=(*c.args, *c.outs)) for c in code
        ),
    )
    return method, linked


def run_calls(
    folder: Path,
    cpu: str,
    toolchain: str,
    *,
    optimize: str = "size",
    name: str = "",
    keys: str = "",
) -> tuple[Product, list[Guarded]]:
    """Build the program of `write_calls` for a target, and run its scenario.

    Args:
        folder: The folder.
        cpu: The core.
        toolchain: The compiler.
        optimize: What it optimizes for.
        name: What the product's name begins with.
        keys: Tables of the profile.

    Returns:
        The product, and what each call gave.
    """
    name = f"{name}{cpu}-{toolchain}-{optimize}"
    profile = folder / f"{name}.toml"
    profile.write_text(
        f'schema = 1\nname = "{name}"\n'
        f'[target]\ncpu = "{cpu}"\ntoolchain = "{toolchain}"\n'
        f'optimize = "{optimize}"\n'
        '[kernels]\nlibraries = ["cortex_m", "quantized", "portable"]\n'
        f'[[models]]\nname = "nets"\npath = "nets.pte"\nload = "prelinked"\n{keys}'
    )
    product = Product(profile=profile, out=folder / name)
    outputs = folder / f"{name}.outputs"
    scenario = ("--scenario", str(folder / "scenario.json"))
    assert product.run("run", *scenario, "--output-dir", str(outputs)) == 0
    runs = len(json.loads((folder / "scenario.json").read_text())["runs"])
    found = []
    for run in range(runs):
        prefix = f"run{run}." if run else ""
        count = len([*outputs.glob(f"{prefix}out*.npy")])
        paths = [outputs / f"{prefix}out{n}.npy" for n in range(count)]
        files = [path.read_bytes() for path in paths]
        found += [*zip(files[1::2], files[:-1:2], files[2::2], strict=True)]
    return product, found


def linked_calls(product: Product) -> list[LinkedCall]:
    """The calls that firmware makes, of all methods."""
    build = open_build(Project(load(product.profile), BuildOptions(out=product.out)))
    return [
        instruction
        for methods in build[table.REPLAN].linked.values()
        for method in methods
        for instruction in method.instructions
        if isinstance(instruction, LinkedCall)
    ]
