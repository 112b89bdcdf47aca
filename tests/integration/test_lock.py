"""Locks: they hold what shaped the outputs, and nothing changes under them."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
from dataclasses import fields
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import pytest

from orchestrator.build.lockfile import Lock, lock_text, parse_lock
from orchestrator.cli.main import run
from orchestrator.shell import ninja as shell_ninja
from orchestrator.shell.cache import cache_folder
from orchestrator.shell.ninja import ninja_program
from tests.environment import HOSTILE
from tests.integration.workspace import ROOT, SCENARIO, Build, Workspace, notes_of, write_product
from tests.permissions import permissions_hold
from tests.tools import need_toolchain

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.toolchain


def test_the_checked_in_lock_holds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """On any machine with the toolchain that the profile pins, the same bytes.

    With any numpy as well, whose version is the only thing that may differ.
    """
    profile = ROOT / "profiles" / "kws-m55.toml"
    assert 'toolchain = "zig"' in profile.read_text()
    need_toolchain("cortex-m55", "zig")
    lock = tmp_path / "a.lock"
    text = profile.with_suffix(".lock").read_text()
    text, count = re.subn('"numpy" = ".*"', f'"numpy" = "{version("numpy")}"', text)
    assert count == 1
    lock.write_text(text)
    words = ["lock", str(profile), "--check", "--lock", str(lock)]
    assert run([*words, "--out", str(tmp_path / "out")]) == 0, capsys.readouterr().err
    assert lock.read_text() == text
    assert not (tmp_path / "out").exists()


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
    assert set(outputs) == {
        "firmware.elf",
        "include/orch/sizes.h",
        "include/orch/status.h",
        "include/product.h",
        "libproduct.a",
        "models/model.pte",
        "provenance.intoto.json",
        "report.json",
        "sbom.cdx.json",
    }
    for name, fact in outputs.items():
        data = (w.out / name).read_bytes()
        assert fact == f"sha256:{hashlib.sha256(data).hexdigest()} {len(data)}"


def test_every_output_is_in_the_lock(w: Workspace) -> None:
    """With its digest; but for those that name folders of the machine, and the page."""
    lock = _lock(w)
    named = {name: fact.split()[0] for name, fact in lock.outputs}
    named |= {name: f"sha256:{digest}" for name, digest in lock.generated}
    assert named == {
        name: f"sha256:{hashlib.sha256(data).hexdigest()}"
        for name, data in w.outputs().items()
        if name != "report.html"
    }


# --locked, --frozen, lock --check

each_way = pytest.mark.parametrize(
    "how", [("build", "--locked"), ("build", "--frozen"), ("lock", "--check")], ids=" ".join
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


# Asking about outputs: nothing is changed, whatever the answer

OUTPUTS = {
    "firmware.elf": "firmware",
    "libproduct.a": "library",
    "report.json": "report",
    "include/product.h": "header",
    "models/model.pte": "program",
    "memory_plan.json": "generated file",
}


def _flip(path: Path) -> None:
    """Change a byte, and nothing that a look at the folder shows."""
    before = path.stat()
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def _whole_state(w: Workspace) -> dict[str, bytes | str]:
    """Every file below the folder with its bytes, and every link."""
    return {
        str(path.relative_to(w.folder)): str(path.readlink())
        if path.is_symlink()
        else path.read_bytes()
        for path in sorted(w.folder.rglob("*"))
        if path.is_file() or path.is_symlink()
    }


def test_changed_outputs_are_found_and_left(w: Workspace) -> None:
    for name in OUTPUTS:
        _flip(w.out / name)
    before = _whole_state(w)
    done = w.run("lock", "--check")
    assert (done.code, done.out) == (0, f"{w.lock}: current\n"), done.err
    done = w.run("lock", "--check", "--outputs", "--json")
    assert done.code == 8
    (problem,) = done.problems
    assert problem["code"] == "changed-output"
    changed = [("changed", name) for name in sorted(OUTPUTS)]
    assert notes_of(problem) == [*changed, ("folder", str(w.out))]
    for name, kind in OUTPUTS.items():
        done = _identify(w, w.out / name)
        assert done.code == 8
        assert f"{w.out / name} is not an output of {w.lock}\n" in done.err
        assert f"= expected, {kind}: sha256 " in done.err
    assert _whole_state(w) == before
    # A build makes them whole again; then everybody is content.
    assert w.run("build", "--locked").code == 0
    assert w.run("lock", "--check", "--outputs").code == 0


def _identify(w: Workspace, file: Path, *more: str) -> Build:
    return w.run("verify", "--artefact", str(file), *more)


def test_outputs_that_are_gone_or_replaced_are_found(w: Workspace) -> None:
    assert w.run("lock", "--check", "--outputs").code == 0
    (w.out / "report.json").unlink()
    (w.out / "firmware.elf").unlink()
    (w.out / "firmware.elf").write_bytes(b"another one")
    done = w.run("lock", "--check", "--outputs", "--json")
    assert notes_of(done.problems[0])[:2] == [
        ("changed", "firmware.elf"),
        ("missing", "report.json"),
    ]
    assert done.problems[0]["message"] == "2 outputs are not what the lock names"
    _edit_profile(w)
    done = w.run("lock", "--check", "--outputs", "--json")
    assert [p["code"] for p in done.problems] == ["stale-lock"]


def test_outputs_are_compared_by_lock_check_only(w: Workspace) -> None:
    done = w.run("lock", "--outputs")
    assert done.code == 2
    assert "error[usage]: --outputs requires --check" in done.err


def test_an_artefact_is_named_wherever_it_lies(w: Workspace, tmp_path: Path) -> None:
    before = _whole_state(w)
    file = tmp_path / "in hand"
    for name, kind in OUTPUTS.items():
        file.write_bytes((w.out / name).read_bytes())
        done = _identify(w, file)
        assert done.code == 0, done.err
        assert done.out.startswith(f"{file}: the {kind} of {w.lock} ({name}")
    document = json.loads(_identify(w, file, "--json").out)
    assert document == {
        "file": str(file),
        "lock": str(w.lock),
        "sha256": hashlib.sha256(file.read_bytes()).hexdigest(),
        "kind": kind,
        "outputs": [name],
    }
    assert _whole_state(w) == before
    # The lock is enough: there need be neither profile nor build.
    assert run(["verify", "--artifact", str(file), "--lock", str(w.lock)]) == 0


def test_what_is_no_artefact(w: Workspace) -> None:
    machine = w.out / "compile_commands.json"
    done = _identify(w, machine)
    assert done.code == 8
    assert "why: compile_commands.json names folders of the machine" in done.err
    done = _identify(w, w.folder / "nothing")
    assert done.code == 2
    assert f"cannot access {w.folder / 'nothing'}: no such file" in done.err
    w.lock.unlink()
    assert _identify(w, w.model).code == 8


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--artefact", "a"], "verify needs a profile, or a lock with --artefact"),
        (["--lock", "a.lock"], "--lock requires --artefact"),
        (["a.toml", "--lock", "a.lock"], "--lock requires --artefact"),
    ],
)
def test_verify_needs_something_to_compare(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["verify", *arguments]) == 2
    assert f"error[usage]: {message}\n" in capsys.readouterr().err


def test_a_check_changes_nothing_where_it_has_to_compile(w: Workspace) -> None:
    shutil.rmtree(w.out)
    before = _whole_state(w)
    assert w.run("lock", "--check").code == 0
    assert _whole_state(w) == before


# Compilers: their programs are read, whatever the cache says


def _poison(folder: Path, digest: str) -> None:
    store = folder / "programs.json"
    text = store.read_text()
    assert re.search('"[0-9a-f]{64}"', text)
    store.write_text(re.sub('"[0-9a-f]{64}"', f'"{digest}"', text))


@pytest.mark.parametrize(
    "how",
    [
        ("build", "--locked"),
        ("build", "--frozen"),
        ("lock", "--check"),
        ("lock", "--check", "--outputs"),
    ],
    ids=" ".join,
)
def test_no_digest_of_the_cache_is_compared_with_the_lock(
    w: Workspace, cache: Path, how: tuple[str, ...]
) -> None:
    """A compiler that changed cannot hide behind an entry of the one before."""
    _poison(cache, "0" * 64)
    assert w.run(*how).code == 0
    _poison(cache, "0" * 64)
    text = w.lock.read_text()
    w.lock.write_text(re.sub('(?<="sha256 zig" = ")[0-9a-f]{64}', "0" * 64, text))
    assert "toolchain: sha256 zig changed" in _stale(w, *how)


def test_no_digest_of_the_cache_gets_into_a_lock(w: Workspace, cache: Path) -> None:
    before = w.lock.read_bytes()
    w.lock.unlink()
    _poison(cache, "0" * 64)
    w.build()
    assert w.lock.read_bytes() == before
    assert "0" * 64 not in (cache / "programs.json").read_text()


@pytest.fixture
def cache(tmp_path: Path, w: Workspace, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of this test's own, in which zig is known."""
    own = tmp_path / "cache"
    shutil.copytree(cache_folder() / "compiler_rt", own / "compiler_rt")
    monkeypatch.setenv("ORCHESTRATOR_CACHE", str(own))
    w.build()
    return own


