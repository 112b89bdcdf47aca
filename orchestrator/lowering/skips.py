"""Skip replays that would change nothing.

A replay makes a new graph. It equals the old one if that has the form that replays give
and the pass changes no node: nodes, their order, names, arguments and metadata are
unchanged since an earlier replay, and so are the values that they were computed from.
Then the pass is skipped, and the old graph stays.

Nothing else may refer to that graph: it was made in the same run of a pass manager, or
of one of the functions below, which keep a graph to themselves until they end.

Source: ExecuTorch 1.5 `exir/pass_base.py`, `_ExportPassBase.call_submodule`.
"""

from __future__ import annotations

import operator
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Any, Final

from torch._subclasses.fake_tensor import FakeTensor
from torch.fx.passes.infra.pass_base import PassResult

from orchestrator.lowering.bases import BASES, INTERPRETERS, TRACERS
from orchestrator.lowering.copies import Copies, Stamps, traced_meta
from orchestrator.lowering.mechanisms import Mechanism
from orchestrator.lowering.passes import advance
from orchestrator.lowering.patches import Patches
from orchestrator.lowering.targets import Targets

if TYPE_CHECKING:
    from orchestrator.lowering.passes import Passes

_WHY: Final = {
    Mechanism.SHOULD_RUN: "the graph has no operator that it changes",
    Mechanism.NO_OP: "the graph has not changed since a replay",
}


class Skips:
    """Skips replays.

    Args:
        passes: Know the run of a pass manager, and record what is skipped.
        copies: Know how values were computed.
        mechanisms: `SHOULD_RUN` for passes that look at operators, `NO_OP` for those
            that only replay.
    """

    def __init__(self, passes: Passes, copies: Copies, mechanisms: AbstractSet[Mechanism]) -> None:
        self._passes, self._copies = passes, copies
        self._mechanisms = mechanisms

    def install(self, patches: Patches) -> None:
        """Skip replays until the patches are reverted."""
        for base in BASES:
            self._install(base, patches)

    def _install(self, base: Any, patches: Patches) -> None:
        skips, original = self, base.call_submodule

        def call_submodule(self: Any, graph_module: Any, inputs: Any) -> PassResult:
            run = skips._passes.now
            why = skips._why(base, self, graph_module, inputs)
            if why is not None:
                run.skipped = why
                skips._passes.skipped += 1
                return PassResult(graph_module, modified=True)
            result: PassResult = original(self, graph_module, inputs)
            skips._finish(result.graph_module.graph)
            return result

        patches.replace(base, "call_submodule", call_submodule)

    def _finish(self, graph: Any) -> None:
        """Note the form of a graph that a replay made."""
        stamps = self._copies.stamps_of(graph)
        stamps.names = [(node, node.name) for node in graph.nodes]
        stamps.run = self._passes.manager_run
        output = stamps.names[-1][0]
        if output.op == "output" and "val" in output.meta:
            self._copies.stamp(output, self._copies.memo.context())

    def _why(self, base: Any, own: Any, graph_module: Any, inputs: Any) -> str | None:
        """Why a replay would change nothing; None if it may."""
        looks = type(own).call_operator is not base.call_operator
        kind = Mechanism.SHOULD_RUN if looks else Mechanism.NO_OP
        stamps = self._copies.stamps_of(graph_module.graph)
        if kind not in self._mechanisms or not self._is_ours(stamps):
            return None
        replays = (
            own.ExportTracer in TRACERS
            and own.ExportInterpreter in INTERPRETERS
            and type(own)._fx is base._fx
            and Targets.inherits(own, "output")
        )
        if not replays or _has_state(graph_module):
            return None
        targets = Targets(own, self._copies.guards)
        if not self._is_fixed(targets, graph_module.graph, stamps, inputs):
            return None
        return _WHY[kind]

    def _is_ours(self, stamps: Stamps) -> bool:
        """Whether a graph was made in this run, and has not left it."""
        return stamps.run is not None and stamps.run is self._passes.manager_run

    def _is_fixed(self, targets: Targets, graph: Any, stamps: Stamps, inputs: Any) -> bool:
        """Whether a replay gives the same graph again."""
        values, context = iter(inputs), self._copies.memo.context()
        named, nodes = stamps.names, list(graph.nodes)
        if len(named) != len(nodes):
            return False
        for node, (known, name) in zip(nodes, named, strict=True):
            if node is not known or node.name != name:
                return False
            if node.op == "placeholder":
                fixed = targets.placeholders and _keeps(node, next(values, None))
            else:
                stamp = stamps.get(node)
                fixed = (
                    stamp is not None
                    and "val" in node.meta
                    and stamp.holds(node, _values(node), context)
                    and self._is_left(targets, node)
                    and self._is_ordered(node, graph)
                )
            if not fixed:
                return False
        advance(sum(stamps[node].numbers for node in nodes if node in stamps))
        return True

    def _is_left(self, targets: Targets, node: Any) -> bool:
        if node.op == "output":
            return True
        if node.target is operator.getitem:
            return targets.items
        return targets.leaves(node)

    def _is_ordered(self, node: Any, graph: Any) -> bool:
        """Whether metadata is in the order in which a replay writes it."""
        keeps = False
        if node.op == "call_function" and node.target is not operator.getitem:
            _, keeps = self._copies.name_of(node.target, graph)
        made = traced_meta(node.meta, keeps=keeps)
        if made is None or "tensor_meta" not in made:
            return False
        if node.op == "output" and "stack_trace" in made:
            return False
        plain = type(made["val"]) is FakeTensor
        return list(made) == list(node.meta) and (not plain or made["tensor_meta"] is None)


def _values(node: Any) -> tuple[Any, ...]:
    return tuple(source.meta.get("val") for source in node._input_nodes)


def _keeps(node: Any, value: Any) -> bool:
    """Whether a placeholder has the value that it is given, and nothing else is set."""
    meta = node.meta
    return (
        type(value) is FakeTensor
        and meta.get("val") is value
        and not node._args
        and not str(node.target).startswith("*")
        and meta.get("tensor_meta") is None
    )


def _has_state(graph_module: Any) -> bool:
    """Whether a module has more than its graph."""
    return bool(graph_module._modules or graph_module._parameters or graph_module._buffers)
