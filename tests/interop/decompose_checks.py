"""Decompositions against the operators that they stand for.

    python -m tests.interop.decompose_checks

Prints a line of JSON: by operator, what is wrong, "" if nothing. Needs PyTorch and
ExecuTorch.
"""
# mypy: ignore-errors
# ruff: noqa: SLF001, T201
# (torch is not there when the project is checked)

from __future__ import annotations

import json
import math

import torch
from executorch.exir import EdgeCompileConfig, to_edge
from executorch.exir.dialects.edge._ops import EdgeOpOverload
from torch.export import Dim, export
from torch.utils import _pytree

from orchestrator.export.decompose import OWN, without_leftovers
from orchestrator.export.request import Offered

aten = torch.ops.aten
NAN, INF = math.nan, math.inf
NUMBERS = torch.tensor([0.5, -0.0, NAN, INF, -INF, 3.0, -2.5, 1e38, 1e-38, 0.0])
PAIRS = torch.cartesian_prod(NUMBERS, NUMBERS)


def _random(*sizes: int) -> torch.Tensor:
    return torch.randn(sizes)


SAMPLES = {
    aten.conv_tbc.default: [((_random(9, 2, 3), _random(3, 3, 4), _random(4), 1), {})],
    aten.dequantize.self: [((_random(3),), {})],
    aten.empty_permuted.default: [(([2, 3], [1, 0]), {})],
    aten.exp2.default: [((NUMBERS,), {})],
    aten.fmax.default: [((PAIRS[:, 0], PAIRS[:, 1]), {})],
    aten.fmin.default: [((PAIRS[:, 0], PAIRS[:, 1]), {})],
    aten.native_channel_shuffle.default: [((_random(2, 6, 3, 3), 3), {})],
    aten.rrelu_with_noise_functional.default: [((_random(3, 4), _random(3, 4), 0.1, 0.3), {})],
}


def _wrong(op: object) -> str:
    """How a decomposition differs from its operator."""
    for args, kwargs in SAMPLES.get(op, ()):
        want = _pytree.tree_leaves(op(*args, **kwargs))
        got = _pytree.tree_leaves(OWN[op](*args, **kwargs))
        for one, other in zip(want, got, strict=True):
            if (one.dtype, one.shape) != (other.dtype, other.shape):
                return f"{other.dtype} {tuple(other.shape)}"
            if op is aten.empty_permuted.default:  # of whatever content
                continue
            close = torch.allclose(one, other, rtol=1e-5, atol=1e-6, equal_nan=True)
            if not close:
                return f"{other.tolist()} instead of {one.tolist()}"
    return "" if op in SAMPLES else "no sample"


class Layers(torch.nn.Module):
    """A network with operators that have decompositions in PyTorch's tables."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(8, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Rows to rows."""
        return torch.sigmoid(self.linear(torch.nn.functional.silu(x)))


def _left(*missing: str) -> tuple[dict[str, int], set[str]]:
    """What is decomposed if these have no kernel; the operators of the result."""
    net, x = Layers().eval(), _random(3, 8)
    kept = EdgeCompileConfig(
        _check_ir_validity=False, preserve_ops=[aten.linear.default, aten.silu.default]
    )
    program = to_edge(export(net, (x,)), compile_config=kept).exported_program()
    every = {"linear", "silu", "sigmoid", "mul", "permute_copy", "addmm", "t_copy"}
    names = {f"aten::{base}.{o}" for base in every for o in ("out", "Tensor_out")}
    offered = Offered(names - {f"aten::{base}.out" for base in missing})
    found, done = without_leftovers(program, offered)
    assert torch.allclose(found.module()(x), net(x), atol=1e-6)
    assert (found is program) is not done
    targets = {
        node.target._schema.name
        for node in found.graph.nodes
        if isinstance(node.target, EdgeOpOverload)
    }
    return dict(done), targets


class Items(torch.nn.Module):
    """Operators without a kernel, on a batch."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Of the same sizes."""
        return torch.fmax(x, x * 2), torch.fmin(x, x * 2)


def _dynamic() -> str:
    """What is wrong with decompositions of tensors whose sizes change."""
    net, x = Items().eval(), _random(3, 5)
    shapes = ({0: Dim("batch", min=2, max=8)},)
    edge = to_edge(
        export(net, (x,), dynamic_shapes=shapes),
        compile_config=EdgeCompileConfig(_check_ir_validity=False),
    ).exported_program()
    bases = {"mul.out", "maximum.out", "minimum.out", "where.self_out", "isnan.out"}
    found, done = without_leftovers(edge, Offered({f"aten::{b}" for b in bases}))
    if dict(done) != {"aten::fmax": 1, "aten::fmin": 1}:
        return f"decomposed {dict(done)}"
    for rows in (3, 8):
        x = _random(rows, 5)
        for one, other in zip(net(x), found.module()(x), strict=True):
            if not torch.equal(one, other):
                return f"with {rows} rows"
    return ""


def main() -> None:
    """Check all of them."""
    torch.manual_seed(0)
    wrong = {str(op): _wrong(op) for op in OWN}
    done, targets = _left()
    ok = done == {} and targets == {"aten::linear", "aten::silu", "aten::sigmoid"}
    wrong["nothing is missing"] = "" if ok else f"{done} {targets}"
    done, targets = _left("linear")
    ok = done == {"aten::linear": 1} and {"aten::addmm", "aten::silu"} < targets
    wrong["linear is missing"] = "" if ok else f"{done} {targets}"
    done, targets = _left("linear", "addmm")
    ok = done == {} and "aten::linear" in targets
    wrong["what a decomposition needs is missing"] = "" if ok else f"{done} {targets}"
    wrong["dynamic"] = _dynamic()
    print(json.dumps(wrong))


if __name__ == "__main__":
    main()