# Where the lock is, and whether there is one


def test_a_lock_that_cannot_be_written_is_told_before_anything_is_compiled(
    w: Workspace, no_ninja: None
) -> None:
    assert no_ninja is None
    w.lock.unlink()
    before = w.state()
    w.folder.chmod(0o555)
    try:
        with permissions_hold():
            for command in ("build", "lock", "run"):
                done = w.run(command, *(SCENARIO if command == "run" else ()))
                assert done.code == 2
                assert done.err == (
                    f"error[unwritable-lock]: cannot write {w.lock}:"
                    " permission denied\n"
                    "   hint: `--lock FILE` writes the lock elsewhere, `--no-lock`"
                    " writes none\n"
                )
            assert w.state() == before
            done = w.run("build", "--no-lock")
            assert done.code == 0
            assert done.err.endswith(f"outputs in {w.out}, no lock\n")
    finally:
        w.folder.chmod(0o755)
    assert not w.lock.exists()


def test_a_lock_that_is_right_need_not_be_written(w: Workspace) -> None:
    (w.out / "current").unlink()
    w.folder.chmod(0o555)
    try:
        with permissions_hold():
            assert w.run("build").code == 0
    finally:
        w.folder.chmod(0o755)


def test_a_lock_elsewhere(w: Workspace) -> None:
    other = w.folder / "locks" / "a.lock"
    before = w.lock.read_bytes()
    w.lock.unlink()
    done = w.run("build", "--lock", str(other))
    assert done.err.endswith(f", lock {other} written\n")
    assert other.read_bytes() == before
    assert not w.lock.exists()
    assert w.run("build", "--locked", "--lock", str(other)).code == 0
    assert w.run("build", "--locked").code == 8
    for more in ((), ("--outputs",)):
        assert w.run("lock", "--check", "--lock", str(other), *more).code == 0
    # Nothing to do is not said of the lock that is missing.
    from orchestrator.cli.fastpath import unchanged_build  # noqa: PLC0415

    words = [str(w.profile), "--out", str(w.out)]
    assert unchanged_build([*words, "--lock", str(other)])
    assert unchanged_build([*words, "--no-lock"])
    assert not unchanged_build(words)
    w.build()
    assert w.lock.read_bytes() == before


