"""Int8 nets by rows: the bits of the whole nets, in much smaller arenas."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import pytest

from orchestrator.program.program import KernelCall
from orchestrator.program.reader import read_program
from orchestrator.program.values import IntValue
from orchestrator.program.write import write_program
from tests.conftest import CORPUS
from tests.product import Product
from tests.tools import need_emulator, need_toolchain

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.toolchain, pytest.mark.qemu]

MOST_SLOWER: Final = 1.1
"""How much slower `auto` may be, as it says."""


MOST_FLASH: Final = 2_000
"""More than with whole tensors: steps, their templates, and what runs them."""
ROWS: Final = 8
"""That the caller gives at a time."""


@dataclass(frozen=True, slots=True)
class Net:
    """A net of the corpus on a core, and the most bytes of its arena by rows.

    Args:
        case: Its folder.
        cpu: The core.
        toolchain: Of the build.
        smallest: With `fuse = "smallest"`.
        automatic: With `fuse = "auto"`; None where that is the same.
        given: With rows from the caller.
        limited: Whether convolutions store less than all of int8.
    """

    case: str
    cpu: str
    toolchain: str
    smallest: int
    automatic: int | None = None
    given: int | None = None
    limited: bool = False


LOWEST: Final = {
    "cortex_m::quantized_conv2d.out": 10,
    "cortex_m::quantized_depthwise_conv2d.out": 11,
}
"""Position of the lowest output, which the highest one follows."""
NETS: Final = (
    Net("kws_dscnn_int8_m4", "cortex-m4", "gnu", 6_600, given=6_300, limited=True),
    Net("ic_resnet8_int8_m55", "cortex-m4", "zig", 19_500, given=17_600),
    Net("ic_resnet8_int8_m55", "cortex-m55", "gnu", 17_500, automatic=33_000),
    Net("vww_mobilenetv1_int8_m4", "cortex-m4", "gnu", 30_300, automatic=30_300),
    Net("vww_mobilenetv1_int8_m55", "cortex-m55", "zig", 29_600, given=16_700),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """Bytes of the arena and of flash, instructions of a run, and its output."""

    arena: int
    flash: int
    instructions: int
    output: bytes


def _run(
    folder: Path,
    net: Net,
    fuse: str,
    capsys: pytest.CaptureFixture[str],
    *,
    io: str = "",
) -> Ran:
    model = (CORPUS / net.case / "model.pte").read_bytes()
    (folder / "model.pte").write_bytes(_with_limits(model) if net.limited else model)
    name = f"net-{fuse}{'-rows' if io else ''}"
    profile = folder / f"{name}.toml"
    profile.write_text(
        f'schema = 1\nname = "{name}"\n'
        f'[target]\ncpu = "{net.cpu}"\ntoolchain = "{net.toolchain}"\n'
        '[kernels]\nlibraries = ["cortex_m", "quantized", "portable"]\n'
        '[[models]]\nname = "net"\npath = "model.pte"\nload = "prelinked"\n'
        f'io = {{ quantized = true{io} }}\n[memory]\nfuse = "{fuse}"\n'
    )
    product = Product(profile=profile, out=folder / name)
    outputs = folder / f"{name}.outputs"
    given = ("--input", str(CORPUS / net.case / "in0.npy"))
    capsys.readouterr()
    more = ("--output-dir", str(outputs), "--profile", "--json")
    assert product.run("run", *given, *more) == 0
    document = json.loads(capsys.readouterr().out)
    count = sum(operator["total"] for operator in document["profile"]["operators"])
    (output,) = outputs.glob("*.npy")
    totals = product.report()["totals"]
    assert isinstance(totals, dict)
    return Ran(
        arena=totals["arena_bytes"],
        flash=totals["flash_bytes"],
        instructions=count,
        output=output.read_bytes(),
    )


def _with_limits(model: bytes) -> bytes:
    program = read_program(model, file="")
    (method,) = program.methods
    slots = len(method.values), len(method.values) + 1
    instructions = [*method.instructions]
    for number, call in enumerate(instructions):
        assert isinstance(call, KernelCall)
        at = LOWEST.get(str(method.operators[call.operator]))
        if at is not None:
            args = (*call.args[:at], *slots, *call.args[at + 2 :])
            instructions[number] = replace(call, args=args)
    method = replace(
        method,
        values=(*method.values, IntValue(-90), IntValue(100)),
        instructions=tuple(instructions),
    )
    return bytes(write_program(replace(program, methods=(method,))))


@pytest.mark.parametrize("net", NETS, ids=lambda n: f"{n.case}-{n.cpu}")
def test_a_net_by_rows_has_the_same_bits(
    net: Net, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    need_toolchain(net.cpu, net.toolchain)
    need_emulator(net.cpu)
    whole = _run(tmp_path, net, "off", capsys)
    smallest = _run(tmp_path, net, "smallest", capsys)
    assert smallest.output == whole.output
    assert smallest.arena <= net.smallest
    assert smallest.flash <= whole.flash + MOST_FLASH
    if net.automatic is not None:
        automatic = _run(tmp_path, net, "auto", capsys)
        assert automatic.output == whole.output
        assert smallest.arena <= automatic.arena <= net.automatic
        assert automatic.instructions <= MOST_SLOWER * whole.instructions
    if net.given is not None:
        io = f", input0 = {{ rows = {ROWS} }}"
        given = _run(tmp_path, net, "off", capsys, io=io)
        assert given.output == whole.output
        assert given.arena <= net.given
