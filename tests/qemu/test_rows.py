"""Int8 nets by rows: the bits of the whole nets, in much smaller arenas."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import partial
from math import inf
from random import Random
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pytest

from orchestrator.method.rows.adapt import by_rows
from orchestrator.method.rows.verify import problems_of_rows
from orchestrator.program.encode import write_program
from orchestrator.program.program import KernelCall
from orchestrator.program.reader import read_program
from orchestrator.program.values import IntValue
from tests.conftest import CORPUS
from tests.data.held_out import make_nets
from tests.product import Product
from tests.qemu.arena_gaps import changed_bytes
from tests.qemu.linked_names import isa_of, packed_names
from tests.qemu.steps_of_firmware import differences
from tests.tools import need_emulator, need_toolchain
from tests.unit.method.recorded_calls import Tensor
from tests.unit.method.test_dim_orders import alike

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from orchestrator.method.rows.network import Network
    from orchestrator.method.rows.plan import RowPlan

pytestmark = [pytest.mark.toolchain, pytest.mark.qemu]

MOST_SLOWER: Final = 1.1
"""How much slower `auto` may be, as it says."""


MOST_FLASH: Final = 2_000
"""More than with whole tensors: steps, their templates, and what runs them."""
ROWS: Final = 8
"""That the caller gives at a time."""


@dataclass(frozen=True, slots=True)
class Net:
    """A net of the corpus on a core, and the most bytes of its arena by rows.

    Args:
        case: Its folder.
        cpu: The core.
        toolchain: Of the build.
        smallest: With `fuse = "smallest"`.
        automatic: With `fuse = "auto"`; None where that is the same.
        given: With rows from the caller.
        limited: Whether convolutions store less than all of int8.
        bits: Of weights.
        slower: Times as many instructions as with whole tensors, with the smallest.
        flash: Bytes of flash more than with whole tensors.
    """

    case: str
    cpu: str
    toolchain: str
    smallest: int
    automatic: int | None = None
    given: int | None = None
    limited: bool = False
    bits: int = 8
    slower: float = inf
    flash: int = MOST_FLASH


SMALLEST: Final = "smallest"
TARGETS: Final = (
    *(("host", "zig", SMALLEST), ("cortex-m0plus", "gnu", SMALLEST)),
    *(("cortex-m4", "zig", SMALLEST), ("cortex-m55", "gnu", SMALLEST)),
    *(("host", "zig", "1 %"), ("cortex-m4", "zig", "5 %"), ("cortex-m55", "zig", "40 %")),
)
"""Cpu, toolchain, and how much slower a run may be."""
RANDOM: Final = 16
"""Nets."""
NARROW_CORES: Final = (
    *(("cortex-m4", "zig", "size"), ("cortex-m33", "gnu", "speed")),
    ("cortex-m7", "zig", "speed"),
)
MATRIX_CORES: Final = (
    *(("cortex-m4", "zig", "size"), ("cortex-m7", "zig", "speed")),
    ("cortex-m33", "gnu", "size"),
)
BAND_CORES: Final = (("cortex-m55", "gnu", "size"), ("cortex-m55", "zig", "speed"))
LOWEST: Final = {
    "cortex_m::quantized_conv2d.out": 10,
    "cortex_m::quantized_depthwise_conv2d.out": 11,
}
"""Position of the lowest output, which the highest one follows."""
NETS: Final = (
    Net(
        *("kws_dscnn_int8_m4", "cortex-m4", "gnu", 5_300),
        automatic=5_300,
        given=5_000,
        limited=True,
        slower=1.1,
        flash=2_600,
    ),
    # With kernels for two pixels at once, too.
    Net("ic_resnet8_int8_m55", "cortex-m4", "zig", 15_300, slower=1.02, flash=3_800),
    # With kernels for odd numbers of pixels, too.
    Net(
        *("kws_dscnn_int8_m55", "cortex-m55", "zig", 5_500),
        automatic=9_900,
        slower=1.15,
        flash=2_500,
    ),
    Net("ic_resnet8_int8_m55", "cortex-m55", "gnu", 13_700, slower=1.06, flash=2_500),
    Net(
        *("vww_mobilenetv1_int8_m55", "cortex-m55", "zig", 28_200),
        automatic=28_200,
        given=16_300,
        slower=1.03,
    ),
    Net("ic_resnet8_int8_m55", "cortex-m55", "zig", 17_700, bits=4),
    Net("ic_resnet8_int8_m55", "cortex-m4", "gnu", 19_200, bits=4),
    # With the kernel without scratch memory: two images are all that there is.
    Net("ad_autoencoder_int8_m55", "cortex-m4", "zig", 768, slower=1.05),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """Bytes of the arena and of flash, instructions of a run, and its output."""

    arena: int
    flash: int
    instructions: int
    output: bytes


def _run(
    folder: Path, net: Net, fuse: str, capsys: pytest.CaptureFixture[str], *, io: str = ""
) -> Ran:
    model = (CORPUS / net.case / "model.pte").read_bytes()
    (folder / "model.pte").write_bytes(_with_limits(model) if net.limited else model)
    name = f"net-{fuse}{'-rows' if io else ''}"
    profile = folder / f"{name}.toml"
    profile.write_text(
        f'schema = 1\nname = "{name}"\n'
        f'[target]\ncpu = "{net.cpu}"\ntoolchain = "{net.toolchain}"\n'
        '[kernels]\nlibraries = ["cortex_m", "quantized", "portable"]\n'
        '[[models]]\nname = "net"\npath = "model.pte"\nload = "prelinked"\n'
        f"io = {{ quantized = true{io} }}\n"
        + "weights = { bits = 4 }\n" * (net.bits == 4)
        + f'[memory]\nfuse = "{fuse}"\n'
    )
    product = Product(profile=profile, out=folder / name)
    outputs = folder / f"{name}.outputs"
    given = ("--input", str(CORPUS / net.case / "in0.npy"))
    capsys.readouterr()
    more = ("--output-dir", str(outputs), "--profile", "--json")
    assert product.run("run", *given, *more) == 0
    document = json.loads(capsys.readouterr().out)
    count = sum(operator["total"] for operator in document["profile"]["operators"])
    (output,) = outputs.glob("*.npy")
    totals = product.report()["totals"]
    assert isinstance(totals, dict)
    return Ran(
        arena=totals["arena_bytes"],
        flash=totals["flash_bytes"],
        instructions=count,
        output=output.read_bytes(),
    )


def _with_limits(model: bytes) -> bytes:
    program = read_program(model, file="")
    (method,) = program.methods
    slots = len(method.values), len(method.values) + 1
    instructions = [*method.instructions]
    for number, call in enumerate(instructions):
        assert isinstance(call, KernelCall)
        at = LOWEST.get(str(method.operators[call.operator]))
        if at is not None:
            args = (*call.args[:at], *slots, *call.args[at + 2 :])
            instructions[number] = replace(call, args=args)
    method = replace(
        method,
        values=(*method.values, IntValue(-90), IntValue(100)),
        instructions=tuple(instructions),
    )
    return bytes(write_program(replace(program, methods=(method,))))


def _problems(
    network: Network, plan: RowPlan, *, plans: list[tuple[Network, RowPlan]]
) -> tuple[str, ...]:
    """What the verifier says; keeps the plan."""
    plans.append((network, plan))
    return problems_of_rows(network, plan)


@pytest.mark.parametrize("net", NETS, ids=lambda n: f"{n.case}-{n.cpu}-{n.bits}")
def test_a_net_by_rows_has_the_same_bits(
    net: Net, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """And its firmware has the steps of the plan that was verified."""
    plans: list[tuple[Network, RowPlan]] = []
    verifier = f"{by_rows.__module__}.{problems_of_rows.__name__}"
    monkeypatch.setattr(verifier, partial(_problems, plans=plans))
    need_toolchain(net.cpu, net.toolchain)
    need_emulator(net.cpu)
    whole = _run(tmp_path, net, "off", capsys)
    smallest = _run(tmp_path, net, "smallest", capsys)
    assert smallest.output == whole.output
    assert smallest.arena <= net.smallest
    assert smallest.instructions <= net.slower * whole.instructions
    # Passes are tried in more than one form, each with a plan.
    firmware = (tmp_path / f"net-{SMALLEST}" / "firmware.elf").read_bytes()
    assert any(differences(firmware, *plan) == [] for plan in plans)
    assert smallest.flash <= whole.flash + net.flash
    if net.automatic is not None:
        automatic = _run(tmp_path, net, "auto", capsys)
        assert automatic.output == whole.output
        assert smallest.arena <= automatic.arena <= net.automatic
        assert automatic.instructions <= MOST_SLOWER * whole.instructions
    if net.given is not None:
        io = f", input0 = {{ rows = {ROWS} }}"
        given = _run(tmp_path, net, "off", capsys, io=io)
        assert given.output == whole.output
        assert given.arena <= net.given


class Drawn:
    """A random net on an image: a chain with skips, of two to eight operators."""

    def __init__(self, seed: int) -> None:
        self._random = random = Random(seed)  # noqa: S311  # the same each time
        size = random.randint(7, 21), random.randint(3, 15)
        self.net = net = make_nets.Net((1, random.choice([1, 3, 4, 7]), *size), seed)
        self._images = [net.conv(net.x, self._channels())]
        count = random.randint(2, 8)
        while len(net.calls) < count:
            kinds = [self._convolution, self._pool, self._grow, self._scale]
            random.choice([*kinds, self._join, self._join, self._pair])()
        if random.random() < 0.3:
            self._images.append(net.average(self._images[-1]))

    @property
    def heads(self) -> tuple[Tensor, ...]:
        """An image or two that are outputs, too."""
        inner = self._images[:-1]
        return (self._random.choice(inner),) if self._random.random() < 0.3 else ()

    def _channels(self) -> int:
        return self._random.choice([1, 2, 3, 4, 5, 8, 12, 16, 17])

    def _convolution(self) -> None:
        random, x = self._random, self._images[-1]
        kernel = random.choice([1, 3, 3, 5]), random.choice([1, 3])
        stride = random.choice([1, 1, 2]), random.choice([1, 1, 2])
        depthwise = random.random() < 0.3
        channels = x.sizes[1] if depthwise else self._channels()
        groups = 1
        if not depthwise and x.sizes[1] % 2 == channels % 2 == 0:
            groups = random.choice([1, 2])
        self._images.append(
            self.net.conv(*(x, channels, kernel), stride=stride, depthwise=depthwise, groups=groups)
        )

    def _pool(self) -> None:
        x = self._images[-1]
        if min(x.sizes[2:]) > 1:
            self._images.append(self.net.max_pool(x))

    def _grow(self) -> None:
        random, x = self._random, self._images[-1]
        if max(x.sizes[2:]) > MOST_SIZE:
            return
        kernel = random.choice([1, 2, 3, 4]), random.choice([2, 3])
        stride = random.choice([1, 2, 2, 3]), random.choice([1, 2])
        padding = random.randint(0, (kernel[0] - 1) // 2), 0
        more = random.randint(0, stride[0] - 1), 0
        channels = self._channels()
        self._images.append(
            self.net.grow(x, channels, kernel, stride=stride, padding=padding, more=more)
        )

    def _scale(self) -> None:
        """By whole factors and by others, also to a smaller image."""
        random, x = self._random, self._images[-1]
        if max(x.sizes[2:]) > MOST_SIZE:
            return
        times = random.choice([(2, 2), (2, 2), (2, 1), (3, 2), (5, 1)])
        size = x.sizes[2] * times[0], x.sizes[3] * times[1]
        if random.random() < 0.4:
            size = random.randint(1, 30), random.randint(1, 20)
        if random.random() < 0.5:
            self._images.append(self.net.nearest(x, size))
            return
        corners, floats = random.random() < 0.3, random.random() < 0.5
        y = self.net.bilinear(x, size, corners=corners, floats=floats)
        self._images.append(y)

    def _join(self) -> None:
        x = self._images[-1]
        same = [y for y in self._images[:-1] if y.sizes[2:] == x.sizes[2:]]
        if same:
            y = self._random.choice(same)
            self._images.append(self.net.join(*self._random.choice([(x, y), (y, x)])))

    def _pair(self) -> None:
        """A sum, product or quotient with a skip; without one, a function of items."""
        random, x, net = self._random, self._images[-1], self.net
        same = [y for y in self._images[:-1] if y.sizes == x.sizes]
        if not same:
            self._images.append(net.table(x, np.tanh))
            return
        pair = random.choice([net.add, net.add, net.mul, net.quotient])
        self._images.append(pair(x, random.choice(same)))


LIMITS: Final = ((-128, -128, 127), (-128, -100, 90))
"""Offset and limits of outputs: all of int8, and fewer."""


class Narrow:
    """A random net on a narrow image, for kernels for bands of few pixels."""

    heads = ()

    def __init__(self, seed: int) -> None:
        random = Random(seed)  # noqa: S311  # the same each time
        size = random.randint(24, 30), 1 + seed % 9
        self.net = net = make_nets.Net((1, 4, *size), seed)
        # In words, or with a last word that begins in the one before it.
        x = net.conv(net.x, 4 * random.randint(4, 9) + seed % 3, (1, 1))
        for _ in range(3):
            # Some limits are not those of int8.
            limits = random.choice(LIMITS)
            y = net.conv(
                *(x, x.sizes[1]),
                padding=(random.randint(0, 2), random.randint(1, 2)),
                depthwise=True,
                limits=limits,
            )
            kernel = random.choice([(1, 1), (1, 1), (3, 1), (2, 3)])
            channels = random.choice([y.sizes[1], (random.randint(12, 40) & ~3) + seed % 3])
            x = net.conv(y, channels, kernel, limits=limits)


class Scarce:
    """A random net whose scratch memory is much of what it needs."""

    heads = ()

    def __init__(self, seed: int) -> None:
        random = Random(seed)  # noqa: S311  # the same each time
        size = random.randint(16, 24), random.randint(4, 9)
        self.net = net = make_nets.Net((1, 3, *size), seed)
        x = net.conv(net.x, 4 * random.randint(2, 5), (1, 1))
        for _ in range(3):
            limits = random.choice(LIMITS)
            x = net.conv(
                *(x, random.choice([16, 17, 24, 32])),
                random.choice([(3, 3), (3, 3), (3, 2), (1, 1)]),
                stride=(1, random.choice([1, 1, 2])),
                padding=(random.randint(1, 2), random.randint(1, 2)),
                dilation=random.choice([(1, 1), (1, 1), (2, 1), (1, 2)]),
                limits=limits,
            )
            if random.random() < 0.5:
                x = net.conv(x, x.sizes[1], (1, 1), limits=limits)
            if random.random() < 0.5:
                x = net.add(x, net.conv(x, x.sizes[1], (1, 1), limits=limits))


class Wide:
    """A random net of windows on a wide image, whose rows are computed in parts."""

    heads = ()

    def __init__(self, seed: int) -> None:
        random = Random(seed)  # noqa: S311  # the same each time
        size = random.randint(16, 24), random.randint(20, 64)
        self.net = net = make_nets.Net((1, 4, *size), seed)
        x = net.conv(net.x, 4 * random.randint(1, 3) + seed % 2, (1, 1))
        turn = seed // len(KINDS)
        for at, stride in enumerate((1 + turn % 2, 1 + (turn + 1) % 2)):
            x = net.conv(
                *(x, x.sizes[1]),
                stride=(stride, stride),
                padding=(random.randint(0, 2), random.randint(0, 2)),
                depthwise=True,
                limits=LIMITS[(turn // 2 + at) % 2],
            )
            x = net.conv(x, 4 * random.randint(1, 3) + seed % 2, (1, 1))
        x = net.conv(x, x.sizes[1], limits=random.choice(LIMITS))
        net.conv(x, 2, (1, 1), limits=(0, -128, 127))


KINDS: Final = (Narrow, Wide, Scarce)


class Odd:
    """A random net on a narrow image, mostly of an odd width, with few channels."""

    heads = ()

    def __init__(self, seed: int) -> None:
        random = Random(seed)  # noqa: S311  # the same each time
        size = random.randint(24, 40), 2 * random.randint(2, 9) + seed % 4 // 3
        kernel = random.choice([1, 2, 3, 5, 10, 15]), random.randint(2, 4)
        channels = random.choice([1, 2, 3, 5, 8, 9])
        # As many taps below each other as are brought together, and more.
        size, kernel, channels = {1: ((60, 25), (16, 3), 1), 7: ((60, 31), (20, 3), 1)}.get(
            seed, (size, kernel, channels)
        )
        self.net = net = make_nets.Net((1, channels, *size), seed)
        x = net.conv(
            *(net.x, random.randint(5, 36)),
            kernel,
            stride=(1, 2) if seed in (1, 7) else (random.randint(1, 2),) * 2,
            padding=(random.randint(0, 2), random.randint(0, 2)),
            limits=random.choice([(-128, -128, 127), (3, -100, 90)]),
        )
        for _ in range(3):
            y = net.conv(
                *(x, x.sizes[1]),
                padding=(random.randint(0, 2), random.randint(1, 2)),
                depthwise=True,
                limits=random.choice([(-128, -128, 127), (-128, -128, 99)]),
            )
            x = net.conv(
                *(y, random.randint(3, 40)),
                random.choice([(1, 1), (1, 1), (3, 1), (2, 3)]),
                limits=random.choice([(-128, -128, 127), (-7, -128, 127)]),
            )
        if seed % 4 == 0:
            net.average(x)
        else:
            net.conv(x, 2, (1, 1), limits=(0, -128, 127))


class Strided:
    """A random net with pixels of one tap that move by two, of many channels."""

    heads = ()

    def __init__(self, seed: int) -> None:
        random = Random(seed)  # noqa: S311  # the same each time
        size = random.randint(20, 40), random.randint(8, 24)
        self.net = net = make_nets.Net((1, 3, *size), seed)
        x = net.conv(net.x, random.randint(33, 48))
        for _ in range(2):
            stride = random.choice([(2, 2), (1, 2), (2, 1)])
            x = net.conv(x, random.randint(33, 48), (1, 1), stride=stride)
            x = net.conv(x, x.sizes[1], depthwise=True)
        net.conv(x, 2, (1, 1), limits=(0, -128, 127))


class SmallUNet:
    """A net with a skip that takes more memory than its input."""

    heads = ()

    def __init__(self, seed: int) -> None:
        self.net = net = make_nets.Net((1, 1, 20, 12), seed)
        skip = net.conv(net.x, 8)
        x = net.conv(net.max_pool(skip), 24)
        x = net.conv(net.conv(x, 40), 8)
        net.conv(net.join(net.grow(x, 4), skip), 2)


class Matrix:
    """A random net of matrix products, of which few have room for pairs of inputs."""

    heads = ()

    def __init__(self, seed: int) -> None:
        random = Random(seed)  # noqa: S311  # the same each time
        self.net = net = make_nets.Net((1, 3, random.randint(8, 12), 4), seed)
        # Steps of eight taps, from one of them to five rounds, and fewer or more taps.
        depth = 8 * (1 + seed) if seed % 5 else random.randint(9, 200)
        x = net.view(net.average(net.conv(net.x, depth, (1, 1))), 1, depth)
        for _ in range(4):
            limits = random.choice([*LIMITS, (7, -128, 127)])
            pixels = random.choice([1, 1, 1, 2, 3])
            depth = random.choice([8 * random.randint(1, 40), random.randint(1, 99)])
            y = net.linear(x, pixels * depth, limits=limits)
            x = net.view(y, y.sizes[0] * pixels, depth)
        net.linear(x, random.randint(1, 40))


NHWC: Final = (0, 2, 3, 1)


class Ones:
    """A random net of images with one channel, line or column.

    Their dim orders are any of those that are the same memory.
    """

    heads = ()

    def __init__(self, seed: int, *, mixed: bool) -> None:
        self._random = random = Random(seed)  # noqa: S311  # the same each time
        size = [(20, 8), (40, 1), (1, 33), (17, 9)][seed % 4]
        self.net = net = make_nets.Net((1, random.choice([1, 1, 3]), *size), seed)
        x = net.conv(net.x, random.choice([1, 4]))
        for _ in range(3):
            kernel = [min(3, n) for n in size]
            y = net.conv(
                *(x, random.choice([1, 1, 4, 8]), (kernel[0], kernel[1])),
                limits=random.choice(LIMITS),
            )
            if random.random() < 0.5:
                y = net.conv(y, y.sizes[1], (kernel[0], kernel[1]), depthwise=True)
            x = net.add(x, y) if x.sizes == y.sizes else y
        if seed % 3:
            x = net.average(net.conv(x, 1) if seed % 2 else x)
        if mixed:
            self._mix()

    def _mix(self) -> None:
        made: dict[int, Any] = {}

        def mixed(argument: Any) -> Any:
            if not isinstance(argument, Tensor):
                return argument
            if id(argument) not in made:
                found = alike(argument)
                # Most images stay such that their rows can be told.
                if argument.order == NHWC and self._random.random() < 0.9:
                    found = [one for one in found if one.order[:2] == NHWC[:2]]
                made[id(argument)] = self._random.choice(found)
            return made[id(argument)]

        # An input that comes by rows has its dimensions in order.
        made[id(self.net.x)] = self.net.x
        self.net.calls = [
            replace(call, args=tuple(map(mixed, call.args))) for call in self.net.calls
        ]


MOST_SIZE: Final = 24
"""Of an image that still grows."""


def _random_product(
    folder: Path,
    cpu: str,
    toolchain: str,
    fuse: str,
    optimize: str = "size",
    *,
    more: str = "",
    given: bool = True,
) -> tuple[Product, dict[str, bytes]]:
    """All nets of a folder on a target; every second one gets its input by rows.

    `more` are keys of all models; without `given` all inputs are whole.

    A percentage is that of `fuse = "auto"`, of products for speed; with `fuse = "off"`,
    kernels read arguments as well. By rows, skips may be computed again.
    """
    name = f"random-{fuse.rstrip('% ')}-{cpu}"
    plain = fuse == "off"
    optimize = "speed" if fuse.endswith("%") else optimize
    memory = f'max_slowdown = "{fuse}"\nfuse = "auto"\nrecompute = "skips"'
    if not fuse.endswith("%"):
        again = 'recompute = "skips"\nmax_slowdown = "900 %"'
        memory = f'fuse = "{fuse}"\n{again * (not plain)}'
    parts = [
        f'schema = 1\nname = "{name}"\n'
        f'[target]\ncpu = "{cpu}"\ntoolchain = "{toolchain}"\n'
        f'optimize = "{optimize}"\n'
        '[kernels]\nlibraries = ["cortex_m", "quantized", "portable"]\n'
        f"[memory]\n{memory}\n" + '[passes]\nskip = ["prepare_calls"]\n' * plain
    ]
    for number in range(RANDOM):
        io = f"io = {{ input0 = {{ rows = {1 + number % 5} }} }}\n"
        parts.append(
            f'[[models]]\nname = "n{number}"\npath = "n{number}.pte"\n'
            f'load = "prelinked"\n{more}' + io * (number % 2 and given and not plain)
        )
    profile = folder / f"{name}.toml"
    profile.write_text("\n".join(parts))
    product = Product(profile=profile, out=folder / name)
    outputs = folder / f"{name}.outputs"
    scenario = ("--scenario", str(folder / "scenario.json"))
    assert product.run("run", *scenario, "--output-dir", str(outputs)) == 0
    return product, {path.name: path.read_bytes() for path in outputs.iterdir()}


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with random nets, and a scenario that runs them."""
    nets = [Drawn(number) if number else SmallUNet(number) for number in range(RANDOM)]
    return _written(tmp_path_factory.mktemp("drawn"), nets)


