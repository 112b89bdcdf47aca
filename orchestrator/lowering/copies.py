"""Copy nodes that a pass does not change.

A pass replays every node of a graph: it shows it to the pass, dispatches its operator
under fake tensors and traces it into a new graph. A node is copied instead if

- the pass passes it on unchanged (`orchestrator.lowering.targets`),
- it has a `val`, and
- its operator, arguments, and the metadata of its inputs are those that its `val` came
  of: it was replayed before and nothing of it was exchanged since, or the memo knows
  the result.

The copy has the name and the metadata that tracing gives, in the same order.

Source: PyTorch 2.13 `torch/fx/proxy.py`, `TracerBase.create_node`; `torch/fx/graph.py`,
`Graph.create_node`; `torch/fx/experimental/proxy_tensor.py`, `PythonKeyTracer`.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakSet

from executorch.exir.dialects.edge._ops import EdgeOpOverload
from torch._ops import OpOverload
from torch._subclasses.fake_tensor import FakeTensor
from torch.fx import Graph, Interpreter, Node
from torch.fx import traceback as fx_traceback
from torch.fx.experimental.proxy_tensor import _should_save_eager_input_vals
from torch.fx.node import map_arg
from torch.fx.proxy import _COPY_META_FIELDS

from orchestrator.lowering.bases import BASES, INTERPRETERS, PROXIES, TRACERS
from orchestrator.lowering.passes import advance
from orchestrator.lowering.patches import Patches
from orchestrator.lowering.targets import Targets

if TYPE_CHECKING:
    from orchestrator.lowering.memo import Memo
    from orchestrator.lowering.passes import Passes

# Kept in the dict of a graph, as an attribute of its own: torch.fx copies and pickles
# graphs, and `Stamps.__reduce__` gives the copy an empty one.
_STAMPS: Final = "_orchestrator_stamps"
_STATE: Final = "_orchestrator_copying"
# See TracerBase.create_node in torch/fx/proxy.py: with these, seq_nr and the stack
# trace come from elsewhere.
_OTHER_TRACES: Final = ("in_grad_fn", "autograd_backward")
"""Keys of metadata that make the tracer write others."""


@dataclass(slots=True)
class Stamp:
    """What the value of a node was computed from.

    Args:
        target: Its operator.
        args: Its arguments, nodes and plain values; never changed in place.
        kwargs: The same by name.
        val: Its value.
        inputs: Values of the nodes among its arguments.
        context: Modes that results depend on.
        numbers: How many numbers dispatching takes (`orchestrator.lowering.passes`).
    """

    target: Any
    args: Any
    kwargs: Any
    val: Any
    inputs: tuple[Any, ...]
    context: Any
    numbers: int = 0

    def holds(self, node: Any, inputs: tuple[Any, ...], context: Any) -> bool:
        """Whether a node is still the one that was stamped."""
        return (
            node.target is self.target
            # By identity: torch.fx makes new tuples for every change of arguments, and
            # comparing their content would take as long as the copy saves.
            and node._args is self.args
            and node._kwargs is self.kwargs
            and node.meta["val"] is self.val
            # Gradients and Arm's TOSA specification: a memo without them left the final
            # bytes equal, but numbered nodes differently (docs/lowering.md).
            and context == self.context
            and all(map(operator.is_, inputs, self.inputs))
        )


class Stamps(dict[Any, Stamp]):
    """Stamps of a graph's nodes; not copied or pickled with it."""

    def __reduce__(self) -> Any:
        return Stamps, ()


