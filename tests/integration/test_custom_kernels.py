"""Kernel libraries of a profile's own, from the profile to what is linked and runs."""

from __future__ import annotations

import json
import re
import shutil
from typing import TYPE_CHECKING

import pytest

from orchestrator.cli.main import run
from orchestrator.emit.compile.archive import defined_symbols
from tests.integration.workspace import ROOT, Workspace, write_product
from tests.tools import need_emulator, need_toolchain

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

EXAMPLE = ROOT / "examples" / "custom_ops"
TABLE = "gen/src/registered_kernels.cpp"
ADD = "aten::add.out(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)"
MM = "aten::mm.out(Tensor self, Tensor mat2, *, Tensor(a!) out) -> Tensor(a!)"
MINE = '\n[[kernels.custom]]\nname = "mine"\nfunctions = "{folder}/functions.yaml"\n'
KERNEL = (
    '#include "orch/kernel.h"\n'
    "namespace {space} {{ orch::Error {name}(const orch::Args&)"
    " {{ return orch::Error::NotSupported; }} }}\n"
)

pytestmark = pytest.mark.toolchain


@pytest.mark.qemu
@pytest.mark.parametrize(("profile", "cpu"), [("host", "host"), ("m55", "cortex-m55")])
def test_example_gives_the_outputs_of_pytorch(
    profile: str, cpu: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    need_toolchain(cpu, "zig")
    need_emulator(cpu)
    shutil.copytree(EXAMPLE, tmp_path / "custom_ops")
    file = str(tmp_path / "custom_ops" / f"{profile}.toml")
    out = ("--out", str(tmp_path / "out"))
    assert run(["build", file, *out]) == 0, capsys.readouterr().err
    assert "warning" not in capsys.readouterr().err
    scenario = str(tmp_path / "custom_ops" / "case.json")
    assert run(["run", file, *out, "--scenario", scenario]) == 0, capsys.readouterr()


@pytest.fixture
def product(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[[str], Workspace]:
    """Writes a product for the host: add_mul, and whatever the text adds."""

    def write(extra: str) -> Workspace:
        folder = tmp_path / "a product"
        write_product(folder, case="add_mul", extra=extra)
        return Workspace(folder=folder, capsys=capsys)

    return write


def _library(folder: Path, text: str, **sources: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "functions.yaml").write_text(text)
    for name, source in sources.items():
        (folder / name.replace("__", ".")).write_text(source)


def _entry(schema: str, function: str, source: str = "", more: str = "") -> str:
    sources = f"  sources: [{source}]\n" if source else ""
    return (
        f"- func: {schema}\n  kernels:\n"
        f"  - {{arg_meta: null, kernel_name: {function}}}\n{sources}{more}"
    )


def _functions(w: Workspace) -> set[str]:
    return set(re.findall(r"nullptr, ([\w:]+)", w.outputs()[TABLE].decode()))


@pytest.mark.parametrize(
    ("kernels", "expected"),
    [
        ("", {"mine::add_out", "orch::portable::mm_out"}),
        (
            '[kernels]\nlibraries = ["portable", "mine"]\n',
            {"orch::portable::add_out", "orch::portable::mm_out"},
        ),
        (
            '[kernels]\noperators = {"add.out" = ["portable"]}\n',
            {"orch::portable::add_out", "orch::portable::mm_out"},
        ),
        (
            '[kernels]\nlibraries = ["portable", "mine"]\n'
            'operators = {"aten::add.out" = ["mine", "portable"]}\n',
            {"mine::add_out", "orch::portable::mm_out"},
        ),
    ],
)
def test_order_of_libraries_decides(
    product: Callable[[str], Workspace], kernels: str, expected: set[str]
) -> None:
    w = product(kernels + MINE.format(folder="mine"))
    source = KERNEL.format(space="mine", name="add_out")
    _library(w.folder / "mine", _entry(ADD, "mine::add_out", "a.cpp"), a__cpp=source)
    w.build()
    assert _functions(w) == expected


def test_sources_headers_and_macros_come_from_anywhere(product: Callable[[str], Workspace]) -> None:
    """A vendor's C code beside a library's own, with its folders and macros."""
    w = product(
        MINE.format(folder="mine")
        + 'sources = ["vendor code/**/*.c"]\ninclude = ["vendor code/inc"]\n'
        'defines = ["VENDOR_VALUE=7", "VENDOR_ON"]\nexports = ["vendor_value"]\n'
    )
    vendor = w.folder / "vendor code"
    (vendor / "src" / "deep").mkdir(parents=True)
    (vendor / "inc" / "v").mkdir(parents=True)
    (vendor / "inc" / "v" / "vendor.h").write_text(
        "#ifndef VENDOR_ON\n#error macro\n#endif\nint vendor_value(void);\n"
    )
    c_source = '#include "v/vendor.h"\n#include "near.h"\n'
    (vendor / "src" / "deep" / "vendor.c").write_text(
        f"{c_source}int vendor_value(void) {{ int new = VENDOR_VALUE; return new; }}\n"
    )
    (vendor / "src" / "deep" / "near.h").write_text("")
    kernel = (
        'extern "C" {\n#include "v/vendor.h"\n}\n#include "orch/kernel.h"\n'
        "namespace mine { orch::Error add_out(const orch::Args&) {"
        " return vendor_value() == 7 ? orch::Error::NotSupported : orch::Error::Ok;"
        " } }\n"
    )
    _library(w.folder / "mine", _entry(ADD, "mine::add_out", "a.cpp"), a__cpp=kernel)
    built = w.build()
    assert "src/kernels/mine/vendor code/src/deep/vendor.c" in built.err
    report = json.loads(w.outputs()["report.json"])
    assert "vendor_value" in {s["name"] for s in report["symbols"]}
    # Of its names, applications see what is exported.
    names = defined_symbols((w.out / "libproduct.a").read_bytes())
    assert "vendor_value" in names
    assert {n for n in names if "add_out" in n} == {"_ZN4mine7add_outERKN4orch4ArgsE.product"}
    sources = w.lock.read_text()
    assert '"kernels/mine/vendor code/inc/v/vendor.h"' in sources
    assert '"kernels/mine/vendor code/src/deep/near.h"' in sources
    assert str(w.folder) not in sources
    # The kernel is really called, and what the vendor's code says is obeyed.
    case = ROOT / "tests" / "data" / "corpus" / "add_mul" / "case.json"
    ran = w.run("run", "--scenario", str(case))
    assert ran.code != 0
    assert "NotSupported" in ran.err + ran.out
    # A pattern notices new files, headers their changes.
    assert w.build().compiled == set()
    (vendor / "src" / "more.c").write_text("int more(void); int more(void) {return 1;}")
    again = w.build()
    assert "vendor code/src/more.c" in again.err, again.err
    assert "vendor.c" not in again.err
    assert "more.c" in w.lock.read_text()
    (vendor / "inc" / "v" / "vendor.h").write_text("int vendor_value(void);\n")
    assert "vendor.c" in w.build().err
    w.profile.write_text(
        w.profile.read_text().replace('["vendor_value"]', '["other", "vendor_value"]')
    )
    wrong = w.run("build")
    line = 1 + w.profile.read_text().partition("\nexports")[0].count("\n") + 1
    assert wrong.code == 9
    assert wrong.err.endswith(
        "error[unknown-export]: no source defines other, which the profile exports\n"
        f"  --> {w.profile}:{line}\n"
        "   |\n"
        f'{line:2} | exports = ["other", "vendor_value"]\n'
        '   = expected: a function or variable, in C++ extern "C"\n'
        "   hint: remove it from exports, or check the name\n"
    )


def test_what_a_library_gets_wrong_is_said_before_anything_is_compiled(
    product: Callable[[str], Workspace],
) -> None:
    w = product(
        '[kernels]\noperators = {"aten::mm.out" = ["mine"]}\n'
        + MINE.format(folder="mine")
        + 'sources = ["mine/*.cxx"]\n'
    )
    text = _entry(ADD, "mine::add_out", "missing.cpp") + _entry(MM, "mine::mm_out")
    _library(w.folder / "mine", text)
    found = w.run("build")
    assert found.code == 3
    assert 'no source matches "mine/*.cxx"' in found.err
    edited = w.profile.read_text().replace('sources = ["mine/*.cxx"]\n', "")
    w.profile.write_text(edited)
    found = w.run("build")
    assert found.code == 3
    assert 'there is no source "missing.cpp"' in found.err
    assert "functions.yaml:4" in found.err
    assert "nothing is compiled for this kernel" in found.err
    _library(w.folder / "mine", _entry(ADD, "mine::add_out", "a.cpp"), a__cpp="nonsense")
    found = w.run("build")
    assert found.code == 3
    assert "the kernel library mine has no kernel of aten::mm.out" in found.err
    w.profile.write_text(edited.replace('"aten::mm.out" = ["mine"]', ""))
    found = w.run("build")
    assert found.code == 9
    assert "mine/a.cpp" in found.err
    assert not w.lock.exists()


def test_one_key_twice_names_both_entries(product: Callable[[str], Workspace]) -> None:
    w = product(MINE.format(folder="mine"))
    source = KERNEL.format(space="mine", name="add_out")
    text = _entry(ADD, "mine::add_out", "a.cpp") + _entry(ADD, "mine::b", "a.cpp")
    _library(w.folder / "mine", text, a__cpp=source)
    found = w.run("check")
    assert found.code == 3
    assert "mine offers a fallback kernel of aten::add.out twice" in found.err
    assert "functions.yaml:1" in found.err
    assert "functions.yaml:5" in found.err


def test_one_function_in_two_libraries_is_refused(product: Callable[[str], Workspace]) -> None:
    both = MINE.format(folder="mine") + MINE.format(folder="theirs").replace('"mine"', '"theirs"')
    w = product(both)
    for folder, schema in (("mine", ADD), ("theirs", MM)):
        source = KERNEL.format(space="ours", name="f")
        _library(w.folder / folder, _entry(schema, "ours::f", "a.cpp"), a__cpp=source)
    found = w.run("check")
    assert found.code == 5
    assert "two libraries define ours::f" in found.err
    assert "mine/functions.yaml:1" in found.err
    assert "theirs/functions.yaml:1" in found.err


def test_overlap_of_libraries_can_be_refused(product: Callable[[str], Workspace]) -> None:
    w = product('[operators]\noverlap = "error"\n' + MINE.format(folder="mine"))
    source = KERNEL.format(space="mine", name="add_out")
    _library(w.folder / "mine", _entry(ADD, "mine::add_out", "a.cpp"), a__cpp=source)
    found = w.run("check")
    assert found.code == 5
    assert "2 kernel libraries have aten::add.out" in found.err
    assert "aten::mm.out" not in found.err
    w.edit("product.toml", '[kernels.operators]\n"aten::add.out" = ["mine"]\n')
    assert w.run("check").code == 0


def test_dtypes_are_selected_for_custom_kernels_too(product: Callable[[str], Workspace]) -> None:
    w = product(MINE.format(folder="mine"))
    source = (
        '#include "orch_selected/a.h"\n#include "orch/kernel.h"\n'
        "namespace mine { orch::Error add_out(const orch::Args&) {\n"
        "static_assert(orch::selected::aten_add_out.bits =="
        " orch::dtype_set(orch::ScalarType::Float, orch::ScalarType::Long).bits,"
        ' "selected, and the closure");\n'
        "return orch::Error::NotSupported; } }\n"
    )
    text = _entry(ADD, "mine::add_out", "a.cpp", "  dtypes: [real]\n  closure: [Long]\n")
    _library(w.folder / "mine", text, a__cpp=source)
    w.build()
    w.edit("product.toml", '\n[dtypes]\nselect = "all"\n')
    assert w.run("build").code == 9


def test_dtypes_are_selected_per_argument_where_a_kernel_asks_for_it(
    product: Callable[[str], Workspace],
) -> None:
    """A conversion is instantiated for the pairs that occur, not for all of both."""
    w = product(
        '[dtypes.operators]\n"my::to.out" = ["v1/3;0|6;0|6;0", "v1/4;0|6;0|6;0"]\n'
        + MINE.format(folder="mine")
    )
    source = (
        '#include "orch_selected/a.h"\n#include "orch/kernel.h"\n'
        "using namespace orch;\nnamespace mine { Error to_out(const Args&) {\n"
        "constexpr DtypeSet kFrom = selected::my_to_out_of_self;\n"
        "constexpr DtypeSet kTo = selected::my_to_out_of_out;\n"
        "using S = ScalarType;\n"
        "static_assert(kFrom.bits == dtype_set(S::Int, S::Long).bits);\n"
        "static_assert(kTo.bits == dtype_set(S::Float).bits);\n"
        "static_assert(selected::my_to_out.bits =="
        " dtype_set(S::Byte, S::Int, S::Long, S::Float).bits);\n"
        "return Error::NotSupported; } }\n"
    )
    schema = "my::to.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)"
    keys = "  argument_sets: [self, out]\n  closure: [Byte]\n"
    text = _entry(schema, "mine::to_out", "a.cpp", keys)
    _library(w.folder / "mine", text, a__cpp=source)
    w.build()
    kernels = {
        operator["operator"]: operator["kernels"][0]["argument_dtypes"]
        for operator in json.loads(w.outputs()["resolution.json"])["operators"]
    }
    assert kernels == {
        "aten::add.out": {},
        "aten::mm.out": {},
        "my::to.out": {"self": ["Int", "Long"], "out": ["Float"]},
    }
    _library(w.folder / "mine", text.replace("[self, out]", "[selv]"))
    refused = w.run("check")
    assert refused.code == 3
    assert '"selv" does not decide what is instantiated' in refused.err
    assert 'did you mean "self"?' in refused.err


def test_two_libraries_may_have_sources_of_one_name(product: Callable[[str], Workspace]) -> None:
    both = MINE.format(folder="mine") + MINE.format(folder="theirs").replace('"mine"', '"theirs"')
    w = product(both)
    for folder, schema, name in (("mine", ADD, "add_out"), ("theirs", MM, "mm_out")):
        source = '#include "orch_selected/op.h"\n' + KERNEL.format(space=folder, name=name)
        _library(w.folder / folder, _entry(schema, f"{folder}::{name}", "op.cpp"), op__cpp=source)
    w.build()
    assert _functions(w) == {"mine::add_out", "theirs::mm_out"}
    headers = {k for k in w.outputs() if "orch_selected" in k}
    assert headers == {
        "gen/selected/mine/orch_selected/op.h",
        "gen/selected/theirs/orch_selected/op.h",
    }
