"""`size`: whose bytes they are, and what if; on real builds."""

from __future__ import annotations

import json
import shutil
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import pytest
from elftools.elf.elffile import ELFFile

from orchestrator.build import lockfile
from orchestrator.build import product as built_product
from orchestrator.cli.main import run
from orchestrator.errors import Diagnostic, MemoryPlanError
from orchestrator.shell import ninja
from orchestrator.shell.settings import OBJECTS as VARIABLE
from tests.conftest import CORPUS
from tests.integration.workspace import Workspace, copy_native, use_native, write_product
from tests.tools import need_toolchain

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.toolchain

KERNEL_TABLE = "gen/src/registered_kernels.cpp"
OTHER = (
    '[[models]]\nname = "other"\npath = "other.pte"\n[operators]\ninclude = ["aten::tanh.out"]\n'
)


@pytest.fixture(scope="module", autouse=True)
def _no_object_store() -> Iterator[None]:
    """Tests see what ninja compiles, so no object is taken from other builds."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setenv(VARIABLE, "off")
        yield


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished build of two models and an operator; nobody changes it."""
    need_toolchain("host", "zig")
    folder = tmp_path_factory.mktemp("size") / "w"
    write_product(folder, extra=OTHER)
    shutil.copyfile(CORPUS / "add_mul" / "model.pte", folder / "other.pte")
    arguments = [str(folder / "product.toml"), "--out", str(folder / "out")]
    assert run(["build", *arguments]) == 0
    return folder


@pytest.fixture
def p(product: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Workspace]:
    """That build; whatever is asked of it, its outputs, lock and stamp stay."""
    workspace = Workspace(folder=product, capsys=capsys)
    stamp = workspace.out / ".work" / "stamp.json"
    before = workspace.state(), stamp.read_bytes()
    yield workspace
    assert (workspace.state(), stamp.read_bytes()) == before


def _document(p: Workspace, *arguments: str) -> dict[str, Any]:
    done = p.run("size", "--json", *arguments)
    assert done.code == 0, done.err
    document = json.loads(done.out)
    assert isinstance(document, dict)
    return document


def _rows(document: dict[str, Any], what: str = "flash_bytes") -> dict[str, Any]:
    return {
        f"{group['title']}: {row['name']}": row[what]
        for group in document["groups"]
        for row in group["rows"]
    }


def _code_saved(document: dict[str, Any]) -> int:
    """Flash of kernels and runtime that a change saves."""
    return sum(
        before - after
        for name, (before, after) in _rows(document).items()
        if name.startswith(("kernels: ", "runtime: "))
    )


def _problem(done: Any) -> str:  # a finished command
    (problem,) = json.loads(done.out)["diagnostics"]
    assert problem["hint"]
    return str(problem["code"])


@pytest.mark.parametrize("by", ["op", "kernel", "model", "section"])
def test_rows_add_up_to_the_firmware(p: Workspace, by: str) -> None:
    totals = _document(p)["totals"]
    document = _document(p, "--by", by)
    assert document["by"] == by
    for what in ("flash_bytes", "ram_bytes"):
        assert document[what] == totals[what]
        assert sum(_rows(document, what).values()) == totals[what]


def test_sections_are_those_of_the_elf(p: Workspace) -> None:
    with (p.out / "firmware.elf").open("rb") as file:
        sizes = {
            s.name: s["sh_size"]
            for s in ELFFile(file).iter_sections()
            if s["sh_flags"] & 2 and s["sh_size"]
        }
    groups = _document(p, "--by", "section")["groups"]
    found = {g["title"]: max(g["flash_bytes"], g["ram_bytes"]) for g in groups}
    found.pop("between sections", None)
    assert found == sizes


def test_kernels_and_models_are_those_of_the_report(p: Workspace) -> None:
    parts = _document(p)["contributors"]
    kernels = _rows(_document(p, "--by", "kernel"))
    models = _rows(_document(p, "--by", "model"))
    for part in parts:
        if part["kind"] == "kernel":
            library, source = part["name"].split("/")
            assert kernels[f"kernels of {library}: {source}"] == part["flash_bytes"]
        if part["kind"] == "model":
            assert models[f"model {part['name']}: program"] == part["flash_bytes"]


def test_an_operator_s_bytes_are_what_leaving_it_out_saves(p: Workspace) -> None:
    """The linker is the oracle: what it drops without the operator."""
    own = _rows(_document(p, "--by", "op"))
    tanh = own["operators, what only they need: aten::tanh.out"]
    done = p.run("size", "--without-op", "tanh.out", "--json", "--jobs", "2")
    assert done.code == 0, done.err
    document = json.loads(done.out)
    assert document["what_if"] == "--without-op aten::tanh.out"
    assert _code_saved(document) == tanh > 1_000
    changes = _rows(document)
    math = [name for name in changes if name.startswith("runtime: math")]
    assert math, "the functions that only this kernel calls"
    # Objects of the product are used: only the table is another one.
    assert done.compiled == {KERNEL_TABLE}
    again = p.run("size", "--without-op", "aten::tanh.out", "--json")
    assert json.loads(again.out) == document
    assert again.steps == set()


