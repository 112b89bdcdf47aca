"""Exports the models of the zoo, with example inputs and PyTorch's outputs.

    python -m tests.zoo.export [--only PART,...] [--again] --out build/zoo

needs a Python with PyTorch and ExecuTorch; groups whose packages are missing are left
out. Each model is exported in a process of its own with a time limit. Writes per model

- `NAME.pte`;
- `NAME.npz` with `in0...` and `out0...`, and the same with `other ` before them for
  inputs of other sizes, with `double ` for outputs of a quantized graph in Double;
- `NAME.json`: seconds, nodes of the graph, the error if PyTorch or ExecuTorch refuse.

Models that have all of it are left as they are.
"""
# mypy: ignore-errors
# (torch is not there when the project is checked)

from __future__ import annotations

import argparse
import copy
import json
import os
import random
import signal
import sys
import time
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from executorch.exir import EdgeCompileConfig, to_edge
from torch.export import export
from torch.utils import _pytree

from orchestrator.catalog import LibraryText, read_catalog
from orchestrator.export import lower
from orchestrator.export.failure import ExportError
from orchestrator.export.request import Request
from orchestrator.export.source import FORWARD, Model, Source
from orchestrator.lowering import accelerated
from orchestrator.profile.lowering import PORTABLE, Quantize
from orchestrator.shell.sources import library_file
from tests.zoo.models import MODELS
from tests.zoo.net import Net

SEED = 7
LOWER = "lower"
"""The step that the project's own stage refuses, after PyTorch has exported."""
LIBRARIES = ("quantized", "portable")
MOST_BYTES = 48 << 20
"""Of a program; what is larger is an error."""
OWN = "functions/"
"""The group that the project's own stage exports; left out unless `--only` names it."""


def file_name(name: str) -> str:
    """Of a model, without a suffix."""
    return name.replace("/", "-")


def write(name: str, stem: Path) -> None:
    """Export a model; what fails is in its JSON."""
    start = time.monotonic()
    facts: dict[str, Any] = {"name": name, "step": "make"}
    try:
        data, arrays = _exported(name, facts)
        np.savez(stem.with_suffix(".npz"), **arrays)
        stem.with_suffix(".pte").write_bytes(data)
        if len(data) > MOST_BYTES:
            facts["error"] = f"the program has {len(data)} bytes"
        else:
            del facts["step"]
    except Exception as error:  # noqa: BLE001  # anything may be raised there
        facts["error"] = text_of(error)
    facts["seconds"] = round(time.monotonic() - start, 1)
    stem.with_suffix(".json").write_text(json.dumps(facts) + "\n", encoding="utf-8")


def text_of(error: BaseException) -> str:
    """The first thing that went wrong, on one line."""
    while error.__cause__ is not None:
        error = error.__cause__
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {' '.join(lines[:3])}"[:300]


def _exported(name: str, facts: dict[str, Any]) -> tuple[bytes, dict[str, Any]]:
    torch.manual_seed(SEED)
    random.seed(SEED)
    net = MODELS[name]()
    for parameter in net.module.parameters():
        parameter.requires_grad_(False)  # noqa: FBT003  # nothing is trained here
    facts["parameters"] = sum(p.numel() for p in net.module.parameters())
    if net.quantize:
        return _int8(net, facts)
    facts["step"] = "eager"
    with torch.no_grad():
        outputs = copy.deepcopy(net.module)(*copy.deepcopy(net.inputs))
    arrays = arrays_of(net.inputs, outputs)
    if net.others:
        with torch.no_grad():
            outputs = copy.deepcopy(net.module)(*copy.deepcopy(net.others))
        arrays |= arrays_of(net.others, outputs, prefix="other ")
    facts["step"] = "torch.export"
    if name.startswith(OWN):
        return _deployed(net, facts), arrays
    program = export(net.module, net.inputs, dynamic_shapes=net.dynamic_shapes)
    facts["nodes"] = len(program.graph.nodes)
    facts["step"] = "to_edge"
    with accelerated():  # the same bytes sooner
        return _lowered(program, facts), arrays


@cache
def _offered() -> tuple[str, ...]:
    """Operators that have a kernel."""
    catalog = read_catalog(
        [
            LibraryText(name=name, file=name, text=library_file(name).read_text("utf-8"))
            for name in LIBRARIES
        ]
    )
    return tuple(map(str, catalog.operators))


def _model(net: Net) -> Model:
    method = Source(net.module, net.inputs)
    return Model({FORWARD: method}, ((FORWARD, net.inputs),))


def _deployed(net: Net, facts: dict[str, Any]) -> bytes:
    """As the project's own export of a profile, with decompositions."""
    request = Request(
        file="", function="", folder="", lowering=PORTABLE, cpu="host", isa="scalar",
        offered=_offered(),
    )  # fmt: skip
    try:
        with accelerated():
            found = lower.lowered({FORWARD: net.module}, _model(net), request)
    except ExportError as error:
        if error.code != "cannot-export":
            facts["step"] = LOWER
        raise
    if found.decomposed:
        facts["decomposed"] = dict(found.decomposed)
    return bytes(found.manager.buffer)


