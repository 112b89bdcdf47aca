"""Makes programs whose delegate has its weights in named data.

    inside.pte                    in the program
    outside.pte, weights.ptd      in a data file
    xnnpack.pte, xnnpack.ptd      XNNPACK's weights, in a data file

Needs torch and executorch: python make.py
"""

# mypy: ignore-errors

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import TYPE_CHECKING, final

import numpy as np
import torch
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.exir import to_edge_transform_and_lower
from executorch.exir._serialize._named_data_store import NamedDataStore
from executorch.exir.backend.backend_details import BackendDetails, PreprocessResult
from executorch.exir.backend.canonical_partitioners.pattern_op_partitioner import (
    generate_partitions_from_list_of_nodes,
)
from executorch.exir.backend.compile_spec_schema import CompileSpec
from executorch.exir.backend.partitioner import DelegationSpec, Partitioner, PartitionResult
from executorch.exir.backend.utils import tag_constant_data
from executorch.exir.dialects._ops import ops
from executorch.exir.passes.external_constants_pass import delegate_external_constants_pass_unlifted
from torch.fx.passes.operator_support import OperatorSupportBase

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torch.export import ExportedProgram
    from torch.fx import Node

HERE = Path(__file__).parent
FILE = CompileSpec("file", b"weights")


@final
class Named(BackendDetails):
    """Layers y = x @ w.T + b: its name is the id of the backend."""

    @staticmethod
    def preprocess(program: ExportedProgram, specs: list[CompileSpec]) -> PreprocessResult:
        """Sizes, and the keys of weight and bias; see named.cpp."""
        (layer,) = (n for n in program.graph.nodes if n.op == "call_function")
        store = NamedDataStore()
        keys = []
        for node in layer.args[1:]:
            name = program.graph_signature.inputs_to_parameters[node.name]
            value = program.state_dict[name].detach().contiguous()
            data = value.numpy().astype("<f4").tobytes()
            tag = specs[0].value.decode() if specs else None
            store.add_named_data(name, data, alignment=16, external_tag=tag)
            keys.append(name.encode())
        outputs, inputs = value_of(layer.args[1]).shape
        code = struct.pack("<4sHHBB", b"NMD1", inputs, outputs, *map(len, keys))
        return PreprocessResult(
            processed_bytes=code + b"".join(keys),
            data_store_output=store.get_named_data_store_output(),
        )


def value_of(node: Node) -> torch.Tensor:
    """The tensor that stands for a node."""
    return node.meta["val"]


class Linear(OperatorSupportBase):
    """Layers with a bias."""

    def is_node_supported(self, _modules: Mapping[str, object], node: Node) -> bool:
        """Whether the delegate can run it."""
        return node.target is ops.edge.aten.linear.default and len(node.args) > 2


class NamedPartitioner(Partitioner):
    """Hands every layer to the backend on its own."""

    def __init__(self, specs: list[CompileSpec]) -> None:
        super().__init__()
        self.specs = specs

    def ops_to_not_decompose(self, _program: ExportedProgram) -> tuple[list, None]:
        """Layers stay what they are."""
        return [torch.ops.aten.linear.default], None

    def partition(self, program: ExportedProgram) -> PartitionResult:
        """Tag the node of each part."""
        tags = {}
        for part in generate_partitions_from_list_of_nodes(
            program.graph_module, op_support=Linear()
        ):
            for index, node in enumerate(part.nodes):
                tag = f"part{part.id}_{index}"
                tags[tag] = DelegationSpec(Named.__name__, self.specs)
                node.meta["delegation_tag"] = tag
        tag_constant_data(program)
        return PartitionResult(tagged_exported_program=program, partition_tags=tags)


class Model(torch.nn.Module):
    """Two layers, and between them a ReLU that stays a kernel call."""

    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Linear(6, 5)
        self.second = torch.nn.Linear(5, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """[2, 6] in, [2, 3] out."""
        return self.second(torch.relu(self.first(x)))


def main() -> None:
    """Write programs, data files, the input, the output and case.json."""
    torch.manual_seed(0)
    model, x = Model().eval(), torch.randn(2, 6)
    exported = torch.export.export(model, (x,))
    for name, specs in (("inside", []), ("outside", [FILE])):
        edge = to_edge_transform_and_lower(exported, partitioner=[NamedPartitioner(specs)])
        made = edge.to_executorch()
        (HERE / f"{name}.pte").write_bytes(made.buffer)
        made.write_tensor_data_to_file(str(HERE))
    tagged = exported.module()
    delegate_external_constants_pass_unlifted(module=tagged, gen_tag_fn=lambda _node: "xnnpack")
    edge = to_edge_transform_and_lower(
        torch.export.export(tagged, (x,)), partitioner=[XnnpackPartitioner()]
    )
    made = edge.to_executorch()
    (HERE / "xnnpack.pte").write_bytes(made.buffer)
    made.write_tensor_data_to_file(str(HERE))
    np.save(HERE / "in0.npy", x.numpy())
    np.save(HERE / "out0.npy", model(x).detach().numpy())
    tensor = {"kind": "tensor", "dtype": "float32", "dim_order": [0, 1]}
    case = {
        "description": "One call, with the output of PyTorch",
        "tolerance": {"atol": 1e-6, "rtol": 1e-6},
        "runs": [
            {
                "method": "forward",
                "fresh": False,
                "inputs": [{**tensor, "shape": [2, 6], "file": "in0.npy"}],
                "outputs": [{**tensor, "shape": [2, 3], "file": "out0.npy"}],
            }
        ],
    }
    (HERE / "case.json").write_text(json.dumps(case, indent=2) + "\n")


if __name__ == "__main__":
    main()
