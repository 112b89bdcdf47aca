"""What ExecuTorch's lowering cannot take: worked around, or named. Needs PyTorch."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from itertools import chain
from typing import Any

import torch
from torch._ops import HigherOrderOperator
from torch.fx import GraphModule, Interpreter
from torch.fx.traceback import preserve_node_meta
from torch.utils import _pytree

from orchestrator.export.failure import ExportError, own_lines

_DTYPES = {bool: torch.bool, int: torch.int64, float: torch.float32}
# torch.ops.higher_order of PyTorch 2.13 that exir/emit/_emitter.py (ExecuTorch 1.5.1)
# has a case for.
_CONTROL = {"cond", "map", "map_impl", "scan"}
"""Operators with graphs of their own that ExecuTorch lowers."""
_LOOP = (
    "write a loop with a fixed number of steps, and torch.where for those behind the"
    " last one; or export one step, and let the caller repeat it"
)


def with_plain_outputs(module: Any, outputs: list[Any]) -> Any:
    """A module whose outputs programs can have; the same one if they can.

    ExecuTorch plans no memory where all outputs are numbers.

    Args:
        module: The module.
        outputs: What it gives for the example inputs, flat; changed along with it.

    Raises:
        ExportError: It gives something else than tensors, numbers and None.
    """
    kinds = [type(value) for value in outputs]
    for at, value in enumerate(outputs):
        if not isinstance(value, (torch.Tensor, *_DTYPES, type(None))):
            message = f"output {at} is {type(value).__name__}, no tensor or number"
            hint = "return its parts, or leave it out; constant_methods give texts"
            raise ExportError("cannot-lower", message, hint=hint)
    # ExecuTorch's emitter asserts that a method has an output that is a tensor; numbers
    # beside tensors are fine.
    if not outputs or not set(kinds) <= set(_DTYPES):
        return module
    outputs[:] = [
        torch.scalar_tensor(value, dtype=_DTYPES[kind])
        for value, kind in zip(outputs, kinds, strict=True)
    ]

    def forward(*args: Any) -> Any:
        leaves = _pytree.tree_leaves(called(module, *args))
        return tuple(
            torch.scalar_tensor(leaf, dtype=_DTYPES[kind])
            for leaf, kind in zip(leaves, kinds, strict=True)
        )

    plain = torch.nn.Module()
    # Not a wrapper: names of parameters would get a prefix, and calibrated state would
    # not be found.
    vars(plain).update(vars(module))  # the same parameters, by the same names
    plain.forward = forward
    return plain


def with_plain_containers(program: Any) -> None:
    """Let tuples stand for containers that programs cannot name, as of `torch.max`.

    Raises:
        ExportError: The program neither gives nor changes anything.
    """
    if not any(spec.arg.name for spec in program.graph_signature.output_specs):
        message = "the method gives nothing and changes no buffer"
        hint = "return a tensor or a number"
        raise ExportError("cannot-lower", message, hint=hint)
    signature = program.module_call_graph[0].signature
    for name in ("in_spec", "out_spec"):
        spec = getattr(signature, name)
        try:
            # ExecuTorch writes the containers of inputs and outputs into a program as
            # text; a named tuple of torch.return_types has no name that can be written.
            _pytree.treespec_dumps(spec)
        except (NotImplementedError, TypeError):  # no name, or one with objects
            flat = tuple(range(spec.num_leaves))
            plain: Any = (flat, {}) if name == "in_spec" else flat
            setattr(signature, name, _pytree.tree_structure(plain))


def called(module: Any, *args: Any) -> Any:
    """What a part of a module gives, while PyTorch exports the whole."""
    if not isinstance(module, GraphModule):
        return module(*args)
    # What nodes know is handed on, such as that they are quantized.
    # torch.fx.traceback drops metadata of nodes while a graph is run by torch.export:
    # marks of the quantizer among them.
    with preserve_node_meta():
        return Interpreter(module).run(*args)


@contextmanager
def named_operators(captured: Collection[Any], offered: Collection[str]) -> Iterator[None]:
    """Name the calls that ExecuTorch cannot lower, in place of its own errors.

    Args:
        captured: Exported programs; the block lowers them.
        offered: Operators that have a kernel.

    Raises:
        ExportError: The program has a loop, or calls with side effects.
    """
    for node in chain.from_iterable(nodes_of(p.graph_module) for p in captured):
        name = str(getattr(node.target, "_name", ""))
        if isinstance(node.target, HigherOrderOperator) and name not in _CONTROL:
            hint = _LOOP if name == "while_loop" else "write the model without it"
            raise _refused(f"ExecuTorch cannot lower {name}", node, hint)
    try:
        yield
    except AttributeError as error:
        # PyTorch's with_effects is an object of that class: it lacks attributes of an
        # operator that exir reads.
        if "WithEffects" not in str(error):
            raise
        for program in captured:
            nodes = {node.name: node for node in program.graph.nodes}
            for node in nodes_of(program.run_decompositions().graph_module):
                if str(node.target) == "with_effects":
                    origin = origin_of(node, nodes) or node
                    raise _effect(origin, node.args[1], offered) from error
        raise


def _effect(called: Any, effect: Any, offered: Collection[str]) -> ExportError:
    name = effect._schema.name  # noqa: SLF001  # its only name
    own = str(getattr(called.target, "_opname", ""))
    hint = "write the model without it"
    if any(one.startswith(f"aten::{own}_ex.") for one in offered):
        unchecked = f"torch.{own.replace('_', '.', 1)}_ex"
        hint = f"write {unchecked}(...), which does not check its input"
    what = f"aten::{own}" if own else name
    return _refused(
        f"ExecuTorch cannot lower {what}, which has side effects ({name})", called, hint
    )


def _refused(message: str, node: Any, hint: str) -> ExportError:
    lines = own_lines(node.meta.get("stack_trace") or "")
    notes = tuple(("at", line) for line in lines)
    return ExportError("cannot-lower", message, notes=notes, hint=hint)


def nodes_of(graph: Any) -> Iterator[Any]:
    """Nodes of a graph module, and of those in it."""
    for part in graph.modules():
        if isinstance(part, GraphModule):
            yield from part.graph.nodes


def origin_of(node: Any, nodes: Mapping[str, Any]) -> Any:
    """The call of an earlier graph that a node comes from; None if unknown.

    Args:
        node: A node of a later graph.
        nodes: Those of the earlier one, by name.
    """
    sources = list(node.meta.get("from_node") or ())
    while sources and sources[-1].name not in nodes:
        sources = list(sources[-1].from_node)
    return nodes[sources[-1].name] if sources else None
