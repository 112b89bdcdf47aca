"""Every runtime header compiles alone."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.tools import need_tool

ROOT = Path(__file__).resolve().parents[2]
HEADERS = sorted((ROOT / "runtime" / "include").rglob("*.h"))


@pytest.mark.toolchain
@pytest.mark.parametrize("header", HEADERS, ids=lambda p: p.name)
def test_every_runtime_header_compiles_alone(header: Path) -> None:
    compiler = need_tool("g++", "clang++", "c++")
    flags = ["-std=c++17", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Wundef"]
    include = header.relative_to(ROOT / "runtime" / "include").as_posix()
    done = subprocess.run(
        [
            *(compiler, *flags, "-Werror", "-fsyntax-only"),
            *("-I", str(ROOT / "runtime" / "include"), "-x", "c++", "-"),
        ],
        # Twice: a header must also bear to be included again.
        input=f'#include "{include}"\n#include "{include}"\n',
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
