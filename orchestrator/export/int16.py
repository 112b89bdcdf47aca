"""Operators between int16 tensors, as int16 calls. Needs PyTorch, ExecuTorch.

ExecuTorch's quantizer and passes for Cortex-M have int16 for quotients only. Its
operators have room for more: the calls written here are those of `cortex_m::` with
tensors of Short, int8 weights, and zero points of 0. kernels/cortex_m_int16 has kernels
for them; ExecuTorch's own runtime has none.
"""

from __future__ import annotations

import math
import operator
from typing import Any, Final

import executorch.backends.cortex_m.ops.operators as cortex_m_operators
import torch
from executorch import exir
from executorch.backends.arm.common.annotation_meta import ArmAnnotationInfo
from executorch.backends.arm.quantizer.arm_quantizer_utils import (
    PatternQuantizer,
    SharedQspecQuantizer,
)
from executorch.backends.cortex_m.passes.passes_utils import (
    get_activation_bounds,
    quantize_multiplier_aot,
)
from executorch.backends.cortex_m.quantizer import quantization_configs as configs
from executorch.backends.cortex_m.quantizer import quantizer_support as support
from executorch.backends.cortex_m.quantizer.node_finders import (
    GlobalNodeFinder,
    NodeTargetNodeFinder,
)
from executorch.backends.cortex_m.quantizer.pattern_checkers import CortexMActivationCheck
from executorch.backends.cortex_m.quantizer.pattern_matcher import PatternMatcher
from executorch.backends.cortex_m.quantizer.quantizer import CortexMQuantizer
from executorch.backends.transforms.utils import (
    create_constant_placeholder,
    delete_constant_placeholder,
    get_param_tensor,
    is_param_node,
)
from executorch.exir.dialects._ops import ops as exir_ops
from torch.export.graph_signature import InputKind
from torchao.quantization.pt2e.quantizer import ComposableQuantizer, FixedQParamsQuantizationSpec

from orchestrator.export.quantizable import quantizable

_aten: Final = exir_ops.edge.aten
_cortex_m: Final = exir_ops.edge.cortex_m
_decomposed: Final = exir_ops.edge.quantized_decomposed
_QUANTIZE: Final = _decomposed.quantize_per_tensor.default
_DEQUANTIZE: Final = _decomposed.dequantize_per_tensor.default
_PER_CHANNEL: Final = _decomposed.dequantize_per_channel.default
_INT32: Final = 2**31 - 1
# Must change with kLeftShift in kernels/cortex_m_int16/op_quantized_add.cpp.
_SUM_BITS: Final = 15
"""That sums of two tensors have behind the point. Source: op_quantized_add.cpp."""
_EXPONENT_BITS: Final = 26
"""Behind the point of what softmax takes powers of; it has 5 in front of it."""
_SHARES: Final = {
    *configs.SOFTMAX_TARGETS,
    *(torch.ops.aten.sigmoid.default, torch.ops.aten.sigmoid_.default),
    *(torch.ops.aten.tanh.default, torch.ops.aten.tanh_.default),
    *(torch.ops.aten.hardsigmoid.default, torch.ops.aten.hardsigmoid_.default),
}
"""Functions from -1 to 1, whose results have one scale, also beyond what was seen."""
# The finest scale with which int16 holds -1; 1 itself is rounded to 32767/32768.
_SHARE_SCALE: Final = 1.0 / 32768
# Kernels read shifts as 5 bits (scale.h of kernels/cortex_m_int16).
_MOST_SHIFT: Final = 31
_MOST_LEFT: Final = 8
"""That sums with biases have room for."""
# 48 bits with the sign: 64 bits hold the sum of a bias and all products.
_MOST_BIAS: Final = 2.0**47
# Sums of windows have 32 bits (prepare_pool in kernels/cortex_m_int16/pool.h).
_MOST_WINDOW: Final = 65535


# ExecuTorch says that its operators give int8. ---------------------------------------


