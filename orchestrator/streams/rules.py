"""How operators treat time: what a stream computes in their place.

A rule gives a step, or None if the operator needs the whole window, as operators
without a rule do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from types import MappingProxyType
from typing import Final, TypeAlias

from orchestrator.core.layout import lies_in_order
from orchestrator.core.operator import OperatorName
from orchestrator.program.values import (
    BoolValue,
    IntListValue,
    IntValue,
    NoneValue,
    TensorListValue,
    TensorValue,
    Value,
)

# What of a tensor is computed anew when a window moves on.

Change: TypeAlias = "int | tuple[int, ...]"
"""What an argument becomes: a whole number, or a list of some."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """A tensor with time in it; positions count from the start of the window.

    A call computes positions `end - fresh` to `end`; earlier calls have computed those
    before. A stream computes no padding, so that positions which depend on some differ
    from those of a window.

    Args:
        axis: The dimension that is time.
        length: Of a window.
        fresh: Positions that come with a call.
        start: First position that depends on no padding at the start of the window.
        end: One past the last position that depends on none at its end.
        pads: Calls that `start` and `end` come from.
    """

    axis: int
    length: int
    fresh: int
    start: int = 0
    end: int
    pads: frozenset[int] = frozenset()

    @property
    def first(self) -> int:
        """First position that a call computes."""
        return self.end - self.fresh


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """Positions of a tensor that a call reads, the last one not included."""

    first: int
    last: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A call as a stream executes it.

    Args:
        reads: By value of a tensor with time.
        outs: Outputs with time, by value; others are as in the window.
        changes: Arguments that become others, by position.
    """

    reads: Mapping[int, Read]
    outs: Mapping[int, Flow] = field(default_factory=dict)
    changes: Mapping[int, Change] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """A call with its arguments.

    Args:
        number_of_call: Which one it is.
        args: Values, without those of returns.
        values: Of the method.
        flows: Flow of each tensor that has a time dimension, by value.
        is_used: Whether something reads a value.
    """

    number_of_call: int
    args: Sequence[int]
    values: Sequence[Value]
    flows: Mapping[int, Flow]
    is_used: Callable[[int], bool]

    def value(self, position: int) -> Value:
        """An argument."""
        return self.values[self.args[position]]

    def tensor(self, position: int) -> TensorValue:
        """An argument that is a tensor."""
        value = self.value(position)
        assert isinstance(value, TensorValue)  # noqa: S101  # its schema says so
        return value

    def sizes(self, value: int) -> tuple[int, ...]:
        """Sizes of a value that is a tensor."""
        found = self.values[value]
        assert isinstance(found, TensorValue)  # noqa: S101  # callers looked
        return found.sizes

    def flow(self, position: int) -> Flow | None:
        """How an argument moves with time, if it does."""
        return self.flows.get(self.args[position])

    def flow_of(self, value: int) -> Flow | None:
        """How a value moves with time, if it does."""
        return self.flows.get(value)

    def tensors(self) -> list[int]:
        """Values of all tensors, also of those in lists."""
        found: list[int] = []
        for index in self.args:
            value = self.values[index]
            if isinstance(value, TensorListValue):
                found += value.items
            elif isinstance(value, TensorValue):
                found.append(index)
        return found

    @property
    def alone(self) -> bool:
        """Whether argument 0 is the only tensor with time."""
        return all(i == self.args[0] or i not in self.flows for i in self.tensors())

    def number(self, position: int, default: int | None = None) -> int | None:
        """A whole number; the default where the argument is missing."""
        value = self.value(position)
        if isinstance(value, IntValue):
            return value.value
        return default if isinstance(value, NoneValue) else None

    def numbers(self, position: int) -> list[int] | None:
        """A list of whole numbers; none where the argument is missing."""
        value = self.value(position)
        if isinstance(value, NoneValue):
            return []
        if not isinstance(value, IntListValue):
            return None
        items = [self.values[item] for item in value.items]
        found = [item.value for item in items if isinstance(item, IntValue)]
        return found if len(found) == len(items) else None


