"""`init`, `new` and `watch`: from a model to firmware that runs."""

from __future__ import annotations

import json
import os
import pty
import select
import shutil
import subprocess
import sys
import tomllib
from argparse import Namespace
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from orchestrator.cli.commands.watch import follow
from orchestrator.cli.console import Console
from orchestrator.cli.main import run
from tests.conftest import CORPUS
from tests.integration.workspace import ROOT
from tests.schemas import validator
from tests.tools import need_tool, need_toolchain

if TYPE_CHECKING:
    from collections.abc import Iterator

STUB = ROOT / "tests" / "data" / "stub_torch"
CORPUS_MODELS = (
    *("kws_dscnn_fp32", "multi_method", "kv_cache", "bool_logic"),
    *("kws_dscnn_int8_m55", "quantize_dequantize"),
)
NO_PYTORCH = f"{sys.executable}"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty current folder; no interpreter there has ExecuTorch."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ORCHESTRATOR_EXPORT_PYTHON", NO_PYTORCH)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "nothing"))
    return tmp_path


def _copy(case: str, name: str = "") -> Path:
    path = Path(f"{name or case}.pte")
    shutil.copyfile(CORPUS / case / "model.pte", path)
    return path


def _init(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, object]:
    """The document of a call that succeeds."""
    capsys.readouterr()
    assert run(["init", *arguments, "--json"]) == 0, capsys.readouterr().err
    found: dict[str, object] = json.loads(capsys.readouterr().out)
    return found


@pytest.mark.toolchain
@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("case", CORPUS_MODELS)
def test_what_init_writes_builds_and_runs(case: str, capsys: pytest.CaptureFixture[str]) -> None:
    need_toolchain("host", "zig")
    done = _init(capsys, str(_copy(case)), "--toolchain", "zig")
    profile = str(done["profile"])
    assert profile == f"{case.replace('_', '-')}.toml"
    assert run(["check", profile]) == 0
    commands = done["next"]
    assert isinstance(commands, list)
    for command in commands:
        program, *words = command.split()
        assert program == "orchestrator"
        assert run([*words, *(["--no-lock"] if words[0] == "build" else [])]) == 0
    schema = Path("profile.schema.json").read_text()
    validator(schema).validate(tomllib.loads(Path(profile).read_text()))
    ignored = Path(".gitignore").read_text()
    assert "build/" in ignored


