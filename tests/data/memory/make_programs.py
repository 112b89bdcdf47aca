"""Make the programs and scenarios of this folder, with ExecuTorch as the oracle.

    python make_programs.py

Needs torch and executorch with its Python runtime. Expected outputs are those of the
runtime in the same run (torch 2.13.0 and executorch 1.5.1 made what is checked in).
"""
# mypy: torch is not there when the project is checked.
# ruff: noqa: ANN001, ANN003, ANN201
# mypy: ignore-errors

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from executorch.exir import ExecutorchBackendConfig, to_edge
from executorch.exir.passes import MemoryPlanningPass
from executorch.exir.passes.init_mutable_pass import InitializedMutableBufferPass
from executorch.runtime import Runtime, Verification
from torch.export import Dim, export

if TYPE_CHECKING:
    from collections.abc import Sequence

HERE = Path(__file__).parent
TOLERANCE = {"atol": 1e-05, "rtol": 1e-05}


class Mixed(torch.nn.Module):
    """Two inputs, two outputs."""

    def forward(self, x, y):
        return x + y, torch.mul(x, y)


class Returned(torch.nn.Module):
    """Gives an input back, and one output twice."""

    def forward(self, x, y):
        z = x + y
        return x, z, z


class Rows(torch.nn.Module):
    """As many rows as the caller has."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(4, 3)

    def forward(self, x):
        return torch.relu(self.linear(x))


class View(torch.nn.Module):
    """A view of an input without a plan has no plan either."""

    def forward(self, x):
        return (x.view(6) + 1).view(3, 2)


class Cache(torch.nn.Module):
    """A cache that `prefill` writes, `decode` extends and `peek` reads."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.register_buffer("keys", torch.full((6, 4), 0.25))
        self.register_buffer("count", torch.full((1,), 2.0))

    def prefill(self, x, at):
        self.keys[at] = x
        self.count.add_(3.0)
        return self.keys.sum(dim=0)

    def decode(self, x, at):
        self.keys[at] = x
        self.count.add_(1.0)
        weights = torch.softmax(torch.mm(x, self.keys.permute(1, 0)), dim=-1)
        return torch.mm(weights, self.keys), self.count * 1.0

    def peek(self, x):
        return self.keys + x


class Average(torch.nn.Module):
    """An average that is read late, when layers have used the memory of the input."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.first = torch.nn.Linear(16, 16)
        self.second = torch.nn.Linear(16, 8)
        self.last = torch.nn.Linear(8, 3)
        self.register_buffer("average", torch.zeros(1, 8))

    def forward(self, x):
        features = torch.tanh(self.second(torch.relu(self.first(x))))
        self.average.mul_(0.8).add_(features * 0.2)
        return self.last(self.average)


class TwoCaches(torch.nn.Module):
    """Two layers with caches of which each run writes one row."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(2)
        self.layers = torch.nn.ModuleList(torch.nn.Linear(6, 6) for _ in range(2))
        for index in range(2):
            self.register_buffer(f"cache{index}", torch.zeros(5, 6))

    def forward(self, x, at):
        for index, layer in enumerate(self.layers):
            cache = getattr(self, f"cache{index}")
            cache.index_put_((at,), layer(x))
            x = torch.softmax(x @ cache.t(), dim=-1) @ cache
        return x


