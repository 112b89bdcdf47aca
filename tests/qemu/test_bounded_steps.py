"""Steps within a limit: the bits of whole calls, and about the cycles of the header."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pytest

from orchestrator.core.dtype import ScalarType
from tests.conftest import CORPUS
from tests.data.held_out.make_nets import Net
from tests.product import Product
from tests.qemu.test_rows import RANDOM, Drawn, _written
from tests.tools import need_emulator, need_toolchain

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.toolchain, pytest.mark.qemu]

CASES = (
    ("kws_dscnn_int8_m4", "cortex-m4", "zig", 100_000),
    ("ic_resnet8_int8_m55", "cortex-m7", "gnu", 300_000),
    ("kws_dscnn_int8_m55", "cortex-m55", "gnu", 30_000),
    ("kws_dscnn_int8_m0plus", "cortex-m0plus", "zig", 600_000),
)
"""Case, core, toolchain, cycles."""
CLOSE = 0.75, 1.35
"""What the longest step takes in the emulator, of the estimate."""
LOOSE = 0.6
"""The least of that for calls that networks have few of."""
PROFILE = """\
schema = 1
name = "{name}"
[target]
cpu = "{cpu}"
toolchain = "{toolchain}"
[kernels]
libraries = ["cortex_m", "quantized", "portable"]
"""
MODEL = '[[models]]\nname = "{model}"\npath = "{model}.pte"\nload = "prelinked"\n'
LIMIT = "[schedule]\nmax_step_cycles = {}\n"


@dataclass(frozen=True, slots=True)
class Ran:
    """Output, estimate of the header, cycles of each instruction."""

    output: bytes
    estimate: int
    cycles: tuple[int, ...]


def _run(product: Product, model: Path, capsys: pytest.CaptureFixture[str]) -> Ran:
    outputs = product.out.with_suffix(".outputs")
    given = ("--input", str(model.parent / "in0.npy"), "--output-dir", str(outputs))
    capsys.readouterr()
    assert product.run("run", *given, "--profile", "--json") == 0
    rows = json.loads(capsys.readouterr().out)["profile"]["instructions"]
    header = (product.out / "include" / f"{product.profile.stem}.h").read_text()
    (most,) = re.findall(r"_STEP_MOST_CYCLES (\d+)\n", header)
    (output,) = outputs.glob("*.npy")
    return Ran(
        output=output.read_bytes(), estimate=int(most), cycles=tuple(row["cycles"] for row in rows)
    )


@pytest.mark.parametrize(("case", "cpu", "toolchain", "limit"), CASES)
def test_no_step_takes_longer_than_the_limit(
    *,
    case: str,
    cpu: str,
    toolchain: str,
    limit: int,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    need_toolchain(cpu, toolchain)
    need_emulator(cpu)
    model = CORPUS / case / "model.pte"
    (tmp_path / "net.pte").write_bytes(model.read_bytes())
    found = []
    for name, more in (("whole", ""), ("bounded", LIMIT.format(limit))):
        product = Product(profile=tmp_path / f"{name}.toml", out=tmp_path / name)
        text = PROFILE.format(name=name, cpu=cpu, toolchain=toolchain)
        product.profile.write_text(text + MODEL.format(model="net") + more)
        found.append(_run(product, model, capsys))
    whole, bounded = found
    assert bounded.output == whole.output
    assert bounded.estimate <= limit < whole.estimate
    assert len(bounded.cycles) > len(whole.cycles)
    for one in found:
        low, high = (part * one.estimate for part in CLOSE)
        assert low <= max(one.cycles) <= high


@pytest.mark.parametrize("cpu", ["cortex-m4", "cortex-m55", "cortex-m0plus"])
def test_calls_that_no_network_above_has(
    cpu: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Copies of a few items each, averages that may have ties, and windows of few taps."""
    need_toolchain(cpu, "zig")
    need_emulator(cpu)
    product = Product(profile=tmp_path / "p.toml", out=tmp_path / "p")
    text, runs = PROFILE.format(name="p", cpu=cpu, toolchain="zig"), []
    for name, sizes in (
        ("copy", (1, 3, 32, 32)),
        ("line", (1, 8, 1, 64)),
        ("mean", (1, 8, 16, 16)),
    ):
        net = Net(sizes, 3)
        if name == "copy":
            net.to_channels_last()
        elif name == "line":
            net.conv(net.x, 8, (1, 3), depthwise=True)
        else:
            net.average(net.x, ScalarType.Char)
        net.write(name, tmp_path)
        text += MODEL.format(model=name)
        np.save(tmp_path / f"{name}.npy", np.zeros(sizes, np.int8))
        given = {"kind": "tensor", "file": f"{name}.npy"}
        runs.append({"model": name, "method": "forward", "inputs": [given]})
    product.profile.write_text(text)
    scenario = tmp_path / "calls.json"
    scenario.write_text(json.dumps({"tolerance": {"atol": 0, "rtol": 0}, "runs": runs}))
    assert product.run("run", "--scenario", str(scenario), "--profile", "--json") == 0
    rows = json.loads(capsys.readouterr().out)["profile"]["instructions"]
    header = (product.out / "include" / "p.h").read_text()
    for name, most in re.findall(r"P_(\w+)_FORWARD_STEP_MOST_CYCLES (\d+)\n", header):
        (cycles,) = [row["cycles"] for row in rows if row["model"] == name.lower()]
        assert LOOSE * int(most) <= cycles <= CLOSE[1] * int(most), name


@pytest.mark.parametrize("cpu", ["cortex-m4", "cortex-m55", "cortex-m0plus"])
def test_random_nets_in_the_shortest_steps_have_the_same_bits(
    cpu: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The error names the least limit that can be kept, and with it there is none."""
    need_toolchain("host", "zig")
    need_toolchain(cpu, "zig")
    need_emulator(cpu)
    folder = _written(tmp_path, [Drawn(number) for number in range(RANDOM)])
    models = "".join(MODEL.format(model=f"n{number}") for number in range(RANDOM))

    def product(name: str, cpu: str, limit: int | None) -> Product:
        text = PROFILE.format(name=name, cpu=cpu, toolchain="zig") + models
        text += "" if limit is None else LIMIT.format(limit)
        made = Product(profile=folder / f"{name}.toml", out=folder / name)
        made.profile.write_text(text)
        return made

    assert product("least", cpu, 1).run("check") == 4
    hints = re.findall(r"raise max_step_cycles to (\d+),", capsys.readouterr().err)
    least = max(map(int, hints))
    assert product("less", cpu, least - 1).run("check") == 4
    outputs = []
    for one in (product("whole", "host", None), product("bounded", cpu, least)):
        path = one.out.with_suffix(".outputs")
        scenario = ("--scenario", str(folder / "scenario.json"))
        assert one.run("run", *scenario, "--output-dir", str(path)) == 0
        outputs.append({file.name: file.read_bytes() for file in path.iterdir()})
    assert outputs[0] == outputs[1]
    plan = json.loads((folder / "bounded" / "memory_plan.json").read_text())
    planners = [x["methods"][0]["arenas"][0]["planner"] for x in plan["models"]]
    assert sum(planner == "rows" for planner in planners) > RANDOM / 3