# ExecuTorch 1.5.1, backends/cortex_m/ops/operators.py: the fake forms name torch.int8.
# Without this, memory of half the size is planned for an int16 result.
def _like_its_input(name: str, function: Any, *, at: int = 0) -> None:
    """Let an operator give the dtype of its input, not always int8."""

    def fake(*args: Any, **kwargs: Any) -> Any:
        dtype = args[at].dtype
        if dtype is torch.int8:
            return function(*args, **kwargs)
        small = [
            a.to(torch.int8) if isinstance(a, torch.Tensor) and a.dtype is dtype else a
            for a in args
        ]
        return function(*small, **kwargs).to(dtype)

    torch.library.register_fake(f"cortex_m::{name}", fake, allow_override=True)


def _same_sizes(values: Any, *_: Any) -> Any:
    """What a function of items gives."""
    return torch.empty_like(values)


def _broadcast(name: str, function: Any, *, other: int) -> None:
    """Let an operator on two tensors take int16 of all sizes that broadcast."""

    def fake(*args: Any, **kwargs: Any) -> Any:
        if args[0].dtype is torch.int8:
            return function(*args, **kwargs)
        return torch.maximum(args[0], args[other])

    torch.library.register_fake(f"cortex_m::{name}", fake, allow_override=True)


for _name in (
    *("quantized_linear", "softmax", "quantized_conv2d", "quantized_depthwise_conv2d"),
    *("quantized_avg_pool2d", "quantized_max_pool2d"),
):
    _like_its_input(_name, getattr(cortex_m_operators, f"{_name}_meta"))
_broadcast("quantized_add", cortex_m_operators.quantized_add_meta, other=4)
_broadcast("quantized_mul", cortex_m_operators.quantized_mul_meta, other=2)
torch.library.register_fake("cortex_m::quantized_activation", _same_sizes, allow_override=True)


# Where scales are. --------------------------------------------------------------------


class _Config(configs.CortexMQuantizationConfig):  # type: ignore[misc]  # ExecuTorch's is Any
    """The specification of int16 activations; biases stay floats."""

    def get_output_act_qspec(self, node: Any = None) -> Any:
        """How an output is quantized."""
        if node is not None and node.target in _SHARES:
            return FixedQParamsQuantizationSpec(
                dtype=torch.int16,
                scale=_SHARE_SCALE,
                zero_point=0,
                quant_min=-32768,
                quant_max=32767,
                qscheme=torch.per_tensor_affine,
            )
        return super().get_output_act_qspec(node)


def _config(weights: Any) -> Any:
    # Biases have no specification (None): an int32 bias has steps that are too coarse
    # for sums of int16 (decision 0038).
    spec = configs.INT16_ACTIVATION_PER_TENSOR_QSPEC
    return _Config(spec, spec, weights, None, f"{__name__}.INT16")


def _accepting(check: Any) -> Any:
    """A check of patterns that takes int16, too."""
    # ExecuTorch's check takes the dimension alone that is innermost in memory.
    if check is support.CortexMSoftmaxCheck:  # whose kernel takes any dimension
        check = CortexMActivationCheck

    def takes(*_: Any) -> bool:
        return True

    return type(f"Int16{check.__name__}", (check,), {
        "check_quantization_config": staticmethod(takes),
    })  # fmt: skip


_LEFT_OUT: Final = {
    *(torch.ops.aten.hardsigmoid.default, torch.ops.aten.hardsigmoid_.default),
    *(torch.ops.aten.hardswish.default, torch.ops.aten.hardswish_.default),
}
"""Functions that become tables, never part of a layer."""
_LAYERS: Final = support.BINARY_OP_PATTERNS | support.LINEAR_OP_PATTERNS | support.CONV_OP_PATTERNS
_SUPPORT: Final = {
    **{
        pattern: _accepting(check)
        for pattern, check in (
            _LAYERS
            | support.SOFTMAX_OP_PATTERNS
            | support.POOL_OP_PATTERNS
            | support.ACTIVATION_OP_PATTERNS
        ).items()
        if _LEFT_OUT.isdisjoint(pattern)
    },
    **{
        # ExecuTorch's patterns know relu alone; limits of an int16 call may be any.
        (layer, torch.ops.aten.relu6.default): _accepting(check)
        for (layer, *limits), check in _LAYERS.items()
        if limits == [torch.ops.aten.relu.default]
    },
    **{(target,): _accepting(CortexMActivationCheck) for target in _LEFT_OUT},
}