class Sum(torch.nn.Module):
    """`add` adds to a sum, `put` replaces it and does not read it."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("total", torch.zeros(2, 3))

    def add(self, x):
        self.total.add_(x)
        return self.total.view(-1) * 2

    def put(self, x):
        self.total.copy_(x)
        return self.total.view(-1)


class Branches(torch.nn.Module):
    """Two conditions in a row; the first result is read after the second.

    ExecuTorch 1.5.1 plans the second ones over the first one's result:
    pytorch/executorch#21490.
    """

    def forward(self, x):
        positive = x.sum() > 0
        one = torch.cond(positive, lambda v: v + 1, lambda v: v - 1, [x])
        two = torch.cond(positive, lambda v: v * 3, lambda v: v * 5, [x])
        return one + two


def planned(*, inputs: bool, outputs: bool, **more: bool) -> ExecutorchBackendConfig:
    """A configuration that plans memory for inputs or outputs, or not."""
    return ExecutorchBackendConfig(
        memory_planning_pass=MemoryPlanningPass(
            alloc_graph_input=inputs, alloc_graph_output=outputs, **more
        )
    )


def write(
    name: str,
    program: bytes,
    runs: Sequence[tuple[str, Sequence[torch.Tensor]]],
    eager: torch.nn.Module | None = None,
) -> None:
    """Write a program, and the outputs that ExecuTorch gives for runs in order.

    Where ExecuTorch's Python runtime cannot tell, those of `eager`: it gives every
    output memory, also one that is an input, whose data is lost then.
    """
    folder = HERE / name
    folder.mkdir(exist_ok=True)
    (folder / "model.pte").write_bytes(program)
    runtime = Runtime.get()
    loaded = runtime.load_program(program, verification=Verification.Minimal)
    for method in loaded.method_names if runs else ():
        loaded.load_method(method)  # loading one later would reset shared state
    calls = []
    for at, (method, inputs) in enumerate(runs):
        copies = [t.clone() for t in inputs]
        found = eager(*copies) if eager is not None else loaded.load_method(method).execute(copies)
        call: dict[str, object] = {"method": method}
        for side, tensors in (("inputs", inputs), ("outputs", found)):
            files = []
            for index, tensor in enumerate(tensors):
                file = f"{at}.{side[:-1]}{index}.npy"
                array = tensor.detach().numpy()
                np.save(folder / file, array)
                files.append(
                    {
                        "kind": "tensor",
                        "file": file,
                        "dtype": str(array.dtype),
                        "shape": list(array.shape),
                        "dim_order": list(range(array.ndim)),
                    }
                )
            call[side] = files
        calls.append(call)
    if calls:
        case = {"tolerance": TOLERANCE, "runs": calls}
        (folder / "case.json").write_text(json.dumps(case, indent=1) + "\n")


def exported(module, inputs, config, **more) -> bytes:
    """The bytes of a program with one method."""
    with torch.no_grad():
        program = export(module, inputs, **more)
    return bytes(to_edge(program).to_executorch(config).buffer)


def caller_memory() -> None:
    """Programs whose inputs or outputs are not planned."""
    torch.manual_seed(7)
    x, y = torch.randn(2, 3), torch.randn(2, 3)
    both, none = [("forward", (x, y)), ("forward", (y, y))], {"inputs": False}
    for name, inputs, outputs in (("given_inputs", False, True), ("given_outputs", True, False)):
        config = planned(inputs=inputs, outputs=outputs)
        write(name, exported(Mixed(), (x, y), config), both)
    config = planned(**none, outputs=False)
    program = exported(Returned(), (x, y), config)
    write("given_returned", program, both, eager=Returned())
    rows = torch.randn(8, 4)
    shapes = {"x": {0: Dim("rows", min=1, max=8)}}
    write(
        "given_rows",
        exported(Rows(), (rows,), config, dynamic_shapes=shapes),
        [("forward", (rows[:n],)) for n in (8, 3, 1)],
    )
    write("given_view", exported(View(), (x,), config), [])


def shared_state() -> None:
    """Methods that share mutable buffers, and the same ones that do not."""
    methods = {
        "prefill": (torch.randn(3, 4), torch.arange(3)),
        "decode": (torch.randn(1, 4), torch.tensor([3])),
        "peek": (torch.randn(6, 4),),
    }
    step, at = methods["decode"]
    runs = [
        ("peek", methods["peek"]),
        ("prefill", methods["prefill"]),
        ("decode", (step, at)),
        ("decode", (step * 2, at + 1)),
        ("peek", methods["peek"]),
        ("prefill", (torch.ones(3, 4), torch.arange(3))),
        ("decode", (step, at + 2)),
    ]
    for name, names, initial in (
        ("shared_cache", True, True),
        ("shared_nameless", False, True),
        ("shared_zeros", False, False),
    ):
        edge = {}
        for method, inputs in methods.items():
            module = Cache().eval()
            module.forward = getattr(module, method)
            edge[method] = export(module, inputs)
        config = ExecutorchBackendConfig(
            memory_planning_pass=MemoryPlanningPass(share_mutable_buffers=True),
            passes=[InitializedMutableBufferPass(["keys", "count"])] if initial else [],
            emit_mutable_buffer_names=names,
        )
        program = bytes(to_edge(edge).to_executorch(config).buffer)
        write(name, program, runs)


def kept_without_data() -> None:
    """State for which the program has no initial data: the export's default."""
    torch.manual_seed(11)
    rows = [("forward", (torch.randn(1, 16),)) for _ in range(5)]
    write("state_late", exported(Average(), rows[0][1], planned_all()), rows)
    steps = [("forward", (torch.randn(1, 6), torch.tensor([n]))) for n in range(5)]
    write("state_rows", exported(TwoCaches(), steps[0][1], planned_all()), steps)


def other_methods() -> None:
    """State that one method only writes, and a method without any state."""
    x = torch.arange(6.0).reshape(2, 3)
    edge = {}
    for method in ("add", "put"):
        module = Sum()
        module.forward = getattr(module, method)
        edge[method] = export(module, (x,))
    runs = [(m, (x * n,)) for m, n in zip("apaapa", (1, 10, 1, 3, 0, 2), strict=True)]
    names = {"a": "add", "p": "put"}
    for name, constants, initial in (
        ("state_put", {}, ["total"]),
        ("state_constant", {"get_size": 6}, ["total"]),
        ("state_zeros", {"get_size": 6}, []),
    ):
        config = ExecutorchBackendConfig(
            memory_planning_pass=MemoryPlanningPass(share_mutable_buffers=True),
            passes=[InitializedMutableBufferPass(initial)] if initial else [],
        )
        edged = to_edge(edge, constant_methods=constants)
        program = bytes(edged.to_executorch(config).buffer)
        write(name, program, [(names[m], inputs) for m, inputs in runs])


def branches() -> None:
    """A program whose own plan of memory is wrong: expected is what PyTorch gives."""
    inputs = [(torch.tensor([1.0, 2.0]),), (torch.tensor([-4.0, 2.0]),)]
    program = exported(Branches(), inputs[0], planned_all())
    runs = [("forward", x) for x in inputs]
    write("branches", program, runs, eager=lambda x: (Branches()(x),))


def planned_all() -> ExecutorchBackendConfig:
    """The default: inputs and outputs are planned."""
    return planned(inputs=True, outputs=True)


if __name__ == "__main__":
    caller_memory()
    shared_state()
    kept_without_data()
    other_methods()
    branches()
