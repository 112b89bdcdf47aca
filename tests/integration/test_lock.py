"""Locks: they hold what shaped the outputs, and nothing changes under them."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import pytest

from orchestrator.cli import run
from orchestrator.lockfile import Lock, lock_text, parse_lock
from orchestrator.shell import ninja as shell_ninja
from orchestrator.shell.ninja import ninja_program
from tests.integration.workspace import ROOT, Workspace, write_product
from tests.tools import need_toolchain

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.toolchain

PROFILES = sorted((ROOT / "profiles").glob("*.toml"))


@pytest.mark.parametrize("profile", PROFILES, ids=lambda p: p.stem)
def test_checked_in_locks_hold(
    profile: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """On any machine with the toolchain that the profile pins, the same bytes."""
    assert 'toolchain = "zig"' in profile.read_text()
    need_toolchain("host", "zig")
    lock = profile.with_suffix(".lock")
    before = lock.read_bytes()
    out = str(tmp_path / "out")
    assert run(["lock", str(profile), "--check", "--out", out]) == 0, (
        capsys.readouterr().err
    )
    assert lock.read_bytes() == before


def test_the_products_we_show_are_checked_in() -> None:
    names = {p.stem for p in PROFILES}
    assert {"add-mul-host", "kws-host", "kws-m55", "kws-m4", "resnet8-m55"} <= names


def _lock(w: Workspace) -> Lock:
    return parse_lock(w.lock.read_text(), file="product.lock")


def test_the_text_is_canonical(w: Workspace) -> None:
    assert lock_text(_lock(w)) == w.lock.read_text()


def test_no_fact_is_about_this_machine(w: Workspace) -> None:
    text = w.lock.read_text()
    assert str(w.folder) not in text
    # Not as a part of a relative path: a checkout may lie in /src.
    assert not re.search(rf"(?<![\w.]){re.escape(str(ROOT))}/", text)
    assert not re.search(r'["= ]/', text)
    assert "ziglang/zig" not in text


def test_every_file_the_compiler_read_is_named(w: Workspace) -> None:
    """Ninja knows from the compiler which files went into which object."""
    w.build()
    done = subprocess.run(
        [str(ninja_program()), "-t", "deps"],
        cwd=w.out / ".work",
        capture_output=True,
        text=True,
        check=True,
    )
    read = {line.strip() for line in done.stdout.splitlines() if line.startswith(" ")}
    assert len(read) > 30
    lock = _lock(w)
    named = {f"src/{name}" for name, _ in lock.sources}
    named |= {name for name, _ in lock.generated}
    assert read <= named
    # Nothing of a kernel that is not linked, so editing it changes no lock.
    assert not any("op_tanh" in name for name in named)
    assert any(name.endswith("portable/functions.yaml") for name in named)


def test_outputs_have_digest_and_size(w: Workspace) -> None:
    outputs = dict(_lock(w).outputs)
    assert set(outputs) == {"firmware.elf", "libproduct.a", "report.json"}
    for name, fact in outputs.items():
        data = (w.out / name).read_bytes()
        assert fact == f"sha256:{hashlib.sha256(data).hexdigest()} {len(data)}"


# --locked, --frozen, lock --check

each_way = pytest.mark.parametrize(
    "how",
    [("build", "--locked"), ("build", "--frozen"), ("lock", "--check")],
    ids=" ".join,
)


@each_way
def test_a_current_lock_is_no_obstacle(w: Workspace, how: tuple[str, ...]) -> None:
    before = w.state()
    done = w.run(*how)
    assert done.code == 0, done.err
    assert w.state()[1] == before[1]
    assert w.run("clean").code == 0
    assert w.run(*how).code == 0  # from nothing, the same bytes
    assert w.state()[1] == before[1]


def _no_change(w: Workspace) -> None:
    pass


def _edit_kernel(w: Workspace) -> None:
    w.edit("native/kernels/portable/op_relu.cpp", "// more\n")


def _edit_profile(w: Workspace) -> None:
    w.edit("product.toml", "# more\n")


def _edit_model(w: Workspace) -> None:
    data = bytearray(w.model.read_bytes())
    data[-1] ^= 1
    w.model.write_bytes(data)


def _optimize(w: Workspace) -> None:
    text = w.profile.read_text()
    w.profile.write_text(text.replace("[target]", '[target]\noptimize = "speed"'))


def _other_version(w: Workspace) -> None:
    text = w.lock.read_text()
    w.lock.write_text(re.sub(r'("version" = ")[^"]*', r"\1ziglang 0.1.0", text))


def _other_output(w: Workspace) -> None:
    text = w.lock.read_text()
    w.lock.write_text(re.sub(r'("firmware.elf" = "sha256:)\w', r"\1_", text))


CHANGES: list[tuple[Callable[[Workspace], None], str]] = [
    (_edit_kernel, "sources: kernels/portable/op_relu.cpp changed"),
    (_edit_profile, "profile: file product.toml changed"),
    (_edit_model, "models: model changed"),
    (_optimize, "target: optimize changed (size -> speed)"),
    (_other_version, "toolchain: version changed (ziglang 0.1.0 -> ziglang "),
]


def _stale(w: Workspace, *how: str) -> list[str]:
    """What a stale lock says has changed; nothing may change on disk."""
    before = w.state()
    done = w.run(*how, "--json")
    assert done.code == 8, done.err
    (problem,) = json.loads(done.out)["diagnostics"]
    assert problem["code"] == "stale-lock"
    assert problem["where"]["file"] == str(w.lock)
    assert w.state() == before
    return [note["text"] for note in problem["notes"]]


@pytest.mark.parametrize(("change", "line"), CHANGES)
@pytest.mark.parametrize("how", [("build", "--locked"), ("lock", "--check")])
def test_a_lock_that_would_change_is_refused(
    w: Workspace, how: tuple[str, ...], change: Callable[[Workspace], None], line: str
) -> None:
    change(w)
    assert any(found.startswith(line) for found in _stale(w, *how))


@pytest.fixture
def no_ninja(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> str:
        pytest.fail("ninja was started")

    monkeypatch.setattr(shell_ninja, "run_ninja", refuse)


@pytest.mark.usefixtures("no_ninja")
@pytest.mark.parametrize(("change", "line"), CHANGES)
def test_frozen_looks_at_inputs_before_anything_runs(
    w: Workspace, change: Callable[[Workspace], None], line: str
) -> None:
    change(w)
    assert any(found.startswith(line) for found in _stale(w, "build", "--frozen"))


@each_way
def test_other_outputs_are_found_too(w: Workspace, how: tuple[str, ...]) -> None:
    _other_output(w)
    assert _stale(w, *how) == ["outputs: firmware.elf changed"]


@pytest.mark.usefixtures("no_ninja")
@each_way
def test_a_missing_lock_is_refused_before_anything_runs(
    w: Workspace, how: tuple[str, ...]
) -> None:
    w.lock.unlink()
    assert _stale(w, *how) == ["there is no lock file"]


@pytest.mark.usefixtures("no_ninja")
@each_way
@pytest.mark.parametrize("damage", [b"\xff", b"schema = 2\n", b"", b"a = [", b"x = 1"])
def test_a_damaged_lock_is_refused_before_anything_runs(
    w: Workspace, how: tuple[str, ...], damage: bytes
) -> None:
    w.lock.write_bytes(damage)
    before = w.state()
    done = w.run(*how)
    assert done.code == 8
    assert "error[bad-lock]: the lock file is damaged or of another version" in done.err
    assert f"--> {w.lock}\n" in done.err
    assert w.state() == before


@pytest.mark.parametrize("damage", [b"\xff", b"schema = 2\n", b""])
def test_a_build_writes_a_damaged_lock_anew(w: Workspace, damage: bytes) -> None:
    before = w.lock.read_bytes()
    w.lock.write_bytes(damage)
    w.build()
    assert w.lock.read_bytes() == before


def test_a_refused_build_can_be_built_without_the_option(w: Workspace) -> None:
    _edit_kernel(w)
    _stale(w, "build", "--locked")
    done = w.build()
    assert f"lock {w.lock} written" in done.err
    assert w.run("build", "--locked").code == 0


def test_lock_writes_what_build_writes(w: Workspace) -> None:
    before = w.lock.read_bytes()
    w.lock.unlink()
    done = w.run("lock")
    assert (done.code, done.out) == (0, f"{w.lock}: written\n")
    assert w.lock.read_bytes() == before
    assert w.run("lock").out == f"{w.lock}: current\n"


def test_verify_writes_no_lock_and_hides_none_from_the_next_build(
    w: Workspace,
) -> None:
    before = w.lock.read_bytes()
    w.lock.unlink()
    assert w.run("verify").code == 0
    assert not w.lock.exists()
    from orchestrator.fastpath import unchanged_build  # noqa: PLC0415

    assert not unchanged_build([str(w.profile), "--out", str(w.out)])
    w.build()
    assert w.lock.read_bytes() == before


def test_locks_of_the_same_product_differ_by_toolchain(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    texts = {}
    for toolchain in ("gnu", "zig"):
        need_toolchain("host", toolchain)
        folder = tmp_path / toolchain
        write_product(folder, case="add_mul", toolchain=toolchain)
        w = Workspace(folder=folder, capsys=capsys)
        w.build()
        texts[toolchain] = _lock(w)
    gnu, zig = texts["gnu"], texts["zig"]
    assert {name for name, _ in gnu.python} == {"pte-orchestrator"}
    assert {name for name, _ in zig.python} == {"pte-orchestrator", "ziglang"}
    assert {n for n, _ in gnu.toolchain if n.startswith("sha256 ")} == {
        f"sha256 {role}" for role in ("ar", "as", "cc1plus", "compiler", "ld")
    }
    tables = [f.name for f in fields(Lock)]
    same = {name for name in tables if getattr(gnu, name) == getattr(zig, name)}
    # Platform and libc are the only difference, and no generated file is about them.
    assert same == {"exports", "firmware", "generated", "memory", "models", "target"}