Rule: TypeAlias = "Callable[[Site], Step | None]"


def rule_of(operator: OperatorName) -> Rule | None:
    """The rule of an operator."""
    name = f"{operator.namespace}::{operator.base}"
    return RULES.get(f"{name}.{operator.overload}") or RULES.get(name)


def scratch_of(operator: OperatorName) -> int:
    """How many arguments before its output are scratch memory."""
    base = operator.base.removesuffix("_nhwc").removeprefix("quantized_")
    return _SCRATCH.get(base, 0) if operator.namespace == "cortex_m" else 0


# Items that depend on items at the same place.


def _same_place(*outs: int) -> Rule:
    """Each item depends on those at its place of all other tensors; they broadcast."""

    def rule(site: Site) -> Step | None:
        written = {site.args[at] for at in outs}
        given = [index for index in site.tensors() if index not in written]
        return _together(site, given, [site.args[at] for at in outs])

    return rule


def _together(site: Site, given: Sequence[int], outs: Sequence[int]) -> Step | None:
    dims = len(site.sizes(outs[0]))
    flows: dict[int, Flow] = {}
    for index in given:
        if flow := site.flow_of(index):
            # Broadcasting puts missing dimensions in front.
            axis = flow.axis + dims - len(site.sizes(index))
            flows[index] = replace(flow, axis=axis)
    # Positions of two tensors would belong to different times.
    if len({(f.axis, f.length, f.fresh) for f in flows.values()}) != 1:
        return None
    some = next(iter(flows.values()))
    for index in given:
        sizes = site.sizes(index)
        at = some.axis - dims + len(sizes)
        # A tensor without time has an item of its own for each position of the window.
        if index not in flows and at >= 0 and sizes[at] != 1:
            return None
    flow = replace(
        some,
        start=max(f.start for f in flows.values()),
        end=min(f.end for f in flows.values()),
        pads=frozenset().union(*(f.pads for f in flows.values())),
    )
    return Step(
        reads={index: Read(first=flow.first, last=flow.end) for index in flows},
        outs=dict.fromkeys(outs, flow),
    )


def _rows(*, last: Callable[[Site], int], outs: Sequence[int] = (-1,)) -> Rule:
    """Argument 0 goes through, if time is none of the last dimensions.

    Args:
        last: How many of them belong together.
        outs: Positions of outputs.
    """

    def rule(site: Site) -> Step | None:
        flow = site.flow(0)
        if flow is None or not site.alone:
            return None
        if flow.axis >= len(site.tensor(0).sizes) - last(site):
            return None
        return _through(site, flow, outs)

    return rule


def _through(
    site: Site,
    flow: Flow,
    outs: Sequence[int] = (-1,),
    *,
    axis: int | None = None,
    changes: Mapping[int, Change] = MappingProxyType({}),
) -> Step:
    """What is new goes through, maybe as another dimension."""
    new = flow if axis is None else replace(flow, axis=axis)
    return Step(
        reads={site.args[0]: Read(first=flow.first, last=flow.end)},
        outs={site.args[at]: new for at in outs},
        changes=changes,
    )


def _along(position: int) -> Rule:
    """Argument 0 goes through, if time is not the dimension that an argument names."""

    def rule(site: Site) -> Step | None:
        flow, dim = site.flow(0), site.number(position)
        dims = len(site.tensor(0).sizes)
        if flow is None or dim is None or dim % dims == flow.axis:
            return None
        return _through(site, flow)

    return rule


def _normalized(site: Site) -> Step | None:
    """Batch normalization: of channels, which are not time."""
    flow = site.flow(0)
    if flow is None or flow.axis == 1 or not site.alone:
        return None
    return _through(site, flow, (-3,))