def _lowered(program: Any, facts: dict[str, Any]) -> bytes:
    try:
        edge = to_edge(program)
    except Exception as error:  # noqa: BLE001  # of whatever type
        # What is not among the core operators may have a kernel all the same.
        facts["not core"] = text_of(error)
        edge = to_edge(program, compile_config=EdgeCompileConfig(_check_ir_validity=False))
    facts["step"] = "to_executorch"
    return bytes(edge.to_executorch().buffer)


def _int8(net: Net, facts: dict[str, Any]) -> tuple[bytes, dict[str, Any]]:
    """As the project's own export of a profile."""
    request = Request(
        file="", function="", folder="", lowering=net.quantize,
        cpu="cortex-m3", isa="scalar", quantize=Quantize(),
    )  # fmt: skip
    model = lower.arranged(_model(net), request)
    inputs = model.methods[FORWARD].inputs
    facts["step"] = "quantize"
    modules, _ = lower.quantized(model, request)
    module = modules[FORWARD]
    facts["step"] = "eager"
    outputs = lower.with_reference(modules, model)[1][FORWARD]
    in_double = InDouble(module).run(*copy.deepcopy(inputs))
    facts["step"] = "lower"
    with accelerated():
        program = lower.lowered(modules, model, request).manager
    facts["steps"] = [_step(module)]
    arrays = arrays_of(inputs, outputs)
    return bytes(program.buffer), arrays | arrays_of((), in_double, prefix="double ")


class InDouble(torch.fx.Interpreter):
    """A quantized graph whose float operators are computed in Double.

    In Float, rounding of long sums decides about numbers near the middle of two steps.
    """

    def run_node(self, node: Any) -> Any:
        """What a node gives, its floats in Double."""
        name = str(node.target)
        if "_assert_tensor_metadata" in name:
            return None  # it expects Float
        if "quantize_per" not in name:
            return _in_double(super().run_node(node))
        value, scale, zero_point, *more = self.map_nodes_to_values(node.args, node)
        if "per_channel" in name:
            axis, *more = more
            sizes = [-1 if i == axis else 1 for i in range(value.dim())]
            scale, zero_point = scale.reshape(sizes), zero_point.reshape(sizes)
        if "dequantize" in name:
            return (value.double() - zero_point) * scale
        low, high, dtype = more
        steps = (value.double() / scale).round() + zero_point
        return steps.clamp(low, high).to(dtype)


def _in_double(values: Any) -> Any:
    return _pytree.tree_map(
        lambda v: v.double() if isinstance(v, torch.Tensor) and v.is_floating_point() else v, values
    )


def _step(module: Any) -> float:
    """The largest quantization step of a graph: of its last `dequantize`."""
    for node in reversed(module.graph.nodes):
        if "dequantize_per_tensor" in str(node.target):
            return float(node.args[1])
    return 0.0


def arrays_of(inputs: Any, outputs: Any, prefix: str = "") -> dict[str, Any]:
    """Inputs and outputs by their names in the file."""
    found = {}
    for kind, values in (("in", inputs), ("out", outputs)):
        for number, value in enumerate(_pytree.tree_leaves(values)):
            if isinstance(value, torch.Tensor):
                value = value.detach().contiguous()
                if value.dtype is torch.bfloat16:
                    value = value.float()
                value = value.numpy()
            found[f"{prefix}{kind}{number}"] = np.asarray(value)
    return found


def limited(name: str, stem: Path, seconds: int) -> int:
    """Start a process that exports a model and dies in time; its id."""
    child = os.fork()
    if child:
        return child
    signal.alarm(seconds)
    log = os.open(stem.with_suffix(".log"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(log, 1)
    os.dup2(log, 2)
    write(name, stem)
    os._exit(0)


def finished(running: dict[int, tuple[str, Path]]) -> None:
    """Wait for one process, and note if it died."""
    child, status = os.wait()
    name, stem = running.pop(child)
    file = stem.with_suffix(".json")
    if status or not file.exists():
        code = os.waitstatus_to_exitcode(status)
        died = "out of time" if code == -signal.SIGALRM else f"exit code {code}"
        facts = {"name": name, "step": "export", "error": died}
        file.write_text(json.dumps(facts) + "\n", encoding="utf-8")
    facts = json.loads(file.read_text(encoding="utf-8"))
    said = facts.get("error", "")
    said = (
        f"{facts['step']}: {said}"
        if said
        else f"{facts['nodes']} nodes"
        if "nodes" in facts
        else ""
    )
    print(f"{name:45} {facts.get('seconds', '')!s:>6} s  {said[:150]}", flush=True)


def main() -> None:
    """Export what is not there yet."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", default="", help="PART,... of names")
    parser.add_argument("--again", action="store_true", help="also what is there")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seconds", type=int, default=400, help="for one model")
    options = parser.parse_args()
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore")
    options.out.mkdir(parents=True, exist_ok=True)
    parts = options.only.split(",")
    running: dict[int, tuple[str, Path]] = {}
    for name in MODELS:
        stem = options.out / file_name(name)
        if not any(part in name for part in parts):
            continue
        if name.startswith(OWN) and not options.only:
            continue
        if stem.with_suffix(".json").exists() and not options.again:
            continue
        if len(running) >= options.jobs:
            finished(running)
        running[limited(name, stem, options.seconds)] = name, stem
    while running:
        finished(running)


if __name__ == "__main__":
    sys.exit(main())
