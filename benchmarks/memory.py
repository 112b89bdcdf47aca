"""Arenas of int8 nets: whole tensors, computed by rows, and with rows from the caller.

Prelinked, zig, `optimize = "size"`, int8 inputs and outputs. MobileNetV2 and the U-Net
have random weights.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Final

from benchmarks.firmwares import measure_all
from benchmarks.product import CORPUS
from benchmarks.profiled import profiled
from benchmarks.table import Cell, Findings, Goal, NotMeasuredError, Table
from tests.data.held_out.make_nets import Net

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

_CASES: Final = {
    "MobileNetV1 0.25, 96x96": "vww_mobilenetv1_int8_m55",
    "DS-CNN": "kws_dscnn_int8_m55",
    "ResNet-8": "ic_resnet8_int8_m55",
    "autoencoder": "ad_autoencoder_int8_m55",
}
_CORES: Final = ("cortex-m4", "cortex-m55")
_LIMITED: Final = "limited"
"""As small as the limit of instructions allows, by the estimate of the build."""
_GIVEN: Final = "row by row"
_GIVEN_LIMITED: Final = "row by row, limited"
_AGAIN: Final = "skips again"
_WAYS: Final = ("off", _LIMITED, "smallest", _AGAIN, _GIVEN_LIMITED, _GIVEN)
_SKIPS: Final = "U-Net, 96x96"
"""The net with long skips."""
_GOALS: Final = {
    "MobileNetV1 0.25, 96x96": (28_300, 14_600),
    "DS-CNN": (6_300, 5_900),
    "ResNet-8": (16_384, 14_000),
    "autoencoder": (768, None),
    "MobileNetV2 0.35, 144x144": (66_900, 29_000),
    "U-Net, 96x96": (123_300, 105_700),
}
"""Bytes of arena, with a whole input and row by row."""
_MOST_MORE: Final = {"cortex-m4": 5, "cortex-m55": 10}
"""Per cent of instructions more than with whole tensors."""
_MOST_MORE_DS_CNN: Final = {**_MOST_MORE, "cortex-m55": 15}
_Key = tuple[str, str, str]
"""Net, core, way."""


def _mobilenet_v2() -> Net:
    """Width 0.35, two classes."""
    net = Net((1, 3, 144, 144), 11)
    x, channels = net.conv(net.x, 16, stride=(2, 2)), 16
    for factor, outputs, count, stride in (
        (1, 8, 1, 1),
        (6, 8, 2, 2),
        (6, 16, 3, 2),
        (6, 24, 4, 2),
        (6, 32, 3, 1),
        (6, 56, 3, 2),
        (6, 112, 1, 1),
    ):
        for index in range(count):
            step = stride if index == 0 else 1
            wide = channels * factor
            y = net.conv(x, wide, (1, 1)) if factor > 1 else x
            y = net.conv(y, wide, stride=(step, step), depthwise=True)
            y = net.conv(y, outputs, (1, 1), limits=(0, -128, 127))
            x = net.add(x, y) if step == 1 and channels == outputs else y
            channels = outputs
    x = net.conv(x, 1280, (1, 1))
    net.linear(net.view(net.average(x), 1, 1280), 2)
    return net


def _unet() -> Net:
    """Four levels, from 8 channels on."""
    net = Net((1, 3, 96, 96), 12)
    skips, x = [], net.x
    for channels in (8, 16, 32):
        x = net.conv(net.conv(x, channels), channels)
        skips.append(x)
        x = net.max_pool(x)
    x = net.conv(net.conv(x, 64), 64)
    for channels, skip in zip((32, 16, 8), reversed(skips), strict=True):
        x = net.join(net.grow(x, channels), skip)
        x = net.conv(net.conv(x, channels), channels)
    net.conv(x, 1, (1, 1), limits=(0, -128, 127))
    return net


_MADE: Final[Mapping[str, Callable[[], Net]]] = {
    "MobileNetV2 0.35, 144x144": _mobilenet_v2,
    _SKIPS: _unet,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Measured:
    key: _Key
    arena: int
    instructions: int
    flash: int


def measure(repetitions: int) -> Findings:
    """Bytes and instructions; they are exact, so that one run is enough."""
    del repetitions
    findings = Findings()
    keys = [
        (net, cpu, way)
        for cpu in _CORES
        for net in (*_CASES, *_MADE)
        for way in _WAYS
        if way != _AGAIN or net == _SKIPS
    ]
    found = {m.key: m for m in measure_all(keys, _measure, findings)}
    findings.tables += [_table(cpu, found) for cpu in _CORES]
    for net, (whole, given) in _GOALS.items():
        ways = ("off", _LIMITED, "smallest")
        findings.goals += _smallest(net, ways, whole, found)
        if given is not None:
            by_rows = (_GIVEN_LIMITED, _GIVEN)
            findings.goals += _smallest(net, by_rows, given, found)
    return findings


def _smallest(
    net: str, ways: Sequence[str], goal: int, found: Mapping[_Key, _Measured]
) -> Iterator[Goal]:
    """The smallest arena of those that take few enough instructions more."""
    for cpu in _CORES:
        whole = found.get((net, cpu, "off"))
        measured = [m for way in ways if (m := found.get((net, cpu, way)))]
        if whole is None or not measured:
            continue
        limit = whole.instructions * (1 + _most_more(net, cpu) / 100)
        arenas = [m.arena for m in measured if m.instructions <= limit]
        name = f"arena of {net}, {cpu}, {' or '.join(ways)}"
        name += f", with at most {_most_more(net, cpu)} % more instructions"
        yield Goal(name=name, found=min(arenas, default=inf), limit=goal, at_most=True)


def _most_more(net: str, cpu: str) -> int:
    return (_MOST_MORE_DS_CNN if net == "DS-CNN" else _MOST_MORE)[cpu]


def _measure(folder: Path, key: _Key, plugin: Path | None) -> _Measured | str:
    net, cpu, way = key
    if plugin is None:
        return f"{net}, {cpu}: no plugin to count instructions"
    place = folder / "-".join("".join(filter(str.isalnum, part)) for part in key)
    place.mkdir(parents=True)
    try:
        inputs = _write(place, net, cpu, way)
        out = ("--out", str(place / "out"))
        costs = profiled(place / "product.toml", *inputs, *out)
    except NotMeasuredError as missing:
        return f"{', '.join(key)}: {missing}"
    totals = json.loads((place / "out" / "report.json").read_text())["totals"]
    return _Measured(
        key=key,
        arena=totals["arena_bytes"],
        instructions=costs["total"] // costs["runs"],
        flash=totals["flash_bytes"],
    )


def _write(place: Path, net: str, cpu: str, way: str) -> tuple[str, str]:
    """Profile and model; returns the inputs as options of `run`."""
    if net in _CASES:
        shutil.copyfile(CORPUS / _CASES[net] / "model.pte", place / "model.pte")
        options = ("--scenario", str(CORPUS / _CASES[net] / "case.json"))
    else:
        _MADE[net]().write("model", place)
        options = ("--input", str(place / "model.in0.npy"))
    fuse = "smallest" if way in (_AGAIN, _GIVEN) else way
    more = 'recompute = "skips"\nmax_slowdown = "15 %"\n' if way == _AGAIN else ""
    if way in (_LIMITED, _GIVEN_LIMITED):
        fuse, more = "auto", f'max_slowdown = "{_most_more(net, cpu)} %"\n'
    rows = way in (_GIVEN, _GIVEN_LIMITED)
    given = 'input0 = { dtype = "int8", rows = 1 }\n' if rows else ""
    (place / "product.toml").write_text(
        'schema = 1\nname = "product"\n'
        f'[target]\ncpu = "{cpu}"\ntoolchain = "zig"\noptimize = "size"\n'
        '[kernels]\nlibraries = ["cortex_m", "quantized", "portable"]\n'
        f'[memory]\nfuse = "{fuse}"\n{more}'
        '[[models]]\nname = "model"\npath = "model.pte"\nload = "prelinked"\n'
        f"[models.io]\nquantized = true\n{given}"
    )
    return options


def _table(cpu: str, found: Mapping[_Key, _Measured]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for net in (*_CASES, *_MADE):
        whole = found.get((net, cpu, "off"))
        for way in _WAYS:
            m = found.get((net, cpu, way))
            if m is None or whole is None:
                continue
            rows.append(
                (
                    net,
                    way,
                    m.arena,
                    whole.arena / m.arena,
                    m.instructions,
                    m.instructions / whole.instructions,
                    m.flash - whole.flash,
                )
            )
    return Table(
        title=f"Arenas on {cpu}, by `[memory] fuse`",
        columns=(
            *("net", "fuse", "arena", "times smaller"),
            *("instructions", "times as many", "more flash"),
        ),
        rows=tuple(rows),
    )