def _reduced(site: Site) -> Step | None:
    """A sum or mean over other dimensions than time."""
    flow, dims = site.flow(0), site.numbers(1)
    rank = len(site.tensor(0).sizes)
    if flow is None or not dims:
        return None
    gone = {dim % rank for dim in dims}
    if flow.axis in gone:
        return None
    # Whether the call keeps what it sums over as a dimension of size 1.
    keeps = len(site.tensor(-1).sizes) == rank
    before = 0 if keeps else sum(dim < flow.axis for dim in gone)
    return _through(site, flow, axis=flow.axis - before)


def _product(mine: int, other: int, last: int) -> Rule:
    """A matrix product with a matrix that has no time; rows of mine are apart.

    Args:
        mine: Position of the matrix with time.
        other: Of the other one.
        last: Dimensions of mine that are summed over, from the end.
    """

    def rule(site: Site) -> Step | None:
        flow = site.flow(mine)
        sizes = site.tensor(mine).sizes
        if flow is None or site.flow(other) is not None:
            return None
        mine_index = site.args[mine]
        rest = [i for i in site.tensors() if i not in (mine_index, site.args[-1])]
        # Sums over time need the whole window.
        if flow.axis >= len(sizes) - last or any(site.flow_of(i) for i in rest):
            return None
        added = [i for i in rest if i != site.args[other]]
        if any(len(site.sizes(i)) > 1 and site.sizes(i)[0] != 1 for i in added):
            return None  # a row of it for each row
        return Step(
            reads={mine_index: Read(first=flow.first, last=flow.end)}, outs={site.args[-1]: flow}
        )

    return rule


def _joined(site: Site) -> Step | None:
    """A concatenation along another dimension."""
    dim, out = site.number(1), site.args[-1]
    rank = len(site.sizes(out))
    given = [index for index in site.tensors() if index != out]
    step = _together(site, given, [out])
    if step is None or dim is None or len(step.reads) != len({*given}):
        return None
    return None if step.outs[out].axis == dim % rank else step


# Other places of the same items.


def _permuted(site: Site) -> Step | None:
    flow, dims = site.flow(0), site.numbers(1)
    if flow is None or not dims:
        return None
    rank = len(site.tensor(0).sizes)
    return _through(site, flow, axis=[dim % rank for dim in dims].index(flow.axis))


def _transposed(site: Site) -> Step | None:
    flow, one, two = site.flow(0), site.number(1), site.number(2)
    if flow is None or one is None or two is None:
        return None
    rank = len(site.tensor(0).sizes)
    order = [*range(rank)]
    order[one % rank], order[two % rank] = order[two % rank], order[one % rank]
    return _through(site, flow, axis=order.index(flow.axis))


def view_axis(old: TensorValue, new: TensorValue, flow: Flow) -> int | None:
    """The dimension of a tensor with other sizes that is time, as in the old one.

    Args:
        old: With time; its own sizes may be those of a call already.
        new: The same items with other sizes, of a window.
        flow: Of the old one.

    Returns:
        None if time is merged with another dimension.
    """
    if not (old.is_contiguous and new.is_contiguous):
        return None
    return _axis_of(old.sizes, new.sizes, flow)


def _axis_of(old: Sequence[int], new: Sequence[int], flow: Flow) -> int | None:
    before = prod(old[: flow.axis])
    for at, size in enumerate(new):
        # As many items before it as before: it is the same dimension, and none is merged with it. A
        # length of 1 could be any dimension of size 1.
        if size == flow.length != 1 and prod(new[:at]) == before:
            return at
    return None


def _squeezed(site: Site) -> Step | None:
    """More or fewer dimensions of size 1, in any dim order."""
    flow = site.flow(0)
    if flow is None:
        return None
    axis = _axis_of(site.tensor(0).sizes, site.tensor(-1).sizes, flow)
    return None if axis is None else _through(site, flow, axis=axis)


def _viewed(site: Site) -> Step | None:
    """Other sizes, which an argument has; one of them is time as before."""
    flow, sizes = site.flow(0), site.numbers(1)
    if flow is None or sizes is None:
        return None
    axis = view_axis(site.tensor(0), site.tensor(-1), flow)
    if axis is None:
        return None
    sizes[axis] = flow.fresh
    return _through(site, flow, axis=axis, changes={1: tuple(sizes)})


