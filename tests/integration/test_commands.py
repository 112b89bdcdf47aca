"""Every command: what it does, and its exit codes."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pytest

from orchestrator.build import generating
from orchestrator.cli.commands import check as check_command
from orchestrator.cli.commands import current
from orchestrator.cli.main import run
from orchestrator.core.dtype import ScalarType
from orchestrator.core.operator import OperatorName
from orchestrator.method.passes import PASSES as PASS_NAMES
from orchestrator.profile import target as profile_target
from orchestrator.program.encode import write_program
from orchestrator.program.reader import read_program
from orchestrator.program.values import TensorValue
from orchestrator.shell import ninja as shell_ninja
from orchestrator.shell import toolchain as shell_toolchain
from orchestrator.shell.files import WriteError
from orchestrator.targets import cores as targets
from tests.conftest import CORPUS, model_bytes
from tests.integration.workspace import CASE, ROOT, SCENARIO, Workspace, notes_of, write_product
from tests.tools import need_toolchain

if TYPE_CHECKING:
    from collections.abc import Callable

# Exit codes


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


@pytest.mark.toolchain
@pytest.mark.usefixtures("no_ninja")
@pytest.mark.parametrize("command", ["build", "check", "plan", "lock", "verify"])
def test_a_kernel_that_is_gone_is_found_before_any_compiling(w: Workspace, command: str) -> None:
    before = w.state()
    shutil.rmtree(w.out / ".work")
    _delete_entries(
        w.native / "kernels/portable/functions.yaml", "aten::relu.out", "aten::addmm.out"
    )
    done = w.run(command, "--json")
    assert done.code == 5
    problems = done.problems
    assert [(p["code"], p["message"]) for p in problems] == [
        ("no-kernel", "no kernel for aten::addmm.out"),
        ("no-kernel", "no kernel for aten::relu.out"),
    ]
    for problem in problems:
        assert problem["where"]["file"] == str(w.profile)
        assert problem["where"]["text"] == 'path = "model.pte"'
        assert problem["hint"]
        asked_by = dict(notes_of(problem))["needed by"]
        assert asked_by.startswith('model "model", method "forward", instruction')
    assert w.state() == before
    assert not (w.out / ".work/obj").exists()
    assert not (w.out / ".work/build.ninja").exists()


@pytest.mark.toolchain
def test_a_budget_that_is_exceeded_names_culprits_and_keeps_outputs(w: Workspace) -> None:
    before = w.state()
    w.edit("product.toml", '[budget]\nflash = "1 KiB"\nram = "2 KiB"\n')
    done = w.run("build", "--json")
    assert done.code == 6
    flash, ram = done.problems
    assert flash["code"] == ram["code"] == "over-budget"
    assert flash["where"]["text"] == 'flash = "1 KiB"'
    assert ram["where"]["text"] == 'ram = "2 KiB"'
    largest = [text for label, text in notes_of(flash) if label == "largest"]
    assert largest[0].startswith("model: ")
    assert any(text.startswith("kernel portable/op_convolution") for text in largest)
    assert any(text.startswith("arena model.forward") for _, text in notes_of(ram))
    assert w.state() == before


@pytest.mark.toolchain
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
    regions = tuple(replace(r, size_bytes=sizes[r.name]) for r in full.regions if r.name in sizes)
    boards = {**targets.BOARDS, board: replace(full, regions=regions)}
    for module in (targets, profile_target):
        monkeypatch.setattr(module, "BOARDS", MappingProxyType(boards))


@pytest.mark.usefixtures("no_ninja")
def test_a_model_too_big_for_the_board_is_refused_with_the_numbers(
    fresh: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    _shrink(monkeypatch, "mps3-an547", itcm=64 * 1024, dtcm=32 * 1024)
    skip = f"[passes]\nskip = {json.dumps([*PASS_NAMES])}\n"
    fresh.profile.write_text(fresh.profile.read_text() + skip)
    done = fresh.run("build", "--json")
    assert done.code == 6
    program, arena = done.problems
    size = len(model_bytes("kws_dscnn_fp32"))
    assert program["code"] == arena["code"] == "memory-too-small"
    assert program["message"] == ('the program of model "model" does not fit mps3-an547')
    needs, (label, free) = notes_of(program)
    assert (needs, label) == (("needs", f"{size} bytes"), "region")
    assert re.fullmatch(rf"itcm: \d+ of {64 * 1024} bytes free", free)
    assert arena["message"].startswith('arena 1 of model "model"')
    assert not fresh.lock.exists()
    assert not (fresh.out / "current").exists()


@pytest.mark.toolchain
@pytest.mark.parametrize("toolchain", ["gnu", "zig"])
def test_code_too_big_for_the_board_is_refused_by_the_linker(
    fresh: Workspace, monkeypatch: pytest.MonkeyPatch, toolchain: str
) -> None:
    """Where the estimate leaves it open; the linker's words become ours."""
    need_toolchain("cortex-m55", toolchain)
    profile = fresh.profile.read_text().replace('"zig"', f'"{toolchain}"')
    fresh.profile.write_text(profile)
    assert fresh.run("build").code == 0
    flash = json.loads(fresh.run("size", "--json").out)["totals"]["flash_bytes"]
    fresh.lock.unlink()
    shutil.rmtree(fresh.out)
    room = (flash - 1024) // 16 * 16
    _shrink(monkeypatch, "mps3-an547", itcm=room, dtcm=512 * 1024)
    done = fresh.run("build", "--json")
    assert done.code == 6, done.err
    (problem,) = done.problems
    assert problem["code"] == "region-overflow"
    assert problem["message"] == "the firmware does not fit memory itcm"
    assert re.fullmatch(r"\d+ bytes", dict(notes_of(problem))["over"])
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
    (problem,) = done.problems
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
        "lock": "profile [budget] changed"
    }
    assert "  lock                     runs: profile [budget]" in w.run("plan").out


