"""Modules that run by themselves say what they do with `--help`."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("benchmarks", *(f"tests/{n}" for n in ("speeds", "opinfo", "zoo", "ulps", "fuzz")))
RUNNABLE = sorted(
    path.relative_to(ROOT)
    for folder in FOLDERS
    for path in (ROOT / folder).glob("*.py")
    if '\nif __name__ == "__main__":\n' in path.read_text()
)


def test_there_are_some() -> None:
    assert Path("benchmarks/kernels.py") in RUNNABLE


@pytest.mark.parametrize("path", RUNNABLE, ids=str)
def test_it_reads_its_arguments(path: Path) -> None:
    """Not run: some need PyTorch."""
    tree = ast.parse((ROOT / path).read_text())
    parsers = [
        {keyword.arg for keyword in node.keywords}
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "ArgumentParser"
    ]
    assert parsers
    assert all("description" in keywords for keywords in parsers)


@pytest.mark.parametrize("module", ["benchmarks.kernels", "tests.ulps"])
def test_help(module: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", module, "--help"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    docs = ast.get_docstring(
        ast.parse(
            (ROOT / "benchmarks/kernels.py").read_text()
            if module == "benchmarks.kernels"
            else (ROOT / "tests/ulps/__main__.py").read_text()
        )
    )
    assert docs
    assert docs.partition("\n")[0] in done.stdout
