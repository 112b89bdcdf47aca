"""Exports the example's model, with inputs and outputs for `orchestrator run`.

Needs torch and executorch: python export.py
"""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import TYPE_CHECKING, final

import numpy as np
import torch
from executorch.exir import ExecutorchBackendConfig, to_edge_transform_and_lower
from executorch.exir.backend.backend_details import BackendDetails, PreprocessResult
from executorch.exir.backend.canonical_partitioners.pattern_op_partitioner import (
    generate_partitions_from_list_of_nodes,
)
from executorch.exir.backend.compile_spec_schema import CompileSpec
from executorch.exir.backend.partitioner import DelegationSpec, Partitioner, PartitionResult
from executorch.exir.backend.utils import tag_constant_data
from executorch.exir.dialects._ops import ops
from torch.fx.passes.operator_support import OperatorSupportBase

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torch.export import ExportedProgram
    from torch.fx import Node

HERE = Path(__file__).parent
ADD = ops.edge.aten.add.Tensor
MULTIPLY = ops.edge.aten.mul.Tensor
LEAKY_RELU = ops.edge.aten.leaky_relu.default
CODES = {ADD: 0, MULTIPLY: 1, LEAKY_RELU: 2}
"""Operations of the bytecode; see elementwise.cpp."""
MOST_REGISTERS = 16


@final
class Elementwise(BackendDetails):
    """Turns a part of a model into bytecode: its name is the id of the backend."""

    @staticmethod
    def preprocess(
        program: ExportedProgram, _specs: list[CompileSpec]
    ) -> PreprocessResult:
        """The bytes that `init` of the delegate gets as `processed`."""
        registers: dict[Node, int] = {}
        placeholders = [n for n in program.graph.nodes if n.op == "placeholder"]
        inherited = program.graph_signature.inputs_to_parameters
        inputs = [node for node in placeholders if node.name not in inherited]
        constants = [node for node in placeholders if node.name in inherited]
        for node in (*inputs, *constants):
            registers[node] = len(registers)
        operations = b""
        count = 0
        for node in program.graph.nodes:
            if node.op == "call_function":
                a, b = (*node.args, 0)[:2]
                second = registers[b] if isinstance(b, torch.fx.Node) else 0
                operations += bytes((CODES[node.target], registers[a], second, 0))
                registers[node] = len(registers)
                count += 1
        (output,) = (n for n in program.graph.nodes if n.op == "output")
        outputs = output.args[0]
        if len(registers) > MOST_REGISTERS:
            raise RuntimeError("the part has too many operations")
        numel = outputs[0].meta["val"].numel()
        code = struct.pack(
            "<4s4BI",
            b"ELW1",
            *(len(inputs), len(constants), count, len(outputs)),
            numel,
        )
        code += operations
        code += bytes(registers[node] for node in outputs).ljust(4, b"\0")
        for node in constants:
            value = program.state_dict[inherited[node.name]]
            code += value.detach().numpy().astype("<f4").tobytes()
        return PreprocessResult(processed_bytes=code)


class Supported(OperatorSupportBase):
    """Operations on tensors of one shape."""

    def is_node_supported(self, _modules: Mapping[str, object], node: Node) -> bool:
        """Whether the delegate can run it."""
        if node.target not in CODES:
            return False
        shapes = {a.meta["val"].shape for a in node.all_input_nodes}
        return shapes == {node.meta["val"].shape}


class ElementwisePartitioner(Partitioner):
    """Hands connected operations to the backend, with the slope as a setting."""

    def partition(self, program: ExportedProgram) -> PartitionResult:
        """Tag the nodes of each part."""
        tags = {}
        for part in generate_partitions_from_list_of_nodes(
            program.graph_module, op_support=Supported()
        ):
            slopes = {n.args[1] for n in part.nodes if n.target is LEAKY_RELU}
            settings = [
                CompileSpec("negative_slope", struct.pack("<f", s)) for s in slopes
            ]
            tag = f"part{part.id}"
            tags[tag] = DelegationSpec(Elementwise.__name__, settings)
            for node in part.nodes:
                node.meta["delegation_tag"] = tag
        tag_constant_data(program)
        return PartitionResult(tagged_exported_program=program, partition_tags=tags)


class Model(torch.nn.Module):
    """Two parts for the backend, and between them a product of matrices."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(4, 4), requires_grad=False)
        self.gain = torch.nn.Parameter(torch.randn(3, 4), requires_grad=False)

    def forward(
        self, x: torch.Tensor, y: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Two matrices of [3, 4] in and out."""
        product = x * y
        a = torch.nn.functional.leaky_relu(product + x, 0.125)
        b = a @ self.weight
        return torch.nn.functional.leaky_relu(b * self.gain + b, 0.25), product


def example() -> tuple[torch.nn.Module, tuple[torch.Tensor, ...]]:
    """The model and its inputs, the same each time."""
    torch.manual_seed(0)
    return Model().eval(), (torch.randn(3, 4), torch.randn(3, 4))


def export(
    model: torch.nn.Module, inputs: tuple[torch.Tensor, ...], *, in_segments: bool
) -> bytes:
    """The program; what delegates get is in segments, or inside the flatbuffer."""
    edge = to_edge_transform_and_lower(
        torch.export.export(model, inputs), partitioner=[ElementwisePartitioner()]
    )
    config = ExecutorchBackendConfig(extract_delegate_segments=in_segments)
    return edge.to_executorch(config).buffer


def main() -> None:
    """Write model.pte, inputs, outputs and case.json."""
    model, inputs = example()
    (HERE / "model.pte").write_bytes(export(model, inputs, in_segments=True))
    for index, value in enumerate(inputs):
        np.save(HERE / f"in{index}.npy", value.numpy())
    for index, value in enumerate(model(*inputs)):
        np.save(HERE / f"out{index}.npy", value.detach().numpy())
    tensor = {
        "kind": "tensor",
        "dtype": "float32",
        "shape": [3, 4],
        "dim_order": [0, 1],
    }
    case = {
        "description": "One call, with the outputs of PyTorch",
        "tolerance": {"atol": 1e-6, "rtol": 1e-6},
        "runs": [
            {
                "method": "forward",
                "fresh": False,
                "inputs": [{**tensor, "file": f"in{i}.npy"} for i in range(2)],
                "outputs": [{**tensor, "file": f"out{i}.npy"} for i in range(2)],
            }
        ],
    }
    (HERE / "case.json").write_text(json.dumps(case, indent=2) + "\n")


if __name__ == "__main__":
    main()
