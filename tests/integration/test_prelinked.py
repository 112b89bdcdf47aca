"""Prelinked models: the outputs of loaded ones, bit for bit, without a loader."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from orchestrator.method.passes import PASSES
from tests.conftest import CORPUS
from tests.integration.test_corpus import RUNNABLE, corpus_product, outputs_of
from tests.integration.workspace import without_sigmoid
from tests.tools import need_emulator, need_toolchain

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.product import Product

LOADER = ("load_method", "MethodLoader", "find_kernel", "kKernelTable", "Program")
SMALL = ("add_mul", "mlp", "kws_dscnn_fp32", "dynamic_batch", "views", "kv_cache")

pytestmark = pytest.mark.toolchain


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Product]:
    """All programs in one product, by how they are loaded."""
    need_toolchain("host", "zig")
    products = {}
    for load in ("pte", "prelinked"):
        folder = tmp_path_factory.mktemp(load)
        products[load] = corpus_product(folder, load, RUNNABLE, load=load)
        assert products[load].run("build") == 0
    return products


def _symbols(product: Product) -> Iterator[str]:
    with (product.out / "firmware.elf").open("rb") as file:
        for section in ELFFile(file).iter_sections():
            if isinstance(section, SymbolTableSection):
                for symbol in section.iter_symbols():
                    if symbol["st_info"]["type"] in ("STT_FUNC", "STT_OBJECT"):
                        yield symbol.name


@pytest.mark.parametrize("case", RUNNABLE)
def test_outputs_are_those_of_a_loaded_program(
    both: dict[str, Product],
    case: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = {}
    for load, product in both.items():
        (tmp_path / load).mkdir()
        found[load] = outputs_of(product, case, tmp_path / load, capsys)
    assert found["pte"] == found["prelinked"]


def test_firmware_has_no_loader_and_no_registry(both: dict[str, Product]) -> None:
    loaded, prelinked = ([*_symbols(both[load])] for load in ("pte", "prelinked"))
    for name in LOADER:
        assert any(name in symbol for symbol in loaded), name
        assert not any(name in symbol for symbol in prelinked), name


@pytest.mark.qemu
@pytest.mark.parametrize("cpu", ["cortex-m4", "cortex-m55"])
@pytest.mark.parametrize("case", SMALL)
def test_firmware_gives_the_outputs_of_the_host(
    both: dict[str, Product],
    case: str,
    cpu: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    need_toolchain(cpu, "zig")
    need_emulator(cpu)
    product = corpus_product(tmp_path, "p", [case], load="prelinked", cpu=cpu)
    assert product.run("build") == 0
    (tmp_path / "host").mkdir()
    expected = outputs_of(both["pte"], case, tmp_path / "host", capsys)
    assert outputs_of(product, case, tmp_path, capsys) == expected


@pytest.fixture(scope="module")
def expected(
    both: dict[str, Product], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, dict[str, bytes]]:
    """By case: outputs of loaded programs that are called several times in a row."""
    folder = tmp_path_factory.mktemp("expected")
    return {case: _repeated(both["pte"], case, folder) for case in RUNNABLE}


@pytest.fixture(scope="module")
def variant(tmp_path_factory: pytest.TempPathFactory) -> Product:
    """A product that every test below builds with other passes."""
    need_toolchain("host", "zig")
    folder = tmp_path_factory.mktemp("variant")
    return corpus_product(folder, "p", RUNNABLE, load="prelinked")


def _repeated(product: Product, case: str, folder: Path) -> dict[str, bytes]:
    """Outputs of all calls of a case, made three times in a row."""
    facts = json.loads((CORPUS / case / "case.json").read_text())
    for call in facts["runs"]:
        call["model"] = case
        for value in (*call["inputs"], *call["outputs"]):
            if "file" in value:
                value["file"] = str(CORPUS / case / value["file"])
    facts["runs"] *= 3
    scenario = folder / f"{case}.json"
    scenario.write_text(json.dumps(facts))
    outputs = folder / case
    # Once a model with state was called, its outputs are others than those of the case.
    product.run("run", "--scenario", str(scenario), "--output-dir", str(outputs))
    return {path.name: path.read_bytes() for path in outputs.iterdir()}


@pytest.mark.parametrize("skipped", [[], *([name] for name in PASSES), list(PASSES)])
def test_no_pass_changes_outputs(
    expected: dict[str, dict[str, bytes]],
    variant: Product,
    skipped: list[str],
    tmp_path: Path,
) -> None:
    """State that a call leaves to the next one is the same, too."""
    text = variant.profile.read_text().partition("[prelink]")[0]
    variant.profile.write_text(f"{text}[prelink]\nskip = {json.dumps(skipped)}\n")
    assert variant.run("build") == 0
    for case in RUNNABLE:
        found = _repeated(variant, case, tmp_path)
        assert found == expected[case], case
        assert found, case


def test_a_constant_is_permuted_by_the_build(tmp_path: Path) -> None:
    """Then nothing calls the kernel any more, and the linker drops it."""
    need_toolchain("host", "zig")
    functions = {}
    for skip in ([], ["fold_permutes"]):
        extra = f"[prelink]\nskip = {json.dumps(skip)}\n"
        product = corpus_product(
            tmp_path, "p", ["kws_dscnn_fp32"], load="prelinked", extra=extra
        )
        assert product.run("build") == 0
        functions[len(skip)] = any("permute_copy_out" in s for s in _symbols(product))
    assert functions == {0: False, 1: True}


def test_loaded_and_prelinked_models_in_one_firmware(
    both: dict[str, Product], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    product = corpus_product(tmp_path, "p", ["mlp"], load="prelinked")
    shutil.copyfile(CORPUS / "add_mul" / "model.pte", tmp_path / "add_mul.pte")
    text = product.profile.read_text()
    product.profile.write_text(
        f'{text}[[models]]\nname = "add_mul"\npath = "add_mul.pte"\n'
    )
    assert product.run("build") == 0
    for case in ("mlp", "add_mul"):
        (tmp_path / "x" / case).mkdir(parents=True)
        expected = outputs_of(both["pte"], case, tmp_path / "x" / case, capsys)
        assert outputs_of(product, case, tmp_path, capsys) == expected


def test_what_the_loader_would_refuse_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    extra = '[operators]\nallow_missing = ["aten::sigmoid.out"]\n'
    product = corpus_product(
        tmp_path,
        "p",
        ["multi_method"],
        load="prelinked",
        extra=without_sigmoid(tmp_path) + extra,
    )
    assert product.run("check", "--json") == 4
    problems = json.loads(capsys.readouterr().out)["diagnostics"]
    assert {p["code"] for p in problems} == {"cannot-prelink"}
    assert "calls aten::sigmoid.out" in problems[0]["message"]
