"""Packed weights give the bits of the plain kernel, for windows of every kind.

A product of methods with one random call each runs on the host, whose kernel is plain
C++, and on cores with DSP or vector instructions, where the build packs what the packed
kernels can take, and leaves the rest.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pytest

from orchestrator.core.dtype import ScalarType
from orchestrator.method.passes import prepare_calls
from orchestrator.method.passes.packing.pixels import Pixels
from tests.qemu.call_products import Guarded, linked_calls, run_calls, write_calls
from tests.tools import need_emulator, need_toolchain
from tests.unit.method.recorded_calls import Call, Tensor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from orchestrator.method.passes.arguments import Arguments
    from orchestrator.method.passes.preparing.form import Form, Preparer

pytestmark = [pytest.mark.toolchain, pytest.mark.qemu]

COUNT: Final = 150
NARROW: Final = 40
"""Further ones, of `narrow`."""
NHWC: Final = (0, 2, 3, 1)
_S: Final = ScalarType
DSP_LOOPS: Final = {
    *("orch_packed_pixels", "orch_packed_tiles", "orch_packed_depthwise"),
    *("orch_packed_two_rows", "orch_packed_two_rows_swapped"),
    *("orch_packed_row", "orch_packed_row_swapped"),
}
"""Inner loops of the kernels, all of which some call takes."""
LIMITED: Final[dict[str, tuple[str, ...]]] = {
    "dsp": ("conv2d", "matrix", "depthwise", "depthwise_3x3"),
    "mve": ("pixels", "pixel", "depthwise", "depthwise_strips"),
}
"""Kernels with limits that some call takes; and of products that favour speed:"""
UNROLLED: Final = Pixels.WHOLE[1:]
LIMITED_FAST: Final = ("lines", *UNROLLED)
CORES: Final = (
    *(("cortex-m4", "gnu", "size"), ("cortex-m4", "zig", "speed")),
    *(("cortex-m33", "gnu", "speed"), ("cortex-m7", "zig", "size")),
    *(("cortex-m55", "gnu", "size"), ("cortex-m55", "zig", "speed")),
    # Plain kernels, in another instruction set.
    pytest.param(("cortex-m0plus", "gnu", "size"), marks=pytest.mark.nightly),
)
TWO_CORES: Final = (
    ("cortex-m4", "zig", "size"),
    pytest.param(("cortex-m7", "gnu", "speed"), marks=pytest.mark.nightly),
)
BAND_CORES: Final = (("cortex-m55", "zig", "size"), ("cortex-m55", "gnu", "speed"))
_BAND_NAMES: Final = ("packed_pixels", "packed_depthwise_strips")
_FAST_NAMES: Final = tuple(f"packed_{name}" for name in UNROLLED)


def tensor(data: Any, dtype: ScalarType, order: tuple[int, ...] = ()) -> Tensor:
    """A tensor of these items; images are given as they lie in memory."""
    form = {_S.Char: "i1", _S.Int: "<i4"}[dtype]
    sizes = dict(zip(order, data.shape, strict=True)) if order else {}
    return Tensor(
        dtype=dtype,
        sizes=tuple(sizes[d] for d in range(data.ndim)) if order else data.shape,
        order=order or tuple(range(data.ndim)),
        data=np.ascontiguousarray(data, form).tobytes(),
    )


class _Images(NamedTuple):
    size: Sequence[int]
    channels: int
    groups: int
    outputs: int


class _Windows(NamedTuple):
    kernel: tuple[int, int]
    stride: tuple[int, int]
    padding: tuple[int, int]
    dilation: tuple[int, int]


class _Random:
    """Random calls; every third has something that the packed kernel does not take."""

    def __init__(self, seed: int = 18) -> None:
        self.rng = np.random.default_rng(seed)

    def one(self, low: int, high: int) -> int:
        return int(self.rng.integers(low, high + 1))

    def fours(self) -> int:
        """1 to 33, half of them a multiple of 4."""
        return 4 * self.one(1, 8) if self.one(0, 1) else self.one(1, 33)

    def items(self, *sizes: int) -> Any:
        """Anything, and often the limits."""
        anything = self.rng.integers(-128, 128, sizes)
        edges = self.rng.choice([-128, -127, -1, 0, 127], sizes)
        return np.where(self.rng.random(sizes) < 0.2, edges, anything)

    def weights(self, *sizes: int) -> Any:
        """As quantizers make them: few are -128; or many are."""
        if self.one(0, 5) == 0:
            return self.items(*sizes)
        found = np.clip(self.rng.normal(0, 45, sizes).round(), -127, 127)
        flat = found.reshape(-1)
        flat[self.rng.integers(0, flat.size, self.one(0, 3))] = -128
        return found

    def scales(self, outputs: int) -> tuple[Any, Any, Any]:
        """Biases, multipliers and shifts."""
        bias = self.rng.integers(-20000, 20000, outputs)
        multipliers = self.rng.integers(1 << 30, 1 << 31, outputs)
        if outputs % 3 == 0:
            multipliers[:] = 1 << 30  # products that end with ties
        shifts = -self.rng.integers(0 if self.one(0, 9) == 0 else 5, 12, outputs)
        if self.one(0, 9) == 0:
            shifts[0] = 1
        if self.one(0, 3) == 0:
            # Some exporters leave all of the scale to the multiplier.
            return bias, multipliers >> self.one(4, 10), shifts * 0
        return bias, multipliers, shifts

    def limits(self) -> tuple[int, int, int]:
        """Offset, lowest and highest of the outputs."""
        offset = int(self.rng.choice([-128, 0, self.one(-128, 127)]))
        return offset, *self.range(offset)

    def range(self, offset: int) -> tuple[int, int]:
        """Lowest and highest output: most often all there are, or as after a ReLU."""
        if self.one(0, 2):
            return -128, 127
        low = offset if self.one(0, 2) else self.one(-128, 127)
        return low, max(low, self.one(-128, 127), 127 * self.one(0, 1))

    def image(self) -> Call:
        depthwise = self.one(0, 1) == 0
        groups = self.one(1, 2) if not depthwise and self.one(0, 5) == 0 else 1
        channels, multiplier = self.one(1, 17), self.one(1, 33)
        if depthwise and self.one(0, 2):
            channels, multiplier = self.fours(), 1
        elif depthwise:
            channels, multiplier = self.one(1, 9), self.one(1, 6)
        outputs = (channels if depthwise else groups) * multiplier
        kernel = (self.one(1, 4), self.one(1, 4))
        stride, dilation = (self.one(1, 2), self.one(1, 3)), (self.one(1, 2), 1)
        padding = (self.one(0, 2), self.one(0, 1))
        size = [(k - 1) * d + 1 + self.one(0, 5) for k, d in zip(kernel, dilation, strict=True)]
        if self.one(0, 3) == 0:
            # A pixel at a time.
            kernel, padding = (1, 1), (0, 0)
            channels = channels if depthwise else 16
        return self.call(
            _Images(size, channels, groups, outputs),
            _Windows(kernel, stride, padding, dilation),
            self.limits(),
            depthwise=depthwise,
        )

    def depthwise(self) -> Call:
        """Most with outputs as after a ReLU, over images of all sizes."""
        channels = self.one(2, 40)
        kernel = (self.one(1, 5), self.one(1, 5)) if self.one(0, 2) == 0 else (3, 3)
        stride = (self.one(1, 3), self.one(1, 3)) if self.one(0, 1) else (1, 1)
        dilation = (self.one(1, 3), self.one(1, 2)) if self.one(0, 2) == 0 else (1, 1)
        padding = (self.one(0, 2), self.one(0, 2))
        # Small enough to lie in the padding on both sides, or wide.
        size = [
            max((k - 1) * d + 1 - 2 * p, 1) + self.one(0, 40 if self.one(0, 2) == 0 else 8)
            for k, d, p in zip(kernel, dilation, padding, strict=True)
        ]
        if size[0] * size[1] > 250:
            size[self.one(0, 1)] = 6 + (max(kernel) - 1) * 3
        return self.call(
            _Images(size, channels, 1, channels),
            _Windows(kernel, stride, padding, dilation),
            (-128, *self.range(-128)) if self.one(0, 5) else self.limits(),
            depthwise=True,
        )

    def words(self) -> Call:
        """Depthwise windows of 3 x 3 over images of words, most whole, as after a ReLU."""
        stride = self.one(1, 2)
        padding = (self.one(0, 2), self.one(0, 2))
        size = [max(3 - 2 * p, 1) + self.one(6, 15) for p in padding]
        channels = 4 * self.one(2, 8) + self.one(1, 3) * (self.one(0, 2) == 0)
        return self.call(
            _Images(size, channels, 1, channels),
            _Windows((3, 3), (stride, stride), padding, (1, 1)),
            (-128, *self.range(-128)),
            depthwise=True,
        )

    def first(self) -> Call:
        """The first layers of nets: few channels."""
        kernel = (self.one(1, 5), self.one(2, 5))
        padding = (self.one(0, 2), self.one(0, 2))
        stride = (self.one(1, 2), self.one(1, 2))
        size = [k + self.one(0, 9) for k in kernel]
        return self.call(
            _Images(size, self.one(1, 5), 1, self.one(1, 33)),
            _Windows(kernel, stride, padding, (1, 1)),
            self.limits(),
            depthwise=False,
        )

    def narrow(self) -> Call:
        """Windows along one axis, dilated as well, over images of few lines."""
        along = self.one(0, 1)
        k, d, p = self.one(1, 5), self.one(1, 3), self.one(0, 2)
        # Across: a pixel, or three that reach into the padding.
        across = (3, 1) if self.one(0, 1) else (1, 0)
        length = max((k - 1) * d + 1 - 2 * p, 1) + self.one(0, 9)
        axes = [(length, k, self.one(1, 2), p, d), (self.one(1, 2), across[0], 1, across[1], 1)]
        size, kernel, stride, padding, dilation = zip(axes[along], axes[1 - along], strict=True)
        return self.call(
            _Images(size, self.one(1, 17), 1, self.one(1, 9)),
            _Windows(kernel, stride, padding, dilation),
            self.limits(),
            depthwise=False,
        )

    def lines(self) -> Call:
        """Windows of three lines, over whole vectors of channels."""
        channels, outputs = 16 * self.one(1, 4), self.one(1, 9)
        kernel, dilation = (3, self.one(1, 4)), (1, self.one(1, 2))
        padding = (self.one(0, 2), self.one(0, 2))
        size = [
            max((k - 1) * d + 1 - 2 * p, 1) + more
            for k, d, p, more in zip(
                kernel, dilation, padding, (self.one(0, 12), self.one(0, 3)), strict=True
            )
        ]
        return self.call(
            _Images(size, channels, 1, outputs),
            _Windows(kernel, (1, self.one(1, 2)), padding, dilation),
            self.limits(),
            depthwise=False,
        )

    def transposed(self) -> Call:
        """Kernels may be smaller than the stride, and outputs end in padding."""
        channels, outputs = self.one(1, 20), self.one(1, 12)
        kernel = (self.one(1, 4), self.one(1, 4))
        stride, dilation = (self.one(1, 3), self.one(1, 3)), (self.one(1, 2), 1)
        more = tuple(self.one(0, s - 1) for s in stride)
        size = (self.one(2, 6), self.one(2, 6))
        whole = [
            (n - 1) * s + (k - 1) * d + 1 + m
            for n, k, s, d, m in zip(size, kernel, stride, dilation, more, strict=True)
        ]
        padding = tuple(
            min(self.one(0, k - 1), (n - 1) // 2) for k, n in zip(kernel, whole, strict=True)
        )
        out = [n - 2 * p for n, p in zip(whole, padding, strict=True)]
        bias, multipliers, shifts = self.scales(outputs)
        offset, low, high = self.limits()
        batch = self.one(1, 2)
        y = np.zeros((batch, *out, outputs))
        return Call(
            "cortex_m::quantized_transpose_conv2d.out",
            (
                tensor(self.items(batch, *size, channels), _S.Char, NHWC),
                tensor(self.weights(outputs, *kernel, channels), _S.Char),
                tensor(bias, _S.Int) if self.one(0, 3) else None,
                *(stride, padding, more, dilation),
                *(self.one(-127, 128), offset),
                tensor(multipliers, _S.Int),
                tensor(shifts, _S.Int),
                *(low, high),
                Tensor(_S.Byte, (0,), (0,), b""),
                Tensor(_S.Byte, (0,), (0,), b""),
                replace(tensor(y, _S.Char, NHWC), is_out=True),
            ),
        )

    def call(
        self, images: _Images, windows: _Windows, limits: tuple[int, int, int], *, depthwise: bool
    ) -> Call:
        size, channels, groups, outputs = images
        kernel, stride, padding, dilation = windows
        batch = self.one(1, 2)
        out = [
            (n + 2 * p - (k - 1) * d - 1) // s + 1
            for n, k, s, p, d in zip(size, kernel, stride, padding, dilation, strict=True)
        ]
        bias, multipliers, shifts = self.scales(outputs)
        offset, low, high = limits
        x = self.items(batch, *size, channels * groups)
        w = self.weights(outputs, *kernel, 1 if depthwise else channels)
        y = replace(tensor(np.zeros((batch, *out, outputs)), _S.Char, NHWC), is_out=True)
        name = "quantized_depthwise_conv2d" if depthwise else "quantized_conv2d"
        return Call(
            f"cortex_m::{name}.out",
            (
                tensor(x, _S.Char, NHWC),
                tensor(w.transpose(3, 1, 2, 0) if depthwise else w, _S.Char),
                tensor(bias, _S.Int) if self.one(0, 3) else None,
                *(stride, padding, dilation),
                *((outputs // channels,) if depthwise else ()),
                *(self.one(-127, 128), offset),
                tensor(multipliers, _S.Int),
                tensor(shifts, _S.Int),
                *(low, high),
                Tensor(_S.Byte, (0,), (0,), b""),
                y,
            ),
        )

    def matrix(self) -> Call:
        rows, depth, outputs = self.one(1, 4), self.one(1, 70), self.fours()
        bias, multipliers, shifts = self.scales(outputs)
        offset, low, high = self.limits()
        has_sums = self.one(0, 1) == 1
        sums = tensor(bias, _S.Int)
        y = replace(tensor(np.zeros((rows, outputs)), _S.Char), is_out=True)
        return Call(
            "cortex_m::quantized_linear.out",
            (
                tensor(self.items(rows, depth), _S.Char),
                tensor(self.weights(outputs, depth), _S.Char),
                None if has_sums else sums,
                sums if has_sums else None,
                *(self.one(-127, 128), int(self.one(0, 9) == 0), offset),
                (int(multipliers[0]),),
                (int(shifts[0]),),
                *(high, low),
                y,
            ),
        )


def _calls() -> Iterator[Call]:
    random = _Random()
    for number in range(COUNT):
        kinds = (
            *(random.image, random.depthwise, random.words, random.matrix),
            *(random.words, random.first),
        )
        rest = {6: random.lines, 4: random.transposed}
        yield rest.get(number % 8, kinds[number % len(kinds)])()
    others = _Random(19)
    for _ in range(NARROW):
        yield others.narrow()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program, and a scenario that calls all of its methods."""
    folder = tmp_path_factory.mktemp("packed")
    write_calls(folder, [(call, frozenset({0})) for call in _calls()])
    return folder


