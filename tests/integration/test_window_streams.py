"""Inputs that are streams: each call gives the bits of the window that ends with it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pytest

from orchestrator.core.border import Stream
from orchestrator.program.reader import read_program
from orchestrator.program.values import TensorValue
from orchestrator.streams import streamed
from tests.application import run_application
from tests.conftest import CORPUS
from tests.data.held_out.make_nets import Net
from tests.doc_blocks import ROOT
from tests.product import Product
from tests.tools import need_emulator, need_toolchain

if TYPE_CHECKING:
    from pathlib import Path

    from orchestrator.program.program import Program

pytestmark = pytest.mark.toolchain

MODELS: Final = ROOT / "tests" / "data" / "streams"
WINDOWS: Final = 3
"""How many windows come, one after another."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """A model, and how much comes at a time.

    Args:
        axis: The dimension that is time.
        hop: Positions that come with a call.
        tenths: Of the arena of windows: how many the stream takes at most; 0: any.
    """

    model: str
    axis: int
    hop: int
    tenths: int = 0


CASES: Final = {
    "wake2": Case(model="wake_word", axis=2, hop=2, tenths=5),
    "wake8": Case(model="wake_word", axis=-2, hop=8),
    "wake3": Case(model="wake_word", axis=2, hop=3),
    "tcn1": Case(model="causal_tcn", axis=2, hop=1, tenths=3),
    "tcn5": Case(model="causal_tcn", axis=2, hop=5),
    "last1": Case(model="last_of_tcn", axis=2, hop=1, tenths=3),
    "gru2": Case(model="gru", axis=2, hop=2),
    "padded1": Case(model="padded", axis=2, hop=1),
    "viewed1": Case(model="viewed", axis=1, hop=1),
    "mean4": Case(model="causal_mean", axis=2, hop=4),
    "lagging3": Case(model="lagging", axis=2, hop=3),
    "frames2": Case(model="frames", axis=1, hop=2),
    "frames4": Case(model="frames", axis=-2, hop=4),
    "pixels2": Case(model="pixels", axis=2, hop=2),
    "same2": Case(model="same", axis=2, hop=2),
    "edges2": Case(model="edges", axis=3, hop=2, tenths=5),
    "kws7": Case(model="kws", axis=2, hop=7),
    "temporal4": Case(model="int8_temporal", axis=2, hop=4),
    "causal1": Case(model="int8_causal", axis=2, hop=1),
    "causal6": Case(model="int8_causal", axis=2, hop=6),
    "gestures8": Case(model="int8_gestures", axis=2, hop=8),
}
"""By name in the product. `wake3` has hops that strides do not divide, `same` and
`kws` padding in each convolution, so that state has the whole input."""


ON_TARGETS: Final = ("wake2", "tcn1", "gru2", "padded1", "kws7", "pixels2")
"""Streams of floats and of int8 that are called on other targets, too."""
CALLS: Final = 6
"""Of each."""


def _nets(folder: Path) -> None:
    """int8 nets of images whose rows come one after another."""
    for name, padding in (("pixels", (0, 1)), ("same", (1, 1))):
        net = Net((1, 1, 20, 6), 7)
        x = net.conv(net.x, 8, (4, 3), stride=(2, 1), padding=(0, 1))
        deep = net.conv(x, 8, depthwise=True, padding=padding)
        deep = net.conv(deep, 8, (1, 1))
        net.view(net.average(net.add(deep, deep)), 1, 8)
        net.linear(net.views[-1][0], 4)
        net.write(name, folder)
    net = Net((1, 1, 6, 20), 7)
    x = net.conv(net.x, 8, (3, 4), padding=(1, 0))
    x = net.pad(x, (0, 1, 2, 0), (0, 1, 0, 0))
    x = net.conv(x, 8, depthwise=True, padding=(0, 0))
    net.conv(x, 1, (6, 1), padding=(0, 0))
    net.write("edges", folder)


@pytest.fixture(scope="module", params=["prelinked", "pte"])
def product(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Product:
    """Windows of each model by its name, and streams."""
    need_toolchain("host", "gnu")
    folder = tmp_path_factory.mktemp("streams")
    _nets(folder)
    for path in MODELS.glob("*.pte"):
        (folder / path.name).write_bytes(path.read_bytes())
    kws = CORPUS / "kws_dscnn_int8_m4" / "model.pte"
    (folder / "kws.pte").write_bytes(kws.read_bytes())
    streams = {name: case.model for name, case in CASES.items()}
    models = {**{m: m for m in streams.values()}, **streams}
    made = _product(folder, "p", "host", models, request.param)
    assert made.run("build") == 0
    return made


def _product(folder: Path, name: str, cpu: str, models: dict[str, str], load: str) -> Product:
    """A product of models by name; those that are cases are streams."""
    parts = [
        f'schema = 1\nname = "{name}"',
        f'[target]\ncpu = "{cpu}"\ntoolchain = "gnu"',
        '[kernels]\nlibraries = ["cortex_m", "quantized", "portable"]',
    ]
    for model, file in models.items():
        part = f'[[models]]\nname = "{model}"\npath = "{file}.pte"\n'
        part += f'load = "{load}"'
        if case := CASES.get(model):
            part += f"\nio.input0 = {{ stream = {{ axis = {case.axis}, "
            part += f"hop = {case.hop} }} }}"
        parts.append(part)
    profile = folder / f"{name}.toml"
    profile.write_text("\n\n".join(parts) + "\n")
    return Product(profile=profile, out=folder / name)


def is_prelinked(product: Product) -> bool:
    return "prelinked" in product.profile.read_text()


ERRORS: Final = {
    "axis": (
        "input0 = { stream = { axis = 3, hop = 1 } }",
        "found: 3 dimensions",
        "write the dimension that is time: 0 to 2",
    ),
    "hop": (
        "input0 = { stream = { axis = 2, hop = 33 } }",
        "found: 32 positions in dimension 2",
        "write how many of them come at a time: 1 to 32",
    ),
    "input": (
        "input1 = { stream = { axis = 2, hop = 1 } }",
        'model "m" has no input1',
        "`orchestrator inspect` lists inputs and outputs",
    ),
    "output": (
        "output0 = { stream = { axis = 2, hop = 1 } }",
        "models[0].io.output0.stream is for inputs",
        "leave stream out",
    ),
    "rows": (
        "input0 = { rows = 2, stream = { axis = 2, hop = 1 } }",
        "models[0].io.input0 cannot come by rows and be a stream",
        "leave one of them out",
    ),
    "two": (
        "input0.stream = { axis = 2, hop = 1 }\ninput1.stream = { axis = 2, hop = 1 }",
        "models[0].io.input1 cannot be a stream as well",
        "give whole windows of the other input",
    ),
    "none": (
        "input0.stream = { axis = 2, hop = 0 }",
        "expected: an integer from 1 to 2147483647",
        "write how many positions come with each call",
    ),
    "missing": (
        "input0.stream = { axis = 2 }",
        'the key "hop" is missing in [models.io.input0.stream]',
        "add hop = 1",
    ),
}
"""By what is wrong: the table, what is found, and what to do."""


@pytest.mark.parametrize("wrong", ERRORS)
def test_what_cannot_be_a_stream(
    wrong: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table, found, hint = ERRORS[wrong]
    model = (MODELS / "causal_tcn.pte").read_bytes()
    (tmp_path / "m.pte").write_bytes(model)
    profile = tmp_path / "p.toml"
    profile.write_text(
        'schema = 1\nname = "p"\n'
        'target = { cpu = "host", toolchain = "gnu" }\n'
        '[[models]]\nname = "m"\npath = "m.pte"\n'
        f'load = "prelinked"\n[models.io]\n{table}\n'
    )
    of_model = wrong in ("axis", "hop", "input")
    code = Product(profile=profile, out=tmp_path / "out").run("check")
    assert code == (4 if of_model else 3)
    message = capsys.readouterr().err
    assert found in message
    assert hint in message
    assert "p.toml:" in message


def _ports(program: Program) -> tuple[TensorValue, TensorValue]:
    """Input and output."""
    (method,) = program.methods
    found = [method.values[i] for i in (*method.inputs, *method.outputs)]
    values = [value for value in found if isinstance(value, TensorValue)]
    return values[0], values[1]


_APPLICATION: Final = """
#include <stdio.h>
#include <string.h>
#include "p.h"

