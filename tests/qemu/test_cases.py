"""Float and quantized cases, each built alone and run on every target.

Where costs are held they are prelinked, elsewhere loaded.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.case_counts import count_case
from tests.conftest import CORPUS
from tests.costs import bytes_of, check_costs, costs_are_held
from tests.estimates import check_estimate
from tests.product import make_product
from tests.same_bits import check_same_bits
from tests.targets import EMULATED, EVERY_PAIR, FURTHER, runs_everything, with_toolchains
from tests.tools import need_emulator, need_toolchain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

CASES = (
    "add_mul",
    "linear_softmax",
    "mlp",
    "small_cnn",
    "kws_dscnn_fp32",
    "ad_autoencoder_fp32",
    "ic_resnet8_fp32",
    "vww_mobilenetv1_fp32",
    "quantize_dequantize",
    "pt2e_qdq_convnet",
)
QUICK = ("add_mul", "mlp", "kws_dscnn_fp32", "quantize_dequantize")
"""Those that cores run that do not run everything."""


def _runs() -> Iterator[tuple[str, str, str]]:
    """Case, core, toolchain: toolchains take turns unless everything is requested."""
    further = FURTHER if EVERY_PAIR else ()
    for index, cpu in enumerate(("host", *EMULATED, *further)):
        pairs = with_toolchains(cpu)
        for turn, case in enumerate(CASES if runs_everything(cpu) else QUICK, index):
            for _, toolchain in pairs if EVERY_PAIR else pairs[turn % len(pairs) :][:1]:
                yield case, cpu, toolchain


RUNS = [*_runs()]

pytestmark = [pytest.mark.toolchain, pytest.mark.qemu]


@pytest.mark.parametrize(("case", "cpu", "toolchain"), RUNS)
def test_case(  # noqa: PLR0917  # fixtures
    case: str,
    cpu: str,
    toolchain: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    request: pytest.FixtureRequest,
    record_property: Callable[[str, object], None],
) -> None:
    """ExecuTorch's outputs within the tolerance, and the same bits on all targets."""
    need_toolchain(cpu, toolchain)
    need_emulator(cpu)
    scenario = CORPUS / case / "case.json"
    needed = json.loads(scenario.read_text())
    product = make_product(
        tmp_path,
        case,
        cpu=cpu,
        toolchain=toolchain,
        extra=f"[kernels]\nlibraries = {json.dumps(needed['kernel_libs'])}\n",
    )
    held = costs_are_held(cpu, toolchain)
    if held:
        text = product.profile.read_text() + 'load = "prelinked"\n'
        product.profile.write_text(text)
    code = product.run("build")
    log = capsys.readouterr().err
    assert code == 0, log
    assert "warning" not in log
    check_estimate(product.profile, product.out)
    outputs = tmp_path / "outputs"
    code = product.run(
        *("run", "--json", "--scenario", str(scenario), "--output-dir", str(outputs)),
        *(("--profile",) if held else ()),
    )
    captured = capsys.readouterr()
    assert code == 0, captured.err
    document: dict[str, Any] = json.loads(captured.out)
    assert len(document["calls"]) == len(needed["runs"])
    for call in document["calls"]:
        # Prelinked methods have no state that a loader filled.
        assert held or call["state_used_bytes"] == call["state_bytes"]
        assert all(output["comparison"]["ok"] for output in call["outputs"])
    found = {path.name: path.read_bytes() for path in outputs.iterdir()}
    check_same_bits(case, found, f"{cpu} {toolchain}")
    count_case(record_property, case, cpu)
    if held:
        total = document["profile"]["total"]
        costs = {"instructions": total, **bytes_of(product)}
        check_costs(request.config, cpu, case, costs)
