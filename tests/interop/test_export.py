"""Models given as Python, with the real PyTorch and ExecuTorch."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from orchestrator.cli.main import run
from orchestrator.export.request import Request
from orchestrator.profile.lowering import Activations, Quantize
from tests.data.int16.make_programs import profile_of, step_of
from tests.tools import need_emulator, need_toolchain

PYTHON = os.environ.get("EXECUTORCH_PYTHON", "")
ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "python_model"
INT16 = ROOT / "tests" / "data" / "int16"

pytestmark = [
    pytest.mark.executorch,
    pytest.mark.skipif(not PYTHON, reason="EXECUTORCH_PYTHON is not set; see `nox -s interop`"),
]

STEP = 0.0016
"""Less than one step of the outputs of every network here."""


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ORCHESTRATOR_EXPORT_PYTHON", PYTHON)
    monkeypatch.setenv("ORCHESTRATOR_CACHE", str(tmp_path / "cache"))


def _copy(folder: Path) -> Path:
    folder.mkdir(parents=True)
    for path in EXAMPLE.iterdir():
        if path.is_file():
            shutil.copyfile(path, folder / path.name)
    return folder


def _export(
    profile: Path, out: Path, capsys: pytest.CaptureFixture[str], *words: str
) -> dict[str, Any]:
    capsys.readouterr()
    assert run(["export", str(profile), "--out", str(out), "--json", *words]) == 0
    (model,) = json.loads(capsys.readouterr().out)["models"]
    found: dict[str, Any] = model
    return found


@pytest.mark.qemu
@pytest.mark.toolchain
@pytest.mark.parametrize("core", ["m55", "m4"])
def test_firmware_gives_what_quantized_pytorch_gives(
    core: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    need_toolchain(f"cortex-{core}", "zig")
    need_emulator(f"cortex-{core}")
    profile = _copy(tmp_path / "example") / f"keywords-{core}.toml"
    out = tmp_path / "out"
    assert run(["build", str(profile), "--out", str(out)]) == 0
    model = _export(profile, out, capsys)
    assert model["reason"] == "", "the build has exported it"
    folder = Path(model["program"]).parent
    words = ["--input", str(folder / "in0.npy"), "--expect", str(folder / "out0.npy")]
    assert run(["run", str(profile), "--out", str(out), *words, "--atol", "1e-5"]) == 0
    wrong = ["--input", str(folder / "in0.npy"), "--expect", str(_shifted(folder))]
    words = [*wrong, "--atol", str(STEP)]
    assert run(["run", str(profile), "--out", str(out), *words]) == 10


def _shifted(folder: Path) -> Path:
    """Outputs that are wrong by a few steps."""
    data = bytearray((folder / "out0.npy").read_bytes())
    data[-1] ^= 0x80  # the sign of the last number
    path = folder / "shifted.npy"
    path.write_bytes(data)
    return path


def test_locks_of_the_example_hold_elsewhere(tmp_path: Path) -> None:
    need_toolchain("cortex-m55", "zig")
    folder = _copy(tmp_path / "example")
    for core in ("m55", "m4"):
        profile = str(folder / f"keywords-{core}.toml")
        for place, words in (("here", ["lock"]), ("there", ["lock", "--check"])):
            assert run([*words, profile, "--out", str(tmp_path / core / place)]) == 0


def test_the_same_bytes_in_another_process_and_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    for name in ("one", "another/folder"):
        monkeypatch.setenv("ORCHESTRATOR_CACHE", str(tmp_path / name / "cache"))
        profile = _copy(tmp_path / name / "example") / "keywords-m55.toml"
        found.append(_export(profile, tmp_path / name / "out", capsys))
        # Installed, and not used: nothing that shaped the program.
        assert "safetensors" not in found[-1]["distributions"]
        assert found[-1]["reason"] == "first export"
    assert found[0]["sha256"] == found[1]["sha256"]


LOWERINGS = {
    "portable": "",
    "portable, quantized": "quantize = {}",
    "xnnpack": "",
    "xnnpack, dynamic": "quantize = { dynamic = true }",
    "xnnpack, per tensor": 'quantize = { weights = "per-tensor" }',
    "cortex-m": "quantize = {}",
    "cortex-m, int16": 'quantize = { activations = "int16" }',
    "ethos-u55-128": "quantize = {}",
    "ethos-u85-256": 'quantize = { activations = "int16" }',
}


@pytest.mark.parametrize("name", LOWERINGS)
def test_every_lowering_is_the_same_accelerated(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lowering = name.partition(",")[0]
    folder = _copy(tmp_path / "example")
    profile = folder / "product.toml"
    profile.write_text(
        'schema = 1\nname = "product"\n[target]\ncpu = "cortex-m55"\n'
        '[[models]]\nsource = "keywords.py:build"\n'
        f'lowering = "{lowering}"\n{LOWERINGS[name]}\n'
    )
    model = _export(profile, tmp_path / "out", capsys, "--verify", "--explain")
    assert model["verified"]["stages"] > 10
    is_ethos_u = lowering.startswith("ethos-u")
    assert (model["verified"]["tosa_flatbuffers"] > 0) is is_ethos_u
    if name == "cortex-m, int16":
        assert model["warnings"] == [
            "values are not compared with PyTorch's (forward:"
            " cortex_m.quantized_conv2d.default gives another dtype in Python)"
        ]
    elif not name.startswith("ethos-u55"):  # which takes no such stride of a pooling
        assert model["warnings"] == []
    assert Path(model["program"]).stat().st_size == model["size_bytes"] > 1000
    assert model["ledger"]["passes"]


MODELS = """\
import torch
from torch import nn
from torch.export import Dim


