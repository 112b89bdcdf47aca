"""Toolchains as programs that say what a test wants them to say."""

from __future__ import annotations

import hashlib
import os
import platform
from pathlib import Path

import pytest

from orchestrator.errors import Diagnostic, ToolchainError
from orchestrator.shell import toolchain as shell
from orchestrator.shell.process import ALLOWED
from orchestrator.shell.toolchain import find_emulator, find_toolchain, with_builtins, zig_program
from orchestrator.targets.cores import CPUS, Target, Toolchain, resolve_target
from tests.environment import HOSTILE

GCC = """\
case "$1" in
  --version) echo "g++ (Debian) 12.2.0";;
  -print-prog-name=*) echo "$(dirname "$0")/${1#*=}";;
  -dumpfullversion) echo 12.2.0;;
  *) exit 1;;
esac
"""
CLANG = """\
case "$1" in
  --version) echo "Debian clang version 14.0.6";;
  -dumpfullversion) echo 14.0.6;;
  *) exit 1;;
esac
"""
ZIG = """\
case "$1" in
  version) echo 0.17.0;;
  clang) echo "clang version 22.1.8 (https://github.com/x)";;
  build-obj)
    echo "$@" > "$(dirname "$0")/log"
    for word in "$@"; do
      case "$word" in -femit-bin=*) echo object > "${word#*=}";; esac
    done;;
esac
"""


@pytest.fixture(autouse=True)
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder on the PATH; empty at first. The cache is elsewhere."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setenv("ORCHESTRATOR_CACHE", str(tmp_path / "cache"))
    return folder


def _install(folder: Path, name: str, script: str = "") -> Path:
    path = folder / name
    path.write_text(f"#!/bin/sh\nPATH=/usr/bin:/bin\n{script}")
    path.chmod(0o755)
    return path


def _target(cpu: str, toolchain: str) -> Target:
    return resolve_target(cpu=cpu, isa=None, board=None, toolchain=toolchain, optimize="size")


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _refused(cpu: str, toolchain: str) -> Diagnostic:
    with pytest.raises(ToolchainError) as caught:
        find_toolchain(_target(cpu, toolchain))
    (problem,) = caught.value.diagnostics
    return problem


@pytest.mark.parametrize(("cpu", "prefix"), [("host", ""), ("cortex-m4", "arm-none-eabi-")])
def test_gcc_with_its_programs(programs: Path, cpu: str, prefix: str) -> None:
    compiler = _install(programs, f"{prefix}g++", GCC)
    archiver = _install(programs, f"{prefix}ar", "# archives")
    parts = {role: _install(programs, role, f"# {role}") for role in ("cc1plus", "as", "ld")}
    digests = {role: _sha256(path) for role, path in parts.items()}
    digests |= {"compiler": _sha256(compiler), "ar": _sha256(archiver)}
    assert find_toolchain(_target(cpu, "gnu")) == Toolchain(
        name="gnu",
        version="gcc 12.2.0",
        compiler=(str(compiler),),
        archiver=(str(archiver),),
        linker=(str(compiler),),
        programs=tuple(sorted(digests.items())),
        files=tuple(map(str, (compiler, archiver, *parts.values()))),
    )


@pytest.mark.parametrize("role", ["compiler", "ar", "cc1plus", "as", "ld"])
def test_no_program_of_gcc_hides_behind_the_cache(
    programs: Path, tmp_path: Path, role: str
) -> None:
    names = {"compiler": "g++", "ar": "ar", "cc1plus": "cc1plus", "as": "as"}
    for name in ("ar", "cc1plus", "as", "ld"):
        _install(programs, name, f"# {name}")
    _install(programs, "g++", GCC)
    right = find_toolchain(_target("host", "gnu"))
    program = programs / names.get(role, role)
    store = tmp_path / "cache" / "programs.json"
    wrong = "0" * 64
    store.write_text(store.read_text().replace(_sha256(program), wrong))
    assert dict(find_toolchain(_target("host", "gnu")).programs)[role] == wrong
    assert find_toolchain(_target("host", "gnu"), trust_cache=False) == right


