"""Whole builds with a fake compiler: what runs, what is published and remembered."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from orchestrator.build import build_product
from orchestrator.build.instrument import what_if
from orchestrator.build.variant import Variant
from orchestrator.errors import KernelError, LockError, MemoryPlanError, ToolchainError, UsageError
from orchestrator.shell.publish import published_files
from tests.unit.build.fake_project import PROFILE, project_in, write_project
from tests.unit.build.fakes import ZIG, FakeFolder, FakeShell, FakeToolchains

if TYPE_CHECKING:
    from pathlib import Path

    from orchestrator.build import BuildReport

STAGES = (
    "extract net",
    "aggregate",
    "resolve",
    "prelink",
    "replan",
    "memory",
    "generate",
    "compile",
    "measure",
    "lock",
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_project(tmp_path)
    return tmp_path


def _build(folder: Path, fakes: FakeShell, *, locked: bool = False) -> BuildReport:
    return build_product(project_in(folder, locked=locked), fakes.shell)


def test_a_first_build_runs_every_stage(folder: Path) -> None:
    fakes = FakeShell()
    report = _build(folder, fakes)
    assert fakes.reporter.stages == dict.fromkeys(STAGES, "first build")
    assert fakes.reporter.lines[0].startswith("net.forward")
    (files,) = fakes.folder.runs
    assert files["obj/compiler_rt.o"] == b"support functions"
    assert files["src/kernels/portable/op_addmm.cpp"]
    assert files["models/net.pte"]
    assert b"rule cxx" in bytes(files["build.ninja"])
    # What compiles is read, whatever the cache says of it.
    assert fakes.toolchains.asked == [True, False]
    outputs = published_files(folder / "out")
    assert {"firmware.elf", "libdemo.a", "include/demo.h", "report.json"} <= {*outputs}
    assert "models/net.pte" in outputs
    assert report.lock_changed
    assert report.lock_file == folder / "demo.lock"
    assert {name for name, _ in report.lock.generated} < {*outputs}
    assert str((folder / "net.pte").absolute()) in report.inputs
    assert "/opt/zig" in report.inputs


def test_a_second_build_runs_nothing(folder: Path) -> None:
    first = _build(folder, FakeShell())
    before = published_files(folder / "out")
    fakes = FakeShell()
    again = _build(folder, fakes)
    assert fakes.reporter.stages == dict.fromkeys(STAGES, "")
    assert again.plan.is_current
    assert not fakes.folder.runs
    assert fakes.toolchains.asked == [True]
    assert (again.report, again.lock) == (first.report, first.lock)
    assert not again.lock_changed
    assert published_files(folder / "out") == before


def test_only_stale_stages_run(folder: Path) -> None:
    _build(folder, FakeShell())
    write_project(folder, more='[budget]\nram = "4 MiB"\n')
    fakes = FakeShell()
    _build(folder, fakes)
    reasons = {name: why for name, why in fakes.reporter.stages.items() if why}
    assert reasons == {"lock": "profile [budget] changed"}


def test_a_damaged_note_only_means_more_work(folder: Path) -> None:
    report = _build(folder, FakeShell())
    notes = folder / "out" / ".work" / "stages.json"
    for text in (b"[]", b'{"extract net": 3}', b"\xff", b"{" * 10_000):
        notes.write_bytes(text)
        fakes = FakeShell()
        assert _build(folder, fakes).lock == report.lock
        assert set(fakes.reporter.stages.values()) == {"first build"}


def test_damaged_results_are_made_again(folder: Path) -> None:
    report = _build(folder, FakeShell())
    for path in (folder / "out" / ".work" / "results").iterdir():
        path.write_bytes(b"damaged")
    assert _build(folder, FakeShell()).lock == report.lock


def test_changed_outputs_are_made_again(folder: Path) -> None:
    _build(folder, FakeShell())
    before = published_files(folder / "out")
    (folder / "out" / "firmware.elf").resolve().write_bytes(b"damaged")
    fakes = FakeShell()
    _build(folder, fakes)
    assert len(fakes.folder.runs) == 1
    assert published_files(folder / "out") == before


def test_another_compiler_compiles_again(folder: Path) -> None:
    _build(folder, FakeShell())
    newer = replace(ZIG, programs=(("zig", "b" * 64),))
    fakes = FakeShell(toolchains=FakeToolchains(toolchain=newer))
    report = _build(folder, fakes)
    assert fakes.reporter.stages["compile"] == "toolchain changed"
    assert not fakes.reporter.stages["generate"]
    assert ("sha256 zig", "b" * 64) in report.lock.toolchain


def test_warnings_of_compilers_are_shown(folder: Path) -> None:
    fakes = FakeShell(folder=FakeFolder(log="a.cpp:1: warning: unused\n"))
    _build(folder, fakes)
    assert fakes.reporter.notes == ["a.cpp:1: warning: unused\n"]


def test_a_missing_compiler_fails_the_build(folder: Path) -> None:
    fakes = FakeShell(toolchains=FakeToolchains(toolchain=None))
    with pytest.raises(ToolchainError, match="zig is not installed"):
        _build(folder, fakes)
    assert not fakes.folder.runs
    assert not (folder / "demo.lock").exists()


def test_a_gap_is_reported_before_a_missing_compiler(folder: Path) -> None:
    text = PROFILE + '[kernels]\nlibraries = ["quantized"]\n'
    (folder / "demo.toml").write_text(text)
    fakes = FakeShell(toolchains=FakeToolchains(toolchain=None))
    with pytest.raises(KernelError):
        _build(folder, fakes)
    assert not fakes.toolchains.asked


def test_a_budget_that_is_exceeded_publishes_nothing(folder: Path) -> None:
    _build(folder, FakeShell())
    before, lock = published_files(folder / "out"), (folder / "demo.lock").read_text()
    write_project(folder, more='[budget]\nflash = "1 KiB"\n')
    for _ in range(2):
        with pytest.raises(MemoryPlanError):
            _build(folder, FakeShell())
    assert published_files(folder / "out") == before
    assert (folder / "demo.lock").read_text() == lock


def test_a_lock_that_must_not_change_does_not(folder: Path) -> None:
    _build(folder, FakeShell())
    fakes = FakeShell()
    _build(folder, fakes, locked=True)
    # What is compared with a lock is read.
    assert fakes.toolchains.asked == [False]
    lock = (folder / "demo.lock").read_text()
    (folder / "demo.toml").write_text(f"# new\n{PROFILE}")
    with pytest.raises(LockError) as caught:
        _build(folder, FakeShell(), locked=True)
    (problem,) = caught.value.diagnostics
    assert problem.notes == (
        ("changed", "profile: file demo.toml changed"),
        ("changed", "outputs: provenance.intoto.json changed"),
    )
    assert (folder / "demo.lock").read_text() == lock


def test_a_variant_is_built_beside_the_product(folder: Path) -> None:
    _build(folder, FakeShell())
    before = published_files(folder / "out")
    fakes = FakeShell()
    now, then = what_if(project_in(folder), Variant(without_models=("net",)), fakes.shell)
    assert [m.model for m in now.methods] == ["net"]
    assert not then.methods
    (files,) = fakes.folder.runs
    assert "models/net.pte" not in files
    assert not fakes.reporter.notes
    assert published_files(folder / "out") == before


def test_a_variant_of_a_stale_product_is_refused(folder: Path) -> None:
    _build(folder, FakeShell())
    write_project(folder, more='[budget]\nram = "4 MiB"\n')
    with pytest.raises(UsageError, match="something changed since demo was built"):
        what_if(project_in(folder), Variant(dtypes="all"), FakeShell().shell)


def test_dtypes_are_compared_if_the_profile_says_so(folder: Path) -> None:
    write_project(folder, more="[dtypes]\ncompare = true\n")
    fakes = FakeShell()
    report = _build(folder, fakes)
    assert len(fakes.folder.runs) == 2
    assert report.report.dtype_comparison is not None
    assert fakes.reporter.stages["with every dtype"] == "requested by dtypes.compare"