class Branch(nn.Module):
    def forward(self, x):
        return torch.cond(
            x.sum() > 0, lambda y: y.sin() * 2, lambda y: y.cos() - y, (x,)
        )


class Count(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("calls", torch.full((1,), 5.0))

    def forward(self, x):
        self.calls.add_(1)
        return x + self.calls


def branch():
    return Branch(), torch.randn(3, 5)


def count():
    return Count(), torch.zeros(2)


def dense():
    return {
        "module": nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3)),
        "inputs": torch.randn(4, 6),
        "dynamic_shapes": ({0: Dim("rows", min=1, max=9)},),
    }
"""


@pytest.mark.toolchain
@pytest.mark.parametrize("function", ["branch", "count", "dense"])
def test_control_flow_state_and_dynamic_shapes(
    function: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    need_toolchain("host", "zig")
    (tmp_path / "models.py").write_text(MODELS)
    profile = tmp_path / "product.toml"
    profile.write_text(
        'schema = 1\nname = "product"\n[target]\ncpu = "host"\ntoolchain = "zig"\n'
        f'[[models]]\nsource = "models.py:{function}"\n'
    )
    out = tmp_path / "out"
    model = _export(profile, out, capsys, "--verify")
    folder = Path(model["program"]).parent
    assert run(["build", str(profile), "--out", str(out)]) == 0
    words = ["--input", str(folder / "in0.npy"), "--expect", str(folder / "out0.npy")]
    assert run(["run", str(profile), "--out", str(out), *words]) == 0


BOUNDED = """
import torch
from torch import nn
from torch.export import Dim


