"""Lowers networks with and without acceleration and compares every graph on the way.

Runs in the interpreter that has ExecuTorch, with the project on its path:

    python compare_lowering.py

Prints JSON: by network, and for one of them by mechanism, what differs first (null if
nothing does), whether the programs' bytes are equal, how many stages there were, and
what the mechanisms did.
"""

# mypy: ignore-errors
# PyTorch is not there when the project is checked.

from __future__ import annotations

import json
import logging
import sys
import warnings
from dataclasses import asdict
from typing import TYPE_CHECKING

from orchestrator.lowering import Mechanism, accelerated
from orchestrator.lowering.record import Recording, recorded
from tests.interop.lowering_nets import NETS, lowering

if TYPE_CHECKING:
    from collections.abc import Callable

ALONE = "random 1"
"""The network that is lowered with each mechanism alone."""


def main() -> None:
    """Compare all networks."""
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    found = {}
    for name in NETS:
        # What PyTorch notes down the first time it sees an operator differs later.
        lowering(name)().to_executorch()
        plain, expected = recorded_run(lowering(name))
        choices = {name: list(Mechanism)}
        if name == ALONE:
            choices |= {f"{name}, {one}": [one] for one in Mechanism}
        for title, mechanisms in choices.items():
            lower = lowering(name)
            with accelerated(mechanisms) as ledger:
                fast, got = recorded_run(lower)
            difference = plain.difference(fast)
            found[title] = {
                "difference": difference and asdict(difference),
                "same_bytes": got == expected,
                "stages": len(plain.stages),
                "ledger": asdict(ledger),
            }
    sys.stdout.write(json.dumps(found))


def recorded_run(lower: Callable[[], object]) -> tuple[Recording, bytes]:
    """Every graph on the way, and the program."""
    with recorded() as recording:
        return recording, lower().to_executorch().buffer


if __name__ == "__main__":
    main()
