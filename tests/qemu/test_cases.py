"""Float and quantized cases, built and run on every target with every toolchain."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

import pytest

from orchestrator.targets import CPUS
from tests.conftest import CORPUS
from tests.product import make_product
from tests.tools import need_emulator, need_toolchain

if TYPE_CHECKING:
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
TARGETS = [(cpu.name, t) for cpu in CPUS.values() for t in sorted(cpu.toolchains)]

pytestmark = [pytest.mark.toolchain, pytest.mark.qemu]

_first_digest: dict[str, tuple[str, str]] = {}
"""By case: digest of the outputs of the first target that ran, and its name."""


def _digest(folder: Path) -> str:
    digest = hashlib.sha256()
    for path in sorted(folder.iterdir()):
        digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()


@pytest.mark.parametrize(("cpu", "toolchain"), TARGETS)
@pytest.mark.parametrize("case", CASES)
def test_case(
    case: str,
    cpu: str,
    toolchain: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
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
    code = product.run("build")
    log = capsys.readouterr().err
    assert code == 0, log
    assert "warning" not in log
    outputs = tmp_path / "outputs"
    code = product.run(
        *("run", "--json", "--scenario", str(scenario), "--output-dir", str(outputs))
    )
    captured = capsys.readouterr()
    assert code == 0, captured.err
    document: dict[str, Any] = json.loads(captured.out)
    assert len(document["calls"]) == len(needed["runs"])
    for call in document["calls"]:
        assert call["state_used_bytes"] == call["state_bytes"]
        assert all(output["comparison"]["ok"] for output in call["outputs"])
    here = f"{cpu} {toolchain}"
    expected, first = _first_digest.setdefault(case, (_digest(outputs), here))
    assert _digest(outputs) == expected, f"{here} and {first} give other floats"