def test_it_never_overwrites(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = str(_copy("add_mul", "n"))
    (folder / ".gitignore").write_text("mine\n")
    done = _init(capsys, model)
    assert done["kept"] == [".gitignore"]
    assert (folder / ".gitignore").read_text() == "mine\n"
    before = {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()}
    assert run(["init", model]) == 2
    assert capsys.readouterr().err == (
        "error[file-exists]: n.toml exists, and is never overwritten\n"
        "  --> n.toml\n"
        "   hint: choose another --name or --dir, or move the file away\n\n"
        "error[file-exists]: scenarios/n.json exists, and is never overwritten\n"
        "  --> scenarios/n.json\n"
        "   hint: choose another --name or --dir, or move the file away\n\n"
        "error[file-exists]: scenarios/n exists, and is never overwritten\n"
        "  --> scenarios/n\n"
        "   hint: choose another --name or --dir, or move the file away\n"
    )
    assert before == {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()}
    _init(capsys, model, "--dir", "other/deep")
    (found,) = tomllib.loads(Path("other/deep/n.toml").read_text())["models"]
    assert found["path"] == "../../n.pte"


@pytest.mark.usefixtures("folder")
def test_a_profile_that_does_not_pass_is_written(capsys: pytest.CaptureFixture[str]) -> None:
    model = str(_copy("vww_mobilenetv1_fp32", "large"))
    code = run(["init", model, "--board", "microbit", "--toolchain", "zig", "--json"])
    done = json.loads(capsys.readouterr().out)
    assert code == 6
    assert done["check"] is None
    assert done["diagnostics"]
    assert Path("large.toml").is_file()
    assert Path("scenarios/large.json").is_file()
    assert run(["check", "large.toml"]) == 6


@pytest.mark.usefixtures("folder")
def test_what_is_no_model(capsys: pytest.CaptureFixture[str]) -> None:
    Path("two.py").write_text("def one(): ...\ndef two(): ...\ndef more(x): ...\n")
    Path("bad.py").write_text("def (\n")
    _copy("add_mul", "model")
    arguments = ["modl.pte", "model.pt", "a.onnx", "two.py", "bad.py"]
    assert run(["init", *arguments, "--json"]) == 2
    document = json.loads(capsys.readouterr().out)
    problems = [
        (d["where"]["file"], d["where"]["line"], d["message"], d["hint"])
        for d in document["diagnostics"]
    ]
    kinds = "a program (.pte), an exported program (.pt2), or FILE.py:function"
    assert problems == [
        ("modl.pte", 0, "no such file", 'did you mean "model.pte"?'),
        ("model.pt", 0, "no such file", 'did you mean "model.pte"?'),
        ("a.onnx", 0, "this is not a model", f"name {kinds}"),
        (*("two.py", 0, "which function returns the model is not clear"), "name it: two.py:one"),
        ("bad.py", 1, "bad.py is not Python code", f"name {kinds}"),
    ]
    assert not Path("profile.schema.json").exists()
    for words, hint in (
        (["--cpu", "cortex-m4", "--board", "mps3-an547"], "leave out --cpu"),
        (["--flash", "12 KB"], '"256 KiB"'),
        (["--name", "A b"], 'write "a-b"'),
        (["--lowering", "portabel"], 'did you mean "portable"?'),
        (["--lowering", "tpu"], "docs/export.md#lowerings lists them"),
        (["--cpu", "cortex-m44"], 'did you mean "cortex-m4"?'),
        (["--cpu", "z80"], "run `orchestrator targets` to list them"),
        (["--board", "z80"], "run `orchestrator targets` to list them"),
    ):
        assert run(["init", "model.pte", *words]) == 2
        error = capsys.readouterr().err
        assert hint in error
        assert max(map(len, error.splitlines())) <= 80
    Path("model.pte").unlink()
    assert run(["init"]) == 2
    assert "orchestrator new DIR" in capsys.readouterr().err


def test_models_given_as_python(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """PyTorch is a stub, which exports what it is given."""
    monkeypatch.setenv("PYTHONPATH", str(STUB))
    monkeypatch.setenv("ORCHESTRATOR_CACHE", str(folder / "cache"))
    (folder / "net.py").write_text("def build(): ...\n")
    (folder / "net.pt2").write_bytes(b"")
    code = run(["init", "net.py", "net.pt2", "--name", "n", "--quantize", "--json"])
    document = json.loads(capsys.readouterr().out)
    assert code == 4  # the callable returns no model
    assert document["diagnostics"][0]["where"]["file"] == "n.toml"
    first, second = tomllib.loads((folder / "n.toml").read_text())["models"]
    assert (first["name"], first["source"]) == ("net", "net.py:build")
    assert (second["name"], second["source"]) == ("net_2", "net_2_pt2.py:build")
    assert second["quantize"] == {"activations": "int8"}
    text = (folder / "net_2_pt2.py").read_text()
    compile(text, "net_2_pt2.py", "exec")
    assert "'net.pt2'" in text


def _in_terminal(
    *command: str, answers: tuple[str, ...], cwd: Path, paths: tuple[Path, ...] = ()
) -> tuple[int, str]:
    """Exit code and screen of a command that is asked questions."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(cwd)
        os.environ["PYTHONPATH"] = os.pathsep.join(map(str, (ROOT, *paths)))
        words = [sys.executable, "-m", "orchestrator", *command]
        os.execv(sys.executable, words)  # noqa: S606  # no shell, on purpose
    waiting, shown = list(answers), ""
    with suppress(OSError):  # Linux: the other end is closed
        while select.select([terminal], [], [], 60)[0]:
            data = os.read(terminal, 65536).decode(errors="replace")
            if not data:
                break
            shown += data
            if waiting and shown.endswith(": "):
                os.write(terminal, f"{waiting.pop(0)}\n".encode())
    os.close(terminal)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), shown


def test_questions_on_a_terminal(folder: Path) -> None:
    _copy("add_mul", "n")
    code, shown = _in_terminal(
        "init",
        answers=(
            *("", "mps3-an54", "nothing", "?", "mps3-an547"),
            *("zig", "B", "b", "", "9", "9 KiB", ""),
        ),
        cwd=folder,
    )
    assert code == 0, shown
    assert "Models, separated by spaces [n.pte]: " in shown
    before, _, after = shown.partition('"nothing" is not a choice: ? lists them')
    assert "Core or board (? lists them) [host]: " in before
    for name in ("cortex-m85", "stm32f407vg"):  # not before someone asks
        assert name not in before
        assert name in after
    assert '"mps3-an54" is not a choice: did you mean "mps3-an547"?' in shown
    assert 'that cannot be a name: write "b"' in shown
    assert 'write it as "256 KiB" or "2 MiB"' in shown
    plain = [line for line in shown.splitlines() if "\x1b" not in line]
    assert max(map(len, plain)) <= 80
    profile = tomllib.loads((folder / "b.toml").read_text())
    assert profile["target"]["board"] == "mps3-an547"
    assert profile["budget"] == {"flash": "9 KiB"}
    assert "orchestrator build b.toml" in shown


PYTHON_MODEL = """\
from pathlib import Path

import torch


class Net(torch.nn.Module):
    def __init__(self):
        self.program = Path(__file__).with_name("weights.bin").read_bytes()

    def forward(self, x):
        return x


def build():
    return Net(), (torch.zeros(1, 12),)


def untrained():
    return build()
"""


@pytest.fixture
def stub(folder: Path, monkeypatch: pytest.MonkeyPatch) -> bytes:
    """PyTorch is a stub whose modules are programs; this is one of a [1, 12] input."""
    monkeypatch.setenv("ORCHESTRATOR_CACHE", str(folder / "cache"))
    return (CORPUS / "mlp" / "model.pte").read_bytes()


def test_questions_about_python_code(folder: Path, stub: bytes) -> None:
    (folder / "net.py").write_text(PYTHON_MODEL)
    (folder / "weights.bin").write_bytes(stub)
    code, shown = _in_terminal(
        *("init", "net.py"),
        answers=("", "biuld", "build", "host", "zig", "", "", "", "", "9 KiB", ""),
        cwd=folder,
        paths=(STUB,),
    )
    assert code == 0, shown
    asked = "Which function of net.py returns the model (build, untrained): "
    assert shown.count(asked) == 3
    assert "an answer is needed: build or untrained" in shown
    assert '"biuld" is not a choice: did you mean "build"?' in shown
    assert "Quantize to int8 (yes, no) [no]: " in shown
    assert "Lower the model for (? lists them) [portable]: " in shown
    (model,) = tomllib.loads((folder / "net.toml").read_text())["models"]
    assert model["source"] == "net.py:build"
    assert "wrote scenarios/net.json" in shown


def test_questions_about_an_exported_program(folder: Path, stub: bytes) -> None:
    (folder / "net.pt2").write_bytes(b"[1, 12]\n" + stub)
    code, shown = _in_terminal(
        "init",
        answers=("", "mps3-an547", "zig", "", "prelinked", "", "portable", "", ""),
        cwd=folder,
        paths=(STUB,),
    )
    assert code == 0, shown
    assert "Models, separated by spaces [net.pt2]: " in shown
    assert "wrote net_pt2.py" in shown
    profile = tomllib.loads((folder / "net.toml").read_text())
    (model,) = profile["models"]
    assert (model["source"], model["load"]) == ("net_pt2.py:build", "prelinked")
    assert profile["target"]["board"] == "mps3-an547"


def test_the_end_of_input_is_an_answer_too(folder: Path) -> None:
    _copy("add_mul", "n")
    code, shown = _in_terminal("init", "n.pte", answers=("\x04",), cwd=folder)
    assert code == 2
    assert "take the defaults with --yes" in shown
    assert not (folder / "n.toml").exists()


@pytest.mark.toolchain
@pytest.mark.qemu
@pytest.mark.parametrize(
    "board", ["", pytest.param("mps3-an547", marks=pytest.mark.nightly), "microbit"]
)
def test_a_new_firmware_builds_and_runs(board: str, folder: Path) -> None:
    need_tool("make")
    need_tool("qemu-system-arm")
    need_toolchain("host", "zig")
    words = ["--board", board] if board else []
    assert run(["new", "my-sine", "--toolchain", "zig", *words]) == 0
    where = folder / "my-sine"
    done = subprocess.run(
        [
            *("make", "-s", "run", f"PYTHON={sys.executable}"),
            f"ORCHESTRATOR={sys.executable} -m orchestrator",
        ],
        cwd=where,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    # QEMU writes what the firmware says to stderr.
    shown = (done.stdout + done.stderr).splitlines()
    lines = [line for line in shown if line.strip() == "*"]
    columns = [line.index("*") for line in lines]
    assert len(columns) == 25
    assert (columns[0], columns[6], columns[12], columns[18]) == (30, 60, 30, 0)
    os.chdir(where)
    scenario = ["--scenario", "scenarios/my-sine.json"]
    assert run(["run", "my-sine.toml", "--no-build", *scenario]) == 0


@pytest.mark.usefixtures("folder")
def test_new_wants_an_empty_folder(capsys: pytest.CaptureFixture[str]) -> None:
    Path("full").mkdir()
    Path("full/file").write_text("")
    assert run(["new", "full"]) == 2
    assert "full is not an empty folder" in capsys.readouterr().err
    assert [p.name for p in Path("full").iterdir()] == ["file"]


@pytest.mark.toolchain
def test_watch(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    need_toolchain("host", "zig")
    model = str(_copy("add_mul", "n"))
    _init(capsys, model, "--toolchain", "zig")
    profile = folder / "n.toml"
    good = profile.read_text()
    watched: list[frozenset[Path]] = []

    def changes(folders: frozenset[Path]) -> Iterator[set[str]]:
        watched.append(folders)
        yield {str(folder / "build/n/report.json")}  # nothing that the build read
        profile.write_text(good.replace('"size"', '"debug"'))
        yield {str(profile)}
        profile.write_text("schema = 1\n")
        yield {str(profile)}
        yield {str(folder / "build/n/report.json")}
        profile.write_text(good)
        yield {str(folder / "new.pte")}  # after a failure it may be what was missing

    args = Namespace(profile=Path("n.toml"), out=None, jobs=None, scenario=None)
    assert follow(args, Console(json=False), changes) == 0
    said = capsys.readouterr()
    first, second, third = said.out.splitlines()
    assert first.startswith("n: flash ")
    assert first.endswith(" bytes")
    assert "(+" in second
    assert "(-" in third
    assert first.split(", RAM")[0] in third.replace(" (-", "$").split("$")[0] + " bytes"
    assert said.err.count("error[missing-key]") >= 1
    assert said.err.count(" changed\n") == 3
    assert any(folder in found for found in watched)
    assert not Path("n.lock").exists()


def test_watch_notices_what_was_saved_before_it_watched(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    need_toolchain("host", "zig")
    _init(capsys, str(_copy("add_mul", "n")), "--toolchain", "zig")
    profile = folder / "n.toml"

    def changes(_: frozenset[Path]) -> Iterator[set[str]]:
        profile.write_text(profile.read_text().replace('"size"', '"debug"'))
        yield set()
        yield set()  # nothing is built again

    args = Namespace(profile=Path("n.toml"), out=None, jobs=None, scenario=None)
    assert follow(args, Console(json=False), changes) == 0
    said = capsys.readouterr()
    assert len(said.out.splitlines()) == 2
    assert said.err.count("n.toml changed\n") == 1


def test_watch_shows_what_a_scenario_executes(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    need_toolchain("cortex-m4", "zig")
    need_tool("qemu-system-arm")
    model = str(_copy("kws_dscnn_int8_m55", "n"))
    _init(capsys, model, "--cpu", "cortex-m4", "--toolchain", "zig")
    profile, scenario = folder / "n.toml", folder / "scenarios" / "n.json"
    good, calls = profile.read_text(), scenario.read_text()

    def changes(_: frozenset[Path]) -> Iterator[set[str]]:
        profile.write_text(good.replace('optimize = "size"', 'optimize = "speed"'))
        yield {str(profile)}
        scenario.write_text("{}")
        yield {str(scenario)}
        scenario.write_text(calls)
        yield {str(scenario)}

    path = Path("scenarios/n.json")
    args = Namespace(profile=Path("n.toml"), out=None, jobs=None, scenario=path)
    assert follow(args, Console(json=True), changes) == 0
    said = capsys.readouterr()
    decoder, text, found = json.JSONDecoder(), said.out, []
    while text.strip():
        document, end = decoder.raw_decode(text.lstrip())
        found.append(document)
        text = text.lstrip()[end:]
    first, second, broken, third = found
    assert (first["cost_unit"], first["cost_change"]) == ("instructions", None)
    assert second["cost"] - first["cost"] == second["cost_change"] < 0
    cycles = "estimated_cycles"
    assert second[cycles] - first[cycles] == second[f"{cycles}_change"] < 0
    assert second["cost"] < second[cycles]
    assert "cost" not in broken
    assert cycles not in broken
    assert (third["cost"], third["cost_change"]) == (second["cost"], None)
    assert "scenario" in said.err
