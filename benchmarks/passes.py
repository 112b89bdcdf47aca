"""What each pass alone does for int8 models: a build without it, beside one with all.

Prelinked, zig, `optimize = "size"`: what the pass saves, in instructions of an
inference, bytes of flash with the model, and bytes of RAM.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from benchmarks.firmwares import measure_all
from benchmarks.product import CORPUS, build
from benchmarks.profiled import profiled
from benchmarks.table import Cell, Findings, NotMeasuredError, Table
from orchestrator.method.passes.passes import PASSES

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_CASES: Final = {
    "kws": "kws_dscnn_int8_m55",
    "resnet8": "ic_resnet8_int8_m55",
    "vww": "vww_mobilenetv1_int8_m55",
    "autoencoder": "ad_autoencoder_int8_m55",
}
_CORES: Final = ("cortex-m4", "cortex-m55")
_ALL: Final = "all"
_Key = tuple[str, str, str]
"""Model, core, the pass that is switched off or `all`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Measured:
    key: _Key
    instructions: int
    flash: int
    ram: int


def measure(repetitions: int) -> Findings:
    """Sizes and instructions; they are exact, so that one run is enough."""
    del repetitions
    findings = Findings()
    keys = [(m, c, p) for c in _CORES for m in _CASES for p in (_ALL, *PASSES)]
    found = {m.key: m for m in measure_all(keys, _measure, findings)}
    findings.tables += [_table(cpu, found) for cpu in _CORES]
    return findings


def _measure(folder: Path, key: _Key, plugin: Path | None) -> _Measured | str:
    model, cpu, off = key
    if plugin is None:
        return f"{model}, {cpu}: no plugin to count instructions"
    case, place = _CASES[model], folder / "-".join(key)
    extra = (
        'load = "prelinked"\n[kernels]\n'
        'libraries = ["cortex_m", "quantized", "portable"]\n'
    )
    if off != _ALL:
        extra += f'[passes]\nskip = ["{off}"]\n'
    try:
        built = build(place, case, cpu=cpu, toolchain="zig", extra=extra)
        scenario = str(CORPUS / case / "case.json")
        where = ("--scenario", scenario, "--out", str(built.folder))
        costs = profiled(place / "product.toml", *where)
    except NotMeasuredError as missing:
        return f"{', '.join(key)}: {missing}"
    totals = built.report["totals"]
    return _Measured(
        key=key,
        instructions=costs["total"] // costs["runs"],
        flash=totals["flash_bytes"],
        ram=totals["ram_bytes"],
    )


def _table(cpu: str, found: Mapping[_Key, _Measured]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for model in _CASES:
        every = found.get((model, cpu, _ALL))
        if every is None:
            continue
        rows.append((f"{model}, all", every.instructions, every.flash, every.ram))
        for name in PASSES:
            m = found.get((model, cpu, name))
            if m is None:
                continue
            saved = (
                m.instructions - every.instructions,
                m.flash - every.flash,
                m.ram - every.ram,
            )
            if any(saved):
                rows.append((f"{model}, saved by {name}", *saved))
    return Table(
        title=f"Passes on {cpu}: what each saves, when all others run",
        columns=("model", "instructions", "flash", "RAM"),
        rows=tuple(rows),
        notes=("passes that save nothing are left out; flash with the model",),
    )
