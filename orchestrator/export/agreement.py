"""Whether a lowered program computes what its model computes. Needs PyTorch.

Both run in Python on the example inputs: the model in PyTorch, the lowered graph in an
interpreter, with what operators and delegates have in Python.
"""

from __future__ import annotations

import copy
import math
from typing import TYPE_CHECKING, Any, Final

import torch
from torch._ops import OpOverload
from torch.fx import Interpreter
from torch.utils import _pytree

from orchestrator.export.failure import ExportError, own_lines
from orchestrator.export.unsupported import origin_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch.fx.node import Node

_SAME: Final = 1e-3
"""Another order of the same sums, as a part of the largest result."""
_ROUGH: Final = 0.05
"""The bound in half precision, or behind numbers of 8 bits."""
_STEPS: Final = 8
"""Quantized networks of the zoo are at most 7 steps from PyTorch (docs/export.md)."""
_ALIKE: Final = 0.5
"""A part of what the outputs spread; what is unrelated is 1.4 times that apart."""
_FEW: Final = 0.05
"""Items on the other side of a step, such as that of `floor`."""
_ROUGH_DTYPES: Final = (torch.float16, torch.bfloat16)


def check_agreement(
    program: Any,
    captured: Any,
    inputs: Any,
    outputs: list[Any],
    state: dict[str, Any] | None,
) -> dict[str, Any] | None:
    """Compare a lowered method with PyTorch's on the example inputs.

    Args:
        program: The exported program in the edge dialect, before memory is planned.
        captured: The exported program that was lowered.
        inputs: The example inputs.
        outputs: What PyTorch gives for them, flat.
        state: Buffers that earlier methods changed; None if that is unknown: values
            are not compared then.

    Returns:
        State after the call.

    Raises:
        ExportError: An output has another size or dtype, or values out of the bound.
    """
    wanted = [value for value in outputs if isinstance(value, torch.Tensor)]
    found = _other_form(_declared(program), wanted)
    run = _Run(program, state or {})
    if found is None:
        results = None if state is None else _results(run, inputs)
        if results is None:
            return None
        bounds = _bounds(captured, results, wanted)
        found = _other_form(results, wanted) or _other_values(results, wanted, bounds)
    if found is None:
        return run.state
    what, *notes = found
    layer = _first_departure(program, captured, inputs, state)
    raise ExportError(
        "export-differs",
        f"{what} of the lowered program differs from PyTorch's",
        notes=(*notes, *((("first layer", layer),) if layer else ())),
        hint="write that layer in another way, or choose another lowering",
    )


def _other_form(got: list[Any], want: list[Any]) -> Any:
    """The first output with another size or dtype, with notes."""
    if len(got) != len(want):
        notes = (("found", f"{len(got)} tensors"), ("expected", f"{len(want)} tensors"))
        return ("the number of outputs", *notes)
    for at, pair in enumerate(zip(got, want, strict=True)):
        one, other = pair
        if one.dtype is not other.dtype or not _may_be_equal(one.shape, other.shape):
            labels = ("found", "expected")
            return (f"output {at}", *zip(labels, map(_form, pair), strict=True))
    return None


def _may_be_equal(one: Any, other: Any) -> bool:
    """Whether sizes are equal, those that change left out."""
    return len(one) == len(other) and all(
        not isinstance(a, int) or a == b for a, b in zip(one, other, strict=True)
    )


def _form(tensor: Any) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')} {list(tensor.shape)}"


def _other_values(got: list[Any], want: list[Any], bounds: list[float]) -> Any:
    """The first output with other values, with notes."""
    for at, (*pair, bound) in enumerate(zip(got, want, bounds, strict=True)):
        if not math.isfinite(bound) or not pair[0].numel():
            continue
        one, other = map(_numbers, pair)
        error = (one - other).abs()
        error[(one == other) | (one.isnan() & other.isnan())] = 0.0
        far = ~(error <= bound)
        if float(far.double().mean()) > _FEW:
            worst = int(error.nan_to_num(math.inf).argmax())
            return (
                f"output {at}",
                ("found", f"item {worst}: {float(one[worst]):.6g}"),
                ("expected", f"{float(other[worst]):.6g}, within {bound:.2g}"),
            )
    return None


def _numbers(value: Any) -> Any:
    """Its items as Double, complex ones as pairs."""
    value = value.detach().resolve_conj()
    value = torch.view_as_real(value) if value.is_complex() else value
    return value.reshape(-1).double()


def _bounds(captured: Any, got: list[Any], want: list[Any]) -> list[float]:
    """How far items of each output may be from PyTorch's; infinite: any value will do.

    After integers of 8 or 16 bits the bound only catches what is unrelated: errors of
    a step grow with the layers behind them.
    """
    is_rough = any(
        getattr(node.meta.get("val"), "dtype", None) in _ROUGH_DTYPES
        for node in captured.graph.nodes
    )
    steps = _steps(captured)
    bounds = []
    for one, other, step in zip(got, want, steps, strict=True):
        numbers = _numbers(other)
        finite = numbers[numbers.isfinite()]
        largest = float(finite.abs().max()) if finite.numel() else 0.0
        if step is None:
            bound = (_ROUGH if is_rough else _SAME) * largest
        elif not one.is_floating_point():
            bound = math.inf  # a class that is as likely as another one
        else:
            spread = float(finite.std(correction=0)) if finite.numel() else 0.0
            bound = max(_ALIKE * spread, _ROUGH * largest, _STEPS * step)
        bounds.append(bound)
    return bounds


