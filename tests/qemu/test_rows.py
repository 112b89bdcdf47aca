"""Int8 nets by rows: the bits of the whole nets, in much smaller arenas."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pytest

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
    """

    case: str
    cpu: str
    toolchain: str
    smallest: int
    automatic: int | None = None
    given: int | None = None


NETS: Final = (
    Net("kws_dscnn_int8_m4", "cortex-m4", "gnu", 6_600, given=6_300),
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
    shutil.copyfile(CORPUS / net.case / "model.pte", folder / "model.pte")
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
