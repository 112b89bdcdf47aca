"""Ninja: progress, what a failure said, memories that overflow."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from orchestrator.errors import CompileError, Diagnostic, MemoryPlanError
from orchestrator.shell.ninja import ninja_program, run_ninja
from orchestrator.shell.process import ALLOWED
from orchestrator.shell.reporter import Reporter
from tests.environment import HOSTILE

if TYPE_CHECKING:
    from pathlib import Path


class _Recorder(Reporter):
    def __init__(self) -> None:
        self.steps: list[tuple[int, int, str]] = []

    def progress(self, done: int, total: int, text: str) -> None:
        self.steps.append((done, total, text))


def _rules(folder: Path, **commands: str) -> None:
    """A build.ninja with one step per command, each after the one before."""
    text, before = "", ""
    for name, command in commands.items():
        text += f"rule {name}\n  command = {command}\n  description = make {name}\n"
        text += f"build {name}.out: {name} {before}\n"
        before = f"| {name}.out"
    (folder / "build.ninja").write_text(text)


def test_steps_are_reported_and_not_repeated(tmp_path: Path) -> None:
    _rules(tmp_path, one="echo warning: odd && touch $out", two="touch $out")
    recorder = _Recorder()
    log = run_ninja(tmp_path, jobs=1, reporter=recorder)
    assert recorder.steps == [(1, 2, "make one"), (2, 2, "make two")]
    assert "warning: odd" in log
    recorder = _Recorder()
    run_ninja(tmp_path, jobs=None, reporter=recorder)
    assert recorder.steps == []


def test_steps_do_not_see_the_folder_of_the_machine(tmp_path: Path) -> None:
    _rules(tmp_path, one="echo $$PWD $$LC_ALL > $out")
    run_ninja(tmp_path, jobs=None, reporter=Reporter())
    assert (tmp_path / "one.out").read_text() == "/proc/self/cwd C\n"


def test_steps_see_what_is_allowed_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (*HOSTILE, "A_VARIABLE_OF_TOMORROW"):
        monkeypatch.setenv(name, "1")
    for name in ("HOME", "TMPDIR"):
        monkeypatch.setenv(name, f"/{name}")
    _rules(tmp_path, one="env > $out")
    run_ninja(tmp_path, jobs=None, reporter=Reporter())
    lines = (tmp_path / "one.out").read_text().splitlines()
    seen = dict(line.split("=", 1) for line in lines)
    assert (seen["HOME"], seen["TMPDIR"]) == ("/HOME", "/TMPDIR")
    ours = {"LC_ALL", "NINJA_STATUS", "PWD", "OLDPWD", "SHLVL", "_"}
    assert seen.keys() <= {*ALLOWED, *ours}


def test_a_failure_shows_what_the_step_said(tmp_path: Path) -> None:
    _rules(tmp_path, one="echo fine && touch $out", two="echo a.cpp:3: bad; exit 1")
    with pytest.raises(CompileError) as caught:
        run_ninja(tmp_path, jobs=1, reporter=Reporter())
    (problem,) = caught.value.diagnostics
    ((label, output),) = problem.notes
    assert label == "output"
    assert output.startswith("FAILED: ")
    assert "a.cpp:3: bad" in output
    assert "fine" not in output
    assert (problem.code, problem.message, problem.hint) == (
        "compile-failed",
        "compiling or linking failed",
        f"the commands are in {tmp_path / 'build.ninja'}",
    )


def test_on_a_full_disk_the_hint_speaks_of_the_disk(tmp_path: Path) -> None:
    _rules(tmp_path, one="echo a.o: No space left on device; exit 1")
    with pytest.raises(CompileError) as caught:
        run_ninja(tmp_path, jobs=None, reporter=Reporter())
    hint = caught.value.diagnostics[0].hint
    assert hint == "free space on the disk, or name a place on another one"


def test_long_output_of_a_failure_is_cut(tmp_path: Path) -> None:
    _rules(tmp_path, one="head -c 100000 /dev/zero | tr '\\0' x; exit 1")
    with pytest.raises(CompileError) as caught:
        run_ninja(tmp_path, jobs=None, reporter=Reporter())
    output = caught.value.diagnostics[0].notes[0][1]
    assert len(output) < 7000
    assert output.endswith("x\n[...]")


def test_output_that_is_no_text_is_no_obstacle(tmp_path: Path) -> None:
    _rules(tmp_path, one="printf 'a\\377b'; exit 1")
    with pytest.raises(CompileError) as caught:
        run_ninja(tmp_path, jobs=None, reporter=Reporter())
    assert "a�b" in caught.value.diagnostics[0].notes[0][1]


def test_ninja_itself_can_fail(tmp_path: Path) -> None:
    (tmp_path / "build.ninja").write_text("nonsense")
    with pytest.raises(CompileError) as caught:
        run_ninja(tmp_path, jobs=None, reporter=Reporter())
    assert "ninja: error:" in caught.value.diagnostics[0].notes[0][1]


@pytest.mark.parametrize(
    "line",
    [
        "region \\`sram' overflowed by 24 bytes",
        "section '.text' will not fit in region 'sram': overflowed by 24 bytes",
    ],
    ids=["gnu", "lld"],
)
def test_a_memory_that_overflows_is_a_matter_of_memory(tmp_path: Path, line: str) -> None:
    less = line.replace("24", "8")
    _rules(tmp_path, link=f'echo "ld: {less}: x"; echo "ld: {line}: y"; exit 1')
    with pytest.raises(MemoryPlanError) as caught:
        run_ninja(tmp_path, jobs=None, reporter=Reporter())
    assert caught.value.diagnostics == (
        Diagnostic(
            code="region-overflow",
            message="the firmware does not fit memory sram",
            notes=(("over", "24 bytes"),),
            hint="choose a board with more memory, or a smaller model",
        ),
    )


def test_an_interrupted_build_ends_ninja(tmp_path: Path) -> None:
    _rules(tmp_path, one="touch $out", two="sleep 60; touch $out")

    class Interrupting(Reporter):
        def progress(self, done: int, total: int, text: str) -> None:
            raise KeyboardInterrupt(done, total, text)

    with pytest.raises(KeyboardInterrupt):
        run_ninja(tmp_path, jobs=1, reporter=Interrupting())
    assert not (tmp_path / "two.out").exists()


def test_the_program_is_that_of_the_package() -> None:
    assert ninja_program().is_file()