def test_a_build_without_a_lock_leaves_the_one_there_is(w: Workspace) -> None:
    w.lock.write_text("whatever it is")
    document = json.loads(w.run("build", "--no-lock", "--json").out)["builds"][0]
    assert (document["lock"], document["lock_changed"]) == (None, False)
    assert w.lock.read_text() == "whatever it is"


def test_one_lock_is_not_of_two_profiles(w: Workspace, capsys: pytest.CaptureFixture[str]) -> None:
    profile = str(w.profile)
    assert run(["build", profile, profile, "--lock", "a.lock"]) == 2
    assert "error[usage]: --lock takes one profile" in capsys.readouterr().err


@each_way
def test_other_outputs_are_found_too(w: Workspace, how: tuple[str, ...]) -> None:
    _other_output(w)
    assert _stale(w, *how) == ["outputs: firmware.elf changed"]


@pytest.mark.usefixtures("no_ninja")
@each_way
def test_a_missing_lock_is_refused_before_anything_runs(w: Workspace, how: tuple[str, ...]) -> None:
    w.lock.unlink()
    assert _stale(w, *how) == ["there is no lock file"]


@pytest.mark.usefixtures("no_ninja")
@each_way
@pytest.mark.parametrize("damage", [b"\xff", b"schema = 0\n", b"", b"a = [", b"x = 1"])
def test_a_damaged_lock_is_refused_before_anything_runs(
    w: Workspace, how: tuple[str, ...], damage: bytes
) -> None:
    w.lock.write_bytes(damage)
    before = w.state()
    done = w.run(*how)
    assert done.code == 8
    assert "error[bad-lock]: the lock file is damaged, or it is not a lock" in done.err
    assert f"--> {w.lock}\n" in done.err
    assert w.state() == before


