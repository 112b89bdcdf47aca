"""The wheel and the sdist: what is in them, and that an installed wheel does the job.

The wheel is made from the sdist, and installed in an environment that has what it
declares to need and nothing else: neither the checkout nor what tests need.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
from importlib.metadata import distribution
from pathlib import Path
from typing import TYPE_CHECKING
from zipfile import ZipFile

import pytest
from packaging.metadata import Metadata
from packaging.requirements import Requirement

import orchestrator
from tests.integration.workspace import CASE, ROOT, write_product
from tests.tools import need_toolchain

if TYPE_CHECKING:
    from collections.abc import Iterator

NATIVE = ("runtime", "kernels", "cmake", "docs")
"""Folders beside the package in a checkout, and inside of it in a wheel."""
PREFIX = f"pte_orchestrator-{orchestrator.__version__}"
SKIPPED = frozenset({"__pycache__", ".DS_Store"})


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the sdist, and with the wheel that was made from it."""
    folder = tmp_path_factory.mktemp("dist")
    command = (sys.executable, "-m", "build", "--no-isolation", "--outdir", folder)
    done = subprocess.run([*command, ROOT], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="module")
def wheel(dist: Path) -> Path:
    (path,) = dist.glob("*.whl")
    assert path.name == f"{PREFIX}-py3-none-any.whl"
    return path


def _files(folder: str) -> set[str]:
    """Files below a folder of the checkout, relative to the checkout."""
    return {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and SKIPPED.isdisjoint(path.parts)
    }


def test_the_wheel_has_the_package_and_what_it_builds_from(wheel: Path) -> None:
    with ZipFile(wheel) as archive:
        names = {n for n in archive.namelist() if ".dist-info/" not in n}
    native = {f"orchestrator/_native/{n}" for f in NATIVE for n in _files(f)}
    assert names == _files("orchestrator") | native
    assert "orchestrator/py.typed" in names


def test_the_sdist_has_what_the_wheel_is_made_from(dist: Path) -> None:
    (path,) = dist.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        names = {n.removeprefix(f"{PREFIX}/") for n in archive.getnames()}
    expected = {n for f in ("orchestrator", "schema", *NATIVE) for n in _files(f)}
    pages = {page.name for page in ROOT.glob("*.md")}
    assert expected | pages | {"LICENSE", "pyproject.toml"} <= names


def test_the_metadata_is_valid(wheel: Path) -> None:
    """As package indexes check it."""
    with ZipFile(wheel) as archive:
        info = f"{PREFIX}.dist-info"
        metadata = Metadata.from_email(archive.read(f"{info}/METADATA"), validate=True)
        assert archive.read(f"{info}/licenses/LICENSE")
    assert metadata.name == "pte-orchestrator"
    assert str(metadata.version) == orchestrator.__version__
    assert metadata.description_content_type == "text/markdown"
    assert metadata.description == (ROOT / "README.md").read_text(encoding="utf-8")
    assert metadata.license_expression == "Apache-2.0"


def _declared(wheel: Path, extra: str) -> Iterator[str]:
    """Names of all distributions that an installation with an extra brings."""
    with ZipFile(wheel) as archive:
        text = archive.read(f"{PREFIX}.dist-info/METADATA")
    waiting = list(Metadata.from_email(text).requires_dist or ())
    known: set[str] = set()
    while waiting:
        requirement = waiting.pop()
        if requirement.name in known:
            continue
        if requirement.marker and not requirement.marker.evaluate({"extra": extra}):
            continue
        known.add(requirement.name)
        yield requirement.name
        needed = distribution(requirement.name).requires or ()
        waiting += [Requirement(text) for text in needed]


@pytest.fixture(scope="module")
def bin_folder(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`bin` of an environment with the wheel, its extra `zig`, and nothing else.

    Dependencies are linked from the environment that tests run in: no index is needed.
    """
    need_toolchain("host", "zig")
    folder = tmp_path_factory.mktemp("environment")
    create = (sys.executable, "-m", "venv", "--without-pip", folder)
    subprocess.run(create, check=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    for name in _declared(wheel, extra="zig"):
        own = distribution(name)
        for top in {file.parts[0] for file in own.files or ()} - {".."}:
            source = Path(str(own.locate_file(top)))
            if not (packages / top).exists() and top != "__pycache__":
                (packages / top).symlink_to(source)
    python = folder / "bin" / "python"
    install = (sys.executable, "-m", "pip", "--python", python, "install", "-q")
    subprocess.run([*install, "--no-deps", "--no-index", wheel], check=True)
    return folder / "bin"


def test_an_installed_wheel_builds_and_runs_a_product(
    bin_folder: Path, tmp_path: Path
) -> None:
    write_product(tmp_path)

    def run(*command: str) -> str:
        done = subprocess.run(
            [str(bin_folder / command[0]), *command[1:]],
            cwd=tmp_path,
            env={"PATH": os.defpath, "HOME": str(Path.home())},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    where = "import orchestrator; print(orchestrator.__file__)"
    assert Path(run("python", "-c", where)).is_relative_to(bin_folder.parent)
    run("orchestrator", "build", "product.toml", "--out", "out")
    shutil.copytree(CASE, tmp_path / "case")
    scenario = ("--scenario", "case/case.json")
    said = run(
        "orchestrator", "run", "product.toml", "--out", "out", *scenario, "--json"
    )
    compared = [
        o["comparison"]["ok"] for c in json.loads(said)["calls"] for o in c["outputs"]
    ]
    assert compared
    assert all(compared)
    # Nothing of the checkout went in, and nothing of the checkout's path.
    lock = (tmp_path / "product.lock").read_text(encoding="utf-8")
    assert str(ROOT) not in lock
