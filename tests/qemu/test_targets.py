"""Every core, instruction set variant and toolchain: the compiler's flags.

The smallest program of the corpus is built for all variants, and run where there is an
emulator; what the compiler takes the core for is asked of the compiler.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest

from orchestrator.shell.toolchain import find_toolchain
from orchestrator.targets import boards
from orchestrator.targets.cores import BOARDS, CPUS, resolve_target
from tests.conftest import CORPUS
from tests.integration.workspace import Workspace
from tests.same_bits import check_same_bits
from tests.targets import EVERY_PAIR, FURTHER, with_toolchains
from tests.tools import need_emulator, need_tool, need_toolchain

pytestmark = [pytest.mark.toolchain, pytest.mark.qemu]

CASE: Final = "add_mul"
VARIANTS: Final = [
    (cpu.name, isa, toolchain)
    for cpu in CPUS.values()
    if cpu.is_arm
    for isa in cpu.isas
    for toolchain in sorted(cpu.toolchains)
]
OTHERS: Final = [
    (cpu, "scalar", toolchain)
    for index, cpu in enumerate(FURTHER)
    for pairs in [with_toolchains(cpu)]
    for _, toolchain in (pairs if EVERY_PAIR else pairs[index % 2 :][:1])
]
"""Other machines, with toolchains in turns unless everything is requested."""
BUILT: Final = [
    variant
    for number, variant in enumerate(VARIANTS)
    if EVERY_PAIR or number % 4 in (0, 3)  # two toolchains each
]
"""Variants with toolchains in turns unless everything is requested."""
FLOATS: Final = {
    **dict.fromkeys(("cortex-m0plus", "cortex-m3", "cortex-m23"), 0),
    **dict.fromkeys(("cortex-m4", "cortex-m33", "cortex-m35p"), 0x4),
    **dict.fromkeys(("cortex-m7", "cortex-m55", "cortex-m85"), 0xE),
}
"""Formats that the FPU has, as __ARM_FP: 4 is single, 8 is double, 2 is half."""
ALWAYS_DSP: Final = ("cortex-m4", "cortex-m7")
"""Compilers have no name for these without their DSP instructions."""


def _macros(
    cpu: str, isa: str, toolchain: str, folder: Path, float_abi: str | None = None
) -> dict[str, str]:
    target = resolve_target(
        cpu=cpu, isa=isa, board=None, toolchain=toolchain, optimize="size", float_abi=float_abi
    )
    found = find_toolchain(target)
    triple = (f"--target={target.cpu.clang_triple}",) if toolchain == "zig" else ()
    done = subprocess.run(
        [
            *(*found.compiler, *target.isa.machine_flags, *triple),
            *("-dM", "-E", "-x", "c", "/dev/null"),
        ],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    lines = (line.split(maxsplit=2) for line in done.stdout.splitlines())
    return {name: next(iter(value), "") for _, name, *value in lines}


@pytest.mark.parametrize(("cpu", "isa", "toolchain"), VARIANTS)
def test_the_compiler_knows_the_variant(cpu: str, isa: str, toolchain: str, tmp_path: Path) -> None:
    need_toolchain(cpu, toolchain)
    macros = _macros(cpu, isa, toolchain, tmp_path)
    level = CPUS[cpu].isas[isa].level
    if cpu not in ALWAYS_DSP:
        assert ("__ARM_FEATURE_DSP" in macros) == (level >= 1)
    assert ("__ARM_FEATURE_MVE" in macros) == (level == 2)
    floats = int(macros.get("__ARM_FP", "0"), 0)
    assert floats & ~2 == FLOATS[cpu] & ~2
    assert ("__ARM_PCS_VFP" in macros) == (CPUS[cpu].float_abi == "hard")
    assert "__thumb__" in macros


def _product(folder: Path, target: str, capsys: pytest.CaptureFixture[str]) -> Workspace:
    shutil.copyfile(CORPUS / CASE / "model.pte", folder / "model.pte")
    (folder / "product.toml").write_text(
        f'schema = 1\nname = "product"\n\n[target]\n{target}\n'
        '[[models]]\nname = "model"\npath = "model.pte"\n'
    )
    return Workspace(folder=folder, capsys=capsys)


def _check_run(product: Workspace, here: str) -> None:
    outputs = product.folder / "outputs"
    done = product.run(
        *("run", "--scenario", str(CORPUS / CASE / "case.json")), *("--output-dir", str(outputs))
    )
    assert done.code == 0, done.out + done.err
    found = {path.name: path.read_bytes() for path in outputs.iterdir()}
    check_same_bits(CASE, found, here)


@pytest.mark.parametrize(("cpu", "isa", "toolchain"), [*BUILT, *OTHERS])
def test_every_variant_is_built(
    cpu: str, isa: str, toolchain: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """And gives the same bits where it can run; without warnings, with its ORCH_ISA."""
    need_toolchain(cpu, toolchain)
    need_emulator(cpu)
    product = _product(
        tmp_path, f'cpu = "{cpu}"\nisa = "{isa}"\ntoolchain = "{toolchain}"\n', capsys
    )
    assert "warning" not in product.build().err
    database = json.loads((product.out / "compile_commands.json").read_text())
    kernels = [
        (entry.get("command") or " ".join(entry["arguments"])).split()
        for entry in database
        if "/kernels/" in entry["file"]
    ]
    macro = f"-DORCH_ISA={CPUS[cpu].isas[isa].level}"
    assert kernels
    assert all(macro in command for command in kernels)
    board = CPUS[cpu].default_board
    if board is None or BOARDS[board].emulator:
        _check_run(product, f"{cpu} {isa} {toolchain}")


@pytest.mark.parametrize(
    ("cpu", "toolchain"),
    with_toolchains(*(cpu.name for cpu in CPUS.values() if "softfp" in cpu.float_abis)),
)
def test_softfp(
    cpu: str, toolchain: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The FPU computes, its registers pass nothing; bits are the same."""
    need_toolchain(cpu, toolchain)
    need_emulator(cpu)
    macros = _macros(cpu, CPUS[cpu].default_isa, toolchain, tmp_path, "softfp")
    assert int(macros["__ARM_FP"], 0) & ~2 == FLOATS[cpu] & ~2
    assert "__ARM_PCS_VFP" not in macros
    text = f'cpu = "{cpu}"\ntoolchain = "{toolchain}"\nfloat_abi = "hard"\n'
    product = _product(tmp_path, text, capsys)
    product.build()
    _change(tmp_path, '"hard"', '"softfp"')
    assert "something changed since the last build" in product.run("size").err
    assert "warning" not in product.build().err
    attributes = subprocess.run(
        [need_tool("arm-none-eabi-readelf"), "-A", product.out / "libproduct.a"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert "Tag_FP_arch" in attributes
    assert "Tag_ABI_VFP_args" not in attributes
    if BOARDS[CPUS[cpu].default_board or ""].emulator:
        _check_run(product, f"{cpu} softfp {toolchain}")


@pytest.mark.parametrize("toolchain", ["gnu", "zig"])
def test_a_core_of_armv6_m_runs_it(
    toolchain: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The default board for this code has a larger core, which runs it as well."""
    need_toolchain("cortex-m0plus", toolchain)
    need_emulator("cortex-m0plus")
    product = _product(
        tmp_path, f'cpu = "cortex-m0plus"\nboard = "microbit"\ntoolchain = "{toolchain}"\n', capsys
    )
    product.build()
    _check_run(product, f"microbit {toolchain}")


def test_a_board_s_own_file_and_memories(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """SiFive's board, which has 16 KiB of RAM; then less, as a file of one's own."""
    need_toolchain("rv32imac", "gnu")
    need_emulator("rv32imac")
    product = _product(
        tmp_path, 'cpu = "rv32imac"\nboard = "sifive-e"\ntoolchain = "gnu"\n', capsys
    )
    product.build()
    _check_run(product, "sifive-e gnu")
    shipped = Path(boards.__file__).parent / "board_files" / "sifive-e.toml"
    (tmp_path / "own.toml").write_text(shipped.read_text().replace("16 KiB", "4 KiB"))
    _change(tmp_path, '"sifive-e"', '"own.toml"')
    product.build()
    _check_run(product, "own.toml gnu")
    report = json.loads((product.out / "report.json").read_text())
    assert report["target"]["board"] == "own"
    assert report["regions"][1]["size_bytes"] == 4096
    (tmp_path / "own.toml").write_text(shipped.read_text().replace("16 KiB", "32 B"))
    stale = product.run("size")
    assert "something changed since the last build" in stale.err
    assert product.run("check").code == 6


@pytest.mark.parametrize(("cpu", "board"), [("cortex-m85", "generic-m85"), ("rv32imc", "esp32-c3")])
def test_what_cannot_run_here_is_refused(
    cpu: str, board: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    need_toolchain(cpu, "zig")
    product = _product(tmp_path, f'cpu = "{cpu}"\nboard = "{board}"\n', capsys)
    product.build()
    done = product.run("run", "--scenario", str(CORPUS / CASE / "case.json"))
    assert done.code == 7
    assert done.err == (
        f"error[no-emulator]: firmware for {board} can be built, but not run here\n"
        f"   = found: no emulator knows {board}\n"
        "   = known: emcraft-sf2 (cortex-m3), lm3s6965evb (cortex-m3), microbit (cortex-m0plus),"
        " mps2-an385 (cortex-m3), mps2-an386 (cortex-m4), mps2-an500 (cortex-m7), mps2-an505"
        " (cortex-m33), mps3-an547 (cortex-m55), netduino2 (cortex-m3), netduinoplus2 (cortex-m4),"
        " sifive-e (rv32imac), stm32vldiscovery (cortex-m3), virt-rv32 (rv32imafc), virt-rv64"
        " (rv64gc)\n"
        "   hint: run it on the device with --on, or build for a board that is emulated\n"
    )


OWN_BOARD: Final = Path(__file__).parents[2] / "examples" / "own_board"


def _own_board(folder: Path, capsys: pytest.CaptureFixture[str]) -> Workspace:
    text = (OWN_BOARD / "product.toml").read_text()
    models = (OWN_BOARD / "../models").resolve()
    (folder / "product.toml").write_text(text)
    shutil.copyfile(models / "kws_dscnn_fp32.pte", folder / "model.pte")
    _change(folder, "../models/kws_dscnn_fp32.pte", "model.pte")
    return Workspace(folder=folder, capsys=capsys)


def _arena_bytes(product: Workspace) -> int:
    plan = json.loads((product.out / "memory_plan.json").read_text())
    size_bytes: int = plan["models"][0]["methods"][0]["arenas"][0]["size_bytes"]
    return size_bytes


def _change(folder: Path, old: str, new: str) -> None:
    profile = folder / "product.toml"
    assert old in profile.read_text()
    profile.write_text(profile.read_text().replace(old, new))


_PLACES = """
[memory]
weights = "qspi"
code = "itcm"

[[memory.regions]]
name = "qspi"
origin = 0x00100000
size = "128 KiB"
kind = "flash"

[[memory.regions]]
name = "itcm"
origin = 0x21000000
size = "64 KiB"
"""


@pytest.mark.parametrize("toolchain", ["gnu", "zig"])
def test_memories_of_ones_own_are_where_things_lie(
    toolchain: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    need_toolchain("cortex-m4", toolchain)
    need_emulator("cortex-m4")
    product = _own_board(tmp_path, capsys)
    _change(tmp_path, '"zig"', f'"{toolchain}"')
    with (tmp_path / "product.toml").open("a") as profile:
        profile.write(_PLACES)
    product.build()
    report = json.loads((product.out / "report.json").read_text())
    regions = {r["name"]: r for r in report["regions"]}
    sizes = [r["size_bytes"] for r in regions.values()]
    assert sizes == [262144, 8192, 98304, 131072, 65536]
    assert regions["sram"]["used_bytes"] == _arena_bytes(product)  # nothing else
    arena = next(s for s in report["symbols"] if s["name"].endswith("_arena1"))
    assert arena["address"] == 0x20010000
    sections = {s["name"]: s for s in report["sections"]}
    code, weights = sections[".text"], sections[".orch_model_kws"]
    assert (code["region"], code["load_region"]) == ("itcm", "flash")
    assert (code["address"], weights["address"]) == (0x21000000, 0x100000)
    assert (code["in_flash"], code["in_ram"]) == (True, True)
    assert regions["qspi"]["used_bytes"] == weights["size_bytes"]
    assert sections[".start"]["size_bytes"] < 256
    scenario = OWN_BOARD / "../cases/kws-m55.json"
    done = product.run("run", "--scenario", str(scenario.resolve()))
    assert done.code == 0, done.out + done.err


def test_a_chosen_memory_a_byte_too_small_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    need_toolchain("cortex-m4", "zig")
    product = _own_board(tmp_path, capsys)
    product.build()
    size = _arena_bytes(product)
    _change(tmp_path, '"96 KiB"', f'"{size} B"')
    assert product.run("check").code == 0
    _change(tmp_path, f'"{size} B"', f'"{size - 1} B"')
    done = product.run("check")
    assert done.code == 6
    assert f"needs: {size} bytes\n   = region: sram: {size - 1} of {size - 1}" in done.err


def test_memories_that_the_emulator_lacks_are_built_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    need_toolchain("cortex-m4", "zig")
    product = _own_board(tmp_path, capsys)
    _change(tmp_path, "0x00000000", "0x08000000")
    product.build()
    done = product.run("run")
    assert done.code == 7
    assert done.err.startswith(
        "error[no-emulator]: firmware for mps2-an386 can be built, but not run here\n"
        "   = found: [[memory.regions]] with addresses that its emulator lacks\n"
    )
