"""More instructions of a core, or more flash, never make a kernel slower.

In instructions `mve <= dsp <= scalar` and `speed <= size`, in bytes `size <= speed`:
for hundreds of random calls and for int8 nets, with both toolchains. Where that is not
so, the table below says why. A row that explains nothing fails, too: remove it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pytest

from tests.speeds.rule import CPU, broken_rules
from tests.tools import need_emulator, need_tool, need_toolchain

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tests.speeds.rule import Broken

pytestmark = [pytest.mark.toolchain, pytest.mark.qemu]


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowed:
    """Calls that may take more.

    Args:
        rule: As in `Broken`.
        calls: Pattern of their names.
        most: How many times more.
        reason: Why.
        toolchains: Of which this is true.
        where: Pattern of the rest of the target.
    """

    rule: str
    calls: str
    most: float
    reason: str
    toolchains: tuple[str, ...] = ("gnu", "zig")
    where: str = ".*"

    def explains(self, broken: Broken, toolchain: str) -> bool:
        """Whether a call is one of these."""
        return (
            toolchain in self.toolchains
            and broken.rule == self.rule
            and re.fullmatch(self.where, broken.where) is not None
            and re.search(self.calls, broken.call) is not None
        )


EXCEPTIONS: Final[tuple[Allowed, ...]] = (
    # Convolutions that are not packed, with DSP.
    Allowed(
        rule="dsp <= scalar",
        calls="^(loaded )?conv .* groups ",
        most=4.0,
        reason="groups are not packed: pieces of few items, widened for few channels",
    ),
    Allowed(
        rule="dsp <= scalar",
        calls="^(loaded (conv|linear)|product|transposed) ",
        most=2.6,
        reason="a tile has four channels where fewer are left; depths below a word",
    ),
    Allowed(
        rule="dsp <= scalar",
        calls="^conv .*->[123] on|^depthwise .* 1->1 on",
        most=1.2,
        reason="few channels",
    ),
    Allowed(
        rule="dsp <= scalar",
        calls="^average .* [23]->[23] on",
        most=1.3,
        reason="two or three channels are less than a word",
    ),
    # Vectors that are mostly empty.
    Allowed(
        rule="mve <= dsp",
        calls="^(loaded )?depthwise ",
        most=1.6,
        reason="not packed: few channels or pixels for a strip",
    ),
    Allowed(
        rule="mve <= dsp",
        calls=(
            "^(loaded )?conv [23]x1 .* groups |^conv .*->2 on|^linear .*->4$"
            "|^product |permute_copy"
        ),
        most=1.5,
        reason="less than a vector of channels or items",
    ),
    # Compilers: code that waits less may be more instructions.
    Allowed(
        rule="speed <= size",
        calls="^aten::",
        most=1.25,
        reason="loops of floats are unrolled, and the rest is a loop of its own",
    ),
    Allowed(
        rule="speed <= size",
        calls="^(loaded )?(conv|linear)|^product |^transposed ",
        most=2.9,
        reason="wide tiles: two channels at a time where size takes four",
    ),
    Allowed(
        rule="speed <= size",
        calls="^(loaded )?depthwise |^(average|max|maximum|minimum|softmax) ",
        most=1.45,
        reason="more is kept in registers, which is saved and loaded for few items",
    ),
    Allowed(
        rule="speed <= size",
        calls="^net ",
        most=1.2,
        reason="clang's -O2 takes more than its -Os for tiles in plain C++",
        toolchains=("zig",),
    ),
    Allowed(
        rule="size <= speed in bytes",
        calls="op_quantized_(depthwise_)?conv2d|prepare_convolution|/convolve_mve",
        most=2.1,
        reason="functions of headers, which -O2 inlines in other sources, count here",
        where="mve",
    ),
    Allowed(
        rule="size <= speed in bytes",
        calls="op_quantized_mul",
        most=1.03,
        reason="clang shares the end of two loops at -O2",
        toolchains=("zig",),
    ),
)


def faults(found: Sequence[Broken], toolchain: str) -> list[str]:
    """What no row explains or allows, and rows that explain nothing."""
    wrong = []
    for broken in found:
        rows = [row for row in EXCEPTIONS if row.explains(broken, toolchain)]
        if not any(broken.ratio <= row.most for row in rows):
            wrong.append(str(broken))
    wrong += [
        f"remove the exception {row.rule} ({row.where}) for {row.calls}"
        for row in EXCEPTIONS
        if toolchain in row.toolchains
        and not any(row.explains(broken, toolchain) for broken in found)
    ]
    return wrong


@pytest.mark.parametrize("toolchain", ["gnu", "zig"])
def test_the_rule_holds(toolchain: str, tmp_path: Path) -> None:
    need_tool("gcc", "cc", "clang")
    need_toolchain(CPU, toolchain)
    need_emulator(CPU)
    wrong = faults([*broken_rules(tmp_path, toolchain)], toolchain)
    assert not wrong, f"{len(wrong)}: " + "; ".join(wrong[:40])
