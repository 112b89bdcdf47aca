"""Whether a lowered program computes what its model computes. Needs PyTorch.

Both run in Python on the example inputs: the model in PyTorch, the lowered graph in an
interpreter, with what operators and delegates have in Python.
"""

from __future__ import annotations

import copy
import math
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import repeat
from typing import TYPE_CHECKING, Any, Final

import torch
from torch._ops import OpOverload
from torch.fx import Interpreter
from torch.nn import functional
from torch.utils import _pytree

from orchestrator.export.failure import ExportError, own_lines
from orchestrator.export.unsupported import nodes_of, origin_of

if TYPE_CHECKING:
    from torch.fx.node import Node

# The bounds are those that docs/export.md promises ("Compare with PyTorch");
# tests/interop/test_agreement.py has examples on both sides.
_SAME: Final = 1e-3
"""Another order of the same sums, as a part of the largest result."""
_ROUGH: Final = 0.05
"""The bound in half precision, or behind numbers of 8 bits."""
_STEPS: Final = 8
"""Quantized networks of the zoo are at most 7 steps from PyTorch (docs/export.md)."""
_ALIKE: Final = 0.5
"""A part of what the outputs spread; what is unrelated is 1.4 times that apart."""
# Nobody can say which side of a step is right for one item; a layer
# that is wrong changes more than one in twenty.
_FEW: Final = 0.05
"""Items on the other side of a step, such as that of `floor`, where there is one."""
_ROUGH_DTYPES: Final = (torch.float16, torch.bfloat16)
_KNOWN: Final = ("aten", "orchestrator")
"""Namespaces whose operators have steps only if `_JUMPS` has them."""
# Written out by hand: PyTorch has no tag for functions with steps. Comparisons,
# `argmax` and casts give integers of floats, which `_is_step` sees by their dtypes.
_JUMPS: Final = re.compile(
    r"aten\.(?:angle|arctan2|atan2|ceil|copysign|fix|floor|floor_divide|fmod|frac|frexp"
    r"|grid_sampler\w*|hardshrink|heaviside|hist(?:c|ogram)|item|mode|remainder|round"
    r"|sgn|sign|threshold|trunc|\w*quantize\w*)_?\.|aten\.\w+\.\w+_mode$"
)
"""Operators with steps that give floats for floats."""


class Agreement:
    """Compares methods of a lowered model with PyTorch's, in order over one state."""

    def __init__(self) -> None:
        self._uncompared: dict[str, str] = {}
        self._state: dict[str, Any] = {}
        self._may_step = False

    def check(
        self, name: str, program: Any, captured: Any, inputs: Any, outputs: list[Any]
    ) -> None:
        """Compare the next method on its example inputs.

        Args:
            name: The method.
            program: The exported program in the edge dialect, before memory is planned.
            captured: The exported program that was lowered.
            inputs: The example inputs.
            outputs: What PyTorch gives for them, flat.

        Raises:
            ExportError: An output has another size or dtype, or values out of bounds.
        """
        graph, run = captured.graph_module, _Run(program, self._state)
        changed = program.graph_signature.buffers_to_mutate.values()
        # Sizes first, from metadata: ExecuTorch writes pads for the layout of the float
        # image, and a program with other sizes than its model was accepted before there
        # was this comparison.
        declared = [node.meta.get("val") for node in _outputs(program)]
        found = _other_form(_tensors(declared), _tensors(outputs))
        if found is None:
            try:
                results = run.results(inputs)
            except _NotComparableError as error:
                self._uncompared[name] = str(error).partition("\n")[0]
                # None: later methods that read such a buffer cannot be compared either,
                # and say so.
                self._state |= dict.fromkeys(changed)
                return
            scales = _scales(captured)
            found = difference(graph, results, outputs, scales, may_step=self._may_step)
        if found is None:
            self._state = run.state
            # A step in one method shows in the state that the next one reads.
            self._may_step |= bool(changed) and _has_steps(graph)
            return
        what, *notes = found
        layer = _first_departure(program, captured, inputs, self._state)
        message = f"{what} of the lowered program differs from PyTorch's"
        notes += [("first layer", layer)] if layer else []
        hint = "write that layer in another way, or choose another lowering"
        raise ExportError("export-differs", message, notes=tuple(notes), hint=hint)

    def warnings(self) -> list[str]:
        """A warning, if values of methods are not compared."""
        said = "; ".join(f"{name}: {why}" for name, why in self._uncompared.items())
        return [f"values are not compared with PyTorch's ({said})"] if said else []