def test_a_compiler_is_asked_in_a_clean_environment(
    programs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in HOSTILE:
        monkeypatch.setenv(name, "/elsewhere")
    log = tmp_path / "log"
    for name in ("ar", "cc1plus", "as", "ld"):
        _install(programs, name)
    _install(programs, "g++", f"env >> {log}\n{GCC}")
    find_toolchain(_target("host", "gnu"))
    seen = {line.partition("=")[0] for line in log.read_text().splitlines()}
    assert "PATH" in seen
    assert seen <= {*ALLOWED, "LC_ALL", "PWD", "OLDPWD", "SHLVL", "_"}


def test_the_host_takes_clang_where_there_is_no_gcc(programs: Path) -> None:
    compiler = _install(programs, "clang++", CLANG)
    archiver = _install(programs, "ar")
    found = find_toolchain(_target("host", "gnu"))
    assert (found.version, found.compiler) == ("clang 14.0.6", (str(compiler),))
    assert dict(found.programs) == {"compiler": _sha256(compiler), "ar": _sha256(archiver)}


@pytest.mark.parametrize(
    ("cpu", "program", "install"),
    [
        ("host", "g++", 'apt-get install g++, or use toolchain = "zig"'),
        ("cortex-m55", "arm-none-eabi-g++", "apt-get install gcc-arm-none-eabi"),
    ],
)
def test_a_missing_compiler_says_how_to_get_it(cpu: str, program: str, install: str) -> None:
    problem = _refused(cpu, "gnu")
    assert problem.code == "toolchain-missing"
    assert problem.message == f"{program} is not installed"
    assert problem.notes[0][1].startswith("no ")
    assert problem.hint == f"{install}; `orchestrator doctor` lists what is there"


def test_an_empty_path_has_no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert _refused("host", "gnu").code == "toolchain-missing"


def test_a_compiler_without_archiver(programs: Path) -> None:
    _install(programs, "g++", GCC)
    assert _refused("host", "gnu").message == "ar is not installed"


def test_a_compiler_without_its_programs(programs: Path) -> None:
    _install(programs, "g++", GCC)
    _install(programs, "ar")
    problem = _refused("host", "gnu")
    assert problem.message == "g++ is not installed"
    assert problem.notes == (("found", "its program cc1plus is missing"),)


def test_a_compiler_that_does_not_work(programs: Path) -> None:
    path = _install(programs, "g++", "echo cannot load libx.so >&2; exit 127")
    _install(programs, "ar")
    assert _refused("host", "gnu") == Diagnostic(
        code="toolchain-broken",
        message="g++ does not work",
        notes=(("command", f"{path} --version"), ("found", "cannot load libx.so")),
        hint='reinstall it: apt-get install g++, or use toolchain = "zig"',
    )


@pytest.fixture
def zig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package ziglang whose program is ours."""
    package = tmp_path / "site" / "ziglang"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    monkeypatch.syspath_prepend(str(package.parent))
    monkeypatch.setattr(shell, "find_spec", lambda _: _Spec(package))
    return _install(package, "zig", ZIG)


class _Spec:
    def __init__(self, package: Path) -> None:
        self.submodule_search_locations = [str(package)]


def test_zig_is_that_of_the_python_package(zig: Path) -> None:
    assert zig_program() == zig
    assert find_toolchain(_target("cortex-m55", "zig")) == Toolchain(
        name="zig",
        version="ziglang 0.17.0 (clang 22.1.8)",
        compiler=(str(zig), "clang"),
        archiver=(str(zig), "ar"),
        linker=(str(zig), "ld.lld"),
        programs=(("zig", _sha256(zig)),),
        files=(str(zig),),
    )


def test_zig_does_not_hide_behind_the_cache(zig: Path, tmp_path: Path) -> None:
    target = _target("cortex-m55", "zig")
    right = find_toolchain(target)
    store = tmp_path / "cache" / "programs.json"
    store.write_text(store.read_text().replace(_sha256(zig), "0" * 64))
    assert find_toolchain(target).programs == (("zig", "0" * 64),)
    assert find_toolchain(target, trust_cache=False) == right


def test_zig_whose_clang_says_no_version(zig: Path) -> None:
    _install(zig.parent, "zig", ZIG.replace("clang version", "clang"))
    assert find_toolchain(_target("host", "zig")).version == "ziglang 0.17.0"


@pytest.mark.parametrize("half", [False, True])
def test_zig_that_is_not_installed(
    zig: Path, monkeypatch: pytest.MonkeyPatch, *, half: bool
) -> None:
    if half:
        zig.unlink()
    else:
        monkeypatch.setattr(shell, "find_spec", lambda _: None)
    problem = _refused("cortex-m4", "zig")
    assert problem == Diagnostic(
        code="toolchain-missing",
        message="zig is not installed",
        notes=(("found", "the Python package ziglang"),),
        hint='pip install -e ".[zig]"; `orchestrator doctor` lists what is there',
    )


@pytest.mark.parametrize(
    ("cpu", "isa"), [(cpu.name, isa) for cpu in CPUS.values() for isa in cpu.isas]
)
def test_support_functions_are_built_once_per_core(
    zig: Path, tmp_path: Path, cpu: str, isa: str
) -> None:
    target = resolve_target(cpu=cpu, isa=isa, board=None, toolchain="zig", optimize="size")
    found = find_toolchain(target)
    built = with_builtins(found, target)
    assert built.builtins.startswith(str(tmp_path / "cache" / "compiler_rt"))
    assert Path(built.builtins).read_text() == "object\n"
    log = zig.parent / "log"
    triple, core = target.isa.zig_target
    triple = triple.format(machine=platform.machine())
    assert f"-target {triple} -mcpu={core} " in log.read_text()
    log.unlink()
    assert with_builtins(found, target) == built
    assert not log.exists()


def test_support_functions_of_another_zig_are_others(zig: Path) -> None:
    target = _target("cortex-m4", "zig")
    one = with_builtins(find_toolchain(target), target)
    _install(zig.parent, "zig", ZIG + "# newer")
    os.utime(zig, ns=(7, 7))
    two = with_builtins(find_toolchain(target), target)
    assert one.builtins != two.builtins


def test_support_functions_that_cannot_be_built(zig: Path, tmp_path: Path) -> None:
    target = _target("cortex-m4", "zig")
    found = find_toolchain(target)
    _install(zig.parent, "zig", "echo no such cpu >&2; exit 1")
    with pytest.raises(ToolchainError) as caught:
        with_builtins(found, target)
    assert caught.value.diagnostics == (
        Diagnostic(
            code="builtins-failed",
            message="zig cannot build its support functions for cortex-m4",
            notes=(("found", "no such cpu"),),
            hint="reinstall the Python package ziglang",
        ),
    )
    assert list((tmp_path / "cache" / "compiler_rt").iterdir()) == []


@pytest.mark.usefixtures("programs")
def test_gnu_brings_its_own_support_functions(programs: Path) -> None:
    for name, script in {"g++": GCC, "ar": "", "cc1plus": "", "as": "", "ld": ""}.items():
        _install(programs, name, script)
    target = _target("host", "gnu")
    found = find_toolchain(target)
    assert with_builtins(found, target) is found


def test_emulators(programs: Path) -> None:
    command = ("qemu-system-arm", "-M", "mps2-an386")
    with pytest.raises(ToolchainError) as caught:
        find_emulator(command)
    (problem,) = caught.value.diagnostics
    assert problem.code == "no-emulator"
    assert problem.message == "qemu-system-arm is not installed"
    assert problem.hint.startswith("apt-get install qemu-system-arm;")
    path = _install(programs, "qemu-system-arm")
    assert find_emulator(command) == (str(path), "-M", "mps2-an386")
