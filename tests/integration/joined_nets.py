"""Random methods of a few calls that passes join, and of near misses."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np

from orchestrator.core.dtype import ScalarType
from orchestrator.core.operator import OperatorName
from orchestrator.program.encode import write_program
from orchestrator.program.program import KernelCall, Method, Program
from orchestrator.program.values import (
    Allocation,
    BoolValue,
    DoubleValue,
    Dynamism,
    IntListValue,
    IntValue,
    NoneValue,
    TensorListValue,
    TensorValue,
)
from tests.unit.schemas import schemas

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from orchestrator.program.values import Value

NHWC: Final = (0, 2, 3, 1)
ALIGNMENT: Final = 16
_S: Final = ScalarType
_FORMS: Final = {_S.Char: "i1", _S.Int: "<i4", _S.Float: "<f4", _S.Byte: "u1"}


@dataclass(frozen=True, slots=True)
class T:
    """A tensor of a net; constants have items."""

    index: int
    sizes: tuple[int, ...]
    dtype: ScalarType
    order: tuple[int, ...]


@dataclass(kw_only=True)
class Net:
    """A method while calls are added; memory is laid out as exporters do it."""

    name: str
    values: list[Value] = field(default_factory=list)
    constants: list[bytes] = field(default_factory=list)
    calls: list[tuple[str, tuple[int, ...]]] = field(default_factory=list)
    inputs: list[T] = field(default_factory=list)
    outputs: list[T] = field(default_factory=list)

    def slot(self, value: Value) -> int:
        self.values.append(value)
        return len(self.values) - 1

    def tensor(
        self,
        sizes: Sequence[int],
        dtype: ScalarType = _S.Char,
        order: Sequence[int] = (),
        *,
        constant: int = 0,
    ) -> T:
        order = tuple(order) or tuple(range(len(sizes)))
        index = self.slot(
            TensorValue(
                dtype=dtype,
                sizes=tuple(map(int, sizes)),
                dim_order=order,
                dynamism=Dynamism.STATIC,
                data_buffer_index=constant,
                allocation=None,
                extra=None,
                requires_grad=False,
            )
        )
        return T(index, tuple(sizes), dtype, order)

    def constant(self, items: Any, dtype: ScalarType, order: Sequence[int] = ()) -> T:
        """A constant; items are given as they lie in memory."""
        items = np.ascontiguousarray(items, _FORMS[dtype])
        order = tuple(order) or tuple(range(items.ndim))
        self.constants.append(items.tobytes())
        sizes = [items.shape[order.index(d)] for d in range(items.ndim)]
        return self.tensor(sizes, dtype, order, constant=len(self.constants))

    def call(self, operator: str, *args: Any) -> T:
        """A call, and the first tensor that it writes."""
        self.calls.append((operator, tuple(map(self._argument, args))))
        outs = sum(a.is_out for a in schemas()[OperatorName.parse(operator)].arguments)
        out = args[-outs]
        assert isinstance(out, T)
        return out

    def _argument(self, given: Any) -> int:
        if isinstance(given, T):
            return given.index
        if given is None:
            return self.slot(NoneValue())
        if isinstance(given, bool):
            return self.slot(BoolValue(value=given))
        if isinstance(given, float):
            return self.slot(DoubleValue(given))
        if isinstance(given, (tuple, list)):
            return self.slot(IntListValue(tuple(map(self._argument, given))))
        return self.slot(IntValue(int(given)))

    def given(self, sizes: Sequence[int], *how: Any) -> T:
        """An input."""
        found = self.tensor(sizes, *how)
        self.inputs.append(found)
        return found

    def returns(self, *outputs: T) -> Self:
        """Name the outputs."""
        self.outputs += outputs
        return self

    def method(self, first_constant: int) -> Method:
        """The method; tensors take the first place that is free."""
        names = tuple(dict.fromkeys(OperatorName.parse(name) for name, _ in self.calls))
        instructions = []
        for name, args in self.calls:
            schema = schemas()[OperatorName.parse(name)]
            count = sum(a.is_out for a in schema.arguments)
            results = args[-count:] if schema.result is not None else ()
            if count > 1:
                results = (self.slot(TensorListValue(results)),)
            operator = names.index(OperatorName.parse(name))
            instructions.append(KernelCall(operator=operator, args=(*args, *results)))
        values, size = self._laid_out(first_constant)
        return Method(
            name=self.name,
            values=tuple(values),
            inputs=tuple(t.index for t in self.inputs),
            outputs=tuple(t.index for t in self.outputs),
            instructions=tuple(instructions),
            operators=names,
            delegates=(),
            arena_bytes=(0, max(size, ALIGNMENT)),
        )

    def _lifetimes(self) -> dict[int, list[int]]:
        """By value: when it is written or read; -1 is before the run."""
        live: dict[int, list[int]] = {}
        for tensor in self.inputs:
            live.setdefault(tensor.index, []).append(-1)
        for number, (_, args) in enumerate(self.calls):
            for arg in args:
                live.setdefault(arg, []).append(number)
        for tensor in self.outputs:
            live.setdefault(tensor.index, []).append(len(self.calls))
        return live

    def _laid_out(self, first_constant: int) -> tuple[list[Value], int]:
        """Values with places, and the bytes of the arena."""
        values, placed, size = [*self.values], list[tuple[int, ...]](), 0
        for index, times in self._lifetimes().items():
            value = values[index]
            if not isinstance(value, TensorValue):
                continue
            if value.data_buffer_index:
                number = first_constant + value.data_buffer_index
                values[index] = replace(value, data_buffer_index=number)
                continue
            first, last, at = min(times), max(times), 0
            for begin, to, since, until in sorted(placed):
                if since <= last and first <= until and begin < at + value.size_bytes:
                    at = max(at, -(-to // ALIGNMENT) * ALIGNMENT)
            to = at + value.size_bytes
            placed.append((at, to, first, last))
            size = max(size, to)
            place = Allocation(memory_id=1, offset_bytes=at)
            values[index] = replace(value, allocation=place)
        return values, size


def program_bytes(nets: Sequence[Net]) -> bytes:
    """A program with a method for each net."""
    methods, constants = [], [b""]
    for net in nets:
        methods.append(net.method(len(constants) - 1))
        constants += net.constants
    program = Program(
        version=0,
        header=None,
        methods=tuple(methods),
        segments=(),
        constants=None,
        mutable_segments=(),
        named_data=(),
        inline_constants=((0, 0),),
        inline_data=(),
        data=b"",
    )
    return bytes(write_program(program, constants=constants[1:]))


def write_nets(folder: Path, nets: Sequence[Net], rng: np.random.Generator) -> None:
    """The program, and a scenario that calls each method, two times."""
    (folder / "nets.pte").write_bytes(program_bytes(nets))
    runs = []
    for number, net in enumerate([*nets, *nets]):
        inputs = []
        for at, tensor in enumerate(net.inputs):
            if tensor.dtype is _S.Float:
                items = rng.standard_normal(tensor.sizes).astype(np.float32)
            else:
                items = rng.integers(-128, 128, tensor.sizes).astype(np.int8)
            file = f"in{number}-{at}.npy"
            np.save(folder / file, items)
            inputs.append({"kind": "tensor", "file": file})
        runs.append({"method": net.name, "inputs": inputs})
    scenario = {"runs": runs, "tolerance": {"atol": 0, "rtol": 0}}
    (folder / "scenario.json").write_text(json.dumps(scenario))


class Random:
    """Layers with random parameters.

    Args:
        seed: Of the generator.
    """

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def one(self, low: int, high: int) -> int:
        """A number, both ends included."""
        return int(self.rng.integers(low, high + 1))

    def maybe(self, times: int) -> bool:
        """True once in so many times."""
        return self.one(1, times) == 1

    def scales(self, net: Net, outputs: int) -> tuple[T, T]:
        """Multipliers and shifts, as exporters write them."""
        multipliers = self.rng.integers(1 << 30, 1 << 31, outputs)
        shifts = -self.rng.integers(6, 10, outputs)
        return net.constant(multipliers, _S.Int), net.constant(shifts, _S.Int)

    def limits(self) -> tuple[int, int, int]:
        """Offset, lowest and highest of outputs."""
        offset = self.one(-128, 127) if self.maybe(2) else -128
        if self.maybe(3):
            return offset, offset, max(offset, 90)
        return offset, -128, 127

    def convolution(
        self,
        net: Net,
        x: T,
        zero_point: int,
        *,
        nhwc: bool = False,
        padding: Sequence[int] = (0, 0),
        stride: Sequence[int] = (),
    ) -> T | None:
        """A convolution over an image; None if the image is too small.

        With a stride it has windows of 3 x 3.
        """
        batch, *size, channels = x.sizes if nhwc else (x.sizes[d] for d in NHWC)
        depthwise = self.maybe(2)
        outputs = channels if depthwise else self.one(1, 9)
        kernel = [3, 3]
        dilation = [1, 1]
        if not stride:
            kernel = [self.one(1, 4) for _ in "hw"] if self.maybe(2) else kernel
            stride = [self.one(1, 3) for _ in "hw"] if self.maybe(2) else [1, 1]
            dilation = [self.one(1, 2) for _ in "hw"] if self.maybe(3) else dilation
        axes = zip(size, kernel, stride, padding, dilation, strict=True)
        out = [(n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, s, p, d in axes]
        if min(out) <= 0:
            return None
        weights = np.clip(self.rng.normal(0, 40, (outputs, *kernel, channels)), -127, 127)
        if depthwise:
            weights = weights[:, :, :, :1].transpose(3, 1, 2, 0)
        sizes = (batch, *out, outputs)
        y = net.tensor(
            sizes if nhwc else [sizes[NHWC.index(d)] for d in range(4)],
            _S.Char,
            () if nhwc else NHWC,
        )
        bias = self.rng.integers(-3000, 3000, outputs)
        offset, low, high = self.limits()
        multipliers, shifts = self.scales(net, outputs)
        name = "quantized_depthwise_conv2d" if depthwise else "quantized_conv2d"
        return net.call(
            f"cortex_m::{name}{'_nhwc' if nhwc else ''}.out",
            *(x, net.constant(weights.round(), _S.Char)),
            net.constant(bias, _S.Int) if self.one(0, 2) else None,
            *(stride, padding, dilation, *((1,) if depthwise else ())),
            *(-zero_point, offset, multipliers, shifts, low, high),
            net.tensor((0,), _S.Byte),
            y,
        )

    def pool(self, net: Net, x: T, *, nhwc: bool, lowest: int, padding: Sequence[int]) -> T | None:
        """The largest items of windows; None if the image is too small."""
        batch, *size, channels = x.sizes if nhwc else (x.sizes[d] for d in NHWC)
        kernel = [self.one(2, 4) for _ in "hw"]
        stride = [self.one(1, 3) for _ in "hw"]
        padding = [min(p, k // 2) for p, k in zip(padding, kernel, strict=True)]
        axes = [*zip(size, kernel, stride, padding, strict=True)]
        out = [(n + 2 * p - k) // s + 1 for n, k, s, p in axes]
        is_exact = all((n + 2 * p - k) % s == 0 for n, k, s, p in axes)
        if min(out) <= 0 or min(size) <= 0:
            return None
        sizes = (batch, *out, channels)
        y = net.tensor(
            sizes if nhwc else [sizes[NHWC.index(d)] for d in range(4)],
            _S.Char,
            () if nhwc else NHWC,
        )
        return net.call(
            f"cortex_m::quantized_max_pool2d{'_nhwc' if nhwc else ''}.out",
            *(x, kernel, stride, padding, [1, 1], is_exact and self.maybe(2)),
            *(3, 3, lowest, 127, y),
        )

    def image(self, net: Net, *, nhwc: bool) -> T:
        """An input."""
        sizes = (self.one(1, 2), self.one(1, 9), self.one(1, 9), self.one(1, 9))
        if nhwc:
            return net.given(sizes)
        return net.given([sizes[NHWC.index(d)] for d in range(4)], _S.Char, NHWC)

    def table(self, net: Net, x: T, items: Any) -> T:
        """A function of items."""
        lut = net.constant(items, _S.Char)
        y = net.tensor(x.sizes, x.dtype, x.order)
        return net.call("cortex_m::quantized_activation.out", x, lut, y)