def _steps(captured: Any) -> list[float | None]:
    """The largest last scale before each output that is a tensor; None if none is."""
    found = []
    for output in _outputs(captured):
        if not isinstance(output.meta.get("val"), torch.Tensor):
            continue
        scales: list[float] = []
        seen, waiting = {output}, [output]
        while waiting:
            node = waiting.pop()
            if "dequantize" in str(node.target):
                scale = node.args[1]
                scales.append(float(scale) if isinstance(scale, float) else 0.0)
                continue
            waiting += [n for n in node.all_input_nodes if n not in seen]
            seen.update(node.all_input_nodes)
        found.append(max(scales, default=None))
    return found


def _outputs(program: Any) -> list[Node]:
    """What a program gives to its caller, without numbers that are known."""
    (nodes,) = program.graph.output_node().args
    specs = program.graph_signature.output_specs
    return [
        node
        for node, spec in zip(nodes, specs, strict=True)
        if spec.kind.name == "USER_OUTPUT" and hasattr(node, "meta")
    ]


def _declared(program: Any) -> list[Any]:
    values = (node.meta.get("val") for node in _outputs(program))
    return [value for value in values if isinstance(value, torch.Tensor)]


class _NotComparableError(Exception):
    """An operator computes something else in Python than its kernel."""


class _Run(Interpreter):  # type: ignore[misc]  # PyTorch's is Any
    """A run of a program; tensors lie as the program says.

    Args:
        program: An exported program.
        state: Buffers that earlier runs changed.
        keeps: Keep what each node gives.
    """

    def __init__(
        self, program: Any, state: dict[str, Any], *, keeps: bool = False
    ) -> None:
        super().__init__(program.graph_module)
        self.program = program
        self.state = dict(state)
        self.kept: dict[str, Any] = {}
        self._keeps = keeps

    def run_node(self, n: Node) -> Any:
        """Run a node."""
        value, declared = super().run_node(n), n.meta.get("val")
        if isinstance(value, torch.Tensor) and isinstance(declared, torch.Tensor):
            if value.dtype is not declared.dtype:
                raise _NotComparableError(n.name)
            if n.op == "call_function" and value.dim_order() != declared.dim_order():
                order = declared.dim_order()
                back = [order.index(d) for d in range(len(order))]
                value = value.permute(order).contiguous().permute(back)
        if self._keeps:
            self.kept[n.name] = value
        return value


def _results(run: _Run, inputs: Any) -> list[Any] | None:
    """The tensors that a program gives; None if it cannot run, or at random."""
    program = run.program
    given = iter(_pytree.tree_leaves(copy.deepcopy(inputs)))
    values = []
    for spec in program.graph_signature.input_specs:
        if spec.kind.name == "USER_INPUT":
            values.append(next(given))
        elif spec.target in run.state:
            values.append(run.state[spec.target].clone())
        elif spec.target in program.state_dict:
            values.append(program.state_dict[spec.target])
        else:
            values.append(program.constants.get(spec.target))
    before = torch.get_rng_state()
    try:
        with torch.no_grad():
            found = run.run(*values)
    except Exception:  # noqa: BLE001  # kernels need not have a form in Python
        return None
    if not torch.equal(before, torch.get_rng_state()):
        return None
    pairs = list(zip(program.graph_signature.output_specs, found, strict=True))
    run.state |= {s.target: v for s, v in pairs if s.kind.name == "BUFFER_MUTATION"}
    results = [v for s, v in pairs if s.kind.name == "USER_OUTPUT"]
    return [value for value in results if isinstance(value, torch.Tensor)]


def _first_departure(program: Any, captured: Any, inputs: Any, state: Any) -> str:
    """The first layer whose lowered form gives something else, "" if unknown."""
    lowered, model = (_Run(p, state or {}, keeps=True) for p in (program, captured))
    _results(model, inputs)
    _results(lowered, inputs)
    nodes = {node.name: node for node in captured.graph.nodes}
    for name, origin in _origins(program, nodes):
        got, want = lowered.kept.get(name), model.kept.get(origin)
        if got is None or want is None or _is_alike(got, want):
            continue
        node = nodes[origin]
        lines = own_lines(node.meta.get("stack_trace") or "")
        return " at ".join([node.target._schema.name, *lines[:1]])  # noqa: SLF001
    return ""


def _origins(program: Any, nodes: Any) -> Iterator[tuple[str, str]]:
    """Calls of a lowered graph, with the call of the captured one they stand for."""
    for node in program.graph.nodes:
        origin = origin_of(node, nodes)
        if isinstance(getattr(origin, "target", None), OpOverload):
            yield node.name, origin.name


def _is_alike(got: Any, want: Any) -> bool:
    """Whether two tensors have one size, and items that rise and fall together."""
    if not all(isinstance(value, torch.Tensor) for value in (got, want)):
        return True
    if got.shape != want.shape:
        return False
    one, other = (_numbers(value).nan_to_num() for value in (got, want))
    one, other = one - one.mean(), other - other.mean()
    size = float(one.norm() * other.norm())
    return size == 0.0 or float(one @ other) > (1 - _ALIKE / 4) * size