class Int16Quantizer(CortexMQuantizer):  # type: ignore[misc]  # ExecuTorch's is Any
    """ExecuTorch's for Cortex-M, with int16 activations for all that has kernels."""

    def __init__(self) -> None:
        matcher = PatternMatcher(_SUPPORT, support_dict_name=f"{__name__}._SUPPORT")
        layers = {
            target
            for pattern in _SUPPORT
            if pattern[0] is torch.ops.aten.conv2d.default
            for target in pattern
        }
        # CortexMQuantizer makes its list in its own __init__, of int8; its parent takes
        # ours.
        ComposableQuantizer.__init__(
            self,
            [
                PatternQuantizer(
                    _config(configs.INT8_WEIGHT_PER_CHANNEL_QSPEC),
                    node_finder=NodeTargetNodeFinder(list(layers)),
                    pattern_matcher=matcher,
                ),
                PatternQuantizer(
                    _config(configs.INT8_WEIGHT_PER_TENSOR_QSPEC),
                    node_finder=GlobalNodeFinder(),
                    pattern_matcher=matcher,
                ),
                # Last, as in CortexMQuantizer: it gives operators between others the
                # scales of their neighbours.
                SharedQspecQuantizer(),
            ],
        )

    def transform_for_annotation(self, model: Any) -> Any:
        """Change a graph before scales are chosen."""
        return super().transform_for_annotation(quantizable(model))


# Calls. -------------------------------------------------------------------------------


def called(program: Any) -> Any:
    """The program with int16 calls of what has kernels for them; changed in place.

    Args:
        program: An exported program of edge operators, after `islands.fused`.
    """
    graph = program.graph_module.graph
    # Weights become other constants below: those that nothing reads any more have to
    # leave the signature as well, or `to_executorch` stores them.
    used = [n for n in graph.nodes if is_param_node(program, n) and n.users]
    for node in list(graph.nodes):
        if _is_int16(node, _QUANTIZE):
            _call_instead(node, program)
    _unmark(graph)
    graph.eliminate_dead_code()
    for node in used:
        if not node.users:
            delete_constant_placeholder(program, node)
    graph.lint()
    program.graph_module.recompile()
    return program


def _is_int16(node: Any, target: Any) -> bool:
    """Whether a node quantizes to, or dequantizes from, int16 around 0."""
    return bool(
        isinstance(node, torch.fx.Node)
        and node.target is target
        and node.args[5] is torch.int16
        and node.args[2] == 0
    )


def _call_instead(quantize: Any, program: Any) -> None:
    """Replace an operator and the call that quantizes it, if that has a kernel."""
    node = quantize.args[0]
    if node.op == "call_function" and node.target is operator.getitem:
        node = node.args[0] if node.args[1] == 0 else node
    write = _CALLS.get(node.target) if node.op == "call_function" else None
    if write is None:
        return
    call = write(_Site(node, quantize, program))
    if call is None:
        return
    quantize.replace_all_uses_with(call)
    quantize.graph.erase_node(quantize)


def _unmark(graph: Any) -> None:
    """Keep what is left as float operators; ExecuTorch would make int8 calls of it."""
    for node in graph.nodes:
        beside = (*node.all_input_nodes, *node.users)
        if any(_is_int16(n, _QUANTIZE) or _is_int16(n, _DEQUANTIZE) for n in beside):
            # FoldAndAnnotateQParamsPass joins whatever is marked with its neighbours'
            # scales, as int8.
            node.meta.get("custom", {}).pop(ArmAnnotationInfo.CUSTOM_META_KEY, None)


