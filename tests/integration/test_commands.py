"""Every command: its JSON, its exit codes, and no traceback whatever it is given."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pytest

from orchestrator import targets
from orchestrator.cli import run
from orchestrator.commands import check as check_command
from orchestrator.pipeline import stages as pipeline_stages
from orchestrator.pte.reader import read_program
from orchestrator.shell import ninja as shell_ninja
from orchestrator.shell import toolchain as shell_toolchain
from orchestrator.stages import memory as memory_stage
from orchestrator.stages.prelink import PASSES as PASS_NAMES
from tests.conftest import CORPUS, model_bytes
from tests.integration.workspace import ROOT, Build, Workspace, write_product
from tests.permissions import permissions_hold
from tests.tools import need_toolchain
from tests.unit.running.corpus_products import host, product_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

CASE = CORPUS / "kws_dscnn_fp32"
SCENARIO = ("--scenario", str(CASE / "case.json"))
needs_compiler = pytest.mark.toolchain


# JSON


def _shape(value: object) -> object:
    """Keys at all depths; lists are that of their first item."""
    if isinstance(value, dict):
        return {key: _shape(item) for key, item in value.items()}
    if isinstance(value, list) and value:
        return [_shape(value[0])]
    return None


def _keys(*names: str, **nested: object) -> dict[str, object]:
    return dict.fromkeys(names) | nested


COUNTS = _keys("calls", "values", "constant_bytes")
PASSES = _keys(
    *("model", "method"),
    passes=[_keys("name", "skipped", "changed", before=COUNTS, after=COUNTS)],
)
VALUE = _keys("kind", "dtype", "sizes", "dim_order", "dynamic")
ARENA = _keys(
    *("model", "method", "memory_id", "size_bytes", "lower_bound_bytes"),
    *("gap_percent", "file_bytes"),
)
DOCUMENTS: dict[str, object] = {
    "build": {
        "builds": [
            _keys(
                *("profile", "folder", "lock", "lock_changed", "flash_bytes"),
                *("flash_bytes_without_models", "ram_bytes", "missing"),
                dtype_comparison=None,
                missing=None,
                stages=[_keys("stage", "ran", "reason")],
                outputs=_keys("firmware.elf", "libproduct.a", "report.json"),
            )
        ]
    },
    "plan": _keys(
        *("profile", "cpu", "isa", "board", "toolchain", "optimize"),
        *("missing", "arena_bytes", "state_bytes"),
        prelink=[PASSES],
        arenas=[ARENA],
        models=[None],
        kernels=[_keys("operator", "function", "library", dtypes=[None])],
        stages=[_keys("stage", "runs", "reason")],
    ),
    "check": _keys(
        *("profile", "ok", "missing", "kernels", "arena_bytes", "state_bytes"),
        arenas=[ARENA],
    ),
    "size": _keys(
        *("schema", "profile", "regions"),
        target=_keys("cpu", "isa", "board", "toolchain", "optimize"),
        totals=_keys(
            *("flash_bytes", "model_bytes", "ram_bytes", "arena_bytes", "state_bytes"),
            *("data_bytes", "stack_bytes", "flash_bytes_without_models"),
        ),
        sections=[
            _keys(
                *("name", "address", "size_bytes", "region", "load_region"),
                *("in_flash", "in_ram"),
            )
        ],
        contributors=[_keys("kind", "name", "flash_bytes", "ram_bytes")],
        parts=[
            _keys(
                *("section", "kind", "contributor", "operators"),
                *("flash_bytes", "ram_bytes"),
            )
        ],
        operators=[_keys("name", "keys", functions=[None], models=[None])],
        dtype_comparison=None,
        missing=None,
        prelink=[PASSES],
        methods=[
            _keys(
                *("model", "method", "state_bytes", "temporary_bytes", "stack"),
                arena_bytes=[None],
                input_bytes=[None],
                output_bytes=[None],
            )
        ],
        symbols=[
            _keys(
                *("name", "symbol", "aliases", "is_function", "address", "size_bytes"),
                *("section", "object", "kind", "contributor"),
            )
        ],
        stack=_keys(
            *("stack_bytes", "reserve_bytes", "dynamic", "unknown", "is_computed"),
            parts=[_keys("name", "stack_bytes")],
        ),
    ),
    "run": _keys(
        "ok",
        tolerance=_keys("atol", "rtol"),
        calls=[
            _keys(
                *("model", "method", "fresh", "error", "instruction"),
                *("state_bytes", "state_used_bytes"),
                outputs=[
                    _keys(
                        *("kind", "dtype"),
                        sizes=[None],
                        comparison=_keys(
                            *("ok", "problem", "elements", "failed"),
                            *("max_abs_error", "max_rel_error"),
                            worst=_keys("got", "expected", index=[None]),
                        ),
                    )
                ],
            )
        ],
    ),
    "lock": _keys("lock", "changed"),
    "verify": _keys("profile", "same", compared=[None]),
    "clean": _keys("folder", "removed"),
}


@needs_compiler
@pytest.mark.parametrize("command", DOCUMENTS)
def test_json_has_these_keys(w: Workspace, command: str) -> None:
    more = SCENARIO if command == "run" else ()
    done = w.run(command, "--json", *more)
    assert done.code == 0, done.err
    assert _shape(json.loads(done.out)) == DOCUMENTS[command]


def _document(*arguments: str, capsys: pytest.CaptureFixture[str]) -> Any:
    assert run(arguments) == 0
    return json.loads(capsys.readouterr().out)


def test_json_of_inspect(capsys: pytest.CaptureFixture[str]) -> None:
    model = str(CASE / "model.pte")
    document = _document("inspect", model, "--json", capsys=capsys)
    assert set(document) == set(
        _keys(
            *("file", "size_bytes", "sha256", "schema_version", "extended_header"),
            *("segments", "named_data", "methods"),
        )
    )
    (method,) = document["methods"]
    assert _shape(method["inputs"]) == [
        {**VALUE, "sizes": [None], "dim_order": [None], "caller": None}
    ]
    assert set(method) == set(
        _keys(
            *("name", "inputs", "outputs", "values", "instructions", "operators"),
            *("delegates", "arenas", "planned", "external"),
            *("constant_bytes", "mutable_state_bytes"),
        )
    )
    names = {operator["name"] for operator in method["operators"]}
    assert "aten::convolution.out" in names


def test_json_of_commands_without_profile(capsys: pytest.CaptureFixture[str]) -> None:
    found = _document("targets", "--json", capsys=capsys)
    assert set(found) == set(targets.CPUS)
    for cpu in found.values():
        assert set(cpu) == set(
            _keys("isas", "default_isa", "float_abi", "toolchains", "boards")
        )
    found = _document("doctor", "--json", capsys=capsys)
    assert {frozenset(item) for item in found} == {
        frozenset({"for", "found", "install"})
    }
    found = _document("schema", "--json", capsys=capsys)
    assert found["title"] == "Orchestrator profile"


@needs_compiler
@pytest.mark.parametrize("command", [*DOCUMENTS, "inspect"])
def test_data_is_on_stdout_and_talk_on_stderr(w: Workspace, command: str) -> None:
    if command == "inspect":
        w.capsys.readouterr()
        assert run(["inspect", str(w.model)]) == 0
        said = w.capsys.readouterr()
        done = Build(code=0, out=said.out, err=said.err)
    else:
        done = w.run(command, *(SCENARIO if command == "run" else ()))
    assert done.code == 0
    # What a build makes are files; all it says is talk.
    assert bool(done.out) == (command != "build")
    assert not done.out.startswith("{")
    assert "error[" not in done.err


PROFILE_COMMANDS = ("build", "plan", "check", "run", "size", "lock", "verify", "clean")


@pytest.mark.parametrize("command", PROFILE_COMMANDS)
def test_json_of_errors_is_the_same_everywhere(
    tmp_path: Path, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    profile = tmp_path / "a.toml"
    profile.write_text('schema = 1\nname = "a"\n[target]\ncpu = "host"\nisaa = "x"\n')
    code = run([command, str(profile), "--json"])
    said = capsys.readouterr()
    document = json.loads(said.out)
    assert code == document["exit_code"] == 3
    assert set(document) == {"exit_code", "diagnostics"}
    codes = [d["code"] for d in document["diagnostics"]]
    assert codes == ["nothing-selected", "unknown-key"]
    assert document["diagnostics"][1] == {
        "code": "unknown-key",
        "message": 'unknown key "isaa" in [target]',
        "where": {"file": str(profile), "line": 5, "text": 'isaa = "x"'},
        "notes": document["diagnostics"][1]["notes"],
        "hint": 'did you mean "isa"?',
    }
    for diagnostic in document["diagnostics"]:
        for note in diagnostic["notes"]:
            assert set(note) == {"label", "text"}
    assert said.err.count("error[") == 2


# Exit codes


def _problems(done: Build) -> list[dict[str, Any]]:
    """Diagnostics of a command that was run with --json."""
    document = json.loads(done.out)
    assert document["exit_code"] == done.code
    found = document["diagnostics"]
    assert isinstance(found, list)
    return found


def _notes(problem: dict[str, Any]) -> list[tuple[str, str]]:
    return [(note["label"], note["text"]) for note in problem["notes"]]


@pytest.fixture
def no_ninja(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> str:
        pytest.fail("ninja was started")

    monkeypatch.setattr(shell_ninja, "run_ninja", refuse)


@pytest.fixture
def fresh(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Workspace:
    """A profile that was never built."""
    write_product(tmp_path / "w", cpu="cortex-m55", extra='[budget]\nram = "4 MiB"\n')
    return Workspace(folder=tmp_path / "w", capsys=capsys)


def _delete_entries(functions: Path, *operators: str) -> None:
    """Remove operators from a kernel list."""
    text = functions.read_text()
    for operator in operators:
        text, count = re.subn(
            rf"^- (func|op): {re.escape(operator)}\(.*\n(?:[ ].*\n|\n)*",
            "",
            text,
            flags=re.MULTILINE,
        )
        assert count == 1, operator
    functions.write_text(text)


@needs_compiler
@pytest.mark.usefixtures("no_ninja")
@pytest.mark.parametrize("command", ["build", "check", "plan", "lock", "verify"])
def test_a_kernel_that_is_gone_is_found_before_any_compiling(
    w: Workspace, command: str
) -> None:
    before = w.state()
    shutil.rmtree(w.out / ".work")
    _delete_entries(
        w.native / "kernels/portable/functions.yaml",
        "aten::relu.out",
        "aten::addmm.out",
    )
    done = w.run(command, "--json")
    assert done.code == 5
    problems = _problems(done)
    assert [(p["code"], p["message"]) for p in problems] == [
        ("no-kernel", "no kernel for aten::addmm.out"),
        ("no-kernel", "no kernel for aten::relu.out"),
    ]
    for problem in problems:
        assert problem["where"]["file"] == str(w.profile)
        assert problem["where"]["text"] == 'path = "model.pte"'
        assert problem["hint"]
        asked_by = dict(_notes(problem))["asked by"]
        assert asked_by.startswith('model "model", method "forward", instruction')
    assert w.state() == before
    assert not (w.out / ".work/obj").exists()
    assert not (w.out / ".work/build.ninja").exists()


@needs_compiler
def test_a_budget_that_is_exceeded_names_culprits_and_keeps_outputs(
    w: Workspace,
) -> None:
    before = w.state()
    w.edit("product.toml", '[budget]\nflash = "1 KiB"\nram = "2 KiB"\n')
    done = w.run("build", "--json")
    assert done.code == 6
    flash, ram = _problems(done)
    assert flash["code"] == ram["code"] == "over-budget"
    assert flash["where"]["text"] == 'flash = "1 KiB"'
    assert ram["where"]["text"] == 'ram = "2 KiB"'
    largest = [text for label, text in _notes(flash) if label == "largest"]
    assert largest[0].startswith("model: ")
    assert any(text.startswith("kernel portable/op_convolution") for text in largest)
    assert any(text.startswith("arena model.forward") for _, text in _notes(ram))
    assert w.state() == before


@needs_compiler
def test_a_budget_is_inclusive(w: Workspace) -> None:
    totals = json.loads(w.run("size", "--json").out)["totals"]
    text = w.profile.read_text()
    for less, code in ((0, 0), (1, 6)):
        flash, ram = totals["flash_bytes"] - less, totals["ram_bytes"] - less
        budget = f'[budget]\nflash = "{flash} B"\nram = "{ram} B"\n'
        w.profile.write_text(text + budget)
        assert w.run("build").code == code


def _shrink(monkeypatch: pytest.MonkeyPatch, board: str, **sizes: int) -> None:
    """Give regions of a board other sizes, and leave out those not named."""
    full = targets.BOARDS[board]
    regions = tuple(
        replace(r, size_bytes=sizes[r.name]) for r in full.regions if r.name in sizes
    )
    boards = {**targets.BOARDS, board: replace(full, regions=regions)}
    monkeypatch.setattr(targets, "BOARDS", MappingProxyType(boards))


@pytest.mark.usefixtures("no_ninja")
def test_a_model_too_big_for_the_board_is_refused_with_the_numbers(
    fresh: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    _shrink(monkeypatch, "mps3-an547", itcm=128 * 1024, dtcm=32 * 1024)
    skip = f"[prelink]\nskip = {json.dumps([*PASS_NAMES])}\n"
    fresh.profile.write_text(fresh.profile.read_text() + skip)
    done = fresh.run("build", "--json")
    assert done.code == 6
    program, arena = _problems(done)
    size = len(model_bytes("kws_dscnn_fp32"))
    free = 128 * 1024 - memory_stage.CODE_RESERVE_BYTES
    assert program["code"] == arena["code"] == "memory-too-small"
    assert program["message"] == (
        'the program of model "model" does not fit mps3-an547'
    )
    assert _notes(program) == [
        ("needs", f"{size} bytes"),
        ("region", f"itcm: {free} of {128 * 1024} bytes free"),
    ]
    assert arena["message"].startswith('arena 1 of model "model"')
    assert not fresh.lock.exists()
    assert not (fresh.out / "current").exists()


@needs_compiler
@pytest.mark.parametrize("toolchain", ["gnu", "zig"])
def test_code_too_big_for_the_board_is_refused_by_the_linker(
    fresh: Workspace, monkeypatch: pytest.MonkeyPatch, toolchain: str
) -> None:
    """The plan cannot know the size of code; the linker's words become ours."""
    need_toolchain("cortex-m55", toolchain)
    profile = fresh.profile.read_text().replace('"zig"', f'"{toolchain}"')
    fresh.profile.write_text(profile)
    model = len(model_bytes("kws_dscnn_fp32"))
    monkeypatch.setattr(memory_stage, "CODE_RESERVE_BYTES", 1024)
    _shrink(monkeypatch, "mps3-an547", itcm=(model + 2048) // 16 * 16, dtcm=512 * 1024)
    done = fresh.run("build", "--json")
    assert done.code == 6, done.err
    (problem,) = _problems(done)
    assert problem["code"] == "region-overflow"
    assert problem["message"] == "the firmware does not fit memory itcm"
    assert re.fullmatch(r"\d+ bytes", dict(_notes(problem))["over"])
    assert not fresh.lock.exists()


@pytest.mark.parametrize("toolchain", ["gnu", "zig"])
def test_without_compiler_a_build_fails_and_plan_and_check_do_not(
    fresh: Workspace, monkeypatch: pytest.MonkeyPatch, toolchain: str
) -> None:
    profile = fresh.profile.read_text().replace('"zig"', f'"{toolchain}"')
    fresh.profile.write_text(profile)
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(shell_toolchain, "find_spec", lambda _: None)
    done = fresh.run("build", "--json")
    assert done.code == 7
    (problem,) = _problems(done)
    program = {"gnu": "arm-none-eabi-g++", "zig": "zig"}[toolchain]
    assert problem["message"] == f"{program} is not installed"
    assert "orchestrator doctor" in problem["hint"]
    assert fresh.run("check").code == 0
    planned = fresh.run("plan")
    assert planned.code == 0
    assert f"toolchain  {toolchain} (not installed)" in planned.out
    done = fresh.run("lock", "--check", "--json")
    assert done.code in (7, 8)


def test_plan_and_check_write_nothing(fresh: Workspace) -> None:
    before = sorted(fresh.folder.rglob("*"))
    assert fresh.run("plan").code == 0
    assert fresh.run("check").code == 0
    assert sorted(fresh.folder.rglob("*")) == before


def test_plan_tells_why_each_stage_would_run(w: Workspace) -> None:
    stages = json.loads(w.run("plan", "--json").out)["stages"]
    assert [s["stage"] for s in stages if s["runs"]] == []
    w.edit("product.toml", '[budget]\nram = "4 MiB"\n')
    stages = json.loads(w.run("plan", "--json").out)["stages"]
    assert {s["stage"]: s["reason"] for s in stages if s["runs"]} == {
        "measure": "profile [budget] changed",
        "lock": "stage measure changed",
    }
    assert "  measure                  runs: profile [budget]" in w.run("plan").out


def test_doctor_names_what_is_missing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("ORCHESTRATOR_EXPORT_PYTHON", "/nowhere/python")
    monkeypatch.setattr(shell_toolchain, "find_spec", lambda _: None)
    assert run(["doctor"]) == 0
    out = capsys.readouterr().out
    found = dict(re.findall(r"^-- +(.+?)  +missing; (.+)$", out, re.MULTILINE))
    assert found["cortex-m55, zig"] == 'pip install "orchestrator[zig]"'
    assert found["cortex-m55, gnu"] == "apt-get install gcc-arm-none-eabi"
    assert "apt-get install qemu-system-arm" in found.values()
    assert found["models given as Python"] == (
        'pip install "orchestrator[export]", or set ORCHESTRATOR_EXPORT_PYTHON'
    )


@needs_compiler
def test_a_broken_kernel_shows_the_compilers_words_and_keeps_outputs(
    w: Workspace,
) -> None:
    before = w.state()
    w.edit("native/kernels/portable/op_relu.cpp", "\nint broken = no_such_name;\n")
    done = w.run("build", "--json")
    assert done.code == 9
    (problem,) = _problems(done)
    assert problem["code"] == "compile-failed"
    output = dict(_notes(problem))["output"]
    assert "op_relu.cpp" in output
    assert "no_such_name" in output
    assert w.state() == before
    assert w.run("run", *SCENARIO).code == 0  # what was built before still runs


@needs_compiler
def test_a_kernel_that_cannot_be_linked_is_a_compile_error(w: Workspace) -> None:
    source = w.native / "kernels/portable/op_relu.cpp"
    source.write_text(source.read_text().replace("relu_out", "relu_gone"))
    done = w.run("build", "--json")
    assert done.code == 9
    assert "relu_out" in dict(_notes(_problems(done)[0]))["output"]


# Runs


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    """A copy of the case, to be changed."""
    shutil.copytree(CASE, tmp_path / "case")
    return tmp_path / "case" / "case.json"


@needs_compiler
def test_a_run_writes_its_outputs(w: Workspace) -> None:
    outputs = w.folder / "outputs"
    done = w.run(
        *("run", "--input", str(CASE / "in0.npy"), "--output-dir", str(outputs)),
        *("--expect", str(CASE / "out0.npy")),
    )
    assert done.code == 0
    (path,) = outputs.iterdir()
    assert path.read_bytes()[:6] == b"\x93NUMPY"


@needs_compiler
def test_wrong_outputs_are_a_mismatch(w: Workspace, scenario: Path) -> None:
    data = bytearray((scenario.parent / "out0.npy").read_bytes())
    data[-1] ^= 0x40
    (scenario.parent / "out0.npy").write_bytes(data)
    done = w.run("run", "--scenario", str(scenario))
    assert done.code == 10
    assert "error[run-mismatch]" in done.err
    done = w.run("run", "--scenario", str(scenario), "--json")
    assert done.code == 10
    document = json.loads(done.out)
    assert document["ok"] is False
    assert document["calls"][0]["outputs"][0]["comparison"]["failed"] == 1


def _replace_firmware(w: Workspace, script: str) -> None:
    firmware = w.out / "firmware.elf"
    firmware.unlink()
    firmware.write_text(f"#!/bin/sh\n{script}\n")
    firmware.chmod(0o755)


@needs_compiler
@pytest.mark.parametrize(
    ("script", "code", "found"),
    [
        ("exit 99", "firmware-failed", "a hardware fault"),
        ("echo lost >&2; exit 5", "firmware-failed", "exit status 5"),
        ("kill -SEGV $$", "firmware-failed", "exit status -11"),
        ("exec sleep 60", "firmware-failed", "it did not end within the time limit"),
        ("exit 0", "bad-response", ""),
        ("echo nonsense > response.bin", "bad-response", ""),
    ],
)
def test_firmware_that_fails_is_a_failed_run(
    w: Workspace, script: str, code: str, found: str
) -> None:
    _replace_firmware(w, script)
    timeout = "1" if "sleep" in script else "60"
    done = w.run("run", *SCENARIO, "--timeout", timeout, "--json")
    assert done.code == 10
    (problem,) = _problems(done)
    assert problem["code"] == code
    if found:
        assert dict(_notes(problem))["found"] == found
    if "lost" in script:
        assert dict(_notes(problem))["output"] == "lost"


@needs_compiler
def test_firmware_that_is_gone_or_no_program(w: Workspace) -> None:
    firmware = w.out / "firmware.elf"
    firmware.unlink()
    assert w.run("run", *SCENARIO).code == 10
    firmware.write_bytes(b"\x7fELF and no more")
    firmware.chmod(0o755)
    done = w.run("run", *SCENARIO)
    assert done.code == 10
    assert "it could not be started" in done.err


@needs_compiler
def test_a_run_of_an_old_build_says_so(w: Workspace) -> None:
    w.build()
    assert "changed" not in w.run("run", *SCENARIO).err
    os.utime(w.model)
    done = w.run("run", *SCENARIO)
    assert done.code == 0
    assert "something changed since the last build" in done.err


@needs_compiler
def test_without_emulator_there_is_no_run(
    fresh: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    need_toolchain("cortex-m55", "zig")
    fresh.build()
    monkeypatch.setenv("PATH", "/nowhere")
    done = fresh.run("run", *SCENARIO, "--json")
    assert done.code == 7
    assert _problems(done)[0]["message"] == "qemu-system-arm is not installed"


# Verify, size, clean


@needs_compiler
def test_what_differs_between_two_builds_is_named(
    w: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    w.build()
    before = w.state()
    # The first of the two builds has nothing to do, so only the second sees this.
    monkeypatch.setattr(pipeline_stages, "GENERATOR", "Orchestrator at noon")
    done = w.run("verify", "--json")
    assert done.code == 11
    (problem,) = _problems(done)
    assert problem["code"] == "not-reproducible"
    differing = [text for label, text in _notes(problem) if label == "differs"]
    assert "gen/src/api.cpp" in differing
    assert "selected_operators.yaml" in differing
    assert "firmware.elf" not in differing
    assert problem["message"] == f"{len(differing)} files differ between two builds"
    assert w.state() == before


@needs_compiler
def test_size_compares_with_another_report(w: Workspace) -> None:
    w.build()
    shutil.copyfile(w.out / "report.json", w.folder / "before.json")
    same = w.run("size", "--diff", str(w.folder / "before.json"))
    assert same.code == 0
    w.edit("product.toml", '[operators]\ninclude = ["aten::tanh.out"]\n')
    w.build()
    done = w.run("size", "--diff", str(w.folder / "before.json"))
    assert done.code == 0
    assert "op_tanh" in done.out
    assert "op_tanh" not in same.out


@needs_compiler
def test_clean_removes_the_folder_and_keeps_the_lock(w: Workspace) -> None:
    lock = w.lock.read_bytes()
    done = w.run("clean", "--json")
    assert json.loads(done.out) == {"folder": str(w.out), "removed": True}
    assert not w.out.exists()
    assert w.lock.read_bytes() == lock
    assert json.loads(w.run("clean", "--json").out)["removed"] is False


# Bad inputs


@dataclass(frozen=True, slots=True)
class Bad:
    """Something nobody should have typed, and the answer."""

    code: int
    problem: str
    arguments: tuple[str, ...]
    prepare: Callable[[Path], object] | None = None


PROFILE = (
    'schema = 1\nname = "a"\n[target]\ncpu = "host"\ntoolchain = "zig"\n'
    '[[models]]\nname = "m"\npath = "m.pte"\n'
)


def _text(name: str, text: str | bytes) -> Callable[[Path], object]:
    data = text if isinstance(text, bytes) else text.encode()
    return lambda folder: (folder / name).write_bytes(data)


def _folder(name: str) -> Callable[[Path], object]:
    def make(folder: Path) -> None:
        (folder / name).unlink(missing_ok=True)
        (folder / name).mkdir()

    return make


def _forbidden(name: str, mode: int = 0) -> Callable[[Path], object]:
    return lambda folder: (folder / name).chmod(mode)


def _product(folder: Path) -> None:
    """What a build leaves for `run` and `size`, just enough to get to the inputs."""
    (folder / "o").mkdir()
    text = product_text({"m": "add_mul"}, host())
    (folder / "o" / "product.json").write_text(text)


def _scenario(text: str | bytes) -> Callable[[Path], object]:
    def make(folder: Path) -> None:
        _product(folder)
        _text("s.json", text)(folder)

    return make


def _made(name: str, text: str) -> Callable[[Path], object]:
    """A file of a build."""

    def make(folder: Path) -> None:
        (folder / "o").mkdir()
        (folder / "o" / name).write_text(text)

    return make


def _edited(old: str, new: str) -> Callable[[Path], object]:
    assert old in PROFILE
    return _text("a.toml", PROFILE.replace(old, new))


RUN = ("run", "a.toml", "--out", "o")
BUILD = ("build", "a.toml")

BAD = {
    # The command line
    "nothing": Bad(2, "usage", ()),
    "only json": Bad(2, "usage", ("--json",)),
    "unknown command": Bad(2, "usage", ("bake", "a.toml")),
    "unknown option": Bad(2, "usage", (*BUILD, "--fast")),
    "abbreviated option": Bad(2, "usage", (*BUILD, "--lock")),
    "no profile": Bad(2, "usage", ("build",)),
    "two profiles": Bad(2, "usage", ("plan", "a.toml", "a.toml")),
    "one folder for two": Bad(2, "usage", (*BUILD, "a.toml", "--out", "o")),
    "no jobs": Bad(2, "usage", (*BUILD, "-j", "0")),
    "jobs in words": Bad(2, "usage", (*BUILD, "-j", "many")),
    "too many jobs": Bad(2, "usage", (*BUILD, "-j", "9" * 30)),
    "both kinds of lock": Bad(2, "usage", (*BUILD, "--locked", "--frozen")),
    "negative timeout": Bad(2, "usage", (*RUN, "--timeout", "-1")),
    "no number": Bad(2, "usage", (*RUN, "--atol", "nan")),
    "option without value": Bad(2, "usage", (*BUILD, "--out")),
    # Profiles
    "missing profile": Bad(3, "missing-file", ("check", "b.toml")),
    "folder as profile": Bad(3, "unreadable-file", ("check", ".")),
    "profile below a file": Bad(3, "unreadable-file", ("check", "a.toml/b")),
    "very long name": Bad(3, "unreadable-file", ("check", "a" * 5000)),
    "no text in name": Bad(3, "missing-file", ("check", "\udcff.toml")),
    "forbidden profile": Bad(3, "unreadable-file", BUILD, _forbidden("a.toml")),
    "binary profile": Bad(3, "not-utf8", BUILD, _text("a.toml", b"\xff\xfe\0")),
    "empty profile": Bad(3, "missing-key", BUILD, _text("a.toml", "")),
    "zero byte": Bad(3, "toml-syntax", BUILD, _edited('"a"', '"a\0"')),
    "zero as escape": Bad(3, "bad-value", BUILD, _edited('"a"', '"a\\u0000"')),
    "zero in a path": Bad(3, "bad-value", BUILD, _edited("m.pte", "m\\u0000")),
    "deep": Bad(3, "toml-syntax", BUILD, _text("a.toml", "a = " + "[" * 9999)),
    "long number": Bad(3, "toml-syntax", BUILD, _text("a.toml", "a = " + "9" * 9999)),
    "number as name": Bad(3, "wrong-type", BUILD, _edited('"a"', "1")),
    "table as list": Bad(3, "wrong-type", BUILD, _edited("[target]", "[[target]]")),
    "huge budget": Bad(
        3,
        "bad-size",
        BUILD,
        _text("a.toml", f'{PROFILE}[budget]\nram = "{"9" * 99} B"'),
    ),
    "missing model": Bad(3, "missing-file", BUILD, _edited("m.pte", "n.pte")),
    "folder as model": Bad(3, "missing-file", BUILD, _folder("m.pte")),
    "missing base": Bad(
        3, "missing-file", BUILD, _edited("[target]", 'extends = "b"\n[target]')
    ),
    "its own base": Bad(
        3, "bad-extends", BUILD, _edited("[target]", 'extends = "a.toml"\n[target]')
    ),
    # Models
    "forbidden model": Bad(4, "unreadable-model", BUILD, _forbidden("m.pte")),
    "empty model": Bad(4, "bad-program", BUILD, _text("m.pte", b"")),
    "text as model": Bad(4, "bad-program", BUILD, _text("m.pte", PROFILE)),
    "half a model": Bad(
        4, "bad-program", BUILD, _text("m.pte", model_bytes("mlp")[:1000])
    ),
    "inspect nothing": Bad(4, "unreadable-model", ("inspect", "n.pte")),
    "inspect a folder": Bad(4, "unreadable-model", ("inspect", ".")),
    "inspect text": Bad(4, "bad-program", ("inspect", "a.toml")),
    # Folders
    "file as build folder": Bad(2, "system-error", (*BUILD, "--out", "m.pte")),
    "folder below a file": Bad(2, "system-error", (*BUILD, "--out", "m.pte/o")),
    "folder of the kernel": Bad(2, "system-error", (*BUILD, "--out", "/proc/o")),
    "forbidden folder": Bad(
        2, "system-error", (*BUILD, "--out", "o/p"), lambda f: (f / "o").mkdir(0o500)
    ),
    "clean a file": Bad(2, "not-a-build-folder", ("clean", "a.toml", "--out", "m.pte")),
    "clean something else": Bad(
        2, "not-a-build-folder", ("clean", "a.toml", "--out", ".")
    ),
    # Locks
    "no lock": Bad(8, "stale-lock", (*BUILD, "--locked")),
    "no lock to check": Bad(8, "stale-lock", ("lock", "a.toml", "--check")),
    "binary lock": Bad(8, "bad-lock", (*BUILD, "--frozen"), _text("a.lock", b"\xff")),
    "lock of text": Bad(8, "bad-lock", (*BUILD, "--locked"), _text("a.lock", "hello")),
    "folder as lock": Bad(8, "bad-lock", (*BUILD, "--locked"), _folder("a.lock")),
    "deep lock": Bad(
        8, "bad-lock", (*BUILD, "--locked"), _text("a.lock", "a = " + "[" * 9999)
    ),
    # Runs and reports
    "run before build": Bad(2, "not-built", RUN),
    "size before build": Bad(2, "no-report", ("size", "a.toml", "--out", "o")),
    "no report": Bad(
        2, "bad-report", ("size", "a.toml", "--out", "o"), _made("report.json", "{}")
    ),
    "report of text": Bad(
        2, "bad-report", ("size", "a.toml", "--out", "o"), _made("report.json", "hello")
    ),
    "deep report": Bad(
        2,
        "bad-report",
        ("size", "a.toml", "--out", "o"),
        _made("report.json", "[" * 99999),
    ),
    "no product": Bad(
        2,
        "bad-product",
        RUN,
        _made("product.json", "[]"),
    ),
    "missing scenario": Bad(
        2, "bad-scenario", (*RUN, "--scenario", "s.json"), _product
    ),
    "folder as scenario": Bad(2, "bad-scenario", (*RUN, "--scenario", "o"), _product),
    "scenario of text": Bad(
        2, "bad-scenario", (*RUN, "--scenario", "s.json"), _scenario("hello")
    ),
    "binary scenario": Bad(
        2, "bad-scenario", (*RUN, "--scenario", "s.json"), _scenario(b"\xff\0")
    ),
    "deep scenario": Bad(
        2, "bad-scenario", (*RUN, "--scenario", "s.json"), _scenario("[" * 99999)
    ),
    "scenario and input": Bad(
        2, "usage", (*RUN, "--scenario", "s.json", "--input", "x"), _product
    ),
    "missing input": Bad(2, "bad-input", RUN, _product),
    "input that is no array": Bad(2, "bad-npy", (*RUN, "--input", "a.toml"), _product),
    "input that is not there": Bad(
        2, "bad-input", (*RUN, "--input", "x.npy"), _product
    ),
    "unknown method": Bad(
        2, "bad-input", (*RUN, "--method", "sing", "--input", "x"), _product
    ),
    "unknown model": Bad(
        2, "bad-input", (*RUN, "--model", "n", "--input", "x"), _product
    ),
}


@contextmanager
def _held_back() -> Iterator[Path]:
    """An empty folder to work in, with permissions that hold for root as well."""
    with tempfile.TemporaryDirectory(prefix="orchestrator-test-") as name:
        folder = Path(name)
        before = Path.cwd()
        os.chdir(folder)
        try:
            with permissions_hold():
                yield folder
        finally:
            os.chdir(before)


DIAGNOSTIC = re.compile(
    r"error\[[a-z]+(-[a-z0-9]+)*\]: \S.*\n"
    r"(    .*\n)*"  # more lines of the message
    r"( +--> \S.*\n)?"
    r"( +\|\n *\d+ \| .*\n)?"
    r"( += [a-z ]+: .*\n(       .*\n)*)*"
    r"( +hint: \S.*\n( {8,}.*\n)*)?"
)


@pytest.mark.parametrize("name", BAD)
def test_bad_input_gets_an_answer(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = BAD[name]
    with _held_back() as folder:
        (folder / "a.toml").write_text(PROFILE)
        (folder / "m.pte").write_bytes(model_bytes("add_mul"))
        if bad.prepare:
            bad.prepare(folder)
        code = run(bad.arguments)
        said = capsys.readouterr()
        json_code = run([*bad.arguments, "--json"])
        document = json.loads(capsys.readouterr().out)
    assert code == json_code == document["exit_code"] == bad.code, said.err
    assert bad.problem in {d["code"] for d in document["diagnostics"]}
    assert "Traceback" not in said.out + said.err
    if "--json" not in bad.arguments:
        assert said.out == ""
    talk, found, rest = said.err.partition("error[")
    assert "error" not in talk
    rest = found + rest
    for diagnostic in document["diagnostics"]:
        assert diagnostic["message"]
        # Where the names that are possible are listed, they are the advice.
        assert diagnostic["hint"] or "expected" in dict(_notes(diagnostic))
        match = DIAGNOSTIC.match(rest)
        assert match, rest
        rest = rest[match.end() :].removeprefix("\n")
    assert rest == ""


# The outermost layer


@pytest.mark.parametrize("word", ["--version", "--help"])
def test_help_and_version_are_data(
    word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        run([word])
    assert ended.value.code == 0
    said = capsys.readouterr()
    assert "orchestrator" in said.out
    assert said.err == ""


def _broken(error: BaseException) -> Callable[..., None]:
    def fail(*_: object) -> None:
        raise error

    return fail


def test_a_bug_of_ours_is_admitted_with_the_trace_in_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(check_command, "run", _broken(KeyError("lost")))
    assert run(["check", "a.toml", "--json"]) == 70
    said = capsys.readouterr()
    (problem,) = json.loads(said.out)["diagnostics"]
    assert problem["code"] == "internal-error"
    assert problem["message"] == "this is a bug of ours: KeyError: 'lost'"
    assert "Traceback" not in said.err
    (file,) = tmp_path.iterdir()
    assert _notes(problem) == [("trace", str(file))]
    assert "Traceback" in file.read_text()


def test_an_interrupt_is_no_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(check_command, "run", _broken(KeyboardInterrupt()))
    assert run(["check", "a.toml"]) == 130
    assert capsys.readouterr() == ("", "interrupted\n")


def test_a_full_disk_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    error = OSError(28, "No space left on device", "o/firmware.elf")
    monkeypatch.setattr(check_command, "run", _broken(error))
    assert run(["check", "a.toml"]) == 2
    assert capsys.readouterr().err == (
        "error[system-error]: the system refuses: No space left on device\n"
        "  --> o/firmware.elf\n"
        "   hint: check that the path is right, may be written, and has space left\n"
    )


def test_a_reader_that_has_seen_enough_is_no_error() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-m", "orchestrator", "schema"],
        cwd=ROOT,
        stdout=writing,
        stderr=subprocess.PIPE,
        check=False,
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, b"")


def test_every_program_of_the_corpus_can_be_inspected(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for model in sorted(CORPUS.glob("*/model.pte")):
        assert run(["inspect", str(model)]) == 0, model
        out = capsys.readouterr().out
        for method in read_program(model.read_bytes(), file="m").methods:
            assert f"method {method.name}\n" in out