def test_a_model_s_bytes_are_what_leaving_it_out_saves(p: Workspace, tmp_path: Path) -> None:
    own = _rows(_document(p, "--by", "model"))
    done = p.run("size", "--without-model", "model", "--json")
    assert done.code == 0, done.err
    document = json.loads(done.out)
    assert _code_saved(document) == own["model model: code only it needs"] > 1_000
    assert all(name.startswith("gen/") for name in done.compiled)
    # Just what a profile without the model gives.
    text = p.profile.read_text().replace('[[models]]\nname = "model"', "[[models]]", 1)
    text = text.replace('path = "model.pte"\n\n', "").replace(
        '[[models]]\npath = "model.pte"\n', ""
    )
    assert "model.pte" not in text
    (tmp_path / "product.toml").write_text(text)
    shutil.copyfile(p.folder / "other.pte", tmp_path / "other.pte")
    alone = Workspace(folder=tmp_path, capsys=p.capsys)
    alone.build()
    totals = _document(alone)["totals"]
    for what in ("flash_bytes", "ram_bytes", "flash_bytes_without_models"):
        assert document[what] == [_document(p)["totals"][what], totals[what]]


def test_every_dtype_compiles_kernels_only(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    need_toolchain("host", "zig")
    w = Workspace(folder=tmp_path, capsys=capsys)
    # An operator that has the one dtype of 16 bytes already.
    write_product(tmp_path, extra='[operators]\ninclude = ["aten::abs.out"]\n')
    w.build("-j", "2")
    done = w.run("size", "--dtypes", "all", "--by", "op")
    assert done.code == 0, done.err
    kernels = {name for name in done.compiled if "kernels/" in name}
    assert len(kernels) > 3
    assert done.compiled - kernels == {KERNEL_TABLE}


def test_items_of_16_bytes_compile_the_runtime_too(p: Workspace) -> None:
    """The sizes of items are in a header of all sources, which must agree."""
    done = p.run("size", "--dtypes", "all", "--by", "op")
    assert done.code == 0, done.err
    assert "what if --dtypes all" in done.out
    assert "aten::convolution.out" in done.out
    sources = {"src/runtime/src/load_values.cpp", "src/runtime/src/tensor.cpp"}
    assert {KERNEL_TABLE, "gen/src/api.cpp", *sources} < done.compiled


def test_only_so_many_variants_are_kept(p: Workspace) -> None:
    variants = p.out / ".work" / "variants"
    assert p.run("size", "--optimize", "size").code == 0  # compiles nothing
    for number in range(6):
        (variants / f"old-{number}").mkdir()
    before = {path.name for path in variants.iterdir()}
    assert p.run("size", "--optimize", "size").code == 0
    after = {path.name for path in variants.iterdir()}
    assert len(after) == 4 < len(before)


def test_a_what_if_that_is_killed_is_done_by_the_next(
    p: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = shutil.copytree

    def killed_copy(source: str, target: str, *rest: Any, **options: Any) -> object:
        if PurePath(target).name == "kernels":  # folders are copied one by one
            raise KeyboardInterrupt
        return copy(source, target, *rest, **options)

    def killed_ninja(*_: object, **__: object) -> str:
        raise KeyboardInterrupt

    question = ("--without-model", "model", "--json")
    for module, name, kill in (
        (shutil, "copytree", killed_copy),
        (ninja, "run_ninja", killed_ninja),
        (lockfile, "lock_text", killed_ninja),
    ):
        with monkeypatch.context() as context:
            context.setattr(module, name, kill)
            assert p.run("size", *question).code == 130
    killed = json.loads(p.run("size", *question).out)
    shutil.rmtree(p.out / ".work" / "variants")
    assert json.loads(p.run("size", *question).out) == killed


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("--without-model", "modle"), "unknown-model"),
        (("--without-op", "aten::mm.out"), "operator-needed"),
        (("--without-op", "aten::sigmoid.out"), "not-in-product"),
        (("--dtypes", "all", "--diff", "x.json"), "usage"),
        (("--diff", "x.json"), "no-report"),
        (("--diff", "missing.toml"), "missing-file"),
        (("--diff", "resolution.json"), "bad-report"),
        (("--diff", "product.toml"), "no-report"),
    ],
)
def test_questions_without_an_answer(
    p: Workspace, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], code: str
) -> None:
    monkeypatch.chdir(p.folder)  # where build/product is not
    words = [str(p.out / a) if a == "resolution.json" else a for a in arguments]
    done = p.run("size", "--json", *words)
    assert done.code == (3 if code == "missing-file" else 2)
    assert _problem(done) == code