def difference(
    graph: Any,
    got: list[Any],
    want: list[Any],
    scales: Iterable[float | None] = repeat(None),
    *,
    may_step: bool = False,
) -> Any:
    """The first output that differs from PyTorch's, with notes; None if none does.

    Args:
        graph: The captured graph module.
        got: The outputs of another form of it.
        want: PyTorch's outputs.
        scales: The last scale before each tensor of them, None where there is none.
        may_step: Whether there may be steps before the graph, in its state.
    """
    got, want = _tensors(got), _tensors(want)
    dtypes = {getattr(node.meta.get("val"), "dtype", None) for node in nodes_of(graph)}
    # By all nodes: one layer in half precision is enough for errors of that size.
    same = _SAME if dtypes.isdisjoint(_ROUGH_DTYPES) else _ROUGH
    few = _FEW if may_step or _has_steps(graph) else 0.0
    found = _other_form(got, want)
    for at, (one, other, scale) in enumerate(zip(got, want, scales, strict=False)):
        found = found or _other_values(at, one, other, _bound(other, scale, same), few)
    return found


def _has_steps(graph: Any) -> bool:
    """Whether a small difference may become a large one, as in `floor` or `argmax`."""
    return any(map(_is_step, nodes_of(graph)))


def _is_step(node: Node) -> bool:
    target, value = node.target, node.meta.get("val")
    if isinstance(target, OpOverload) and (
        # Custom operators may do anything: they are taken to have steps.
        target.namespace not in _KNOWN or _JUMPS.match(str(target))
    ):
        return True
    given = _pytree.tree_leaves([n.meta.get("val") for n in node.all_input_nodes])
    is_whole = bool(node.users) and isinstance(value, torch.Tensor)
    return is_whole and not _is_inexact(value) and any(map(_is_inexact, given))


def _is_inexact(value: Any) -> bool:
    is_tensor = isinstance(value, torch.Tensor)
    return is_tensor and (value.is_floating_point() or value.is_complex())


def _tensors(values: Iterable[Any]) -> list[Any]:
    return [value for value in values if isinstance(value, torch.Tensor)]


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


def _other_values(at: int, got: Any, want: Any, bound: float, few: float) -> Any:
    """An output, with notes, if more than a few of its items are out of a bound."""
    if not math.isfinite(bound) or not got.numel():
        return None
    one, other = _numbers(got), _numbers(want)
    error = (one - other).abs()
    # inf - inf is NaN, and two NaNs are the same answer.
    error[(one == other) | (one.isnan() & other.isnan())] = 0.0
    # `~(<=)`, not `>`: a NaN on one side compares as false with everything, and has to
    # count as wrong.
    if float((~(error <= bound)).double().mean()) <= few:
        return None
    worst = int(error.nan_to_num(math.inf).argmax())
    return (
        f"output {at}",
        ("found", f"item {worst}: {float(one[worst]):.6g}"),
        ("expected", f"{float(other[worst]):.6g}, within {bound:.2g}"),
    )


def _numbers(value: Any) -> Any:
    """Its items as Double, complex ones as pairs."""
    value = value.detach().resolve_conj()
    value = torch.view_as_real(value) if value.is_complex() else value
    return value.reshape(-1).double()


def _bound(want: Any, scale: float | None, same: float) -> float:
    """How far items of an output may be from PyTorch's; infinite: any value will do.

    After integers of 8 or 16 bits the bound only catches what is unrelated: errors of
    a step grow with the layers behind them.
    """
    numbers = _numbers(want)
    finite = numbers[numbers.isfinite()]
    largest = float(finite.abs().max()) if finite.numel() else 0.0
    if scale is None:
        return same * largest
    if not want.is_floating_point():
        # Integers behind a quantizer are classes or indices: the second best one may
        # win by a rounding.
        return math.inf  # a class that is as likely as another one
    spread = float(finite.std(correction=0)) if finite.numel() else 0.0
    return max(_ALIKE * spread, _ROUGH * largest, _STEPS * scale)


def _scales(captured: Any) -> Iterator[float | None]:
    """The largest last scale before each output that is a tensor; None if none is."""
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
        yield max(scales, default=None)


def _outputs(program: Any) -> list[Node]:
    """What a program gives to its caller, without numbers that are known."""
    (nodes,) = program.graph.output_node().args
    specs = program.graph_signature.output_specs
    return [
        node
        for node, spec in zip(nodes, specs, strict=True)
        if spec.kind.name == "USER_OUTPUT" and hasattr(node, "meta")
    ]


class _NotComparableError(Exception):
    """Why a program cannot be compared in Python."""


@contextmanager
def _integers_as_doubles() -> Iterator[None]:
    """Convolve integers as doubles, which are exact: PyTorch dilates no others."""
    # PyTorch has no kernel on the CPU for dilated convolutions of integers
    # ("slow_conv_dilated2d" not implemented for Char); a double holds every sum of int8
    # products exactly.
    convolve = functional.conv2d

    def exact(image: Any, *args: Any, **kwargs: Any) -> Any:
        if image.is_floating_point():
            return convolve(image, *args, **kwargs)
        given = [a.double() if isinstance(a, torch.Tensor) else a for a in args]
        return convolve(image.double(), *given, **kwargs).to(image.dtype)

    functional.conv2d = exact
    try:
        yield
    finally:
        functional.conv2d = convolve


