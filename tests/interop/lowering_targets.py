"""Whether passes hand on the nodes that are said to be none of their business.

Every node that a pass is shown is compared with what the pass gives to the base class:
a node that is said to be left has to arrive as it was, once.
"""

# mypy: ignore-errors
# PyTorch is not there when the project is checked.

from __future__ import annotations

from collections import Counter

import torch
from executorch.backends.arm._passes.arm_pass import ArmPass
from executorch.backends.arm._passes.decompose_grouped_conv_pass import DecomposeGroupedConvPass
from executorch.backends.arm._passes.decompose_tosa_unsupported_clamp_pass import (
    DecomposeTOSAUnsupportedClampPass,
)
from executorch.exir import to_edge
from executorch.exir.dialects.edge._ops import EdgeOpOverload
from executorch.exir.passes.memory_format_ops_pass import MemoryFormatOpsPass
from executorch.exir.passes.normalize_transpose_pass import NormalizeTransposePass
from executorch.exir.passes.remove_mixed_type_operators import RemoveMixedTypeOperators
from executorch.exir.passes.replace_aten_with_edge_pass import OpReplacePass
from executorch.exir.passes.replace_broken_ops_with_function_ops_pass import (
    ReplaceBrokenOpsWithFunctionalOpsPass,
)
from executorch.exir.passes.scalar_to_tensor_pass import ScalarToTensorPass
from executorch.exir.passes.sym_to_tensor_pass import SymToTensorPass
from torch._ops import OpOverload
from torch.export import Dim, export

from orchestrator.lowering.bases import BASES
from orchestrator.lowering.passes import classes_of
from orchestrator.lowering.patches import Patches
from orchestrator.lowering.registry import BY_NODE, BY_OPERATOR
from orchestrator.lowering.targets import Targets, guard_of
from tests.interop.lowering_nets import lowering


class Seen:
    """What passes were shown and gave on."""

    def __init__(self) -> None:
        self.wrong: list[str] = []
        self.left: Counter[str] = Counter()
        self.shown: Counter[str] = Counter()
        self._given: list[tuple] = []
        self._guards: dict = {}

    def watch(self, patches: Patches) -> None:
        """Watch all replays."""
        for base in BASES:
            self._watch(base, patches)

    def _watch(self, base: type, patches: Patches) -> None:
        seen, call, run = self, base.call_operator, base.ExportInterpreter.run_node

        def call_operator(self, op, args, kwargs, meta):  # noqa: ANN001, ANN202
            seen._given.append((op, args, kwargs, dict(meta.data)))
            return call(self, op, args, kwargs, meta)

        def run_node(self, n):  # noqa: ANN001, ANN202
            operator = isinstance(n.target, (OpOverload, EdgeOpOverload))
            if n.op != "call_function" or not operator:
                return run(self, n)
            left = Targets(self.callback, seen._guards).leaves(n)
            args, kwargs = self.fetch_args_kwargs_from_env(n)
            expected = (n.target, args, kwargs, dict(n.meta))
            seen._given.clear()
            result = run(self, n)
            seen._note(type(self.callback), n, expected, left=left)
            return result

        patches.replace(base.ExportInterpreter, "run_node", run_node)
        patches.replace(base, "call_operator", call_operator)

    def _note(self, kind: type, node: object, expected: tuple, *, left: bool) -> None:
        names = {f"{c.__module__}.{c.__qualname__}" for c in kind.__mro__}
        (self.left if left else self.shown).update(names)
        if left and self._given != [expected]:
            self.wrong.append(f"{kind.__name__}: {node.format_node()}")


class _Plain(ArmPass):
    _passes_required_after = frozenset()


def _graph(function: object, *inputs: torch.Tensor, edge: bool, **words: object):  # noqa: ANN202
    class Net(torch.nn.Module):
        def forward(self, *args: torch.Tensor) -> torch.Tensor:
            return function(*args)

    program = export(Net(), inputs, **words)
    if edge:
        program = to_edge(program).exported_program()
    return program.graph_module


def _show() -> None:
    """Let passes see what they change."""
    x, i = torch.ones(2, 2), torch.ones(2, 2, dtype=torch.int32)
    aten = {
        NormalizeTransposePass: lambda y: torch.ops.aten.t.default(y) + 1,
        ReplaceBrokenOpsWithFunctionalOpsPass: lambda y: y.permute(1, 0) + 1,
        ScalarToTensorPass: lambda y: torch.abs(torch.ops.aten.mul.Tensor(y, 2.0)),
    }
    for kind, function in aten.items():
        kind()(_graph(function, x, edge=False))
    mixed = _graph(lambda a, b: torch.relu(a + b), x, i, edge=False)
    RemoveMixedTypeOperators()(mixed)
    sizes = {"dynamic_shapes": (({0: Dim("n", min=2, max=9)},),)}
    rows = torch.ones(3, 2)
    scaled = _graph(
        lambda y: torch.relu(torch.ops.aten.mul.Tensor(y, y.shape[0])), rows, edge=False, **sizes
    )
    SymToTensorPass()(scaled)
    OpReplacePass()(scaled)
    batch = torch.ones(1, 2, 2)
    edge = {
        _Plain: (lambda y: torch.relu(torch.bmm(y, y)), batch),
        DecomposeTOSAUnsupportedClampPass: (lambda y: torch.abs(y.clamp(0, 3)), i),
        DecomposeGroupedConvPass: (
            lambda y: torch.relu(torch.nn.functional.conv2d(y, y, groups=1)),
            torch.ones(1, 1, 2, 2),
        ),
    }
    for kind, (function, given) in edge.items():
        kind()(_graph(function, given, edge=True))
    MemoryFormatOpsPass()(_graph(lambda y: torch.relu(y.clone()), x, edge=True))


def watched() -> dict:
    """Watch passes while networks are lowered.

    Returns:
        What was wrong, described classes no node of which was left or shown, and how
        many passes say themselves what they leave.
    """
    seen, patches = Seen(), Patches()
    lower = [lowering("cortex-m"), lowering("ethos-u")]
    seen.watch(patches)
    try:
        for run in lower:
            run()
        _show()
    finally:
        patches.restore()
    described = {*BY_OPERATOR, *BY_NODE}
    methods = [vars(c).get("call_operator") for c in classes_of(BASES[0])]
    return {
        "wrong": seen.wrong,
        "never left": sorted(described - set(seen.left)),
        "never shown": sorted(described - set(seen.shown)),
        "guarded": sum(m is not None and guard_of(m) is not None for m in methods),
    }