def _sliced(site: Site) -> Step | None:
    """A part of the window, or of another dimension."""
    flow, dim, by = site.flow(0), site.number(1), site.number(4, 1)
    if flow is None or dim is None or by != 1:
        return None
    length = flow.length
    if dim % len(site.tensor(0).sizes) != flow.axis:
        return _through(site, flow)
    first, last = site.number(2, 0), site.number(3, length)
    if first is None or last is None:
        return None
    # As `slice` counts: negative positions from the end, too small ones from the beginning.
    first, last = (max(at + length if at < 0 else at, 0) for at in (first, last))
    last = min(last, length)
    if last - first < flow.fresh:
        # A few positions: no time is left.
        return Step(
            reads={site.args[0]: Read(first=first, last=last)}, changes={2: 0, 3: last - first}
        )
    end = min(flow.end, last)
    new = replace(flow, length=last - first, start=max(flow.start - first, 0), end=end - first)
    return Step(
        reads={site.args[0]: Read(first=end - flow.fresh, last=end)},
        outs={site.args[-1]: new},
        changes={2: 0, 3: flow.fresh},
    )


def _selected(site: Site) -> Step | None:
    """One position of the window, or of another dimension."""
    flow, dim, at = site.flow(0), site.number(1), site.number(2)
    if flow is None or dim is None or at is None:
        return None
    dim %= len(site.tensor(0).sizes)
    if dim != flow.axis:
        return _through(site, flow, axis=flow.axis - (dim < flow.axis))
    at %= flow.length
    reads = {site.args[0]: Read(first=at, last=at + 1)}
    return Step(reads=reads, changes={2: 0})


# Windows over time.


