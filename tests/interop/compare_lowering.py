"""Lowers networks with and without acceleration and compares every graph on the way.

Runs in the interpreter that has ExecuTorch, with the project on its path:

    python compare_lowering.py MECHANISM...
    python compare_lowering.py --alone NETWORK

The second form has one network with each mechanism. Prints JSON: by network what
differs first (null if nothing does), whether the programs' bytes are equal, how many
stages there were, and what the mechanisms did.
"""

# mypy: ignore-errors
# PyTorch is not there when the project is checked.

from __future__ import annotations

import json
import logging
import sys
import warnings
from dataclasses import asdict

from orchestrator.lowering import Mechanism, accelerated
from orchestrator.lowering.record import recorded
from tests.interop.lowering_nets import NETS, lowering


def main() -> None:
    """Compare all networks."""
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    found = {}
    if sys.argv[1] == "--alone":
        name = sys.argv[2]
        for mechanism in Mechanism:
            found[f"{name}, {mechanism}"] = compare(name, [mechanism])
    else:
        mechanisms = [Mechanism(word) for word in sys.argv[1:]]
        found = {name: compare(name, mechanisms) for name in NETS}
    sys.stdout.write(json.dumps(found))


def compare(name: str, mechanisms: list[Mechanism]) -> dict[str, object]:
    """Lower a network as it is and accelerated."""
    # What PyTorch notes down the first time it sees an operator differs later.
    lowering(name)().to_executorch()
    lower = lowering(name)
    with recorded() as plain:
        expected = lower().to_executorch().buffer
    lower = lowering(name)
    with recorded() as fast, accelerated(mechanisms) as ledger:
        got = lower().to_executorch().buffer
    difference = plain.difference(fast)
    return {
        "difference": difference and asdict(difference),
        "same_bytes": got == expected,
        "stages": len(plain.stages),
        "ledger": asdict(ledger),
    }


if __name__ == "__main__":
    main()