class Copies:
    """Copies nodes where it can.

    Args:
        passes: Count what is copied.
        memo: Knows which results depend on metadata alone, and results.
    """

    def __init__(self, passes: Passes, memo: Memo) -> None:
        self.passes = passes
        self.memo = memo
        # Found once for each method of a pass, not in each replay.
        self.guards: dict[Any, Any] = {}
        self.names: dict[int, tuple[Any, str, bool]] = {}
        # Weak, as passes drop most graphs at once.
        self._graphs: WeakSet[Graph] = WeakSet()

    def install(self, patches: Patches) -> None:
        """Stamp and copy nodes until the patches are reverted."""
        patches.afterwards(self._forget)
        for base in BASES:
            self._install(base, patches)

    def _install(self, base: Any, patches: Patches) -> None:
        copies, interpreter = self, base.ExportInterpreter
        original = interpreter.run_node

        def run_node(self: Any, n: Node) -> Any:
            state = vars(self).get(_STATE)
            if state is None:
                state = vars(self)[_STATE] = _Replay(copies, base, self)
            # None is no value that a node can have here: results are proxies.
            made = state.copy(n) if state.possible else None
            return original(self, n) if made is None else made

        patches.replace(interpreter, "run_node", run_node)

    def stamps_of(self, graph: Graph) -> Stamps:
        """Stamps of a graph, which the caller may add to."""
        found: Stamps | None = vars(graph).get(_STAMPS)
        if found is None:
            found = vars(graph)[_STAMPS] = Stamps()
            self._graphs.add(graph)
        return found

    def stamp(self, node: Node, context: Any, numbers: int = 0) -> None:
        """Record what the value of a node was computed from.

        Args:
            node: It was just dispatched, or its result remembered.
            context: Modes of that.
            numbers: How many dispatching takes.
        """
        self.stamps_of(node.graph)[node] = Stamp(
            node.target,
            *(node._args, node._kwargs, node.meta["val"]),
            tuple(i.meta.get("val") for i in node._input_nodes),
            *(context, numbers),
        )

    def _forget(self) -> None:
        """Remove the stamps of all graphs."""
        for graph in self._graphs:
            vars(graph).pop(_STAMPS, None)

    def name_of(self, target: Any, graph: Graph) -> tuple[str, bool]:
        """What nodes of an operator are called; whether values of inputs are kept."""
        found = self.names.get(id(target))
        if found is None:
            # As `_fx` of exir/pass_base.py names nodes: an OpOverload by its packet, an
            # edge operator by its own text.
            named = target.overloadpacket.__name__ if _is_plain(target) else target
            keeps = _should_save_eager_input_vals(target, ((), {}))
            name = graph._target_to_str(named)
            found = self.names[id(target)] = (target, name, keeps)
        return found[1:]


def _is_plain(target: Any) -> bool:
    return isinstance(target, OpOverload)


