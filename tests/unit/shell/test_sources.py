"""Sources of runtime and kernels: all of them are found, in order."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import tomli

from orchestrator.shell import distribution, sources
from orchestrator.shell.qemu_plugin import SOURCE

ROOT = Path(__file__).parents[3]


def test_the_sources_are_beside_the_package() -> None:
    assert sources.native_root() == ROOT
    assert distribution.PACKAGE_FOLDER == ROOT / "orchestrator"


def test_every_native_file_is_listed() -> None:
    files = sources.native_files()
    assert list(files) == sorted(set(files))
    present = {
        path.relative_to(ROOT).as_posix()
        for top in ("runtime", "kernels")
        for path in (ROOT / top).rglob("*")
        if path.is_file()
    }
    # Nothing there is of a kind that would be left out of digests and builds, but for
    # tools, of which no product is made.
    tools = {name for name in present if name.startswith("runtime/tools/")}
    assert SOURCE in tools
    assert set(files) == present - tools


def test_every_file_of_the_package_is_listed() -> None:
    files = set(sources.package_files())
    assert ROOT / "orchestrator" / "shell" / "sources.py" in files
    present = {
        path
        for path in (ROOT / "orchestrator").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    # A mark for type checkers, and what `new` and `package` write, decide nothing about
    # builds.
    package = ROOT / "orchestrator"
    others = {package / "py.typed", *(package / "firmware_template").iterdir()}
    others.update((package / "package" / "templates").rglob("*.j2"))
    assert files == present - others


def test_libraries_are_the_folders_with_a_list() -> None:
    names = sources.library_names()
    assert "portable" in names
    assert "util" not in names
    for name in names:
        assert sources.library_file(name).is_file()


@pytest.mark.parametrize("inside", [False, True])
def test_a_wheel_has_the_sources_inside(tmp_path: Path, *, inside: bool) -> None:
    package = tmp_path / "orchestrator"
    (package / "shell").mkdir(parents=True)
    for name in ("__init__.py", "shell/__init__.py", "shell/distribution.py", "shell/sources.py"):
        (package / name).write_text((ROOT / "orchestrator" / name).read_text())
    if inside:
        (package / "_native").mkdir()
    code = (
        "from orchestrator.shell.sources import *; print(native_root())\n"
        "from orchestrator.shell.distribution import *; print(pip_install('zig'))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    root, command = done.stdout.splitlines()
    assert root == str((package / "_native" if inside else tmp_path).resolve())
    wheel = 'pip install "pte-orchestrator[zig]"'
    assert command == (wheel if inside else 'pip install -e ".[zig]"')


def test_a_checkout_elsewhere_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert distribution.pip_install("export") == f'pip install -e "{ROOT}[export]"'


def test_the_distribution_has_the_name_of_the_project() -> None:
    project = tomli.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["name"] == distribution.DISTRIBUTION
    assert list(project["scripts"]) == ["orchestrator"]
