"""Temporary memory is 0: no kernel of ours asks for any, or could.

A kernel gets nothing but its arguments. What it might use besides is the stack, which
is measured, static memory, or a function that gives it some. All kernels are built
here, and their objects searched for these.
"""

from __future__ import annotations

import json
import re
import subprocess
from typing import TYPE_CHECKING

import pytest

from orchestrator.shell.sources import library_names
from tests.product import make_product
from tests.tools import need_tool, need_toolchain

if TYPE_CHECKING:
    from pathlib import Path

    from tests.product import Product

HARMLESS = {"memcpy", "memmove", "memset", "memcmp", "strlen", "orch_random_next"}
OURS = re.compile(
    r"orch::(math::\w+\(|resize\(|same_layout\(|same_sizes\(|Scalar::to_\w+\(|Strides::Strides\("
    r"|IntList::operator\[\]\()"
)
"""Functions of the runtime that kernels call: none gives them memory."""
ARITHMETIC = re.compile(r"__aeabi_[a-z0-9]+$")

pytestmark = pytest.mark.toolchain


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Product:
    """Every kernel there is, for the Cortex-M4."""
    need_toolchain("cortex-m4", "gnu")
    product = make_product(
        tmp_path_factory.mktemp("temporary"),
        "mlp",
        cpu="cortex-m4",
        toolchain="gnu",
        extra=f"[kernels]\nlibraries = {json.dumps(library_names())}\n[operators]\nall = true\n",
    )
    assert product.run("build") == 0
    return product


def _objects(product: Product, suffix: str) -> list[Path]:
    found = sorted((product.out / ".work" / "obj" / "kernels").rglob(f"*{suffix}"))
    assert len(found) > 60
    return found


def test_header_and_report_say_0(product: Product) -> None:
    (header,) = (product.out / "include").glob("mlp*.h")
    sizes = re.findall(r"#define \w+_TEMPORARY_BYTES (\d+)", header.read_text())
    assert sizes == ["0"]
    report = json.loads((product.out / "report.json").read_text())
    assert [m["temporary_bytes"] for m in report["methods"]] == [0]
    plan = json.loads((product.out / "memory_plan.json").read_text())
    methods = [m for model in plan["models"] for m in model["methods"]]
    assert [m["temporary_bytes"] for m in methods] == [0]


def _told(product: Product, *command: str) -> str:
    objects = [str(path) for path in _objects(product, ".o")]
    return subprocess.run([*command, *objects], capture_output=True, text=True, check=True).stdout


def test_kernels_have_no_memory_of_their_own(product: Product) -> None:
    lines = _told(product, need_tool("arm-none-eabi-size")).splitlines()
    sizes = [line.split()[:3] for line in lines[1:]]
    # Only what is for another ISA is empty.
    assert sum(int(text) > 0 for text, _, _ in sizes) > 60
    assert {(data, bss) for _, data, bss in sizes} == {("0", "0")}


def test_kernels_call_nothing_that_gives_memory(product: Product) -> None:
    listed = _told(product, need_tool("arm-none-eabi-nm"), "-C", "-u")
    called = set(re.findall(r"^ +U (.*)$", listed, re.MULTILINE))
    assert "memcpy" in called
    defined = _told(product, need_tool("arm-none-eabi-nm"), "-C", "--defined-only")
    own = set(re.findall(r"^[0-9a-f]+ T (orch::\w+::.*|orch_\w+)$", defined, re.MULTILINE))
    strange = {
        name
        for name in called - HARMLESS - own
        if not OURS.match(name) and not ARITHMETIC.match(name)
    }
    assert strange == set()


def test_kernels_have_frames_of_fixed_size(product: Product) -> None:
    """No array whose size an argument decides, no `alloca`."""
    kinds = {
        line.split("\t")[2]
        for path in _objects(product, ".su")
        for line in path.read_text().splitlines()
    }
    assert kinds == {"static"}
