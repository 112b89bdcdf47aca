"""Commands that build, with a compiler that compiles nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from orchestrator.cli.main import run
from tests.conftest import model_bytes
from tests.unit.build.fake_project import PROFILE, write_project
from tests.unit.build.fakes import FakeShell, FakeToolchains


class Commands:
    """Runs commands on a project, in its folder."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys
        self.fakes = FakeShell()
        self.err = ""

    def run(self, *arguments: str, code: int = 0) -> str:
        """What a command writes to stdout."""
        assert run(arguments, shell=self.fakes.shell) == code
        out, self.err = self._capsys.readouterr()
        return out

    def document(self, *arguments: str, code: int = 0) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.run(*arguments, "--json", code=code))
        return found


@pytest.fixture
def c(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Commands:
    write_project(tmp_path)
    monkeypatch.chdir(tmp_path)
    return Commands(capsys)


def test_build(c: Commands, tmp_path: Path) -> None:
    c.run("build", "demo.toml")
    assert c.err.startswith("demo: built, 22,837 bytes of flash")
    assert c.err.endswith("outputs in build/demo, lock demo.lock written\n")
    c.run("build", "demo.toml")
    assert "demo: up to date" in c.err
    (build,) = c.document("build", "demo.toml", "--out", "other", "--no-lock")["builds"]
    assert [stage["ran"] for stage in build["stages"]] == [True] * 10
    assert build["lock"] == "demo.lock"  # it holds
    assert sorted(path.name for path in (tmp_path / "other").iterdir()) == [
        *(".lock", ".orchestrator.json", ".out", ".work", "build.ninja"),
        *("cmake", "compile_commands.json", "current", "firmware.elf"),
        *("firmware.json", "gen", "include", "libdemo.a", "memory_plan.json"),
        *("models", "product.json", "provenance.intoto.json", "report.html"),
        *("report.json", "resolution.json", "sbom.cdx.json"),
        "selected_operators.yaml",
    ]


def test_build_explains(c: Commands) -> None:
    c.run("build", "demo.toml", "--explain")
    assert "extract net: runs (first build)\n" in c.err
    assert "net.forward" in c.err
    c.run("build", "demo.toml", "--explain")
    assert "lock: known\n" in c.err
    assert len(c.fakes.folder.runs) == 1


def test_build_without_a_compiler(c: Commands) -> None:
    c.fakes = FakeShell(toolchains=FakeToolchains(toolchain=None))
    assert c.run("build", "demo.toml", code=7) == ""
    assert c.err == "error[toolchain-missing]: zig is not installed\n"


def test_plan_tells_which_stages_run(c: Commands) -> None:
    first = c.document("plan", "demo.toml")
    assert {s["reason"] for s in first["stages"]} == {"first build"}
    c.run("build", "demo.toml")
    assert not any(s["runs"] for s in c.document("plan", "demo.toml")["stages"])
    assert "  lock                     known\n" in c.run("plan", "demo.toml")


def test_plan_without_a_compiler(c: Commands) -> None:
    c.run("build", "demo.toml")
    c.fakes = FakeShell(toolchains=FakeToolchains(toolchain=None))
    text = c.run("plan", "demo.toml")
    assert "toolchain  zig (not installed)\n" in text
    assert "  compile                  runs: toolchain was not looked at\n" in text
    assert "  generate                 known\n" in text


def test_check(c: Commands, tmp_path: Path) -> None:
    before = sorted(tmp_path.rglob("*"))
    c.fakes = FakeShell(toolchains=FakeToolchains(toolchain=None))
    assert c.run("check", "demo.toml").startswith("demo: everything fits: 3 kernels")
    assert sorted(tmp_path.rglob("*")) == before
    (tmp_path / "demo.toml").write_text(PROFILE + '[kernels]\nlibraries = ["quantized"]\n')
    found = c.document("check", "demo.toml", code=5)
    assert {d["code"] for d in found["diagnostics"]} == {"no-kernel"}


def test_size(c: Commands) -> None:
    problem = c.document("size", "demo.toml", code=2)
    assert [d["code"] for d in problem["diagnostics"]] == ["no-report"]
    c.run("build", "demo.toml")
    assert c.document("size", "demo.toml")["totals"]["flash_bytes"] == 22837
    found = c.document("size", "demo.toml", "--without-model", "net")
    assert found["what_if"] == "--without-model net"
    assert len(c.fakes.folder.runs) == 2


def test_size_tells_that_a_build_is_stale(c: Commands, tmp_path: Path) -> None:
    c.run("build", "demo.toml")
    write_project(tmp_path, more='[budget]\nram = "4 MiB"\n')
    c.run("size", "demo.toml")
    assert "something changed since the last build" in c.err
    found = c.document("size", "demo.toml", "--without-model", "net", code=2)
    assert [d["code"] for d in found["diagnostics"]] == ["stale-build"]


def test_clean(c: Commands, tmp_path: Path) -> None:
    assert c.run("clean", "demo.toml") == "build/demo: nothing to remove\n"
    c.run("build", "demo.toml")
    (tmp_path / "build" / "demo" / "mine.txt").write_text("keep me")
    assert c.run("clean", "demo.toml") == ("build/demo: removed build outputs; kept mine.txt\n")
    assert (tmp_path / "demo.lock").exists()


def test_lock_check(c: Commands, tmp_path: Path) -> None:
    found = c.document("lock", "demo.toml", "--check", code=8)
    assert [d["code"] for d in found["diagnostics"]] == ["stale-lock"]
    assert c.run("lock", "demo.toml") == "demo.lock: written\n"
    assert c.run("lock", "demo.toml", "--check") == "demo.lock: current\n"
    assert len(c.fakes.folder.runs) == 1
    outputs = c.document("lock", "demo.toml", "--check", "--outputs")["outputs"]
    assert outputs > 10
    # Elsewhere, on a copy of the objects, if the outputs are not whole.
    (tmp_path / "build" / "demo" / "firmware.elf").resolve().write_bytes(b"damaged")
    c.run("lock", "demo.toml", "--check")
    assert len(c.fakes.folder.runs) == 2
    c.run("lock", "demo.toml", "--check", "--outputs", code=8)
    assert "an output is not what the lock names" in c.err
    (tmp_path / "demo.toml").write_text(f"# new\n{PROFILE}")
    c.run("lock", "demo.toml", "--check", code=8)
    assert "profile: file demo.toml changed" in c.err


@pytest.mark.parametrize("command", ["build", "check", "size", "run"])
@pytest.mark.parametrize(
    ("file", "data", "found", "hint"),
    [
        (
            "motion.pte",
            b"\x80\0\0\0ET12",
            "an ExecuTorch program",
            "`orchestrator init motion.pte` writes a profile for it",
        ),
        ("motion.bin", b"\x80\0\0\0ET12", "an ExecuTorch program", "name it as `path` of a model"),
        (
            "motion.ptd",
            b"\x80\0\0\0FT01",
            "an ExecuTorch data file (.ptd): constants without a program",
            "name the program as `path` of the model, and this file in its `data`",
        ),
        (
            "net.py",
            b"import torch\n",
            "a text file",
            "`orchestrator init net.py` writes a profile for it",
        ),
        ("demo.lock", b"schema = 1\n", "a lock", "name its profile: demo.toml"),
        (
            "gone.lock",
            b"schema = 1\n",
            "a lock",
            "name a profile; `orchestrator init MODEL` writes one",
        ),
        (
            "demo.json",
            b"{}\n",
            "a text file",
            "name the profile first; a scenario follows it: --scenario demo.json",
        ),
        (
            "x.toml",
            b"\x7fELF\xff",
            "an ELF file: a program or library of machine code",
            "name a profile; `orchestrator init MODEL` writes one",
        ),
    ],
)
def test_files_that_are_no_profiles(  # noqa: PLR0917  # a table
    c: Commands, command: str, file: str, data: bytes, found: str, hint: str
) -> None:
    Path(file).write_bytes(data)
    assert c.run(command, file, code=3) == ""
    assert c.err == (
        f"error[no-profile]: {file} is not a profile\n"
        f"  --> {file}\n"
        f"   = found: {found}\n"
        "   = expected: a TOML file\n"
        f"   hint: {hint}\n"
    )


def test_folders_that_are_no_profiles(c: Commands) -> None:
    for name in ("one", "two", "works"):
        Path(name).mkdir()
    for name in ("one/a.toml", "two/a.toml", "two/b.toml", "works/orchestrator.toml"):
        Path(name).touch()
    for path, found, hint in (
        ("one", "a folder", "name the profile in it: one/a.toml"),
        ("two", "a folder", "name a profile; `orchestrator init MODEL` writes one"),
        ("works", "a workspace", "name a product of it, or build all with --workspace works"),
    ):
        c.run("check", path, code=3)
        assert f"found: {found}\n" in c.err
        assert c.err.endswith(f"hint: {hint}\n")


@pytest.mark.parametrize(
    ("file", "data", "code"),
    [
        ("x.toml", b"\xff\xfen\0", "not-utf8"),  # UTF-16: a text, saved otherwise
        ("x.profile", b"schema = 1\n", "missing-key"),
        ("x.pte", b"", "missing-key"),
    ],
)
def test_files_that_may_be_profiles(c: Commands, file: str, data: bytes, code: str) -> None:
    Path(file).write_bytes(data)
    c.run("check", file, code=3)
    assert f"error[{code}]: " in c.err
    assert "no-profile" not in c.err


def test_profiles_may_have_any_suffix(c: Commands) -> None:
    Path("demo.py").write_bytes(Path("demo.toml").read_bytes())
    c.run("check", "demo.py")


def test_missing_files_have_neighbours(c: Commands) -> None:
    c.run("check", "dmo.toml", code=3)
    assert c.err.endswith('hint: did you mean "demo.toml"?\n')
    c.run("check", "other.toml", code=3)
    assert c.err.endswith("hint: check the path: it is relative to the current folder\n")
    c.run("inspect", "modls/net.pte", code=4)
    assert c.err.endswith("hint: name a .pte file\n")
    Path("sub").mkdir()
    Path("sub/base.toml").touch()
    Path("sub/x.toml").write_text('extends = "bse.toml"\n')
    c.run("check", "sub/x.toml", code=3)
    assert c.err.endswith('hint: did you mean "base.toml"?\n')
    Path("sub/net.pte").touch()
    Path("sub/y.toml").write_text(
        'schema = 1\nname = "y"\ntarget.cpu = "host"\n[[models]]\npath = "../sub/ne.pte"\n'
    )
    c.run("check", "sub/y.toml", code=3)
    assert c.err.endswith('hint: did you mean "../sub/net.pte"?\n')


@pytest.mark.parametrize("load", ["pte", "prelinked"])
def test_check_says_what_dynamic_sizes_cost(c: Commands, load: str) -> None:
    Path("x.toml").write_text(
        'schema = 1\nname = "x"\ntarget.cpu = "host"\n'
        f'[[models]]\npath = "batch.pte"\nload = "{load}"\n'
    )
    Path("batch.pte").write_bytes(model_bytes("dynamic_batch"))
    out = c.run("check", "x.toml").splitlines()
    assert out[-2:] == [
        "  batch forward input 0: if dimension 0 is dynamic, up to 8 there costs 448"
        " bytes: with 1, 64 are live",
        "  sizes are those of Dim(max=...) at export: lower it, or fix them",
    ]
    Path("batch.pte").write_bytes(model_bytes("mlp"))
    assert "dynamic" not in c.run("check", "x.toml")


def test_names_of_products_have_neighbours(c: Commands) -> None:
    text = 'schema = 1\n[workspace]\nprofiles = ["demo.toml"]\n'
    Path("orchestrator.toml").write_text(text)
    c.run("check", "demoo", code=3)
    assert c.err == (
        'error[missing-file]: there is no file and no product "demoo"\n'
        "  --> orchestrator.toml\n"
        "   = found: demo\n"
        '   hint: did you mean "demo"?\n'
    )
    c.run("check", "other", code=3)
    assert c.err.startswith('error[missing-file]: there is no file and no product "other"\n')
    assert c.err.endswith("hint: name a product of the workspace, or a file\n")
    c.run("check", "orchestrator.toml", code=3)
    assert c.err.endswith("name a product of it, or build all with --workspace .\n")


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (("--cpu", "cortex-m5"), 'did you mean "cortex-m55"?'),
        (("--cpu", "mps3-an547"), "did you mean --board mps3-an547?"),
        (("--board", "cortex-m5"), "did you mean --cpu cortex-m55?"),
        (("--board", "zzz"), "run `orchestrator targets` to list them"),
        (("--board", "my.toml"), 'leave it out, and write board = "my.toml" in the profile'),
        (("--board", "demo.toml"), "it is a profile: `orchestrator build demo.toml` builds it"),
    ],
)
def test_targets_of_other_options(c: Commands, arguments: tuple[str, ...], hint: str) -> None:
    c.run("init", "net.pte", *arguments, code=2)
    assert c.err.endswith(f"   hint: {hint}\n")