def test_a_what_if_wants_the_last_build_to_be_of_the_profile(w: Workspace) -> None:
    missing = Workspace(folder=w.folder, capsys=w.capsys)
    shutil.move(w.out, w.folder / "away")
    done = missing.run("size", "--dtypes", "all", "--json")
    assert _problem(done) == "no-report"
    assert not w.out.exists()
    shutil.move(w.folder / "away", w.out)
    w.edit("product.toml", '[operators]\ninclude = ["aten::tanh.out"]\n')
    before = w.state()
    assert _problem(w.run("size", "--dtypes", "all", "--json")) == "stale-build"
    assert w.state() == before
    # What is built can still be looked at.
    assert w.run("size", "--by", "op").code == 0


def test_another_profile_is_compared_by_its_last_build(
    p: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(p.folder, tmp_path / "copy")
    shutil.copytree(p.out, tmp_path / "build" / "product", symlinks=True)
    other = str(tmp_path / "copy" / "product.toml")
    document = _document(p, "--diff", other)
    assert document["groups"] == []
    assert document["flash_bytes"][0] == document["flash_bytes"][1] > 0
    report = tmp_path / "build" / "product" / "report.json"
    text = report.read_text().replace('"aten::tanh.out"', '"aten::tanj.out"')
    report.write_text(text)
    changes = _rows(_document(p, "--by", "op", "--diff", other))
    own = "operators, what only they need: aten::"
    assert changes[f"{own}tanh.out"] == changes[f"{own}tanj.out"][::-1]


# Dtypes that do not pay

RELU = 'select = "models"\ncompare = true\noperators = {"aten::relu.out" = ["Float"]}\n'
LARGER = (
    "  if constexpr (selected::aten_relu_out.single()) {\n"
    "    volatile int more = 0;\n" + "    more = more + 1;\n" * 500 + "  }\n"
)
"""Code that only a kernel with a single dtype has."""


def test_operators_that_selecting_dtypes_makes_larger_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    need_toolchain("host", "zig")
    w = Workspace(folder=tmp_path, capsys=capsys)
    write_product(tmp_path, case="add_mul", extra=f"[dtypes]\n{RELU}")
    copy_native(w.native)
    use_native(monkeypatch, w.native)
    # Kernels as they are: smaller with fewer dtypes, so there is no warning.
    done = w.build("-j", "2")
    assert "larger" not in done.err
    found = _document(w)["dtype_comparison"]
    assert found["larger"] == []
    assert found["selected_flash_bytes"] < found["every_flash_bytes"]
    assert "larger" not in w.run("size").out
    lock = w.lock.read_bytes()
    assert w.run("build", "--locked").code == 0
    # One with more code for a single dtype than for all.
    kernel = w.native / "kernels" / "portable" / "op_relu.cpp"
    text = kernel.read_text()
    first = "  const Tensor& self = args.tensor(0);\n"
    assert text.count(first) == 1
    kernel.write_text(text.replace(first, LARGER + first))
    done = w.build("--json", "-j", "2")
    assert w.lock.read_bytes() != lock
    (build,) = json.loads(done.out)["builds"]
    found = build["dtype_comparison"]
    assert found == _document(w)["dtype_comparison"]
    (larger,) = found["larger"]
    assert larger["operator"] == "aten::relu.out"
    assert larger["selected_bytes"] > larger["every_bytes"] > 0
    line = f"  aten::relu.out: {larger['selected_bytes']:,} instead of {larger['every_bytes']:,}\n"
    assert line in done.err
    assert line in w.run("size").out
    # What it says to do helps: the operator with every dtype costs what was said.
    w.edit("product.toml", '[operators]\ninclude = ["aten::relu.out"]\n')
    w.build("-j", "2")
    now = _document(w)
    assert now["dtype_comparison"]["larger"] == []
    relu = sum(
        part["flash_bytes"] for part in now["parts"] if "aten::relu.out" in part["operators"]
    )
    assert relu == larger["every_bytes"]


def test_a_comparison_that_cannot_be_made_or_says_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    need_toolchain("host", "zig")
    w = Workspace(folder=tmp_path, capsys=capsys)
    write_product(tmp_path, case="add_mul", extra="[dtypes]\ncompare = true\n")
    asked = []

    def too_large(*_: object) -> object:
        asked.append(1)
        raise MemoryPlanError(Diagnostic(code="region-overflow", message="too large"))

    monkeypatch.setattr(built_product, "build_variant", too_large)
    note = "with every dtype the firmware would not fit its memories"
    assert note in w.build().err
    assert _document(w)["dtype_comparison"] is None
    # With every dtype there is nothing to compare with.
    w.edit("product.toml", 'select = "all"\n')
    assert note not in w.build().err
    assert asked == [1]