class _Run(Interpreter):  # type: ignore[misc]  # PyTorch's is Any
    """A run of a program; tensors lie as the program says.

    Args:
        program: An exported program.
        state: Buffers that earlier runs changed; None where the values are unknown.
        keeps: Keep what each node gives.
    """

    def __init__(self, program: Any, state: dict[str, Any], *, keeps: bool = False) -> None:
        super().__init__(program.graph_module)
        self.program = program
        self.state = dict(state)
        self.kept: dict[str, Any] = {}
        self._keeps = keeps

    def run_node(self, n: Node) -> Any:
        """Run a node."""
        name, declared = getattr(n.target, "__name__", n.name), n.meta.get("val")
        try:
            value = super().run_node(n)
        except Exception as error:  # kernels need not have a form in Python
            raise _NotComparableError(f"{name} fails in Python") from error
        if isinstance(value, torch.Tensor) and isinstance(declared, torch.Tensor):
            if value.dtype is not declared.dtype:
                raise _NotComparableError(f"{name} gives another dtype in Python")
            if n.op == "call_function" and value.dim_order() != declared.dim_order():
                order = declared.dim_order()
                back = [order.index(d) for d in range(len(order))]
                # ExecuTorch's metadata says how a tensor lies; what PyTorch computes
                # may lie otherwise, and a view reads bytes.
                value = value.permute(order).contiguous().permute(back)
        if self._keeps:
            self.kept[n.name] = value
        return value

    def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
        """Call an operator; nearest items of integers are found as doubles.

        PyTorch has such kernels for floats and unsigned bytes only.
        """
        if (
            # PyTorch has no nearest upsampling of int8 or int16; as doubles the items
            # are the same.
            "upsample_nearest" in getattr(target, "__name__", "")
            and not args[0].is_floating_point()
        ):
            image, *more = args
            found = super().call_function(target, (image.double(), *more), kwargs)
            return found.to(image.dtype)
        return super().call_function(target, args, kwargs)

    def results(self, inputs: Any) -> list[Any]:
        """What the program gives.

        Raises:
            _NotComparableError: It cannot run, or draws random numbers.
        """
        program = self.program
        given = iter(_pytree.tree_leaves(copy.deepcopy(inputs)))
        values = []
        nodes = program.graph.find_nodes(op="placeholder")
        for node, spec in zip(nodes, program.graph_signature.input_specs, strict=True):
            if spec.kind.name == "USER_INPUT":
                values.append(next(given))
            elif spec.target in self.state:
                values.append(copy.deepcopy(self.state[spec.target]))
                if values[-1] is None and node.users:
                    raise _NotComparableError("it reads state of such a method")
            elif spec.target in program.state_dict:
                values.append(program.state_dict[spec.target])
            else:
                values.append(program.constants.get(spec.target))
        # A random operator has no tag that all backends' forms keep: whether numbers
        # were drawn is seen by the generator.
        before = torch.get_rng_state()
        with torch.no_grad(), _integers_as_doubles():
            found = self.run(*values)
        if not torch.equal(before, torch.get_rng_state()):
            raise _NotComparableError("random numbers")
        pairs = list(zip(program.graph_signature.output_specs, found, strict=True))
        changed = {s.target: v for s, v in pairs if s.kind.name == "BUFFER_MUTATION"}
        self.state |= changed
        return [v for s, v in pairs if s.kind.name == "USER_OUTPUT"]


def _first_departure(program: Any, captured: Any, inputs: Any, state: Any) -> str:
    """The first layer whose lowered form gives something else, "" if unknown."""
    lowered, model = (_Run(p, state, keeps=True) for p in (program, captured))
    # Both keep all results this time: memory and time of a second run are spent only
    # where something is wrong.
    for run in (model, lowered):
        with suppress(_NotComparableError):
            run.results(inputs)
    nodes = {node.name: node for node in captured.graph.nodes}
    for node in program.graph.nodes:
        origin = origin_of(node, nodes)
        if origin is None or not isinstance(origin.target, OpOverload):
            continue
        got, want = lowered.kept.get(node.name), model.kept.get(origin.name)
        if got is not None and want is not None and not _is_alike(got, want):
            lines = own_lines(origin.meta.get("stack_trace") or "")
            return " at ".join([origin.target._schema.name, *lines[:1]])  # noqa: SLF001
    return ""


def _is_alike(got: Any, want: Any) -> bool:
    """Whether two tensors have one size, and items that rise and fall together."""
    if not all(isinstance(value, torch.Tensor) for value in (got, want)):
        return True
    if got.shape != want.shape:
        return False
    one, other = (_numbers(value).nan_to_num() for value in (got, want))
    one, other = one - one.mean(), other - other.mean()
    size = float(one.norm() * other.norm())
    # A correlation of 0.875: quantized layers keep what rises and falls, whatever scale
    # and zero point do.
    return size == 0.0 or float(one @ other) > (1 - _ALIKE / 4) * size
