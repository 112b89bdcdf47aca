"""What each pass alone does for a model: a build without it, beside one with all.

Prelinked, zig, `optimize = "size"`. Int8 nets on two cores, and on one of them programs
of the corpus that have something to do for passes that change nothing of those nets.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from benchmarks.firmwares import measure_all
from benchmarks.product import CORPUS, build, write_profile
from benchmarks.profiled import profiled
from benchmarks.table import Cell, Findings, NotMeasuredError, Table
from orchestrator.build import BuildOptions, Project, load, open_build, table
from orchestrator.method.passes.passes import PASSES

if TYPE_CHECKING:
    from pathlib import Path

    from orchestrator.emit.artifact import GeneratedFile

_INT8: Final = {
    "DS-CNN": "kws_dscnn_int8_m55",
    "ResNet-8": "ic_resnet8_int8_m55",
    "MobileNetV1 0.25": "vww_mobilenetv1_int8_m55",
    "autoencoder": "ad_autoencoder_int8_m55",
}
_OTHERS: Final = {
    "int8 and floats": "cortex_m_mixed_int8_m55",
    "PyTorch's quantized convolutions": "pt2e_qdq_convnet",
    "ResNet-8, fp32": "ic_resnet8_fp32",
    "MobileNetV1 0.25, fp32": "vww_mobilenetv1_fp32",
    "LSTM, fp32": "lstm_unrolled",
    "transformer block, fp32": "transformer_block",
    "scan": "scan_loop",
    "views": "views",
}
_CORES: Final = {"M4": "cortex-m4", "M55": "cortex-m55"}
_PREPARED: Final = 'load = "prelinked"\n[kernels]\n'
_LIBRARIES: Final = 'libraries = ["cortex_m", "quantized", "portable"]\n'
_Key: TypeAlias = tuple[str, str]
"""Model, core."""


@dataclass(frozen=True, slots=True)
class _Costs:
    instructions: int
    flash: int
    ram: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Measured:
    """A model on a core.

    Args:
        key: Which one.
        every: With all passes.
        without: By name of a pass that changes the firmware.
    """

    key: _Key
    every: _Costs
    without: dict[str, _Costs]


def measure(repetitions: int) -> Findings:
    """Sizes and instructions; they are exact, so that one run is enough."""
    del repetitions
    findings = Findings()
    keys = [(model, core) for core in _CORES for model in _INT8]
    keys += [(model, "M55") for model in _OTHERS]
    found = measure_all(keys, _measure, findings)
    rows: list[tuple[Cell, ...]] = []
    for m in found:
        name, every = ", ".join(m.key), m.every
        rows.append((name, "-", every.instructions, every.flash, every.ram))
        for off, costs in m.without.items():
            more = (
                costs.instructions - every.instructions,
                costs.flash - every.flash,
                costs.ram - every.ram,
            )
            if any(more):
                rows.append((name, off, *(f"{count:+,}" for count in more)))
    if rows:
        findings.tables.append(
            Table(
                title="Each pass: what a model takes more without it",
                columns=("model", "without", "instructions", "flash", "RAM"),
                rows=tuple(rows),
                notes=(
                    "-: with all passes; flash with the model",
                    "passes that save nothing of a model's firmware are left out",
                ),
            )
        )
    return findings


def _measure(folder: Path, key: _Key, plugin: Path | None) -> _Measured | str:
    if plugin is None:
        return f"{', '.join(key)}: no plugin to count instructions"
    place = folder / "-".join(key).replace(" ", "-")
    try:
        every = _costs(place, key, "")
        usual = _files(place, key, "")
        changed = [name for name in PASSES if _files(place, key, name) != usual]
        without = {name: _costs(place, key, name) for name in changed}
    except NotMeasuredError as missing:
        return f"{', '.join(key)}: {missing}"
    return _Measured(key=key, every=every, without=without)


def _case(key: _Key) -> str:
    return {**_INT8, **_OTHERS}[key[0]]


def _tables(off: str) -> str:
    skip = f'skip = ["{off}"]\n' if off else ""
    return f"{_PREPARED}{_LIBRARIES}[passes]\nfold_batch_norm = true\n{skip}"


def _files(place: Path, key: _Key, off: str) -> tuple[GeneratedFile, ...]:
    """Sources of a product without a pass: with the same ones it is the same."""
    profile = write_profile(
        place, _case(key), cpu=_CORES[key[1]], toolchain="zig", extra=_tables(off)
    )
    files: tuple[GeneratedFile, ...] = open_build(
        Project(load(profile), BuildOptions(out=place / "out"))
    )[table.GENERATE]
    return files


def _costs(place: Path, key: _Key, off: str) -> _Costs:
    case, cpu = _case(key), _CORES[key[1]]
    built = build(place, case, cpu=cpu, toolchain="zig", extra=_tables(off))
    scenario = str(CORPUS / case / "case.json")
    where = ("--scenario", scenario, "--out", str(built.folder))
    costs = profiled(place / "product.toml", *where)
    totals = built.report["totals"]
    shutil.rmtree(built.folder)
    return _Costs(costs["total"] // costs["runs"], totals["flash_bytes"], totals["ram_bytes"])
