"""The wheel and the sdist: what is in them, and that an installed wheel does the job.

The wheel is made from the sdist. A reader of docs/getting-started.md installs it in an
environment that has what it declares to need and nothing else: neither the checkout nor
what tests need.
"""

from __future__ import annotations

import subprocess
import tarfile
import tomllib
from pathlib import Path
from zipfile import ZipFile

import pytest
from packaging.metadata import Metadata

import orchestrator
from tests.doc_blocks import ROOT, blocks
from tests.tools import need_toolchain
from tests.tutorial import PAGE, follow, make_distributions

NATIVE = ("runtime", "kernels", "bazel", "cmake", "docs")
"""Folders beside the package in a checkout, and inside of it in a wheel."""
PREFIX = f"pte_orchestrator-{orchestrator.__version__}"
SKIPPED = frozenset({"__pycache__", ".DS_Store"})


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the sdist, and with the wheel that was made from it."""
    folder = tmp_path_factory.mktemp("dist")
    make_distributions(folder)
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
    native.add("orchestrator/_native/LICENSE")  # packages have a copy of it
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


def test_getting_started_works_by_the_letter(
    wheel: Path, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    """From an empty folder, in an environment with the wheel and what it needs."""
    need_toolchain("cortex-m4", "zig")
    corrected = ROOT / PAGE if pytestconfig.getoption("--update-golden") else None
    folder = follow(tmp_path, wheel, corrected=corrected)
    python = folder / ".venv" / "bin" / "python"
    where = "import orchestrator; print(orchestrator.__file__)"
    command = (python, "-c", where)
    done = subprocess.run(command, cwd=folder, env={}, capture_output=True, text=True, check=True)
    assert Path(done.stdout).is_relative_to(folder / ".venv")
    # The profile of the page is that of `init`, and says all of it.
    written = tomllib.loads((folder / "wristband.toml").read_text())
    assert written == tomllib.loads(blocks("toml")[f"{PAGE} 2"].text)
    # Nothing of the checkout went in, and nothing of the checkout's path.
    lock = (folder / "wristband.lock").read_text(encoding="utf-8")
    assert str(ROOT) not in lock
