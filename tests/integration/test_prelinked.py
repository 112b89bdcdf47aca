"""Prelinked models: the outputs of loaded ones, bit for bit, without a loader."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pytest
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from orchestrator.method.linked import LinkedCall
from orchestrator.method.passes import OPTIONAL, PASSES, passes
from tests.conftest import CORPUS
from tests.integration.test_corpus import RUNNABLE, corpus_product, outputs_of, outputs_together
from tests.integration.test_joined import NETS
from tests.integration.workspace import without_sigmoid
from tests.tools import need_emulator, need_toolchain

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from orchestrator.method.linked import LinkedMethod
    from orchestrator.method.passes.context import Context
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


def test_outputs_are_those_of_a_loaded_program(both: dict[str, Product], tmp_path: Path) -> None:
    found = {}
    for load, product in both.items():
        (tmp_path / load).mkdir()
        found[load] = outputs_together(product, RUNNABLE, tmp_path / load)
    assert found["pte"].keys() == set(RUNNABLE)
    for case in RUNNABLE:
        assert found["pte"][case] == found["prelinked"].get(case), case


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


TIMES = 3
"""Calls in a row: state that a call leaves to the next one shows."""


@pytest.fixture(scope="module")
def expected(
    both: dict[str, Product], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, dict[str, bytes]]:
    """By case: outputs of loaded programs that are called several times in a row."""
    folder = tmp_path_factory.mktemp("expected")
    return outputs_together(both["pte"], RUNNABLE, folder, times=TIMES)


@pytest.fixture(scope="module")
def variant(tmp_path_factory: pytest.TempPathFactory) -> Product:
    """A product that every test below builds with other passes."""
    need_toolchain("host", "zig")
    folder = tmp_path_factory.mktemp("variant")
    return corpus_product(folder, "p", RUNNABLE, load="prelinked")


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What passes make smaller: sums over all methods of a product."""

    calls: int
    values: int
    arena_bytes: int


def _build_without(product: Product, skipped: Iterable[str]) -> tuple[Figures, set[str]]:
    """Build with `[passes] skip`; figures, and passes that changed a method."""
    text = product.profile.read_text().partition("[passes]")[0]
    skip = json.dumps([*skipped])
    product.profile.write_text(f"{text}[passes]\nskip = {skip}\n")
    assert product.run("build") == 0
    report: Any = product.report()
    ends = [method["passes"][-1]["after"] for method in report["prelink"]]
    figures = Figures(
        calls=sum(end["calls"] for end in ends),
        values=sum(end["values"] for end in ends),
        arena_bytes=sum(sum(m["arena_bytes"]) for m in report["methods"]),
    )
    passes = [p for method in report["prelink"] for p in method["passes"]]
    return figures, {p["name"] for p in passes if p["changed"]}


@pytest.fixture(scope="module")
def bare(variant: Product) -> Figures:
    """Without any pass."""
    figures, changed = _build_without(variant, PASSES)
    assert changed == set()
    return figures


LOWERS = {
    "fold_permutes": "calls",
    "fold_constants": "calls",
    "evaluate_constants": "calls",
    "alias_copies": "calls",
    "cancel_quantize": "calls",
    "in_place": "arena_bytes",
    "order_calls": "arena_bytes",
    "drop_values": "values",
    "share_values": "values",
}
"""The figure that a pass lowers if it is the only one. `drop_unused_calls` has nothing
to do where no other pass was: programs call nothing in vain. `pack_weights` is for
cores with DSP instructions: tests/qemu/test_packed_weights.py; `keep_inputs` and
`quantized_io` do what `[models.io]` says: test_int8_io.py. Programs of the corpus have
no pads and activations for `fold_pads` and `fuse_activations`, and a transpose that
`fold_transposes` takes away would cost more memory than it saves: test_joined.py."""