static unsigned seed = 1;
static {type} number(void) {{
  seed = seed * 1664525u + 1013904223u;
  return ({type})((int)(seed >> 24) - 128){scale};
}}

/* {outer} blocks of positions of {inner} numbers. */
static {type} all[{outer}][{total}][{inner}];
static {type} window[{outer}][{length}][{inner}];
static {type} fresh[{outer}][{hop}][{inner}];
static {out_type} expected[{outputs}], found[{outputs}], first[{outputs}];

int main(void) {{
  int o, t, i, calls = 0;
  for (o = 0; o < {outer}; ++o)
    for (t = 0; t < {total}; ++t)
      for (i = 0; i < {inner}; ++i) all[o][t][i] = number();
  for (t = {hop}; t <= {total}; t += {hop}) {{
    for (o = 0; o < {outer}; ++o)
      memcpy(fresh[o], all[o][t - {hop}], sizeof fresh[o]);
    if (p_{stream}_forward(&fresh[0][0][0], found) != ORCH_OK) return 2;
    if (calls == 0) memcpy(first, found, sizeof first);
    if (++calls < {upper}_INPUT0_WARM_CALLS) continue;
    for (o = 0; o < {outer}; ++o)
      memcpy(window[o], all[o][t - {length}], sizeof window[o]);
    if (p_{model}_forward(&window[0][0][0], expected) != ORCH_OK) return 3;
    for (o = 0; o < {out_outer}; ++o)
      if (memcmp(expected + o * {out_step} + {out_step} - {out_fresh},
                 found + o * {out_fresh}, {out_fresh} * sizeof found[0]) != 0) {{
        printf("call %d, block %d\\n", calls, o);
        return 1;
      }}
  }}
  if (calls <= {upper}_INPUT0_WARM_CALLS + 1) return 4;
  /* From the beginning again: nothing of the past is left. */
  if (p_{stream}_forward_{reset} != ORCH_OK) return 5;
  for (o = 0; o < {outer}; ++o) memcpy(fresh[o], all[o][0], sizeof fresh[o]);
  if (p_{stream}_forward(&fresh[0][0][0], found) != ORCH_OK) return 6;
  return memcmp(first, found, sizeof first) == 0 ? 0 : 7;
}}
"""


@pytest.mark.parametrize("name", CASES)
def test_a_stream_gives_the_bits_of_windows(product: Product, name: str, tmp_path: Path) -> None:
    case = CASES[name]
    data = (product.profile.parent / f"{case.model}.pte").read_bytes()
    windows = read_program(data, file="")
    given, out = _ports(windows)
    stream = streamed(windows, 0, Stream(axis=case.axis, hop=case.hop))
    # Time is the dimension of the output that has fewer positions, if one has.
    of_stream = _ports(stream)[1]
    pairs = enumerate(zip(of_stream.sizes, out.sizes, strict=True))
    time = next((d for d, (new, whole) in pairs if new != whole), len(out.sizes) - 1)
    fresh, step = (int(np.prod(port.sizes[time:])) for port in (of_stream, out))
    sizes = [given.sizes[d] for d in given.dim_order]
    at = given.dim_order.index(case.axis % len(sizes))
    length = sizes[at]
    types = {"Float": "float", "Char": "int8_t"}
    text = _APPLICATION.format(
        type=types[given.dtype.name],
        out_type=types[out.dtype.name],
        scale=" / 64.0f" if given.dtype.name == "Float" else "",
        outer=int(np.prod(sizes[:at])),
        inner=int(np.prod(sizes[at + 1 :])),
        total=WINDOWS * length // case.hop * case.hop,
        length=length,
        hop=case.hop,
        outputs=out.numel,
        out_outer=out.numel // step,
        out_step=step,
        out_fresh=fresh,
        stream=name,
        model=case.model,
        upper=f"P_{name.upper()}_FORWARD",
        reset="reset()" if is_prelinked(product) else "load(0, 0)",
    )
    run_application(product, text, "c", tmp_path)


def _calls(folder: Path) -> Path:
    """A scenario that calls some streams again and again, with random items."""
    rng, runs = np.random.default_rng(3), []
    for name in ON_TARGETS:
        case = CASES[name]
        program = read_program((folder / f"{case.model}.pte").read_bytes(), file="")
        given = _ports(streamed(program, 0, Stream(axis=case.axis, hop=case.hop)))[0]
        for number in range(CALLS):
            items = rng.integers(-128, 128, given.sizes)
            is_float = given.dtype.name == "Float"
            items = (items / 64).astype("f4") if is_float else items.astype("i1")
            np.save(folder / f"{name}.{number}.npy", items)
            value = {"kind": "tensor", "file": f"{name}.{number}.npy"}
            runs.append({"model": name, "method": "forward", "inputs": [value]})
    scenario = folder / "calls.json"
    tolerance = {"atol": 0, "rtol": 0}
    scenario.write_text(json.dumps({"runs": runs, "tolerance": tolerance}))
    return scenario


@pytest.mark.qemu
def test_streams_on_a_target_give_the_bits_of_the_host(product: Product, tmp_path: Path) -> None:
    """Prelinked ones on a Cortex-M4, loaded ones on a Cortex-M55."""
    cpu, load = "cortex-m55", "pte"
    if is_prelinked(product):
        cpu, load = "cortex-m4", "prelinked"
    need_toolchain(cpu, "gnu")
    need_emulator(cpu)
    folder = product.profile.parent
    scenario = _calls(folder)
    models = {name: CASES[name].model for name in ON_TARGETS}
    found = []
    for made in (product, _product(folder, cpu, cpu, models, load)):
        outputs = tmp_path / made.profile.stem
        given = ("--scenario", str(scenario), "--output-dir", str(outputs))
        assert made.run("run", *given) == 0
        found.append({path.name: path.read_bytes() for path in outputs.iterdir()})
    host, target = found
    assert host == target
    # State lasts from a call to the next one: equal calls would give equal outputs.
    assert len({*host.values()}) > len(ON_TARGETS)


@pytest.mark.parametrize("name", [n for n, case in CASES.items() if case.tenths])
def test_arenas_have_what_is_new_and_the_past(product: Product, name: str) -> None:
    header = (product.out / "include" / "p.h").read_text()

    def arena(model: str) -> int:
        macro = f"#define P_{model.upper()}_FORWARD_ARENA1_BYTES "
        return int(header.partition(macro)[2].split()[0])

    case = CASES[name]
    assert arena(name) * 10 <= arena(case.model) * case.tenths