@dataclass(frozen=True, slots=True, kw_only=True)
class _Window:
    """A convolution or pool.

    Args:
        stride: Position of the strides; of other lists as well.
        kernel: Of the sizes of the window; None: the weights have them.
        weight: First dimension of the weights that is one of the window.
        behind: Dimensions of the image behind those of the window.
        indices: An output has positions in the window, too.
    """

    stride: int
    padding: int
    dilation: int | None = None
    kernel: int | None = None
    weight: int = 2
    behind: int = 0
    indices: bool = False

    def __call__(self, site: Site) -> Step | None:
        flow = site.flow(0)
        if flow is None or not site.alone:
            return None
        sizes = site.tensor(0).sizes
        dims = self._dims(site)
        at = flow.axis - (len(sizes) - self.behind - dims)
        # Indices count from the start of a window: a stream has none.
        if not 0 <= at < dims or (self.indices and site.is_used(site.args[-1])):
            return None
        kernel = self._kernel(site, at)
        stride = _entry(site, self.stride, at, kernel)
        padding = _entry(site, self.padding, at, 0)
        dilation = _entry(site, self.dilation, at, 1)
        if not kernel or not stride or padding is None or not dilation:
            return None
        outs = site.args[-2:] if self.indices else site.args[-1:]
        count = site.sizes(outs[0])[flow.axis]
        # A call has to give a whole number of outputs, the same number each time.
        if flow.fresh % stride or flow.fresh // stride > count:
            return None
        seen = (kernel - 1) * dilation + 1
        # Outputs whose windows end beyond what is known depend on padding behind.
        end = min((flow.end + padding - seen) // stride + 1, count)
        # Pooling with `ceil_mode` has windows that end beyond the image without a padding.
        is_padded = padding or end < count
        new = Flow(
            axis=flow.axis,
            length=count,
            fresh=flow.fresh // stride,
            # Rounded up: the first window that sees no position before `start`.
            start=-((flow.start + padding) // -stride),
            end=end,
            pads=flow.pads | ({site.number_of_call} if is_padded else frozenset()),
        )
        first = new.first * stride - padding
        changes: dict[int, Change] = {}
        if padding:
            entries = site.numbers(self.padding) or []
            entries = entries if len(entries) == dims else entries * dims
            # Positions beside the window are those of the past, or have not come yet: no padding is
            # left.
            entries[at] = 0
            changes[self.padding] = tuple(entries)
        last = first + (new.fresh - 1) * stride + seen
        return Step(
            reads={site.args[0]: Read(first=first, last=last)},
            outs=dict.fromkeys(outs, new),
            changes=changes,
        )

    def _dims(self, site: Site) -> int:
        """Dimensions of the window."""
        if self.kernel is None:
            return len(site.tensor(1).sizes) - 2
        return 2

    def _kernel(self, site: Site, at: int) -> int | None:
        if self.kernel is None:
            return site.tensor(1).sizes[self.weight + at]
        return _entry(site, self.kernel, at, None)


def _entry(site: Site, position: int | None, at: int, default: int | None) -> int | None:
    """An entry of a list; a short one has the same number for all dimensions."""
    if position is None:
        return default
    numbers = site.numbers(position)
    if not numbers:
        return None if numbers is None else default
    return numbers[0] if len(numbers) == 1 else numbers[at]


def _convolved(site: Site) -> Step | None:
    transposed = site.value(6)
    if not isinstance(transposed, BoolValue) or transposed.value:
        return None
    return _Window(stride=3, padding=4, dilation=5)(site)


def _padded(site: Site) -> Step | None:
    """`constant_pad_nd`: pairs, the last dimension first."""
    flow, pads = site.flow(0), site.numbers(1)
    if flow is None or pads is None:
        return None
    at = 2 * (len(site.tensor(0).sizes) - 1 - flow.axis)
    if at >= len(pads):
        return _through(site, flow)
    changed = (*pads[:at], 0, 0, *pads[at + 2 :])
    return _pad(site, flow, pads[at], pads[at + 1], {1: changed})


def _padded_image(site: Site) -> Step | None:
    """`cortex_m::pad`: its numbers lie as the dimensions of an image in channels-last layout."""
    image = site.tensor(-1)  # of a window: fewer sizes are 1, which have no order
    is_image = len(image.sizes) == len(_NHWC)
    is_image = is_image and lies_in_order(image.sizes, image.dim_order, _NHWC)
    return _padded_around(site, _NHWC if is_image else ())


def _padded_around(site: Site, order: tuple[int, ...] = ()) -> Step | None:
    """What comes before, and what behind, of the last dimensions, or of those in an order."""
    flow, before, behind = site.flow(0), site.numbers(1), site.numbers(2)
    if flow is None or not before or not behind:
        return None
    at = order.index(flow.axis) if order else flow.axis - len(site.tensor(0).sizes)
    low, high = before[at], behind[at]
    before[at] = behind[at] = 0
    return _pad(site, flow, low, high, {1: tuple(before), 2: tuple(behind)})


def _pad(site: Site, flow: Flow, low: int, high: int, changes: Mapping[int, Change]) -> Step | None:
    # A negative pad cuts positions off.
    if low < 0 or high < 0:
        return None
    new = replace(
        flow,
        # The padding counts as positions of the window, which a stream never computes.
        length=flow.length + low + high,
        start=flow.start + low,
        end=flow.end + low,
        pads=flow.pads | ({site.number_of_call} if low or high else frozenset()),
    )
    step = _through(site, flow, changes=changes if low or high else {})
    return replace(step, outs={site.args[-1]: new})


_NHWC: Final = (0, 2, 3, 1)
_ITEMS: Final = (
    *("abs", "acos", "acosh", "add", "alias_copy", "asin", "asinh", "atan", "atan2"),
    *("atanh", "bitwise_and", "bitwise_not", "bitwise_or", "bitwise_xor", "ceil"),
    *("clamp", "clone", "cos", "cosh", "detach_copy", "div", "elu", "eq", "erf", "exp"),
    *("expm1", "floor", "floor_divide", "fmod", "ge", "gelu", "gt", "hardtanh"),
    *("hypot", "isinf", "isnan", "le", "leaky_relu", "lift_fresh_copy", "log", "log10"),
    *("log1p", "log2", "logical_and", "logical_not", "logical_or", "logical_xor"),
    *("logit", "lt"),
    *("maximum", "minimum", "mul", "ne", "neg", "pow", "reciprocal", "relu"),
    *("remainder", "round", "rsqrt", "rsub", "sigmoid", "sign", "sin", "sinh", "sqrt"),
    *("sub", "tan", "tanh", "_to_copy", "trunc", "where"),
)
"""Operators of `aten` whose items depend on those at the same place."""
_CORTEX_ITEMS: Final = (
    *("dequantize_per_tensor", "maximum", "minimum", "quantize_per_tensor"),
    *("quantized_add", "quantized_div", "quantized_mul"),
)
_SCRATCH: Final = {
    **dict.fromkeys(("avg_pool2d", "batch_matmul", "conv2d", "depthwise_conv2d"), 1),
    "transpose_conv2d": 2,
}
"""How many scratch arguments operators have, by name without `quantized_`."""
_SAME: Final = _same_place(-1)
_IMAGES: Final = MappingProxyType(
    {
        "conv2d": _Window(stride=3, padding=4, dilation=5, weight=1),
        "depthwise_conv2d": _Window(stride=3, padding=4, dilation=5, weight=1),
        "avg_pool2d": _Window(kernel=1, stride=2, padding=3),
        "max_pool2d": _Window(kernel=1, stride=2, padding=3, dilation=4),
    }
)
RULES: Final[Mapping[str, Rule]] = MappingProxyType(
    {
        **{f"aten::{name}": _SAME for name in _ITEMS},
        **{f"cortex_m::{name}": _SAME for name in _CORTEX_ITEMS},
        **{
            f"quantized_decomposed::{name}_per_tensor": _SAME for name in ("quantize", "dequantize")
        },
        **{f"dim_order_ops::{name}": _SAME for name in ("_clone_dim_order", "_to_dim_order_copy")},
        **{f"cortex_m::quantized_{name}": of for name, of in _IMAGES.items()},
        **{
            f"cortex_m::quantized_{name}_nhwc": replace(of, behind=1)
            for name, of in _IMAGES.items()
        },
        "cortex_m::quantized_activation": _rows(last=lambda _: 0),
        "cortex_m::quantized_linear": _rows(last=lambda _: 1),
        "cortex_m::softmax": _along(1),
        "cortex_m::transpose": _permuted,
        "cortex_m::pad": _padded_image,
        "cortex_m::pad_contiguous": _padded_around,
        "aten::convolution": _convolved,
        "aten::avg_pool2d": _Window(kernel=1, stride=2, padding=3),
        "aten::max_pool2d_with_indices": _Window(
            kernel=1, stride=2, padding=3, dilation=4, indices=True
        ),
        "aten::constant_pad_nd": _padded,
        "aten::slice_copy.Tensor_out": _sliced,
        "aten::select_copy.int_out": _selected,
        "aten::permute_copy": _permuted,
        "aten::transpose_copy.int_out": _transposed,
        "aten::view_copy": _viewed,
        "aten::unsqueeze_copy": _squeezed,
        "aten::squeeze_copy": _squeezed,
        "executorch_prim::et_view": _viewed,
        "aten::cat": _joined,
        "aten::linear": _rows(last=lambda _: 1),
        # Positions of the matrix with time and of the other one, as the schema has its arguments.
        "aten::addmm": _product(1, 2, 1),
        "aten::mm": _product(0, 1, 1),
        "aten::bmm": _product(0, 1, 1),
        "aten::_softmax": _along(1),
        "aten::_log_softmax": _along(1),
        "aten::mean.out": _reduced,
        "aten::sum.IntList_out": _reduced,
        "aten::amax": _reduced,
        "aten::amin": _reduced,
        "aten::_native_batch_norm_legit_no_training": _normalized,
        "aten::native_layer_norm": _rows(
            last=lambda site: len(site.numbers(1) or ()), outs=(-3, -2, -1)
        ),
    }
)
"""By operator, or by overload."""
