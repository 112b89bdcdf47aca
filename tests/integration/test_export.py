"""Models given as Python: exported once, found again, explained when they fail.

PyTorch is a stub here (tests/data/stub_torch); tests/interop has the real one.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from orchestrator.cli.main import run
from orchestrator.provenance.sbom import DOCUMENTS
from tests.conftest import CORPUS
from tests.integration.workspace import ROOT, Workspace

if TYPE_CHECKING:
    from collections.abc import Callable

STUB = Path(__file__).parents[1] / "data" / "stub_torch"

MODEL = """\
from pathlib import Path

import torch
from shapes import sizes

HERE = Path(__file__).parent


class Net(torch.nn.Module):
    def __init__(self):
        self.program = (HERE / "weights.bin").read_bytes()

    def forward(self, *inputs):
        return inputs[0]


def build():
    samples = [(torch.zeros(*sizes),) for _ in sorted(HERE.glob("calibration/*"))]
    return Net(), (torch.zeros(*sizes),), samples
"""

PROFILE = """\
schema = 1
name = "product"

[target]
cpu = "host"
toolchain = "zig"

[[models]]
name = "model"
source = "code/net.py:build"
quantize = {}

[kernels]
libraries = ["quantized", "portable"]
"""


@pytest.fixture
def w(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Workspace:
    stub = tmp_path / "stub"
    shutil.copytree(STUB, stub)
    code = tmp_path / "code"
    (code / "calibration").mkdir(parents=True)
    (code / "calibration" / "one.npy").write_bytes(b"1")
    (code / "net.py").write_text(MODEL)
    (code / "shapes.py").write_text("sizes = (2, 3)\n")
    shutil.copyfile(CORPUS / "add_mul" / "model.pte", code / "weights.bin")
    (tmp_path / "product.toml").write_text(PROFILE)
    monkeypatch.setenv("PYTHONPATH", str(stub))
    monkeypatch.setenv("ORCHESTRATOR_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("ORCHESTRATOR_EXPORT_PYTHON", raising=False)
    for path in tmp_path.rglob("*"):
        os.utime(path, (1, 1))
    return Workspace(folder=tmp_path, capsys=capsys)


def _exported(w: Workspace) -> str:
    """Why the model was exported by a check; "" if it was known."""
    done = w.run("check")
    assert done.code == 0, done.err
    said = [line for line in done.err.splitlines() if line.startswith("exporting")]
    assert len(said) <= 1
    return said[0].split(", ", 1)[1].removesuffix(" ...") if said else ""


def _age(w: Workspace) -> None:
    """Let all files be old: what changed while it was exported is not remembered."""
    for name in ("code", "stub"):
        for path in (w.folder / name).rglob("*"):
            os.utime(path, (2, 2))


def test_a_model_is_exported_once(w: Workspace) -> None:
    assert _exported(w) == "first export"
    assert _exported(w) == ""


def _rewrite(name: str, text: str) -> Callable[[Workspace], None]:
    def edit(w: Workspace) -> None:
        (w.folder / name).write_text(text)

    return edit


def _append(name: str, text: str) -> Callable[[Workspace], None]:
    def edit(w: Workspace) -> None:
        w.edit(name, text)

    return edit


def _other_weights(w: Workspace) -> None:
    shutil.copyfile(CORPUS / "mlp" / "model.pte", w.folder / "code" / "weights.bin")


def _other_sample(w: Workspace) -> None:
    (w.folder / "code" / "calibration" / "two.npy").write_bytes(b"2")


def _other_profile(old: str, new: str) -> Callable[[Workspace], None]:
    return lambda w: _replace(w.profile, old, new)


def _replace(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


CHANGES: dict[str, tuple[Callable[[Workspace], None], str]] = {
    "the code": (_append("code/net.py", "# more\n"), "net.py changed"),
    "what it imports": (_rewrite("code/shapes.py", "sizes = (4,)\n"), "shapes.py"),
    "weights": (_other_weights, "weights.bin changed"),
    "a folder it lists": (_other_sample, "calibration has other files"),
    "how it is quantized": (
        _other_profile("quantize = {}", "quantize = { weights = 'per-tensor' }"),
        "first export",
    ),
    "the lowering": (
        _other_profile("quantize =", 'lowering = "xnnpack"\nquantize ='),
        "first export",
    ),
    "a distribution": (
        _append("stub/torch-1.0.dist-info/METADATA", "Summary: other\n"),
        "torch-1.0 changed",
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_shaped_it_exports_it_again(name: str, w: Workspace) -> None:
    change, reason = CHANGES[name]
    _exported(w)
    change(w)
    assert reason in _exported(w)


def test_a_distribution_that_is_gone_exports_it_again(w: Workspace) -> None:
    _exported(w)
    old = w.folder / "stub" / "torch-1.0.dist-info"
    new = old.with_name("torch-1.1.dist-info")
    old.rename(new)
    _replace(new / "METADATA", "1.0", "1.1")
    assert _exported(w) == "torch-1.0 is not installed any more"


def test_another_python_exports_it_again(w: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    _exported(w)
    other = w.folder / "other-python"
    other.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    other.chmod(0o755)
    monkeypatch.setenv("ORCHESTRATOR_EXPORT_PYTHON", str(other))
    assert _exported(w) == "another Python exports"
    assert _exported(w) == ""
    monkeypatch.delenv("ORCHESTRATOR_EXPORT_PYTHON")
    assert _exported(w) == ""


def test_times_alone_do_not_matter(w: Workspace) -> None:
    _exported(w)
    _age(w)
    assert _exported(w) == ""


def test_an_earlier_state_is_known(w: Workspace) -> None:
    _exported(w)
    (w.folder / "code" / "shapes.py").write_text("sizes = (4,)\n")
    _age(w)
    assert _exported(w) == "shapes.py changed"
    (w.folder / "code" / "shapes.py").write_text("sizes = (2, 3)\n")
    assert _exported(w) == ""


def test_files_that_python_does_not_open_can_be_named(w: Workspace) -> None:
    (w.folder / "code" / "a.safetensors").write_bytes(b"1")
    _replace(w.profile, "quantize =", 'reads = ["code/*.safetensors"]\nquantize =')
    _exported(w)
    assert _exported(w) == ""
    (w.folder / "code" / "a.safetensors").write_bytes(b"2")
    assert _exported(w) == "first export"
    (w.folder / "code" / "b.safetensors").write_bytes(b"2")
    assert _exported(w) == "first export"


def test_a_pattern_without_files_is_told(w: Workspace) -> None:
    _replace(w.profile, "quantize =", 'reads = ["code/*.pt"]\nquantize =')
    done = w.run("check")
    assert done.code == 3
    assert 'error[missing-file]: no file matches "code/*.pt"' in done.err
    assert f"  --> {w.profile}:11\n" in done.err


def test_what_changes_meanwhile_is_not_remembered(w: Workspace) -> None:
    w.edit("code/net.py", "(HERE / 'shapes.py').touch()\n")
    _exported(w)
    assert "changed" in _exported(w)


def test_a_damaged_program_is_exported_again(w: Workspace) -> None:
    _exported(w)
    (program,) = (w.folder / "cache").rglob("model.pte")
    program.write_bytes(program.read_bytes()[:-1])
    assert _exported(w) == "the program is damaged"


def test_the_key_works_for_two_profiles(w: Workspace) -> None:
    _exported(w)
    other = w.folder / "other.toml"
    other.write_text(PROFILE.replace('"product"', '"other"'))
    w.capsys.readouterr()
    assert run(["check", str(other), "--out", str(w.folder / "b")]) == 0
    assert "exporting" not in w.capsys.readouterr().err


@pytest.mark.toolchain
def test_a_build_is_that_of_the_program(w: Workspace) -> None:
    first = w.build()
    assert first.stages["export model"] == "first export"
    outputs, lock = w.outputs(), w.lock.read_text()
    assert w.build().stages == {}
    assert '"model lowering" = "portable"' in lock
    assert '"model quantize" = "int8 per-channel"' in lock
    assert '"model file code/weights.bin" = "' in lock
    assert '"model file code/shapes.py" = "' in lock
    assert '"torch" = "1.0"' in lock
    w.edit("code/shapes.py", "# a comment\n")
    stale = w.run("build", "--locked")
    assert stale.code == 8
    assert "exports: model file code/shapes.py changed" in stale.err
    shutil.copyfile(w.folder / "code" / "weights.bin", w.folder / "model.pte")
    text = PROFILE.replace("source", "path").replace("code/net.py:build", "model.pte")
    w.profile.write_text(text.replace("quantize = {}\n", ""))
    w.build()
    assert w.outputs().keys() == outputs.keys()
    for name, data in w.outputs().items():
        # The documents say where the model comes from.
        assert data == outputs[name] or name in DOCUMENTS, name


@pytest.mark.toolchain
def test_a_model_has_the_borders_of_its_program(w: Workspace) -> None:
    """int8 and uint8 inputs and outputs of a model given as Python."""
    program = ROOT / "examples/digits/digits_int8.pte"
    shutil.copyfile(program, w.folder / "code" / "weights.bin")
    shutil.copyfile(program, w.folder / "model.pte")
    text = PROFILE.replace('["quantized"', '["cortex_m", "quantized"')
    borders = 'load = "prelinked"\nio = { input0 = "uint8", output0 = "int8" }\n'
    text = text.replace("quantize = {}\n", "quantize = {}\n" + borders)
    w.profile.write_text(text)
    w.build()
    outputs = w.outputs()
    header = outputs["include/product.h"]
    assert b"(const uint8_t input0[" in header
    assert b", int8_t output0[" in header
    text = text.replace('source = "code/net.py:build"', 'path = "model.pte"')
    w.profile.write_text(text.replace("quantize = {}\n", ""))
    w.build()
    for name, data in w.outputs().items():
        assert data == outputs[name] or name in DOCUMENTS, name


@pytest.mark.toolchain
def test_verify_exports_again(w: Workspace) -> None:
    assert w.run("verify").code == 0
    _other_weights(w)
    # What came before is not among what the code reads.
    mark, program = w.folder / "mark", CORPUS / "add_mul" / "model.pte"
    w.edit(
        "code/net.py",
        f"if Path({str(mark)!r}).exists():\n"
        f"    Net.program = property(lambda _: Path({str(program)!r}).read_bytes())\n"
        f"    Net.__init__ = lambda self: None\n"
        f"Path({str(mark)!r}).mkdir(exist_ok=True)\n",
    )
    done = w.run("verify")
    assert done.code == 11
    assert "error[not-reproducible]" in done.err


CONFIGURATIONS: dict[str, tuple[str, str]] = {
    "it lacks what is named": (
        "[System_Config.Bord]\n[Memory_Mode.Shared_Sram]\n",
        'error[bad-vela-config]: {file} has no section "System_Config.Board"\n'
        "  --> {profile}:12\n"
        "   |\n"
        '12 | vela = {{ system_config = "Board", config = "vela.ini" }}\n'
        "   = found: Bord\n"
        '   hint: did you mean "Bord"?\n',
    ),
    "it lacks the default": (
        "[System_Config.Board]\n",
        'error[bad-vela-config]: {file} has no section "Memory_Mode.Shared_Sram"\n'
        "  --> {profile}:12\n"
        "   |\n"
        '12 | vela = {{ system_config = "Board", config = "vela.ini" }}\n'
        "   = found: no Memory_Mode at all\n"
        "   hint: name one of its sections\n",
    ),
    "it is something else": (
        "{}\n",
        "error[bad-vela-config]: Vela cannot read its configuration\n"
        "  --> {file}\n"
        "   = found: File contains no section headers.\n"
        "   hint: write it as Vela's own: [System_Config.NAME], then key=value\n",
    ),
}


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_a_configuration_of_vela_is_read_first(w: Workspace, name: str) -> None:
    text, message = CONFIGURATIONS[name]
    (w.folder / "vela.ini").write_text(text)
    _replace(
        w.profile,
        "quantize = {}",
        'lowering = "ethos-u55-64"\nvela = { system_config = "Board", config = "vela.ini" }',
    )
    done = w.run("check")
    assert done.code == 3
    assert done.err == message.format(file=w.folder / "vela.ini", profile=w.profile)


FAILURES: dict[str, tuple[str, int, str, str]] = {
    "its program has other outputs": (
        MODEL + "Net.lowered_sizes = (7, 2)\n",
        11,
        "export-differs",
        "output 0 of the lowered program differs from PyTorch's\n",
    ),
    "it raises": (
        "def build():\n    raise KeyError('weights')\n",
        4,
        "failed-callable",
        "   = at: {code}/net.py:2\n",
    ),
    "it cannot be parsed": ("def build(:\n", 4, "failed-callable", "   = at: {code}/net.py:1\n"),
    "it exits": ("import sys\nsys.exit(3)\n", 4, "failed-callable", "   = found: SystemExit: 3\n"),
    "it kills the process": (
        "import os\nprint('bye')\nos._exit(9)\n",
        4,
        "export-crashed",
        "   = found: status 9\n   = its end: ",
    ),
    "it has another name": (
        "def built():\n    pass\n",
        4,
        "bad-callable",
        '   hint: did you mean "built"?\n',
    ),
    "it gives nothing": (
        "def build():\n    pass\n",
        4,
        "bad-callable",
        "   = found: NoneType\n   = expected: (module, inputs), ",
    ),
    "it gives no module": (
        "def build():\n    return 3, ()\n",
        4,
        "bad-callable",
        "   = found: int as module\n   = expected: a torch.nn.Module\n",
    ),
    "it gives odd inputs": (
        "import torch\ndef build():\n    return torch.nn.Module(), 3\n",
        4,
        "bad-callable",
        "   = found: int as inputs\n",
    ),
    "it gives odd samples": (
        "import torch\ndef build():\n    return torch.nn.Module(), (), [4]\n",
        4,
        "bad-callable",
        "   = found: int as a calibration sample\n",
    ),
    "it gives other keys": (
        "import torch\ndef build():\n"
        "    return {'module': torch.nn.Module(), 'inputs': (), 'input': 1}\n",
        4,
        "bad-callable",
        "   = found: a dict with the keys module, inputs, input\n",
    ),
    "it cannot be exported": (
        MODEL + "Net.refused = 'data-dependent'\n",
        4,
        "cannot-export",
        "   = found: ValueError: data-dependent\n",
    ),
    "it cannot be lowered": (
        MODEL + "Net.unlowered = 'Missing out variants: my::op'\n",
        4,
        "cannot-lower",
        "   = found: RuntimeError: Missing out variants: my::op\n",
    ),
}


@pytest.mark.parametrize("name", FAILURES)
def test_what_is_wrong_is_told(name: str, w: Workspace) -> None:
    code, status, kind, text = FAILURES[name]
    (w.folder / "code" / "net.py").write_text(code)
    done = w.run("check")
    assert done.code == status, done.err
    assert f'error[{kind}]: model "model": ' in done.err
    assert f"  --> {w.profile}:10\n" in done.err
    assert text.format(code=w.folder / "code") in done.err
    assert "hint: " in done.err
    log = w.out / ".work" / "exports" / "model.log"
    assert f"   = log: {log}\n" in done.err
    assert log.is_file()
    assert "Traceback" not in done.err


def test_a_missing_extra_is_told(w: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("torch", "executorch"):
        shutil.rmtree(w.folder / "stub" / f"{name}-1.0.dist-info")
    bare = w.folder / "bare-python"  # without what is installed here
    bare.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S "$@"\n')
    bare.chmod(0o755)
    monkeypatch.setenv("ORCHESTRATOR_EXPORT_PYTHON", str(bare))
    done = w.run("check")
    assert done.code == 7
    assert "error[missing-extra]" in done.err
    assert "   = found: no torch, executorch in " in done.err
    assert f'hint: pip install -e "{ROOT}[export]", or let' in done.err
    monkeypatch.setenv("ORCHESTRATOR_EXPORT_PYTHON", str(w.folder / "no-python"))
    done = w.run("check")
    assert done.code == 7
    assert "no-python" in done.err
    assert "hint: correct ORCHESTRATOR_EXPORT_PYTHON" in done.err


def test_versions_nobody_compared_are_told(w: Workspace) -> None:
    done = w.run("check")
    assert "warning[left-over]: model model: lowering is not accelerated: torch 1.0" in done.err


def test_plan_runs_no_code_of_a_model(w: Workspace) -> None:
    assert w.run("plan").code == 0  # fills the cache, in which compilers are known
    before = sorted(w.folder.rglob("*"))
    document = json.loads(w.run("plan", "--json").out)
    assert document["stages"] == [{"stage": "export model", "runs": True, "reason": "first export"}]
    # Nobody knows before; none of it is an empty list.
    assert document["kernels"] is document["arena_bytes"] is None
    assert (document["profile"], document["models"]) == ("product", ["model"])
    said = w.run("plan")
    assert said.code == 0
    assert "  export model             runs: first export\n" in said.out
    assert f"`orchestrator export {w.profile}` does that" in said.out
    assert sorted(w.folder.rglob("*")) == before
    assert w.run("run", "--no-build").code == 2  # nor does this
    assert sorted(w.folder.rglob("*")) == before


def test_plan_tells_where_a_model_comes_from(w: Workspace) -> None:
    assert w.run("export").code == 0
    said = w.run("plan")
    assert ", from code/net.py:build for portable\n" in said.out
    assert "  export model             known\n" in said.out
    assert json.loads(w.run("plan", "--json").out).keys() == (
        json.loads(_changed(w).run("plan", "--json").out).keys()
    )


def _changed(w: Workspace) -> Workspace:
    w.edit("code/net.py", "# more\n")
    return w


def test_export_publishes_programs(w: Workspace) -> None:
    done = w.run("export", "--json")
    assert done.code == 0, done.err
    (model,) = json.loads(done.out)["models"]
    program = Path(model["program"])
    assert program == w.out / "exported" / "model" / "model.pte"
    assert program.read_bytes() == (w.folder / "code" / "weights.bin").read_bytes()
    assert model["reason"] == "first export"
    assert model["arrays"] == ["scenario.json", "in0.npy", "out0.npy"]
    assert sorted(p.name for p in program.parent.iterdir()) == [
        "in0.npy",
        "model.pte",
        "out0.npy",
        "scenario.json",
    ]
    again = w.run("export")
    assert again.out.startswith("model: up to date, ")
    assert w.run("export", "--again").out.startswith("model: exported (requested)")
    plain = w.run("export", "--no-accelerate", "--explain")
    assert "no information on passes" in plain.out


def test_export_needs_a_model_that_is_python(w: Workspace) -> None:
    shutil.copyfile(w.folder / "code" / "weights.bin", w.folder / "model.pte")
    w.profile.write_text(
        'schema = 1\nname = "product"\n[target]\ncpu = "host"\n[[models]]\npath = "model.pte"\n'
    )
    done = w.run("export")
    assert done.code == 2
    assert "error[nothing-to-export]" in done.err
    both = w.run("export", "--verify", "--no-accelerate")
    assert both.code == 2


def _in_float(w: Workspace) -> None:
    """A quantized model of which a delegate takes a part."""
    program = CORPUS / "xnnpack_partial" / "model.pte"
    shutil.copyfile(program, w.folder / "code" / "weights.bin")
    text = PROFILE.replace("quantize =", 'lowering = "xnnpack"\nquantize =')
    w.profile.write_text(f'{text}[operators]\nallow_missing = ["XnnpackBackend"]\n')


def test_what_stays_in_float_is_named_with_its_cost(w: Workspace) -> None:
    _in_float(w)
    done = w.run("check")
    assert done.code == 0, done.err
    warning = done.err[done.err.index("warning[left-in-float]") :].splitlines()
    assert "model model: xnnpack left 2 calls" in warning[0]
    assert "32 bytes of results, about" in warning[0]
    assert warning[1].split()[:2] == ["operator", "calls"]
    rows = {line.split()[0]: line.split()[1:4] for line in warning[2:4]}
    assert rows["aten::cumsum.out"] == ["1", "1x5", "20"]


def test_floats_are_denied(w: Workspace) -> None:
    _in_float(w)
    for command in ("check", "export", "build"):
        done = w.run(command, "--deny-float", "--json")
        assert done.code == 4, done.err
        assert "left-in-float" in done.out
        assert "aten::cumsum.out" in done.out
        assert "makes this an error" not in done.out
    assert w.run("export").code == 0  # it is in the cache, and only a warning


def test_a_model_without_quantization_is_not_denied(w: Workspace) -> None:
    _in_float(w)
    _replace(w.profile, "quantize = {}\n", "")
    done = w.run("check", "--deny-float")
    assert done.code == 0, done.err
    assert "left-in-float" not in done.err