@pytest.fixture(scope="module")
def plain(folder: Path) -> list[Guarded]:
    """Outputs of plain C++ on the host."""
    need_toolchain("host", "zig")
    return run_calls(folder, "host", "zig")[1]


@pytest.fixture
def change_no_bit(
    folder: Path, plain: list[Guarded], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., None]:
    """Lets all calls of some kernels have others, with a suffix, and compares bits."""

    def check(core: tuple[str, str, str], kernels: tuple[str, ...], suffix: str) -> None:
        cpu, toolchain, optimize = core
        need_toolchain(cpu, toolchain)
        need_emulator(cpu)
        names = (*kernels, *(f"limited_{name}" for name in kernels))
        changed = dict(prepare_calls.PREPARERS)
        for name in names:
            function = f"orch::cortex_m::{name}_out"
            other = partial(_with_suffix, prepare=changed[function], suffix=suffix)
            changed[function] = other
        monkeypatch.setattr(prepare_calls, "PREPARERS", changed)
        monkeypatch.setenv("ORCHESTRATOR_CACHE", str(tmp_path))
        product, outputs = run_calls(folder, cpu, toolchain, optimize=optimize, name=f"{suffix}-")
        different = [n for n in range(COUNT + NARROW) if outputs[n] != plain[n]]
        assert different == []
        calls = linked_calls(product)
        functions = {call.function.rpartition("::")[2] for call in calls}
        assert functions >= {f"{name}_{suffix}" for name in names}
        assert not functions.intersection(names)

    return check


