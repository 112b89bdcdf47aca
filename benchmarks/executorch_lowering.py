"""What lowering a network costs, as the packages do it and accelerated.

Runs in the interpreter that has the package `executorch`, with the project on its path:

    python executorch_lowering.py NETWORK MECHANISM...

Prints JSON: seconds of processor time, digest of the program, what mechanisms did.
"""

# mypy: ignore-errors
# torch is not there when the project is checked.

from __future__ import annotations

import hashlib
import json
import logging
import sys
import time
import warnings
from dataclasses import asdict

from orchestrator.lowering import Mechanism, accelerated
from tests.interop.lowering_nets import lowering


def main() -> None:
    """Time one network."""
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    lower = lowering(sys.argv[1])
    start = time.process_time()
    with accelerated([Mechanism(word) for word in sys.argv[2:]]) as ledger:
        edge = lower()
    seconds = time.process_time() - start
    digest = hashlib.sha256(edge.to_executorch().buffer).hexdigest()
    print(json.dumps({"seconds": seconds, "digest": digest, **asdict(ledger)}))


if __name__ == "__main__":
    main()
