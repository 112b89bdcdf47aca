"""examples/hello: compiled against the generated API with the host's compilers, run."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from orchestrator.cli.main import run
from tests.conftest import CORPUS
from tests.tools import need_tool, need_toolchain

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
CASE = CORPUS / "kws_dscnn_fp32"
WARNINGS = ("-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Werror")

pytestmark = pytest.mark.toolchain


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build folder of the profile kws-host, with the system's compiler."""
    need_toolchain("host", "gnu")
    folder = tmp_path_factory.mktemp("hello")
    shutil.copyfile(CASE / "model.pte", folder / "kws.pte")
    profile = folder / "kws-host.toml"
    profile.write_text(
        'schema = 1\nname = "kws-host"\n'
        '[target]\ncpu = "host"\ntoolchain = "gnu"\n'
        '[[models]]\nname = "kws"\npath = "kws.pte"\n'
    )
    assert run(["build", str(profile), "--out", str(folder / "out")]) == 0
    return folder / "out"


@pytest.fixture(params=["hello.c", "hello.cpp"])
def program(request: pytest.FixtureRequest, product: Path, tmp_path: Path) -> Path:
    """The example, compiled and linked with the library and nothing else."""
    name: str = request.param
    source = EXAMPLES / "hello" / name
    if source.suffix == ".c":
        compiler, standard = need_tool("cc", "gcc", "clang"), "-std=c99"
    else:
        compiler, standard = need_tool("c++", "g++", "clang++"), "-std=c++17"
    program = tmp_path / source.stem
    subprocess.run(
        [
            *(compiler, standard, *WARNINGS, "-O1", "-no-pie", str(source)),
            *("-I", str(product / "include"), str(product / "libkws-host.a")),
            *("-o", str(program)),
        ],
        check=True,
    )
    return program


def test_the_example_finds_the_keyword(program: Path) -> None:
    tolerance = json.loads((CASE / "case.json").read_text())["tolerance"]
    expected = np.load(CASE / "out0.npy").ravel()
    done = subprocess.run(
        [program], input=np.load(CASE / "in0.npy").tobytes(), capture_output=True, check=True
    )
    *lines, last = done.stdout.decode().splitlines()
    scores = [float(line.split()[1]) for line in lines]
    np.testing.assert_allclose(scores, expected, **tolerance)
    assert last == f"keyword {expected.argmax()}"


def test_the_example_says_what_is_missing(program: Path) -> None:
    done = subprocess.run([program], input=b"", capture_output=True, check=False)
    assert done.returncode == 2
    assert done.stderr == b"too few features on standard input\n"