def test_a_convolution_alone_of_one_channel_in_each_group_has_its_kernel(tmp_path: Path) -> None:
    """With DSP that of depthwise ones, whose sources only these have to name otherwise."""
    need_toolchain("cortex-m4", "gnu")
    need_emulator("cortex-m4")
    random = _Random()
    call = random.call(
        _Images((5, 5), 1, 4, 8),
        _Windows((2, 2), (1, 1), (0, 0), (1, 1)),
        (-128, -128, 127),
        depthwise=False,
    )
    write_calls(tmp_path, [(call, frozenset({0}))])
    product, _ = run_calls(tmp_path, "cortex-m4", "gnu")
    (linked,) = linked_calls(product)
    assert linked.function == "orch::cortex_m::packed_depthwise"


@pytest.mark.parametrize("core", TWO_CORES, ids="-".join)
def test_two_pixels_at_once_change_no_bit(
    core: tuple[str, str, str], change_no_bit: Callable[..., None]
) -> None:
    """Calls get the kernel for bands of few pixels, which takes all of them."""
    change_no_bit(core, ("packed_conv2d",), "two")


@pytest.mark.parametrize("core", BAND_CORES, ids="-".join)
def test_odd_pixels_by_themselves_change_no_bit(
    core: tuple[str, str, str], change_no_bit: Callable[..., None]
) -> None:
    """The same of kernels for bands with vectors."""
    fast = _FAST_NAMES if core[2] == "speed" else ()
    change_no_bit(core, (*_BAND_NAMES, *fast), "band")


