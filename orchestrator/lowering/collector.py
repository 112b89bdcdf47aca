"""The garbage collector runs rarely.

Graphs are made of objects that refer to each other, which the collector looks through
again and again while they are still in use.
"""

from __future__ import annotations

import gc
from typing import Final

RARELY: Final = 50_000
"""New objects before the youngest are looked through; 700 or 2,000 by default."""


def collect_rarely() -> None:
    """Let the collector run rarely, if it runs at all."""
    young, middle, old = gc.get_threshold()
    if young:
        gc.set_threshold(max(RARELY, young), middle, max(1000, old))