def test_doctor_names_what_is_missing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("ORCHESTRATOR_EXPORT_PYTHON", "/nowhere/python")
    monkeypatch.setattr(shell_toolchain, "find_spec", lambda _: None)
    assert run(["doctor", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    found = {f["for"]: f["install"] for f in document if f["found"] is None}
    assert found["cortex-m55, zig"] == 'pip install -e ".[zig]"'
    assert found["cortex-m55, gnu"] == "apt-get install gcc-arm-none-eabi"
    assert "apt-get install qemu-system-arm" in found.values()
    assert found["models given as Python"] == (
        'pip install -e ".[export]", or set ORCHESTRATOR_EXPORT_PYTHON'
    )
    assert run(["doctor"]) == 0
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 80
    shown = " ".join(out.split())
    for purpose, hint in found.items():
        assert purpose in shown
        assert hint in shown


@pytest.mark.toolchain
def test_a_broken_kernel_shows_the_compilers_words_and_keeps_outputs(w: Workspace) -> None:
    before = w.state()
    w.edit("native/kernels/portable/op_relu.cpp", "\nint broken = no_such_name;\n")
    done = w.run("build", "--json")
    assert done.code == 9
    (problem,) = done.problems
    assert problem["code"] == "compile-failed"
    output = dict(notes_of(problem))["output"]
    assert "op_relu.cpp" in output
    assert "no_such_name" in output
    assert w.state() == before
    assert w.run("run", *SCENARIO).code == 9  # never what was built before
    assert w.state() == before


@pytest.mark.toolchain
def test_a_kernel_that_cannot_be_linked_is_a_compile_error(w: Workspace) -> None:
    source = w.native / "kernels/portable/op_relu.cpp"
    source.write_text(source.read_text().replace("relu_out", "relu_gone"))
    done = w.run("build", "--json")
    assert done.code == 9
    assert "relu_out" in dict(notes_of(done.problems[0]))["output"]


# Runs


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    """A copy of the case, to be changed."""
    shutil.copytree(CASE, tmp_path / "case")
    return tmp_path / "case" / "case.json"


@pytest.mark.toolchain
def test_a_run_writes_its_outputs(w: Workspace) -> None:
    outputs = w.folder / "outputs"
    done = w.run(
        *("run", "--input", str(CASE / "in0.npy"), "--output-dir", str(outputs)),
        *("--expect", str(CASE / "out0.npy")),
    )
    assert done.code == 0
    (path,) = outputs.iterdir()
    assert path.read_bytes()[:6] == b"\x93NUMPY"
    expected = ("--expect", str(path), "--output-dir", f"{w.folder}/../{w.folder.name}/outputs")
    done = w.run("run", "--input", str(CASE / "in0.npy"), *expected)
    assert done.code == 2
    assert "error[would-overwrite]: --output-dir would write over" in done.err
    scenario = outputs / "case.json"
    shutil.copytree(CASE, outputs, dirs_exist_ok=True)
    done = w.run("run", "--scenario", str(scenario), "--output-dir", str(outputs))
    assert done.code == 2
    assert "outputs/out0.npy\n" in done.err


@pytest.mark.toolchain
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


@pytest.mark.toolchain
@pytest.mark.usefixtures("as_it_is")
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
    (problem,) = done.problems
    assert problem["code"] == code
    if found:
        assert dict(notes_of(problem))["found"] == found
    if "lost" in script:
        assert dict(notes_of(problem))["output"] == "lost"


@pytest.mark.toolchain
@pytest.mark.usefixtures("as_it_is")
def test_firmware_that_is_gone_or_no_program(w: Workspace) -> None:
    firmware = w.out / "firmware.elf"
    firmware.unlink()
    assert w.run("run", *SCENARIO).code == 10
    firmware.write_bytes(b"\x7fELF and no more")
    firmware.chmod(0o755)
    done = w.run("run", *SCENARIO)
    assert done.code == 10
    assert "it could not be started" in done.err


def _a_firmware_of_somebody(w: Workspace) -> None:
    (w.out / "firmware.elf").write_text("#!/bin/sh\nexit 99\n")


def _another_model(w: Workspace) -> None:
    shutil.copyfile(CORPUS / "add_mul" / "model.pte", w.model)


def _another_name(w: Workspace) -> None:
    text = w.profile.read_text()
    w.profile.write_text(text.replace('name = "model"', 'name = "other"'))


@pytest.mark.toolchain
@pytest.mark.parametrize(
    ("change", "arguments", "code", "problem"),
    [
        (_a_firmware_of_somebody, SCENARIO, 0, ""),
        (_another_model, SCENARIO, 2, "expected: 3, float32 [2, 2]"),
        (_another_name, ("--model", "model"), 2, '"model"'),
    ],
)
def test_a_run_is_of_the_profile_as_it_is(
    w: Workspace,
    change: Callable[[Workspace], None],
    arguments: tuple[str, ...],
    code: int,
    problem: str,
) -> None:
    """What the build before would have answered is never seen."""
    change(w)
    before = w.state()
    stale = w.run("run", *arguments, "--no-build", "--json")
    assert stale.code == 2
    assert stale.problems[0]["code"] == "stale-build"
    assert notes_of(stale.problems[0]) == [("found", f"an older build in {w.out}")]
    assert w.state() == before
    done = w.run("run", *arguments)
    assert done.code == code, done.err
    assert problem in done.err
    assert w.run("run", *arguments, "--no-build").code == code
    assert w.run("build", "--locked").code == 0  # the lock is of that build as well


@pytest.mark.toolchain
def test_a_run_of_a_current_build_builds_nothing(
    w: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    w.build()
    monkeypatch.setattr(current, "build_product", lambda *_: pytest.fail("it was built"))
    for more in ((), ("--no-build",), ("--no-lock",)):
        assert w.run("run", *SCENARIO, *more).code == 0
    # Times alone are no change; nor does anybody need the compiler to see that.
    os.utime(w.model)
    monkeypatch.setattr(shell_toolchain, "find_spec", lambda _: None)
    assert w.run("run", *SCENARIO, "--no-build").code == 0
    w.edit("native/kernels/portable/op_relu.cpp", "// more\n")
    assert w.run("run", *SCENARIO, "--no-build").code == 2


@pytest.mark.toolchain
def test_a_first_run_builds(w: Workspace) -> None:
    lock = w.lock.read_bytes()
    w.lock.unlink()
    for path in w.out.iterdir():
        if path.is_symlink():
            path.unlink()
    done = w.run("run", *SCENARIO, "--no-build", "--json")
    assert (done.code, done.problems[0]["code"]) == (2, "not-built")
    assert w.run("run", *SCENARIO, "--no-lock").code == 0
    assert not w.lock.exists()
    # What was built without a lock can be run without one.
    assert w.run("run", *SCENARIO).code == 0
    assert not w.lock.exists()
    assert w.run("run", *SCENARIO, "--lock", str(w.folder / "a.lock")).code == 0
    assert (w.folder / "a.lock").read_bytes() == lock
    done = w.run("run", *SCENARIO, "--locked")
    assert done.code == 8, done.err


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("--no-lock", "--lock=a.lock"),
        ("--no-build", "--lock=a.lock"),
        ("--no-build", "--locked"),
        ("--no-build", "--frozen"),
    ],
)
def test_options_of_locks_that_contradict_each_other(
    fresh: Workspace, one: str, other: str
) -> None:
    done = fresh.run("run", *SCENARIO, other, one)
    assert done.code == 2
    word = other.partition("=")[0]
    message = f"error[usage]: argument {one}: not allowed with argument {word}\n"
    assert message in done.err


@pytest.mark.toolchain
def test_sizes_of_an_old_build_are_not_shown_as_if_they_were_of_this_one(w: Workspace) -> None:
    w.build()
    report = str(w.out / "report.json")
    questions: list[tuple[str, ...]] = [(), ("--by", "op"), ("--diff", report)]
    for more in questions:
        assert "changed" not in w.run("size", *more).err
    w.edit("product.toml", "# more\n")
    for more in questions:
        done = w.run("size", *more)
        assert done.code == 0
        assert "something changed since the last build; sizes are from that build" in done.err


@pytest.mark.toolchain
def test_without_emulator_there_is_no_run(
    fresh: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    need_toolchain("cortex-m55", "zig")
    fresh.build()
    monkeypatch.setenv("PATH", "/nowhere")
    done = fresh.run("run", *SCENARIO, "--json")
    assert done.code == 7
    assert done.problems[0]["message"] == "qemu-system-arm is not installed"


# Verify, size, clean


@pytest.mark.toolchain
def test_what_differs_between_two_builds_is_named(
    w: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    w.build()
    before = w.state()
    # The first of the two builds has nothing to do, so only the second sees this.
    monkeypatch.setattr(generating, "GENERATOR", "Orchestrator at noon")
    done = w.run("verify", "--json")
    assert done.code == 11
    (problem,) = done.problems
    assert problem["code"] == "not-reproducible"
    differing = [text for label, text in notes_of(problem) if label == "differs"]
    assert "gen/src/api.cpp" in differing
    assert "selected_operators.yaml" in differing
    assert "firmware.elf" not in differing
    assert problem["message"] == f"{len(differing)} files differ between two builds"
    assert w.state() == before


@pytest.mark.toolchain
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


@pytest.mark.toolchain
def test_clean_removes_the_folder_and_keeps_the_lock(w: Workspace) -> None:
    lock = w.lock.read_bytes()
    done = w.run("clean", "--json")
    assert json.loads(done.out) == {"folder": str(w.out), "removed": True, "left": []}
    assert not w.out.exists()
    assert w.lock.read_bytes() == lock
    assert json.loads(w.run("clean", "--json").out)["removed"] is False


# The outermost layer


@pytest.mark.parametrize("word", ["--version", "--help"])
def test_help_and_version_are_data(word: str, capsys: pytest.CaptureFixture[str]) -> None:
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
    assert problem["message"] == "internal error: KeyError: 'lost'"
    assert "Traceback" not in said.err
    (file,) = tmp_path.iterdir()
    assert notes_of(problem) == [("trace", str(file))]
    assert "Traceback" in file.read_text()


def test_an_interrupt_is_no_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(check_command, "run", _broken(KeyboardInterrupt()))
    assert run(["check", "a.toml"]) == 130
    assert capsys.readouterr() == ("", "interrupted\n")


@pytest.mark.parametrize(
    ("error", "message", "hint"),
    [
        (
            WriteError(OSError(28, "No space left on device"), Path("o/firmware.elf")),
            "cannot write o/firmware.elf: no space left on device",
            "free space on the disk, or name a place on another one",
        ),
        (
            PermissionError(13, "Permission denied", "o"),
            "cannot access o: permission denied",
            "check path, permissions and free space",
        ),
        (
            OSError(12, "Cannot allocate memory"),
            "cannot allocate memory",
            "check path, permissions and free space",
        ),
    ],
)
def test_what_the_system_says_is_told_with_the_file(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    error: OSError,
    message: str,
    hint: str,
) -> None:
    monkeypatch.setattr(check_command, "run", _broken(error))
    assert run(["check", "a.toml"]) == 2
    assert capsys.readouterr().err == (f"error[system-error]: {message}\n   hint: {hint}\n")


def test_a_reader_that_has_seen_enough_ends_it_quietly() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-m", "orchestrator", "plumbing", "schema"],
        cwd=ROOT,
        stdout=writing,
        stderr=subprocess.PIPE,
        check=False,
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (141, b"")


def test_what_is_not_supported_can_be_inspected(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A program with quantized dtypes and an operator that has no kernel."""
    program = read_program((CORPUS / "mlp" / "model.pte").read_bytes(), file="m")
    (method,) = program.methods
    values = tuple(
        replace(v, dtype=ScalarType.QInt32)
        if isinstance(v, TensorValue) and not v.data_buffer_index
        else v
        for v in method.values
    )
    operators = (OperatorName.parse("aten::erfinv.out"), *method.operators[1:])
    sizes = (0, *(8 * size for size in method.arena_bytes[1:]))
    other = replace(method, values=values, operators=operators, arena_bytes=sizes)
    file = tmp_path / "complex.pte"
    file.write_bytes(bytes(write_program(replace(program, methods=(other,)))))
    assert run(["inspect", str(file)]) == 0
    captured = capsys.readouterr()
    assert "aten::erfinv.out, " in captured.out
    assert "QInt32" in captured.err
    assert "no library of Orchestrator has a kernel for aten::erfinv.out" in captured.err
    profile = tmp_path / "p.toml"
    profile.write_text(
        'schema = 1\nname = "p"\n[target]\ncpu = "host"\n[[models]]\nname = "m"\n'
        f'path = "{file.name}"\n'
    )
    assert run(["check", str(profile)]) == 4


def test_every_program_of_the_corpus_can_be_inspected(capsys: pytest.CaptureFixture[str]) -> None:
    for model in sorted(CORPUS.glob("*/model.pte")):
        assert run(["inspect", str(model)]) == 0, model
        out = capsys.readouterr().out
        for method in read_program(model.read_bytes(), file="m").methods:
            assert f"method {method.name}\n" in out
