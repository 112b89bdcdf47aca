"""What is registered: by itself, with a number given by hand, and with every operator.

Three builds of one model, compared in their binaries.
"""

from __future__ import annotations

import json
import re
import subprocess
from dataclasses import dataclass
from io import BytesIO
from typing import TYPE_CHECKING, Any

import pytest
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from orchestrator.build import load
from orchestrator.catalog import LibraryText, read_catalog
from orchestrator.shell.sources import library_file
from orchestrator.targets.cores import CPUS
from tests.product import Product, make_product
from tests.targets import EVERY_PAIR
from tests.tools import need_tool, need_toolchain

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.toolchain

SHF_WRITE, SHF_ALLOC = 1, 2
PINNED = 40
# The first has its objects in common with other tests.
TARGETS = [("cortex-m4", "zig"), *([("host", "zig")] if EVERY_PAIR else [])]
EXTRAS = {
    "auto": "",
    "pinned": f"[registry]\nmax_kernels = {PINNED}\n",
    "all": "[operators]\nall = true\n",
}
MODEL = {"orch::portable::add_out", "orch::portable::mm_out"}
OF_PASSES = {
    "orch::portable::convolution_relu_out",
    *(
        f"orch::portable::{name}_limited_out"
        for name in ("convolution", "addmm", "bmm", "linear", "mm")
    ),
}
"""Kernels beside an operator's own: calls of them are what a pass makes."""
HEADER = "gen/include/selected_max_kernel_num.h"
# A kernel in Itanium's mangling: two namespaces, a name, `(orch::Args const&)`.
_KERNEL = re.compile(r"_ZN4orch\d+([a-z_]+?)(\d+)(\w+)ERKNS_4ArgsE")

Builds = dict[str, Product]


@pytest.fixture(scope="module", params=TARGETS, ids="-".join)
def target(request: pytest.FixtureRequest) -> tuple[str, str]:
    """Core and toolchain."""
    cpu, toolchain = request.param
    need_toolchain(cpu, toolchain)
    return cpu, toolchain


@pytest.fixture(scope="module")
def builds(target: tuple[str, str], tmp_path_factory: pytest.TempPathFactory) -> Builds:
    """The three builds of `add_mul`."""
    made = {}
    for name, extra in EXTRAS.items():
        made[name] = make_product(
            tmp_path_factory.mktemp(name),
            "add_mul",
            cpu=target[0],
            toolchain=target[1],
            extra=extra,
        )
        assert made[name].run("build") == 0
    return made


@dataclass(frozen=True, slots=True)
class Offered:
    """What `all` links: no two of the libraries have an operator in common."""

    functions: frozenset[str]
    operators: frozenset[str]
    entries: int


def _offered(product: Product) -> Offered:
    """Everything in the libraries of a profile that names none."""
    names = load(product.profile).kernels.libraries
    kernels = [
        kernel
        for _, of_library in read_catalog(
            [
                LibraryText(
                    name=name, file=name, text=library_file(name).read_text(encoding="utf-8")
                )
                for name in names
            ]
        ).libraries
        for kernel in of_library
    ]
    return Offered(
        frozenset(kernel.function for kernel in kernels),
        frozenset(str(kernel.operator) for kernel in kernels),
        sum(len(kernel.keys) or 1 for kernel in kernels),
    )


def _elf(path: Path) -> ELFFile:
    return ELFFile(BytesIO(path.read_bytes()))


def _symbols(elf: ELFFile) -> dict[str, Any]:
    table = elf.get_section_by_name(".symtab")
    assert isinstance(table, SymbolTableSection)
    return {s.name: s for s in table.iter_symbols() if s["st_shndx"] != "SHN_UNDEF"}


def _kernels(symbols: set[str]) -> set[str]:
    """Kernel functions among mangled names."""
    found = set()
    for name in symbols:
        if match := _KERNEL.fullmatch(name):
            library, length, function = match.groups()
            if len(function) != int(length):
                continue  # a helper with further arguments
            found.add(f"orch::{library}::{function}")
    return found


def _archive(product: Product) -> Path:
    (archive,) = product.out.glob("lib*.a")
    return archive


def _numbers(product: Product) -> list[str]:
    return re.findall(r"(?m)^#define (.*)$", (product.out / HEADER).read_text())


def test_functions_are_those_of_the_model_or_all(builds: Builds) -> None:
    everything = _offered(builds["all"]).functions
    assert everything > MODEL
    for name, expected in {"auto": MODEL, "pinned": MODEL, "all": everything}.items():
        firmware = _symbols(_elf(builds[name].out / "firmware.elf"))
        assert _kernels(set(firmware)) == expected, name


