"""Arenas of methods that never run together overlap, and nothing else changes."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING, Any, Final

import pytest

from orchestrator.method.passes import PASSES
from orchestrator.running.protocol import DeviceError
from tests.conftest import CORPUS
from tests.integration.test_corpus import corpus_product
from tests.tools import need_emulator, need_tool, need_toolchain

if TYPE_CHECKING:
    from pathlib import Path

    from tests.product import Product

pytestmark = pytest.mark.toolchain

CASES: Final = (
    *("counter", "kws_dscnn_fp32", "kv_cache", "two_arenas", "multi_method"),
    *("dynamic_batch", "mlp", "transformer_block", "small_cnn"),
)
"""Two of them keep something from call to call."""
KEPT: Final = {"counter", "kv_cache"}
TARGETS: Final = [
    pytest.param("host", "gnu", "pte"),
    pytest.param("host", "zig", "prelinked"),
    pytest.param("cortex-m4", "zig", "pte", marks=pytest.mark.qemu),
    pytest.param("cortex-m0plus", "gnu", "prelinked", marks=pytest.mark.qemu),
]


def _product(folder: Path, concurrency: str, cpu: str, toolchain: str, load: str) -> Product:
    folder.mkdir()
    extra = f'[memory]\nconcurrency = "{concurrency}"\n'
    product = corpus_product(
        folder, "common", CASES, load=load, cpu=cpu, toolchain=toolchain, extra=extra
    )
    assert product.run("build") == 0
    return product


def _in_turns() -> list[dict[str, Any]]:
    """First calls of all models, then second calls, and so on."""
    turns = []
    for case in CASES:
        runs = json.loads((CORPUS / case / "case.json").read_text())["runs"]
        # A call that begins anew would forget the state of all models.
        for turn, call in enumerate(run for run in runs if not run["fresh"]):
            for value in (*call["inputs"], *call["outputs"]):
                if "file" in value:
                    value["file"] = str(CORPUS / case / value["file"])
            turns.append((turn, {**call, "model": case}))
    return [call for _, call in sorted(turns, key=lambda found: found[0])]


def _outputs(product: Product, folder: Path) -> dict[str, bytes]:
    calls = _in_turns()
    assert len({call["model"] for call in calls}) == len(CASES)
    scenario = folder / "turns.json"
    tolerance = {"atol": 1e-4, "rtol": 1e-4}
    scenario.write_text(json.dumps({"runs": calls, "tolerance": tolerance}))
    outputs = folder / "outputs"
    code = product.run(*("run", "--scenario", str(scenario), "--output-dir", str(outputs)))
    assert code == 0
    return {path.name: path.read_bytes() for path in outputs.iterdir()}


def _plan(product: Product) -> dict[str, Any]:
    plan: dict[str, Any] = json.loads((product.out / "memory_plan.json").read_text())
    return plan


@pytest.mark.parametrize(("cpu", "toolchain", "load"), TARGETS)
def test_calls_in_turns_give_the_same_bits(
    cpu: str, toolchain: str, load: str, tmp_path: Path
) -> None:
    """Also of models that keep state, whose arenas stay on their own."""
    need_toolchain(cpu, toolchain)
    need_emulator(cpu)
    apart = _product(tmp_path / "apart", "parallel", cpu, toolchain, load)
    common = _product(tmp_path / "common", "sequential", cpu, toolchain, load)
    assert _outputs(apart, tmp_path / "apart") == _outputs(common, tmp_path / "common")
    before, after = _plan(apart), _plan(common)
    assert "common_arenas" not in before
    (block,) = after["common_arenas"]
    methods = [m for model in after["models"] for m in model["methods"]]
    models = {
        model["model"]: [a for m in model["methods"] for a in m["arenas"]]
        for model in after["models"]
    }
    for model, arenas in models.items():
        assert all(("common" in a) == (model not in KEPT) for a in arenas)
    ends = [
        max((a["offset_bytes"] + a["size_bytes"] for a in m["arenas"] if "common" in a), default=0)
        for m in methods
    ]
    assert block["size_bytes"] == max(ends) > 0
    own = sum(a["size_bytes"] for case in KEPT for a in models[case])
    assert after["arena_bytes"] == block["size_bytes"] + own < before["arena_bytes"]
    for product, plan in ((apart, before), (common, after)):
        report: dict[str, Any] = product.report()
        assert report["totals"]["arena_bytes"] == plan["arena_bytes"]


APPLICATION: Final = """\
#include "common.h"
#include "counter.inc"

int main(void) {
  return (int)common_mlp_forward_load(counter, sizeof counter);
}
"""


@pytest.mark.parametrize("concurrency", ["parallel", "sequential"])
def test_a_program_with_state_cannot_take_a_common_arena(concurrency: str, tmp_path: Path) -> None:
    """The device refuses it: other methods would overwrite what it keeps."""
    need_toolchain("host", "gnu")
    product = corpus_product(
        tmp_path,
        "common",
        ("mlp", "add_mul", "counter"),
        toolchain="gnu",
        # The state of the method has room for all slots of the other program.
        extra=f'[memory]\nconcurrency = "{concurrency}"\n'
        f"[passes]\nskip = {json.dumps([*PASSES])}\n",
    )
    assert product.run("build") == 0
    data = ",".join(map(str, (CORPUS / "counter" / "model.pte").read_bytes()))
    (tmp_path / "counter.inc").write_text(
        f"static const _Alignas(16) unsigned char counter[] = {{{data}}};\n"
    )
    (tmp_path / "app.c").write_text(APPLICATION)
    program = tmp_path / "app"
    subprocess.run(
        [
            *(need_tool("gcc"), "-no-pie", f"-I{product.out / 'include'}"),
            *("-o", str(program), str(tmp_path / "app.c")),
            str(product.out / "libcommon.a"),
        ],
        check=True,
    )
    status = subprocess.run([program], check=False).returncode
    codes = {name: int(error) for name, error in DeviceError.__members__.items()}
    assert status in codes.values()
    is_refused = status == codes["UnsupportedProgram"]
    assert is_refused == (concurrency == "sequential")
