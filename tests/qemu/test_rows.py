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


@dataclass(frozen=True, slots=True)
class Net:
    """A net of the corpus on a core, and the most bytes of its arena by rows."""

    case: str
    cpu: str
    toolchain: str
    smallest: int
    automatic: int


NETS: Final = (
    Net("kws_dscnn_int8_m4", "cortex-m4", "gnu", 6_600, 16_500),
    Net("ic_resnet8_int8_m55", "cortex-m4", "zig", 19_500, 19_500),
    Net("ic_resnet8_int8_m55", "cortex-m55", "gnu", 17_500, 33_000),
    Net("vww_mobilenetv1_int8_m4", "cortex-m4", "gnu", 30_300, 30_300),
    Net("vww_mobilenetv1_int8_m55", "cortex-m55", "zig", 29_600, 37_000),
)


def _run(
    folder: Path, net: Net, fuse: str, capsys: pytest.CaptureFixture[str]
) -> tuple[int, int, bytes]:
    """Bytes of the arena, instructions, and the output."""
    shutil.copyfile(CORPUS / net.case / "model.pte", folder / "model.pte")
    name = f"net-{fuse}"
    profile = folder / f"{name}.toml"
    profile.write_text(
        f'schema = 1\nname = "{name}"\n'
        f'[target]\ncpu = "{net.cpu}"\ntoolchain = "{net.toolchain}"\n'
        '[kernels]\nlibraries = ["cortex_m", "quantized", "portable"]\n'
        '[[models]]\nname = "net"\npath = "model.pte"\nload = "prelinked"\n'
        f'io = {{ quantized = true }}\n[memory]\nfuse = "{fuse}"\n'
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
    return totals["arena_bytes"], count, output.read_bytes()


@pytest.mark.parametrize("net", NETS, ids=lambda n: f"{n.case}-{n.cpu}")
def test_a_net_by_rows_has_the_same_bits(
    net: Net, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    need_toolchain(net.cpu, net.toolchain)
    need_emulator(net.cpu)
    whole = _run(tmp_path, net, "off", capsys)
    smallest = _run(tmp_path, net, "smallest", capsys)
    automatic = _run(tmp_path, net, "auto", capsys)
    assert smallest[2] == automatic[2] == whole[2]
    assert smallest[0] <= net.smallest
    assert smallest[0] <= automatic[0] <= net.automatic
    assert automatic[1] <= MOST_SLOWER * whole[1]