def test_nm_finds_the_same_in_the_library(builds: Builds) -> None:
    nm = need_tool("nm", "llvm-nm")
    # Members have every overload of an operator; linkers take those that are called.
    members = MODEL | {"orch::portable::add_Scalar_out"}
    for name, expected in {
        "auto": members,
        "pinned": members,
        "all": _offered(builds["all"]).functions,
    }.items():
        done = subprocess.run(
            [nm, "--defined-only", "--format=posix", str(_archive(builds[name]))],
            capture_output=True,
            text=True,
            check=True,
        )
        # NAME TYPE VALUE SIZE, after the name of each member.
        lines = [line.split() for line in done.stdout.splitlines()]
        # Names of a product end with its name.
        defined = [w[0].partition(".")[0] for w in lines if len(w) > 2 and w[1] == "T"]
        kernels = [n for n in defined if _KERNEL.fullmatch(n)]
        assert len(kernels) == len(set(kernels))  # none is in two members
        assert _kernels(set(kernels)) - OF_PASSES == expected, name


def test_a_number_given_by_hand_changes_only_the_header(builds: Builds) -> None:
    auto, pinned = builds["auto"].out, builds["pinned"].out
    files = [path.relative_to(auto) for path in (auto / "gen").rglob("*.*")]
    changed = {f.as_posix() for f in files if (auto / f).read_bytes() != (pinned / f).read_bytes()}
    assert changed == {HEADER}
    for path in ("firmware.elf", _archive(builds["auto"]).name):
        assert (auto / path).read_bytes() == (pinned / path).read_bytes()


def test_the_header_counts_what_is_registered(builds: Builds) -> None:
    """With every operator ExecuTorch's default is left as it is."""
    define = "EXECUTORCH_SELECTED_MAX_KERNEL_NUM"
    assert _numbers(builds["auto"]) == [f"{define} {len(MODEL)}"]
    assert _numbers(builds["pinned"]) == [f"{define} {PINNED}"]
    assert _numbers(builds["all"]) == []
    assert define not in (builds["all"].out / HEADER).read_text()


def test_the_table_is_as_long_as_what_is_linked(builds: Builds, target: tuple[str, str]) -> None:
    """Slots reserved for ExecuTorch's registry are none of ours."""
    pointer_bytes = CPUS[target[0]].pointer_bytes
    # Name, signature, key, function, and the set of dtypes, padded to a pointer.
    entry_bytes = 4 * pointer_bytes + max(4, pointer_bytes)
    offered = _offered(builds["all"])
    lengths = {"auto": len(MODEL), "pinned": len(MODEL), "all": offered.entries}
    for name, length in lengths.items():
        symbols = _symbols(_elf(builds[name].out / "firmware.elf"))
        table = symbols["_ZN4orch12kKernelTableE"]
        assert table["st_size"] == length * entry_bytes, name
        resolution = json.loads((builds[name].out / "resolution.json").read_text())
        assert len(resolution["table"]) == length
    operators = {e["operator"] for e in resolution["table"]}
    assert operators == offered.operators


@pytest.mark.parametrize("name", EXTRAS)
def test_tables_cost_no_ram(builds: Builds, name: str) -> None:
    """Neither the object of the table nor what it becomes in the firmware."""
    product = builds[name]
    (path,) = (product.out / ".work").rglob("registered_kernels.cpp.o")
    for section in _elf(path).iter_sections():
        if section["sh_flags"] & SHF_ALLOC and section["sh_flags"] & SHF_WRITE:
            assert section["sh_size"] == 0, section.name
    elf = _elf(product.out / "firmware.elf")
    symbols = _symbols(elf)
    for symbol in ("_ZN4orch12kKernelTableE", "_ZN4orch18kRegisteredKernelsE"):
        section = elf.get_section(symbols[symbol]["st_shndx"])
        assert section["sh_type"] == "SHT_PROGBITS", symbol
        assert not section["sh_flags"] & SHF_WRITE, symbol


def test_every_operator_costs_flash_and_no_ram(builds: Builds) -> None:
    totals: dict[str, Any] = {name: product.report()["totals"] for name, product in builds.items()}
    assert totals["auto"] == totals["pinned"]
    # The state of the generator of random numbers.
    assert 8 <= totals["all"]["ram_bytes"] - totals["auto"]["ram_bytes"] <= 16
    assert totals["all"]["flash_bytes"] > totals["auto"]["flash_bytes"]