class Bounded(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(2, 3, 4, 4)
        self.register_buffer("past", torch.arange(12.0))

    def forward(self, x, times, many, rest):
        kept = self.past[rest.shape[1] :] * 2  # the more, the smaller the input
        return self.conv(x) * times, many["y"] + 1, rest[:, ::2] * 2, kept


def build():
    n, rows, odd = Dim("n", min=2, max=6), Dim("rows", max=9), Dim("odd", min=1, max=4)
    return {
        "module": Bounded(),
        "inputs": (
            *(torch.randn(1, 2, 16), 2),
            *({"y": torch.randn(3, 4)}, torch.randn(3, 5)),
        ),
        "dynamic_shapes": (
            *({2: 4 * n}, None),
            *({"y": {0: rows}}, {0: rows, 1: 2 * odd + 1}),
        ),
    }
"""


@pytest.mark.toolchain
def test_least_sizes_and_multiples_are_known(tmp_path: Path) -> None:
    need_toolchain("host", "zig")
    (tmp_path / "models.py").write_text(BOUNDED)
    profile, out = tmp_path / "product.toml", tmp_path / "out"
    profile.write_text(
        'schema = 1\nname = "product"\n[target]\ncpu = "host"\ntoolchain = "zig"\n'
        '[[models]]\nname = "m"\nsource = "models.py:build"\n'
    )
    assert run(["build", str(profile), "--out", str(out)]) == 0
    (method,) = json.loads((out / "product.json").read_text())["methods"]
    assert [port.get("bounds", []) for port in method["inputs"]] == [
        [{"input": 0, "dim": 2, "least": 8, "step": 4}],
        [],
        [],
        [{"input": 3, "dim": 1, "least": 3, "step": 2}],
    ]
    words = ["--output-dir", str(tmp_path)]
    for name, sizes in (("x", (1, 2, 8)), ("y", (0, 4)), ("rest", (0, 3))):
        np.save(tmp_path / f"{name}.npy", np.zeros(sizes, np.float32))
        words += ["--input", str(tmp_path / f"{name}.npy")]
        words += ["--input", "2"] if name == "x" else []
    assert run(["run", str(profile), "--out", str(out), *words]) == 0
    kept = np.load(tmp_path / "out3.npy")
    assert kept.tolist() == [2.0 * n for n in range(3, 12)]


READERS = """\
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import nn

HERE = Path(__file__).parent


def save():
    net = nn.Linear(2, 2)
    torch.save(net.state_dict(), HERE / "state.pt")
    torch.export.save(torch.export.export(net, (torch.zeros(1, 2),)), HERE / "net.pt2")
    torch.jit.save(torch.jit.script(net), str(HERE / "net.jit"))
    save_file(net.state_dict(), HERE / "net.safetensors")
    np.save(HERE / "array.npy", np.zeros(2))


def build():
    torch.load(HERE / "state.pt", mmap=True)
    torch.jit.load(str(HERE / "net.jit"))
    load_file(HERE / "net.safetensors")
    np.load(HERE / "array.npy", mmap_mode="r")
    return torch.export.load(HERE / "net.pt2").module(), torch.zeros(1, 2)


if __name__ == "__main__":
    save()
"""


def test_files_that_are_read_past_python_are_noticed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = tmp_path / "code.py"
    code.write_text(READERS)
    subprocess.run([PYTHON, "-W", "ignore", str(code)], check=True)
    profile = tmp_path / "product.toml"
    profile.write_text(
        'schema = 1\nname = "product"\n[target]\ncpu = "host"\n'
        '[[models]]\nname = "net"\nsource = "code.py:build"\n'
    )
    names = {"array.npy", "code.py", "net.jit", "net.pt2", "net.safetensors"}
    model = _export(profile, tmp_path / "out", capsys)
    assert set(model["files"]) == names | {"state.pt"}
    assert model["distributions"]["safetensors"] == "0.8.0"


OWN_VELA = """\
[System_Config.Board]
core_clock=200e6
axi0_port=Sram
axi1_port=OffChipFlash
Sram_clock_scale=1.0
Sram_burst_length=32
Sram_read_latency=32
Sram_write_latency=32
OffChipFlash_clock_scale=0.0625
OffChipFlash_burst_length=128
OffChipFlash_read_latency=64
OffChipFlash_write_latency=64

[Memory_Mode.All_In_Sram]
const_mem_area=Axi0
arena_mem_area=Axi0
cache_mem_area=Axi0
"""


def _ethos_u(folder: Path, vela: str) -> Path:
    profile = _copy(folder) / "product.toml"
    (folder / "boards").mkdir()
    (folder / "boards" / "vela.ini").write_text(OWN_VELA)
    profile.write_text(
        'schema = 1\nname = "product"\n[target]\ncpu = "cortex-m55"\n'
        '[[models]]\nname = "net"\nsource = "keywords.py:build"\n'
        f'lowering = "ethos-u55-64"\nquantize = {{}}\n[models.vela]\n{vela}'
    )
    return profile


def test_vela_compiles_for_the_system_of_the_profile(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    profile = _ethos_u(
        tmp_path / "one",
        'system_config = "Board"\nmemory_mode = "All_In_Sram"\n'
        'config = "boards/vela.ini"\nflags = ["--optimise=Size"]\n',
    )
    model = _export(profile, tmp_path / "out", capsys)
    program = Path(model["program"]).read_bytes()
    for flag in (
        *("--system-config=Board", "--memory-mode=All_In_Sram", "--optimise=Size"),
        *("--config=./boards/vela.ini", "--accelerator-config=ethos-u55-64"),
    ):
        assert flag.encode() in program
    assert "boards/vela.ini" in model["files"]
    assert _export(profile, tmp_path / "out", capsys)["reason"] == ""
    config = profile.parent / "boards" / "vela.ini"
    config.write_text(OWN_VELA.replace("200e6", "400e6"))
    model = _export(profile, tmp_path / "out", capsys)
    assert model["reason"] == "boards/vela.ini changed"


@pytest.mark.parametrize(
    ("vela", "found"),
    [
        ('flags = ["--optimize=Size"]\n', "unrecognized arguments: --optimize=Size"),
        (
            'memory_mode = "Dedicated_Sram"\n',
            "Invalid configuration of arena_mem_area=OffChipFlash (must be Sram or Dram)",
        ),
    ],
)
def test_what_vela_refuses_is_told_in_its_words(
    vela: str, found: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    profile = _ethos_u(tmp_path / "one", vela)
    capsys.readouterr()
    assert run(["export", str(profile), "--out", str(tmp_path / "out")]) == 4
    said = capsys.readouterr().err
    assert 'error[cannot-lower]: model "net": Vela cannot compile the model' in said
    assert f"   = found: {found}\n" in said


def test_a_model_in_the_default_layout_becomes_the_same_program(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = _copy(tmp_path / "example")
    profile = folder / "keywords-m55.toml"
    saved = _export(profile, tmp_path / "out", capsys)
    code = folder / "keywords.py"
    code.write_text(code.read_text().replace("torch.channels_last", "torch.contiguous_format"))
    model = _export(profile, tmp_path / "out", capsys)
    # Its image has one channel, and nothing to copy.
    assert model["warnings"] == []
    assert model["sha256"] == saved["sha256"]


ACCURACY = """
import sys, copy, torch
from orchestrator.export import lower
from orchestrator.export.request import parse_request
from orchestrator.export.source import load_source

request = parse_request(open(sys.argv[1]).read())
model = lower.arranged(load_source(request.file, request.function), request)
module = copy.deepcopy(model.methods["forward"].module)
lower.lowering_module(request.lowering)
quantized = lower.quantized(model, request)[0]["forward"]
squares = []
for _, sample in model.calibration:
    with torch.no_grad():
        squares.append(((module(*sample) - quantized(*sample)) ** 2).mean())
print(float(torch.stack(squares).mean().sqrt()))
"""


def test_int16_activations_are_nearer_to_floats(tmp_path: Path) -> None:
    """Outputs of a network whose weights are int8 either way."""
    (tmp_path / "accuracy.py").write_text(ACCURACY)
    errors = {}
    for activations in Activations:
        request = Request(
            file=str(INT16 / "nets.py"),
            function="convnet",
            folder=str(tmp_path),
            lowering="cortex-m",
            cpu="cortex-m4",
            isa="dsp",
            quantize=Quantize(activations=activations),
        )
        (tmp_path / "request.json").write_text(request.text())
        words = [PYTHON, "-W", "ignore", "accuracy.py", "request.json"]
        done = subprocess.run(
            words,
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=True,
        )
        errors[activations] = float(done.stdout.split()[-1])
    assert errors[Activations.INT16] * 4 < errors[Activations.INT8], errors


@pytest.mark.toolchain
@pytest.mark.parametrize("name", ["convnet", "moves", "steps"])
def test_int16_networks_give_what_quantized_pytorch_gives(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    need_toolchain("host", "gnu")
    profile = profile_of(tmp_path, name)
    text = profile.read_text().replace("cortex-m4", "host")
    profile.write_text(text)
    out = tmp_path / "out"
    folder = Path(_export(profile, out, capsys)["program"]).parent
    steps = 4 * step_of(folder / "model.pte")
    words = ["--input", str(folder / "in0.npy"), "--expect", str(folder / "out0.npy")]
    words += ["--out", str(out), "--rtol", "0", "--atol", str(steps)]
    assert run(["run", str(profile), *words]) == 0


ODD = """\
import torch
from torch import nn
from torch._higher_order_ops.while_loop import while_loop


class Call(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *inputs):
        return self.function(*inputs)


def numbers():
    return Call(lambda x: ((x > 0).sum().item(), x.max().item())), torch.randn(9)


def loop():
    def run(i, x):
        return while_loop(lambda i, x: i > 0, lambda i, x: (i - 1, x * 0.5), (i, x))

    return Call(run), (torch.tensor(4), torch.randn(3))


def effects():
    return Call(torch.linalg.solve), (torch.randn(3, 3), torch.randn(3, 2))


def texts():
    return Call(lambda x: (x + 1, "name")), torch.randn(3)


def nothing():
    return Call(lambda x: None), torch.randn(3)


class Buffers(nn.Module):
    def __init__(self, make):
        super().__init__()
        self.register_buffer("sums", torch.zeros(2, 3))
        self.register_buffer("other", make(self.sums))

    def forward(self, x):
        self.sums.add_(x)
        return self.other * 2


def views():
    return Buffers(lambda sums: sums[0]), torch.randn(2, 3)


def named():
    pair = torch.sort(torch.randn(2, 3))
    return Call(lambda pair: torch.max(pair.values, 1)), (pair,)


class Counter(nn.Linear):
    def __init__(self):
        super().__init__(4, 4)
        self.register_buffer("count", torch.zeros(1, dtype=torch.int64))

    def forward(self, x):
        self.count.add_(1)
        return super().forward(x) / self.count, self.count.clone()


def counter():
    return Counter(), torch.randn(1, 4)


def tied():
    return Buffers(lambda sums: sums), torch.randn(2, 3)


def wrong():
    return Call(lambda x: torch.nn.functional.softplus(x - 1)), torch.randn(2, 3)
"""


def _odd(folder: Path, name: str) -> Path:
    (folder / "odd.py").write_text(ODD)
    profile = folder / "product.toml"
    profile.write_text(
        'schema = 1\nname = "product"\n[target]\ncpu = "host"\ntoolchain = "zig"\n'
        f'[[models]]\nname = "net"\nsource = "odd.py:{name}"\n'
    )
    return profile


@pytest.mark.toolchain
@pytest.mark.parametrize("name", ["named", "tied"])
def test_named_tuples_and_buffers_with_two_names(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    need_toolchain("host", "zig")
    profile, out = _odd(tmp_path, name), tmp_path / "out"
    folder = Path(_export(profile, out, capsys)["program"]).parent
    words = ["--out", str(out), "--scenario", str(folder / "scenario.json")]
    assert run(["run", str(profile), *words]) == 0


@pytest.mark.toolchain
def test_outputs_that_are_only_numbers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    need_toolchain("host", "zig")
    profile, out = _odd(tmp_path, "numbers"), tmp_path / "out"
    folder = Path(_export(profile, out, capsys)["program"]).parent
    words = ["--out", str(out), "--input", str(folder / "in0.npy")]
    for at in range(2):
        words += ["--expect", str(folder / f"out{at}.npy")]
    assert run(["run", str(profile), *words]) == 0


@pytest.mark.parametrize(
    ("name", "found", "hint"),
    [
        ("loop", "cannot lower while_loop\n", "a fixed number of steps"),
        ("effects", "cannot lower aten::linalg_solve, which has side effects", ""),
    ],
)
def test_what_cannot_be_lowered_is_named(
    name: str, found: str, hint: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    profile = _odd(tmp_path, name)
    assert run(["export", str(profile), "--out", str(tmp_path / "out")]) == 4
    said = capsys.readouterr().err
    assert f'error[cannot-lower]: model "net": ExecuTorch {found}' in said
    assert f"{tmp_path}/odd.py:" in said
    assert hint in said.partition("   hint: ")[2]


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("texts", "output 1 is str, no tensor or number\n"),
        ("nothing", "the method gives nothing and changes no buffer\n"),
        ("views", 'buffers "sums" and "other" share memory that changes\n'),
    ],
)
def test_what_programs_cannot_hold_is_named(
    name: str, found: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    profile = _odd(tmp_path, name)
    assert run(["export", str(profile), "--out", str(tmp_path / "out")]) == 4
    assert f'model "net": {found}' in capsys.readouterr().err


def test_a_counter_beside_a_delegate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    profile = _odd(tmp_path, "counter")
    with profile.open("a") as file:
        file.write('lowering = "ethos-u55-128"\nquantize = {}\n')
    folder = Path(_export(profile, tmp_path / "out", capsys)["program"]).parent
    assert np.load(folder / "out1.npy").tolist() == [1]


WRONG = """\
import sys

from orchestrator.export import lower
from orchestrator.export.failure import ExportError
from orchestrator.export.lowerings import portable
from orchestrator.export.request import Request
from orchestrator.export.source import load_source
from executorch.exir.dialects._ops import ops

plain = portable.lowered


def lowered(program, request):
    edge = plain(program, request)
    for node in edge.exported_program().graph.nodes:
        if node.target is ops.edge.aten.sub.Tensor:
            node.target = ops.edge.aten.mul.Tensor
    return edge


portable.lowered = lowered
file, folder = sys.argv[1:]
request = Request(
    file=file, function="wrong", folder=folder, lowering="portable", cpu="host", isa=""
)
model = load_source(request.file, request.function)
modules = {"forward": model.methods["forward"].module}
modules, outputs = lower.with_reference(modules, model)
try:
    lower.lowered(modules, model, request, outputs)
except ExportError as error:
    print(error.code, error.message, dict(error.notes)["first layer"])
"""


def test_a_program_that_computes_something_else_is_refused(tmp_path: Path) -> None:
    """A lowering that multiplies where the model subtracts."""
    _odd(tmp_path, "wrong")
    (tmp_path / "wrong.py").write_text(WRONG)
    done = subprocess.run(
        [PYTHON, "-W", "ignore", "wrong.py", str(tmp_path / "odd.py"), str(tmp_path)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.splitlines()[-1:] == [
        "export-differs output 0 of the lowered program differs from PyTorch's"
        f" aten::sub at {tmp_path}/odd.py:12"
    ], done.stderr