class _Replay:
    """One replay of a graph."""

    def __init__(self, copies: Copies, base: Any, interpreter: Any) -> None:
        own = interpreter.callback
        self._copies, self._interpreter = copies, interpreter
        self._proxy, self._tracer = PROXIES[base], own.tracer
        self._old = copies.stamps_of(interpreter.module.graph)
        self._new = copies.stamps_of(self._tracer.graph)
        self._targets = Targets(own, copies.guards)
        # PyTorch's base sets metadata of placeholders by the tracer, ExecuTorch's by
        # hand.
        self._sets_values = base is BASES[1]
        self.possible = (
            # Exact types: a subclass may do more than replay.
            type(interpreter) in INTERPRETERS
            and type(self._tracer) in TRACERS
            and type(own)._fx is base._fx
            # A tracer that records stacks writes where in Python a node was made, which
            # a copy does not know.
            and not self._tracer.record_stack_traces
        )
        """Whether the pass replays like its base class."""

    def copy(self, node: Node) -> Any:
        """The copy of a node; None if it has to be replayed."""
        # A graph replayed inside of another one (branches of cond) takes metadata from
        # the outer node.
        if "val" not in node.meta or fx_traceback.current_replay_node is not None:
            return None
        if node.op == "placeholder":
            return self._placeholder(node)
        if node.target is operator.getitem:
            return self._item(node)
        if isinstance(node.target, _OPERATORS) and self._targets.leaves(node):
            return self._call(node)
        return None

    def _call(self, node: Node) -> Any:
        """A copied call of an operator; None unless its value is known."""
        values = self._values(node)
        if values is None:
            return None
        context = self._copies.memo.context()
        stamp = self._old.get(node)
        run = self._copies.passes.now
        if stamp is not None and stamp.holds(node, values, context):
            made = self._make(node, values, context, stamp.numbers)
            run.copied += made is not None
            return made
        numbers = self._copies.memo.knows(node, self._interpreter)
        if numbers is None:
            return None
        made = self._make(node, values, context, numbers)
        run.remembered += made is not None
        return made

    def _values(self, node: Node) -> tuple[Any, ...] | None:
        """Values of a node's inputs; None if one has no value."""
        env, found = self._interpreter.env, []
        for source in node._input_nodes:
            value = env.get(source)
            # Numbers and symbols are passed as they are: their operators run in Python,
            # and cost nothing.
            if type(value) is not self._proxy:
                return None
            found.append(value.data)
        return tuple(found)

    def _make(self, node: Node, values: tuple[Any, ...], context: Any, numbers: int) -> Any:
        name, keeps = self._copies.name_of(node.target, self._tracer.graph)
        meta = traced_meta(node.meta, keeps=keeps)
        if meta is None:
            return None
        # Dispatching would have counted PyTorch's sequence number on, by which later
        # nodes are numbered.
        advance(numbers)
        made = self._append(node, name)
        made.meta = meta
        val = meta["val"]
        if type(val) is FakeTensor:
            # As `set_metadata` of exir's tracer leaves it for a fake tensor.
            meta["tensor_meta"] = None
        else:
            self._tracer.set_metadata(made, val)
        self._new[made] = Stamp(
            *(made.target, made._args, made._kwargs, meta["val"], values, context), numbers
        )
        return self._proxy(val, self._tracer.proxy(made))

    def _append(self, node: Node, candidate: str) -> Node:
        """A copy of a node in the new graph, made as `Graph.create_node` does."""
        graph, env = self._tracer.graph, self._interpreter.env
        # Names decide the order of arguments in some passes: the copy must have the
        # very name that tracing gives.
        name = graph._graph_namespace.create_name(candidate, None)
        args = map_arg(node._args, lambda source: env[source].node)
        kwargs = map_arg(node._kwargs, lambda source: env[source].node)
        made = Node(graph, name, node.op, node.target, args, kwargs, None)
        graph._graph_namespace.associate_name_with_obj(name, made)
        graph._insert(made)
        # `Graph.create_node` of PyTorch 2.13 in its own steps, without its checks of
        # arguments and callbacks; a new version has to be compared line by line.
        graph._find_nodes_lookup_table.insert(made)
        graph._len += 1
        return made

    def _item(self, node: Node) -> Any:
        """A copied item of a tuple that is already computed."""
        values = self._values(node) if self._targets.items else None
        if values is None or node._kwargs or type(values[0]) is not tuple:
            return None
        number = node._args[-1]
        # A symbol or a subclass has metadata that only tracing makes.
        if type(number) is not int or type(values[0][number]) is not FakeTensor:
            return None
        meta = traced_meta(node.meta, keeps=False)
        if meta is None:
            return None
        made = self._append(node, "getitem")
        made.meta = meta
        val = meta["val"] = values[0][number]
        meta["tensor_meta"] = None
        context = self._copies.memo.context()
        self._new[made] = Stamp(*(made.target, made._args, made._kwargs, val, values, context))
        self._copies.passes.now.copied += 1
        return self._proxy(val, self._tracer.proxy(made))

    def _placeholder(self, node: Node) -> Any:
        """A copied input, with its value in the pass."""
        target = str(node.target)
        if not self._targets.placeholders or node._args or target.startswith("*"):
            return None
        # Takes the next of the replay's arguments, as running the node would.
        value = Interpreter.placeholder(self._interpreter, target, (), {})
        made = self._append(node, self._tracer.graph._target_to_str(target))
        made.meta = dict(node.meta)
        if self._sets_values:
            self._tracer.set_metadata(made, value)
        else:
            made.meta["val"] = value
        self._copies.passes.now.copied += 1
        return self._proxy(value, self._tracer.proxy(made))


_OPERATORS: Final = (OpOverload, EdgeOpOverload)


def traced_meta(meta: dict[str, Any], *, keeps: bool) -> dict[str, Any] | None:
    """Metadata of a traced node: what the tracer writes comes first.

    Args:
        meta: Of the node that is traced.
        keeps: Whether the tracer writes the values of a node's inputs.

    Returns:
        None if the tracer would write something that the node does not have.
    """
    if "from_node" not in meta or "seq_nr" not in meta:
        return None
    if any(key in meta for key in _OTHER_TRACES):
        return None
    made: dict[str, Any] = {}
    trace = meta.get("stack_trace")
    # The order of keys matters: passes copy metadata, and recordings compare it as
    # text.
    if trace:
        if fx_traceback.GRADIENT_ACC_SPECIAL_STACK in trace:
            return None
        made["stack_trace"] = trace
    # torch/fx/proxy.py: what the tracer copies from the node that it replays.
    for key in _COPY_META_FIELDS:
        if key in meta:
            made[key] = meta[key]
    made["seq_nr"] = meta["seq_nr"]
    if keeps:
        if "eager_input_vals" not in meta:
            return None
        made["eager_input_vals"] = meta["eager_input_vals"]
    made.update(meta)
    return made