def _with_suffix(arguments: Arguments, isa: str, prepare: Preparer, suffix: str) -> Form:
    form = prepare(arguments, isa)
    return replace(form, function=f"{form.function}_{suffix}")


@pytest.mark.parametrize("core", CORES, ids="-".join)
def test_packed_weights_change_no_bit(
    core: tuple[str, str, str],
    folder: Path,
    plain: list[Guarded],
    record_property: Callable[[str, object], None],
) -> None:
    cpu, toolchain, optimize = core
    need_toolchain(cpu, toolchain)
    need_emulator(cpu)
    product, outputs = run_calls(folder, cpu, toolchain, optimize=optimize)
    assert len(plain) == len(outputs) == COUNT + NARROW
    different = [n for n in range(COUNT + NARROW) if outputs[n] != plain[n]]
    assert different == []
    packed = sum("packed_" in call.function for call in linked_calls(product))
    record_property("packed", packed)
    if cpu == "cortex-m0plus":
        assert packed == 0
        return
    assert COUNT / 4 < packed < COUNT + NARROW
    symbols: Any = product.report()["symbols"]
    names = {symbol["name"] for symbol in symbols}
    is_mve = cpu == "cortex-m55"
    limited = LIMITED["mve" if is_mve else "dsp"]
    limited += LIMITED_FAST if is_mve and optimize == "speed" else ()
    assert names >= {f"orch::cortex_m::limited_packed_{name}" for name in limited}
    assert is_mve or names >= DSP_LOOPS
