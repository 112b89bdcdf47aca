"""Run the garbage collector less often.

Graphs are made of objects that refer to each other, which the collector scans again and
again while they are still in use.
"""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from orchestrator.lowering.patches import Patches

RARELY: Final = 50_000
"""New objects before the youngest generation is scanned; 700 or 2,000 by default."""


def collect_rarely(patches: Patches) -> None:
    """Run the collector less often until the patches are reverted, if it runs."""
    before = young, middle, old = gc.get_threshold()
    patches.afterwards(lambda: gc.set_threshold(*before))
    if young:
        gc.set_threshold(max(RARELY, young), middle, max(1000, old))