@pytest.mark.usefixtures("no_ninja")
@pytest.mark.parametrize("command", ["build", "lock"])
@pytest.mark.parametrize(
    ("text", "code"),
    [
        (b"\xff", "bad-lock"),
        (b"", "bad-lock"),
        (b"<<<<<<< HEAD\n", "bad-lock"),
        (b"schema = 2\n[news]\n", "newer-lock"),
    ],
)
def test_what_is_no_lock_is_not_replaced(
    w: Workspace, command: str, text: bytes, code: str
) -> None:
    """It may be one that was merged badly, or somebody's other file."""
    w.lock.write_bytes(text)
    before = w.state()
    done = w.run(command, "--json")
    assert (done.code, [p["code"] for p in done.problems]) == (8, [code])
    assert w.state() == before


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


def test_verify_writes_no_lock_and_hides_none_from_the_next_build(w: Workspace) -> None:
    before = w.lock.read_bytes()
    w.lock.unlink()
    assert w.run("verify").code == 0
    assert not w.lock.exists()
    from orchestrator.cli.fastpath import unchanged_build  # noqa: PLC0415

    assert not unchanged_build([str(w.profile), "--out", str(w.out)])
    w.build()
    assert w.lock.read_bytes() == before


_HEADERS = (
    *("cmath", "cstddef", "cstdint", "cstring", "math.h", "new", "stddef.h"),
    *("stdint.h", "string.h", "type_traits", "utility"),
)


@pytest.fixture
def hostile_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An environment with which a compiler could not compile anything right."""
    folder = tmp_path / "hostile"
    folder.mkdir()
    for name in _HEADERS:
        (folder / name).write_text("#error a header of the environment\n")
    for name in HOSTILE:
        monkeypatch.setenv(name, str(folder))


@pytest.mark.usefixtures("hostile_environment")
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
    assert {name for name, _ in gnu.python} == {"numpy", "pte-orchestrator"}
    assert {name for name, _ in zig.python} == {"numpy", "pte-orchestrator", "ziglang"}
    assert dict(gnu.python)["numpy"] == version("numpy")
    assert {n for n, _ in gnu.toolchain if n.startswith("sha256 ")} == {
        f"sha256 {role}" for role in ("ar", "as", "cc1plus", "compiler", "ld")
    }
    tables = [f.name for f in fields(Lock)]
    same = {name for name in tables if getattr(gnu, name) == getattr(zig, name)}
    # Platform and libc are the only difference, and no generated file is about them.
    assert same == {"exports", "firmware", "generated", "memory", "models", "target"}