class _Site:
    """An operator between int16 tensors, and what calls are written with.

    Args:
        node: The operator.
        quantize: What makes its result int16.
        program: The program.
    """

    def __init__(self, node: Any, quantize: Any, program: Any) -> None:
        self.node = node
        self.program = program
        self._quantize = quantize
        self.scale = float(quantize.args[1])
        self.limits = quantize.args[3:5]

    def argument(self, index: int, default: Any = None) -> Any:
        """An argument of the operator."""
        return self.node.args[index] if len(self.node.args) > index else default

    def int16(self, index: int) -> tuple[Any, float] | None:
        """An int16 input and its scale; None if it is something else."""
        given = self.node.args[index]
        if not _is_int16(given, _DEQUANTIZE):
            return None
        return given.args[0], float(given.args[1])

    def weights(self, index: int, outputs: int) -> tuple[Any, Any] | None:
        """Int8 weights and their scale for each output; None if there are none."""
        given = self.node.args[index]
        if given.target not in (_DEQUANTIZE, _PER_CHANNEL):
            return None
        numbers = get_param_tensor(self.program, given.args[0])
        if numbers is None or numbers.dtype is not torch.int8:
            return None
        scales, zero_points = given.args[1:3]
        if given.target is _PER_CHANNEL:
            if given.args[3] != 0:
                return None
            scales = get_param_tensor(self.program, scales)
            zero_points = get_param_tensor(self.program, zero_points)
        # The kernels multiply weights as they are: symmetric ones only.
        if bool(torch.as_tensor(zero_points).any()):
            return None
        scales = torch.as_tensor(scales, dtype=torch.float64)
        return numbers.detach(), scales.expand(outputs)

    def bias(self, index: int, steps: Any) -> Any:
        """The biases in steps of sums, as a constant; None if there are none.

        They have 32 bits if these hold them, else 64.
        """
        given = self.argument(index)
        if given is None:
            return None
        if given.target in (_DEQUANTIZE, _PER_CHANNEL):
            numbers = get_param_tensor(self.program, given.args[0])
            scales = given.args[1]
            if isinstance(scales, torch.fx.Node):
                scales = get_param_tensor(self.program, scales)
            values = numbers.double() * torch.as_tensor(scales, dtype=torch.float64)
        else:
            values = get_param_tensor(self.program, given).detach().double()
        numbers = (values / steps).round()
        # What is farther away gives a limit of the output all the same.
        numbers = numbers.clamp(-_MOST_BIAS, _MOST_BIAS).to(torch.int64)
        # The kernel takes both; 32 bits are half the flash.
        if int(numbers.abs().max()) <= _INT32:
            numbers = numbers.to(torch.int32)
        return self.constant("bias", numbers)

    def constant(self, name: str, data: Any) -> Any:
        """A constant of the program."""
        graph = self.node.graph
        first = next(node for node in graph.nodes if node.op == "placeholder")
        with graph.inserting_before(first):
            return create_constant_placeholder(
                self.program,
                graph,
                f"{self._quantize.name}_{name}",
                InputKind.PARAMETER,
                data.contiguous(),
            )

    def scratch(self) -> Any:
        """Scratch memory of no bytes: kernels here need none."""
        size = ((0,), torch.uint8)
        with self.node.graph.inserting_before(self._quantize):
            node = self.node.graph.call_function(exir.memory.alloc, (size,))
        node.meta["val"] = torch.empty(size[0], dtype=size[1], device="meta")
        return node

    def call(self, target: Any, args: Any, value: Any = None) -> Any:
        """A call that gives what the operator does, as int16."""
        with self.node.graph.inserting_before(self._quantize):
            new = self.node.graph.create_node("call_function", target, tuple(args))
        custom = dict(self._quantize.meta.get("custom", {}))
        custom.pop(ArmAnnotationInfo.CUSTOM_META_KEY, None)
        new.meta = {**self._quantize.meta, "custom": custom}
        if value is not None:
            new.meta["val"] = value
        return new


def _factor(value: float) -> tuple[int, int] | None:
    """A multiplier and a shift; None if shifts do not reach as far."""
    multiplier, shift = quantize_multiplier_aot(value)
    if shift < -_MOST_SHIFT:
        return 0, 0  # the product is less than half a step
    return None if shift > _MOST_LEFT else (int(multiplier), int(shift))