def test_every_pass_lowers_something() -> None:
    others = {"drop_unused_calls", "pack_weights", "prepare_calls"}
    others |= {"keep_inputs", "quantized_io", *NETS}
    others |= {"round_weights"}  # tests/qemu/test_int4_weights.py
    assert LOWERS.keys() | others | OPTIONAL.keys() == set(PASSES)


@pytest.mark.nightly  # a build of the corpus for each; all passes together are in CI
@pytest.mark.parametrize("name", LOWERS)
def test_a_pass_alone_lowers_its_figure_and_changes_no_output(
    name: str,
    expected: dict[str, dict[str, bytes]],
    variant: Product,
    bare: Figures,
    tmp_path: Path,
) -> None:
    figures, changed = _build_without(variant, set(PASSES) - {name})
    assert changed == {name}
    assert getattr(figures, LOWERS[name]) < getattr(bare, LOWERS[name])
    assert figures.calls <= bare.calls
    found = outputs_together(variant, RUNNABLE, tmp_path, times=TIMES)
    assert expected.keys() == set(RUNNABLE)
    for case in RUNNABLE:
        assert found[case] == expected[case], case


def test_all_passes_lower_most_and_change_no_output(
    expected: dict[str, dict[str, bytes]], variant: Product, bare: Figures, tmp_path: Path
) -> None:
    figures, _ = _build_without(variant, ())
    for name in ("calls", "values", "arena_bytes"):
        assert getattr(figures, name) < getattr(bare, name)
    found = outputs_together(variant, RUNNABLE, tmp_path, times=TIMES)
    for case in RUNNABLE:
        assert found[case] == expected[case], case


def test_a_damaged_pass_is_noticed(
    expected: dict[str, dict[str, bytes]],
    variant: Product,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It loses the last call of a method: outputs are others, so these tests see it."""

    def damaged(method: LinkedMethod, _: Context) -> LinkedMethod:
        rest = method.instructions[:-1]
        is_call = all(isinstance(i, LinkedCall) for i in method.instructions)
        return replace(method, instructions=rest) if rest and is_call else method

    own = passes.PASSES["drop_values"]
    broken = {**passes.PASSES, "drop_values": replace(own, change=damaged)}
    monkeypatch.setattr(passes, "PASSES", broken)
    # No other test builds with these two.
    _build_without(variant, set(PASSES) - {"drop_values", "share_values"})
    found = outputs_together(variant, RUNNABLE, tmp_path, times=TIMES)
    assert any(found[case] != expected[case] for case in RUNNABLE)


def test_a_constant_is_permuted_by_the_build(tmp_path: Path) -> None:
    """Then nothing calls the kernel any more, and the linker drops it."""
    need_toolchain("host", "zig")
    functions = {}
    for skip in ([], ["fold_permutes"]):
        extra = f"[passes]\nskip = {json.dumps(skip)}\n"
        product = corpus_product(tmp_path, "p", ["kws_dscnn_fp32"], load="prelinked", extra=extra)
        assert product.run("build") == 0
        functions[len(skip)] = any("copy_items" in s for s in _symbols(product))
    assert functions == {0: False, 1: True}


def test_loaded_and_prelinked_models_in_one_firmware(
    both: dict[str, Product], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    product = corpus_product(tmp_path, "p", ["mlp"], load="prelinked")
    shutil.copyfile(CORPUS / "add_mul" / "model.pte", tmp_path / "add_mul.pte")
    text = product.profile.read_text()
    product.profile.write_text(f'{text}[[models]]\nname = "add_mul"\npath = "add_mul.pte"\n')
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
        tmp_path, "p", ["multi_method"], load="prelinked", extra=without_sigmoid(tmp_path) + extra
    )
    assert product.run("check", "--json") == 4
    problems = json.loads(capsys.readouterr().out)["diagnostics"]
    assert {p["code"] for p in problems} == {"cannot-prelink"}
    assert "calls aten::sigmoid.out" in problems[0]["message"]
