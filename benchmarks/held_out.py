"""int8 nets that no kernel was tuned for, beside CMSIS-NN's kernels.

The nets are in tests/data/held_out. CMSIS-NN's kernels are linked by examples/cmsis_nn,
with the same runtime, if the environment variable CMSIS_NN names a checkout; else its
instructions are those of reference.py, measured so before.
"""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from benchmarks.clock import ROOT
from benchmarks.firmwares import measure_all
from benchmarks.macs import multiply_accumulates
from benchmarks.profiled import profiled
from benchmarks.reference import CMSIS_NN_HELD_OUT
from benchmarks.table import Cell, Findings, Goal, NotMeasuredError, Table
from orchestrator.program.reader import read_program

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

NETS: Final = {
    "unet": "U-Net, 3 levels",
    "head10": "10 classes",
    "rgb": "RGB to RGB",
    "waves": "1-D convolutions",
    "groups": "grouped convolutions",
    "lstm": "LSTM, 10 steps",
    "attention": "attention, 2 heads",
}
"""By the name of its program."""
_DATA: Final = ROOT / "tests" / "data" / "held_out"
_CORES: Final = ("cortex-m4", "cortex-m55")
_CMSIS: Final = "CMSIS-NN"
_BUILDS: Final = (("gnu", "size"), ("gnu", "speed"), ("zig", "size"), ("zig", "speed"))
_Key = tuple[str, str, str, str]
"""Net, core, toolchain or `CMSIS-NN`, optimize."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Measured:
    key: _Key
    instructions: int
    cycles: int
    flash: int
    ram: int
    arena: int


def measure(repetitions: int) -> Findings:
    """Sizes and instructions; they are exact, so that one run is enough."""
    del repetitions
    findings = Findings()
    found = measure_all([*_keys()], _measure, findings)
    rows = {m.key: m for m in found}
    for cpu in _CORES:
        findings.tables.append(_table(cpu, rows))
        findings.goals += _goals(cpu, rows)
    return findings


def _keys() -> Iterator[_Key]:
    for cpu in _CORES:
        for net in NETS:
            for toolchain, optimize in _BUILDS:
                yield net, cpu, toolchain, optimize
            if "CMSIS_NN" in os.environ:
                yield net, cpu, _CMSIS, "speed"


def _measure(folder: Path, key: _Key, plugin: Path | None) -> _Measured | str:
    if plugin is None:
        return f"{key[0]}, {key[1]}: no plugin to count instructions"
    folder = folder / "-".join(key)
    folder.mkdir()
    try:
        profile = _write(folder, key)
        costs = profiled(profile, "--input", f"{key[0]}.npy")
    except NotMeasuredError as missing:
        return f"{' '.join(key)}: {missing}"
    report: Any = json.loads((folder / "build" / "net" / "report.json").read_text())
    totals = report["totals"]
    return _Measured(
        key=key,
        instructions=costs["total"],
        cycles=costs["cycle_estimate"]["total"],
        flash=totals["flash_bytes_without_models"],
        ram=totals["state_bytes"] + totals["data_bytes"] + report["stack"]["stack_bytes"],
        arena=totals["arena_bytes"],
    )


def _write(folder: Path, key: _Key) -> Path:
    net, cpu, toolchain, optimize = key
    shutil.copyfile(_DATA / f"{net}.pte", folder / "net.pte")
    shutil.copyfile(_DATA / f"{net}.in0.npy", folder / f"{net}.npy")
    libraries = '["cortex_m", "quantized", "portable"]'
    custom = ""
    if toolchain == _CMSIS:
        example, home = ROOT / "examples" / "cmsis_nn", folder / "cmsis_nn"
        shutil.copytree(example, home)
        text = (example / f"kws-{cpu.removeprefix('cortex-')}.toml").read_text()
        checkout = os.path.relpath(os.environ["CMSIS_NN"], folder)
        custom = "[[kernels.custom]]" + text.partition("[[kernels.custom]]")[2]
        custom = custom.replace("../../../CMSIS-NN", checkout).replace(
            '"functions.yaml"', '"cmsis_nn/functions.yaml"'
        )
        toolchain = "gnu"
        libraries = '["cmsis_nn", "cortex_m", "quantized", "portable"]'
    profile = folder / "net.toml"
    profile.write_text(
        f'schema = 1\nname = "net"\n[target]\ncpu = "{cpu}"\n'
        f'toolchain = "{toolchain}"\noptimize = "{optimize}"\n'
        '[[models]]\nname = "net"\npath = "net.pte"\nload = "prelinked"\n'
        f"[kernels]\nlibraries = {libraries}\n{custom}"
    )
    return profile


def _theirs(net: str, cpu: str, rows: Mapping[_Key, _Measured]) -> int | None:
    """Instructions with CMSIS-NN's kernels: measured now, or before."""
    measured = rows.get((net, cpu, _CMSIS, "speed"))
    return measured.instructions if measured else CMSIS_NN_HELD_OUT.get((net, cpu))


def _macs(net: str) -> int:
    program = read_program((_DATA / f"{net}.pte").read_bytes(), file=net)
    return sum(multiply_accumulates(program.method("forward")).values())


def _table(cpu: str, rows: Mapping[_Key, _Measured]) -> Table:
    cells: list[tuple[Cell, ...]] = []
    for net, name in NETS.items():
        for toolchain, optimize in _BUILDS:
            m = rows.get((net, cpu, toolchain, optimize))
            if m is None:
                continue
            theirs, macs = _theirs(net, cpu, rows), _macs(net)
            cells.append(
                (
                    f"{name}, {toolchain}, {optimize}",
                    *(m.instructions, m.cycles, macs, m.instructions / macs),
                    *(theirs, m.instructions / theirs if theirs else None),
                    *(m.flash, m.ram, m.arena),
                )
            )
    return Table(
        title=f"int8 networks that no kernel was tuned for, {cpu}, prelinked",
        columns=(
            *("net", "instructions", "est. cycles", "MACs", "per MAC"),
            *("CMSIS-NN", "ours : CMSIS-NN", "flash", "RAM", "arena"),
        ),
        rows=tuple(cells),
        notes=(
            "flash without the model; RAM beside the arena, with the stack",
            "CMSIS-NN: its kernels with our runtime and gcc, optimize = speed;"
            " where it has none, such as for LSTM's tables, ours",
        ),
    )


def _goals(cpu: str, rows: Mapping[_Key, _Measured]) -> Iterator[Goal]:
    """Not slower than CMSIS-NN's algorithms, with either toolchain, for speed."""
    for (net, core, toolchain, optimize), m in rows.items():
        theirs = _theirs(net, cpu, rows)
        is_ours = core == cpu and optimize == "speed" and toolchain != _CMSIS
        if is_ours and theirs is not None:
            yield Goal(
                name=f"instructions, {NETS[net]}, {cpu} {toolchain}",
                found=m.instructions,
                limit=theirs,
                at_most=True,
            )