def _convolution(site: _Site) -> Any:
    """A convolution of images with weights of its own."""
    image, _, _, stride, padding, dilation, transposed, _, groups = site.node.args
    given = site.int16(0)
    outputs = site.node.meta["val"].shape[1]
    found = site.weights(1, outputs)
    images = 4
    if given is None or found is None or transposed:
        return None
    if image.meta["val"].dim() != images:
        return None
    weights, scales = found
    steps = scales * given[1]
    factors = [_factor(float(step) / site.scale) for step in steps]
    if None in factors:
        return None
    multipliers, shifts = (
        site.constant(name, torch.tensor(list(values), dtype=torch.int32))
        for name, values in zip(("multipliers", "shifts"), zip(*factors, strict=True), strict=True)
    )
    bias = site.bias(2, steps)
    depthwise = groups > 1 and groups == image.meta["val"].shape[1]
    # ExecuTorch's schemas: depthwise weights as [1, H, W, out], others as [out, H, W,
    # in].
    order = (1, 2, 3, 0) if depthwise else (0, 2, 3, 1)
    numbers = site.constant("weights", weights.permute(order))
    window = (list(stride), list(padding), list(dilation))
    scaling = (0, 0, multipliers, shifts, *site.limits, site.scratch())
    if depthwise:
        args = (given[0], numbers, bias, *window, outputs // groups, *scaling)
        return site.call(_cortex_m.quantized_depthwise_conv2d.default, args)
    args = (given[0], numbers, bias, *window, *scaling)
    return site.call(_cortex_m.quantized_conv2d.default, args)


def _linear(site: _Site) -> Any:
    """A matrix product with weights of its own."""
    given = site.int16(0)
    outputs = site.node.meta["val"].shape[-1]
    found = site.weights(1, outputs)
    if given is None or found is None:
        return None
    weights, scales = found
    if not bool((scales == scales[0]).all()):
        return None  # the operator has one scale
    steps = scales * given[1]
    factor = _factor(float(steps[0]) / site.scale)
    if factor is None:
        return None
    low, high = site.limits
    args = (
        *(given[0], site.constant("weights", weights), site.bias(2, steps), None),
        *(0, 0, 0, [factor[0]], [factor[1]], high, low),
    )
    return site.call(_cortex_m.quantized_linear.default, args)


def _sum(site: _Site) -> Any:
    """A sum or a difference."""
    first, second = site.int16(0), site.int16(1)
    alpha = site.node.kwargs.get("alpha", 1)
    if first is None or second is None or not isinstance(alpha, int) or alpha == 0:
        return None
    sign = -1 if (alpha < 0) != (site.node.target is _aten.sub.Tensor) else 1
    one, other = first[1], second[1] * abs(alpha)
    # As ExecuTorch does for int8: both factors are then at most a half, so that the sum
    # of two shifted items fits 32 bits.
    most = 2 * max(one, other)
    factors = [_factor(one / most), _factor(other / most)]
    total = _factor(most / (site.scale * (1 << _SUM_BITS)))
    # A shift to the left would lose bits that the sum has to the left of its point.
    if None in factors or total is None or total[1] > 0:
        return None
    (a, a_shift), (b, b_shift) = (f for f in factors if f is not None)
    args = (*(first[0], 0, a, a_shift, second[0], 0, sign * b, b_shift), *(0, *total, *site.limits))
    return site.call(_cortex_m.quantized_add.default, args)


def _product(site: _Site) -> Any:
    """A product item by item; its kernel has the limits of int16 only."""
    first, second = site.int16(0), site.int16(1)
    if first is None or second is None:
        return None
    factor = _factor(first[1] * second[1] / site.scale)
    if factor is None or factor[1] > 0:
        return None
    args = (first[0], 0, second[0], 0, 0, *factor)
    return site.call(_cortex_m.quantized_mul.default, args)


def _quotient(site: _Site) -> Any:
    """A quotient, of which kernels/cortex_m has the kernel."""
    first, second = site.int16(0), site.int16(1)
    if first is None or second is None or site.node.kwargs:
        return None
    if first[0].meta["val"].shape != second[0].meta["val"].shape:
        return None
    scale = first[1] / (second[1] * site.scale)
    # quantized_div takes a float scale where all others take multiplier and shift
    # (schema of ExecuTorch 1.5.1).
    args = (first[0], 0, second[0], 0, 0, scale)
    return site.call(_cortex_m.quantized_div.default, args)


def _softmax(site: _Site) -> Any:
    """Softmax, whose output has a scale of its own."""
    given = site.int16(0)
    if given is None or site.argument(2, default=False) or site.scale != _SHARE_SCALE:
        return None
    factor = _factor_of(given[1] * (1 << _EXPONENT_BITS))
    if not 0 <= factor[1] <= _MOST_SHIFT:
        return None
    # Five bits in front of the point: e**-31 is less than half of a step of 1/32768, so
    # that what is farther from the largest item is 0.
    farthest = -math.floor(31 * (1 << _EXPONENT_BITS) / 2.0 ** factor[1])
    args = (given[0], site.argument(1), 0, 0, *factor, farthest)
    return site.call(_cortex_m.softmax.default, args)


def _average(site: _Site) -> Any:
    """Average pooling with one scale."""
    given = site.int16(0)
    if given is None or given[1] != site.scale or site.argument(6) is not None:
        return None
    kernel = list(site.argument(1))
    stride = list(site.argument(2) or kernel)
    padding = list(site.argument(3, default=[0, 0]))
    ceil_mode = bool(site.argument(4, default=False))
    if math.prod(kernel) > _MOST_WINDOW:
        return None
    image = given[0]
    if any(padding) and site.argument(5, default=True):
        if ceil_mode:
            return None
        image = _padded(site, image, [padding[1]] * 2 + [padding[0]] * 2)
        padding = [0, 0]
    args = (image, kernel, stride, padding, ceil_mode, 0, *_factor_of(given[1]))
    return site.call(_cortex_m.quantized_avg_pool2d.default, (*args, site.scratch()))


def _factor_of(scale: float) -> tuple[int, int]:
    """A multiplier and a shift of any size."""
    multiplier, shift = quantize_multiplier_aot(scale)
    return int(multiplier), int(shift)


def _padded(site: _Site, image: Any, padding: list[int]) -> Any:
    """An image with zeros around it."""
    value = torch.nn.functional.pad(image.meta["val"], padding)
    value = value.contiguous(memory_format=torch.channels_last)
    return site.call(_aten.constant_pad_nd.default, (image, padding, 0), value)


def _largest(site: _Site) -> Any:
    """Max pooling with one scale."""
    given = site.int16(0)
    if given is None or given[1] != site.scale:
        return None
    kernel = list(site.argument(1))
    if math.prod(kernel) > _MOST_WINDOW:
        return None
    args = (
        *(given[0], kernel, list(site.argument(2) or kernel)),
        *(list(site.argument(3, default=[0, 0])), list(site.argument(4, [1, 1]))),
        *(bool(site.argument(5, default=False)), 0, 0, *site.limits),
    )
    return site.call(_cortex_m.quantized_max_pool2d.default, args)


def _pad(site: _Site) -> Any:
    """Padding by a number: the portable kernel moves items of any dtype."""
    given = site.int16(0)
    if given is None or given[1] != site.scale:
        return None
    number = round(float(site.argument(2, default=0) or 0) / site.scale)
    low, high = site.limits
    args = (given[0], list(site.argument(1)), max(low, min(high, number)))
    return site.call(_aten.constant_pad_nd.default, args)


def _extreme(site: _Site) -> Any:
    """The larger or smaller items of two tensors of one scale: of any dtype, too."""
    first, second = site.int16(0), site.int16(1)
    if first is None or second is None or not first[1] == second[1] == site.scale:
        return None
    return site.call(site.node.target, (first[0], second[0]))


def _limit(site: _Site) -> Any:
    """Limits of the items of one scale: the portable kernel takes any dtype, too."""
    given = site.int16(0)
    bounds = get_activation_bounds(site.node)
    if given is None or given[1] != site.scale or bounds is None:
        return None
    low, high = (
        limit if bound is None else round(bound / site.scale)
        for bound, limit in zip(bounds, site.limits, strict=True)
    )
    low, high = max(low, site.limits[0]), min(high, site.limits[1])
    return site.call(_aten.clamp.default, (given[0], low, high))


_CALLS: Final = {
    _aten.relu.default: _limit,
    _aten.hardtanh.default: _limit,
    _aten.clamp.default: _limit,
    _aten.convolution.default: _convolution,
    _aten.linear.default: _linear,
    _aten.add.Tensor: _sum,
    _aten.sub.Tensor: _sum,
    _aten.mul.Tensor: _product,
    _aten.div.Tensor: _quotient,
    _aten._softmax.default: _softmax,  # noqa: SLF001  # its name
    _aten.avg_pool2d.default: _average,
    _aten.max_pool2d.default: _largest,
    _aten.max_pool2d_with_indices.default: _largest,
    _aten.constant_pad_nd.default: _pad,
    _aten.maximum.default: _extreme,
    _aten.minimum.default: _extreme,
}