@pytest.fixture(scope="module")
def narrow(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same of nets on narrow images, or where memory is scarce."""
    nets = [KINDS[number % len(KINDS)](number) for number in range(RANDOM)]
    return _written(tmp_path_factory.mktemp("narrow"), nets)


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same of nets whose rows have an odd number of pixels, and of wide ones."""
    # Wide ones get their input by rows.
    nets = [Wide(n) if n in (3, 5, 11, 13) else Odd(n) for n in range(RANDOM)]
    return _written(tmp_path_factory.mktemp("odd"), nets)


def _written(
    folder: Path,
    nets: Sequence[Drawn | Matrix | Narrow | Odd | Ones | Scarce | Strided | SmallUNet | Wide],
) -> Path:
    """The folder, with nets and a scenario."""
    runs = []
    for number, made in enumerate(nets):
        made.net.write(f"n{number}", folder, made.heads)
        value = {"kind": "tensor", "file": f"n{number}.in0.npy"}
        runs.append({"model": f"n{number}", "method": "forward", "inputs": [value]})
    (folder / "scenario.json").write_text(
        json.dumps({"runs": runs, "tolerance": {"atol": 0, "rtol": 0}})
    )
    return folder


@pytest.fixture(scope="module")
def whole_outputs(drawn: Path) -> dict[str, bytes]:
    """What the nets give with whole tensors on the host."""
    need_toolchain("host", "zig")
    return _random_product(drawn, "host", "zig", "off")[1]


@pytest.mark.parametrize("target", TARGETS, ids=" ".join)
def test_random_nets_by_rows_have_the_same_bits(
    target: tuple[str, str, str], drawn: Path, whole_outputs: dict[str, bytes], tmp_path: Path
) -> None:
    """And they write nothing beside their arenas."""
    cpu, toolchain, fuse = target
    need_toolchain(cpu, toolchain)
    if cpu != "host":
        need_emulator(cpu)
    product, outputs = _random_product(drawn, cpu, toolchain, fuse)
    different = [name for name in whole_outputs if outputs[name] != whole_outputs[name]]
    assert different == []
    plan = json.loads((product.out / "memory_plan.json").read_text())
    planners = [x["methods"][0]["arenas"][0]["planner"] for x in plan["models"]]
    # Those with rows from the caller have such a plan whatever it costs.
    by_rows = [planner for planner in planners if planner.startswith("rows")]
    assert len(by_rows) > RANDOM / 2
    if fuse == SMALLEST:
        assert any("again" in planner for planner in by_rows)
    if fuse == SMALLEST and cpu != "host":
        core = (cpu, isa_of(cpu), toolchain)
        assert changed_bytes(tmp_path, product, core) == 0


@pytest.mark.parametrize("core", NARROW_CORES, ids="-".join)
def test_narrow_nets_by_rows_have_the_same_bits(
    core: tuple[str, str, str], narrow: Path, tmp_path: Path
) -> None:
    """With kernels for bands of one row, or parts of it, and for two pixels at once."""
    names = packed_names(core[0], core[2], lambda row: not row.is_whole and row.of != "Matrix")
    assert _kernels_of_bands(core, narrow, tmp_path) >= names


@pytest.mark.parametrize("core", MATRIX_CORES, ids="-".join)
def test_matrix_products_without_scratch_memory_have_the_same_bits(
    core: tuple[str, str, str], tmp_path: Path
) -> None:
    folder = _written(tmp_path, [Matrix(number) for number in range(RANDOM)])
    few = packed_names(core[0], core[2], lambda row: not row.is_whole and row.of == "Matrix")
    # Those with scratch memory where there is room.
    assert _kernels_of_bands(core, folder, tmp_path) >= few | {"orch::cortex_m::packed_matrix"}


@pytest.mark.parametrize("core", BAND_CORES, ids="-".join)
def test_odd_nets_by_rows_have_the_same_bits(
    core: tuple[str, str, str], odd: Path, tmp_path: Path
) -> None:
    """With kernels that take an odd last pixel by itself."""
    # Those for some vectors at once are for depths that these nets seldom have.
    names = packed_names(core[0], "", lambda row: not row.is_whole, limits=False)
    assert _kernels_of_bands(core, odd, tmp_path) >= names


@pytest.mark.parametrize("target", TARGETS[2:4], ids=" ".join)
def test_dim_orders_of_the_same_memory_have_the_same_bits(
    target: tuple[str, str, str], tmp_path: Path
) -> None:
    cpu, toolchain, fuse = target
    need_toolchain("host", "zig")
    need_toolchain(cpu, toolchain)
    need_emulator(cpu)
    folders = [tmp_path / "plain", tmp_path / "mixed"]
    for folder in folders:
        folder.mkdir()
        mixed = folder.name == "mixed"
        _written(folder, [Ones(number, mixed=mixed) for number in range(RANDOM)])
    _, whole = _random_product(folders[0], "host", "zig", "off")
    product, outputs = _random_product(folders[1], cpu, toolchain, fuse, given=False)
    different = [name for name in whole if outputs[name] != whole[name]]
    assert different == []
    plan = json.loads((product.out / "memory_plan.json").read_text())
    planners = [x["methods"][0]["arenas"][0]["planner"] for x in plan["models"]]
    assert sum(planner.startswith("rows") for planner in planners) > RANDOM / 4


@pytest.mark.parametrize("cpu", ["cortex-m4", "cortex-m55"])
def test_groups_of_4_bit_weights_by_rows_have_the_same_bits(cpu: str, tmp_path: Path) -> None:
    """Of windows of one tap, which strips bring together where they move by two."""
    need_toolchain("host", "zig")
    need_toolchain(cpu, "zig")
    need_emulator(cpu)
    folder = _written(tmp_path, [Strided(number) for number in range(RANDOM)])
    keys = "weights = { bits = 4, group = 32 }\n"
    _, whole = _random_product(folder, "host", "zig", "off", more=keys)
    product, outputs = _random_product(folder, cpu, "zig", SMALLEST, more=keys)
    different = [name for name in whole if outputs[name] != whole[name]]
    assert different == []
    symbols: Any = product.report()["symbols"]
    kernel = "int4_packed_pixels" if cpu == "cortex-m55" else "int4_packed_conv2d"
    assert f"orch::cortex_m::{kernel}" in {symbol["name"] for symbol in symbols}
    plan = json.loads((product.out / "memory_plan.json").read_text())
    planners = [x["methods"][0]["arenas"][0]["planner"] for x in plan["models"]]
    assert all(planner.startswith("rows") for planner in planners)


def _kernels_of_bands(core: tuple[str, str, str], folder: Path, tmp_path: Path) -> set[str]:
    """Functions in a product of nets by rows, whose bits are those of whole ones."""
    cpu, toolchain, optimize = core
    need_toolchain("host", "zig")
    need_toolchain(cpu, toolchain)
    need_emulator(cpu)
    _, whole = _random_product(folder, "host", "zig", "off")
    product, outputs = _random_product(folder, cpu, toolchain, SMALLEST, optimize)
    different = [name for name in whole if outputs[name] != whole[name]]
    assert different == []
    assert changed_bytes(tmp_path, product, (cpu, isa_of(cpu), toolchain)) == 0
    symbols: Any = product.report()["symbols"]
    return {symbol["name"] for symbol in symbols}
