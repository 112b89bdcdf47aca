"""The buffers that a model changes, through scales and lowering. Needs PyTorch.

What one method changes is state of all of them. PyTorch and ExecuTorch look at one
method: where it only reads a buffer, that is a constant, which quantization and
lowering fold into weights and delegates. Quantization also takes the value before a
change in place for that after it. So scales are chosen for graphs without side effects
that get the state and give the new one; and where a method only reads a buffer, a mark
that is gone after lowering says that it changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import torch
from torch.func import functional_call

from orchestrator.export.failure import ExportError
from orchestrator.export.unsupported import called
from orchestrator.export.weights import changed_nodes

if TYPE_CHECKING:
    from orchestrator.export.source import Source

_aten: Final = torch.ops.aten
_OF_SCALARS: Final = {_aten.add.Tensor: _aten.add.Scalar, _aten.mul.Tensor: _aten.mul.Scalar}
"""Quantizers make floats of what these add to integers, such as a position."""


class _Explicit(torch.nn.Module):  # type: ignore[misc]  # PyTorch's is Any
    """A method that gets its state, and gives what it changes of it."""

    def __init__(self, module: Any, changed: Iterable[str]) -> None:
        super().__init__()
        self.module = module
        self._changed = sorted(changed)
        self._names = first_names(module)

    def forward(self, state: dict[str, Any], *args: Any) -> Any:
        """Run the method."""
        # functional_call would change the caller's tensors, of which calibration needs
        # the old ones.
        state = {name: value.clone() for name, value in state.items()}
        state |= {o: state[n] for o, n in self._names.items() if n in state}
        # Buffers that the method assigns come back in `state`, unless it unties them.
        found = functional_call(self.module, state, args, tie_weights=False)
        return found, {name: state[name] for name in self._changed}


class WithState(torch.nn.Module):  # type: ignore[misc]  # PyTorch's is Any
    """A graph of `with_explicit_state`, with the state as buffers again.

    Args:
        graph: Quantized or not.
        state: Initial values by name, the same tensors for all methods.
    """

    def __init__(self, graph: Any, state: Mapping[str, Any]) -> None:
        super().__init__()
        self.quantized = graph
        self._names = {name: f"state{at}" for at, name in enumerate(state)}
        for name, value in state.items():
            self.register_buffer(self._names[name], value)

    def forward(self, *args: Any) -> Any:
        """Run the method."""
        state = {name: getattr(self, own) for name, own in self._names.items()}
        found, changed = called(self.quantized, state, *args)
        for name, value in changed.items():
            state[name].copy_(value)
        return found


def first_names(module: Any) -> dict[str, str]:
    """Each name of a buffer, and the first of those that the same buffer has."""
    names = {id(buffer): name for name, buffer in module.named_buffers()}
    buffers = module.named_buffers(remove_duplicate=False)
    return {name: names[id(buffer)] for name, buffer in buffers}


def with_first_names(program: Any) -> Any:
    """An exported program that calls each buffer by the first of its names.

    ExecuTorch's lowering takes no buffer that has several and changes.

    Raises:
        ExportError: A buffer that changes shares its memory with another one.
    """
    values: dict[Any, Any] = {**program.state_dict, **program.constants}
    specs = program.graph_signature.input_specs
    nodes = program.graph.find_nodes(op="placeholder")
    changed = changed_nodes(program)
    first: dict[int, tuple[Any, str]] = {}
    for node, spec in list(zip(nodes, specs, strict=True)):
        if spec.kind.name != "BUFFER" or not values[spec.target].numel():
            continue
        value = values[spec.target]
        # By memory, not by identity: views of one buffer are two tensors, and one of
        # them may change the other.
        memory = value.untyped_storage().data_ptr()
        own, name = first.setdefault(memory, (node, spec.target))
        if own is node:
            continue
        if value is values[name]:
            node.replace_all_uses_with(own)
            program.graph.erase_node(node)
            specs.remove(spec)
        elif {own, node} & changed:
            raise ExportError(
                "cannot-export",
                f'buffers "{name}" and "{spec.target}" share memory that changes',
                hint="make one of them a clone(), or write it as a view of the other in the method",
            )
    program.graph_module.recompile()
    return program


def state_of(graph: Any) -> set[str]:
    """Buffers that a captured graph changes."""
    return {str(n.target) for n in changed_nodes(graph) if n.op == "get_attr"}


def with_explicit_state(method: Source, changed: Iterable[str], state: Mapping[str, Any]) -> Source:
    """The method as one that takes state as its first argument.

    Args:
        method: To wrap.
        changed: The part of the state that it changes.
        state: Initial values.
    """
    shapes = method.dynamic_shapes
    return replace(
        method,
        module=_Explicit(method.module, changed),
        inputs=(dict(state), *method.inputs),
        dynamic_shapes=shapes and (dict.fromkeys(state), *shapes),
    )


def without_side_effects(program: Any) -> Any:
    """The graph of such a method, with the operators that quantizers know."""
    # torch.export functionalizes here: copy_ and other changes in place become values.
    graph = program.run_decompositions({}).module(check_guards=False)
    for node in list(graph.graph.nodes):
        if node.target is _aten.clone.default and node.args[0].op == "placeholder":
            node.replace_all_uses_with(node.args[0])  # nothing changes in place now
            graph.graph.erase_node(node)
        if (
            node.target in _OF_SCALARS
            and isinstance(node.args[1], int)
            and not node.meta["val"].is_floating_point()
        ):
            node.target = _OF_SCALARS[node.target]
        # What run_decompositions gives; the other form is the one that quantizers know.
        if node.target is _aten._native_batch_norm_legit_no_training.default:  # noqa: SLF001
            *given, momentum, epsilon = node.args
            node.target = _aten.batch_norm.default
            node.args = (*given, False, momentum, epsilon, False)
            for item in list(node.users):
                item.replace_all_uses_with(node)
                graph.graph.erase_node(item)
            node.meta["val"] = node.meta["val"][0]
    graph.recompile()
    return graph


def _mark(buffer: torch.Tensor) -> torch.Tensor:
    return buffer.clone()


# An operator that no pass knows, so none folds or removes it.
torch.library.custom_op("orchestrator::mark", _mark, mutates_args=()).register_fake(_mark)


def mark_state(programs: Mapping[str, Any]) -> dict[str, set[str]]:
    """Let methods change what only others change, to the same value.

    Args:
        programs: Captured methods of one model, changed in place.

    Returns:
        Buffers that each method seems to change.
    """
    buffers = {
        name: {
            program.graph_signature.inputs_to_buffers.get(node.name): node
            for node in program.graph.find_nodes(op="placeholder")
        }
        for name, program in programs.items()
    }
    changed = {
        name: {b for b, n in buffers[name].items() if b and n in changed_nodes(program)}
        for name, program in programs.items()
    }
    state = set().union(*changed.values())
    marked = {name: state - changed[name] for name in programs}
    for name, program in programs.items():
        graph = program.graph
        for buffer in sorted(marked[name]):
            node = buffers[name][buffer]
            with graph.inserting_before(graph.output_node()):
                mark = graph.call_function(torch.ops.orchestrator.mark.default, (node,))
                # Written as exporters write a change: ExecuTorch then takes the buffer
                # for state in each of its passes.
                copied = graph.call_function(_aten.copy_.default, (node, mark))
            mark.meta, copied.meta = ({"val": node.meta["val"]} for _ in range(2))
        program.graph_module.recompile()
    return marked


def without_marks(program: Any, marked: Iterable[str]) -> None:
    """Remove the marks of a lowered method."""
    graph, specs = program.graph, program.graph_signature.output_specs
    output = graph.output_node()
    kept = [
        (node, spec)
        for node, spec in zip(output.args[0], specs, strict=True)
        if spec.kind.name != "BUFFER_MUTATION" or spec.target not in marked
    ]
    output.args = (tuple(node for node, _ in kept),)
    specs[:] = [spec for _, spec in kept]
    for node in list(graph.nodes):  # of a method that gives the buffer itself
        if getattr(node.target, "_op", None) is torch.ops.orchestrator.mark.default:
            node.replace_all_uses_with(node.args[0])
    graph.eliminate_dead_code()
    program.graph_module.recompile()
