"""Kernels of kernels/cortex_m for prepared calls, and their loops in assembly: inventory.csv.

Each is a line there, and nothing else lists them: families of packed kernels and forms of other
calls read it, tests, figures of speed and of code enumerate it. A unit test compares it with the
sources.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final, NamedTuple

_LOOP: Final = "orch_"
"""What names of functions in assembly begin with."""


class Row(NamedTuple):
    """A line, of words with spaces between them.

    Args:
        name: The function in `orch::cortex_m`; of a loop the symbol. Packed kernels have a second
            one, for outputs with limits.
        op: What it computes.
        weights: Their dtype, if it has any.
        tile: Pixels, channels and taps that are computed at once: 2x4x16.
        isa: Instruction sets that have it.
        of: The family of a packed kernel, the struct of another one, the kernels of a loop.
        when: `speed` or `size`: only products that favour it have it; `scratch`: calls whose
            scratch memory is short.
        instead_of: Kernels in whose place bands of few pixels have it, with their header.
        numbers: What outputs are, bit for bit.
        takes: Which calls.
    """

    name: str
    op: str
    weights: str
    tile: str
    isa: str
    of: str
    when: str
    instead_of: str
    numbers: str
    takes: str

    @property
    def is_whole(self) -> bool:
        """Whether calls for whole tensors have it, which arguments may describe as well."""
        return not self.instead_of and self.when != "scratch"

    @property
    def taps(self) -> int:
        """Taps of its tile."""
        return int(self.tile.rpartition("x")[2])

    def function(self, *, is_limited: bool = False) -> str:
        """The qualified C++ name, or that of the function for outputs with limits."""
        name = self.name.replace("packed_", "limited_packed_") if is_limited else self.name
        return f"orch::cortex_m::{name}"


_LINES: Final = Path(__file__).with_suffix(".csv").read_text(encoding="utf-8").splitlines()
_ROWS: Final = tuple(Row(*line.split(",")) for line in _LINES[1:])
LOOPS: Final = tuple(row for row in _ROWS if row.name.startswith(_LOOP))
PACKED: Final = tuple(row for row in _ROWS if "packed_" in row.name and row not in LOOPS)
OTHERS: Final = {row.name: row for row in _ROWS if row not in PACKED and row not in LOOPS}
"""Kernels whose weights, if they have any, are those of the program, by name."""
