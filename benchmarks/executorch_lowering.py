"""What lowering a network costs, as the packages do it and accelerated.

Runs in the interpreter that has the package `executorch`, with the project on its path:

    python executorch_lowering.py NETWORK VARIANT...

A variant is a list of mechanisms with commas between them, or `none`. The network is
exported once; each variant has a process of its own that starts from there. Prints
JSON, a list with what each variant took: seconds of processor time in all, in
decompositions and in passes, of a walk through the graph after each pass, and the
digest of the program.
"""

# mypy: ignore-errors
# torch is not there when the project is checked.

from __future__ import annotations

import argparse
import hashlib
import json
import logging
import os
import sys
import time
import warnings

import torch
from torch.export import ExportedProgram
from torch.fx.passes.infra.pass_base import PassBase

from orchestrator.lowering import Mechanism, accelerated
from orchestrator.lowering.passes import classes_of
from orchestrator.lowering.patches import Patches
from tests.interop.lowering_nets import lowering


class Parts:
    """Seconds of decompositions, and the graphs that passes gave."""

    def __init__(self) -> None:
        self.decompositions_s = 0.0
        self.graphs: list[object] = []

    def watch(self, patches: Patches) -> None:
        """Watch until the patches are taken back."""
        decompose = ExportedProgram.run_decompositions

        def run_decompositions(*args: object, **words: object) -> object:
            start = time.process_time()
            program = decompose(*args, **words)
            self.decompositions_s += time.process_time() - start
            return program

        patches.replace(ExportedProgram, "run_decompositions", run_decompositions)
        for owner in classes_of(PassBase):
            if "__call__" in vars(owner):
                self._keep_graphs(owner, patches)

    def _keep_graphs(self, owner: type, patches: Patches) -> None:
        call = vars(owner)["__call__"]

        def run(own: object, *args: object, **words: object) -> object:
            result = call(own, *args, **words)
            if result is not None:
                self.graphs.append(result.graph_module.graph)
            return result

        patches.replace(owner, "__call__", run)

    def walk_s(self) -> float:
        """Seconds of looking at every node after each pass."""
        start = time.process_time()
        for graph in self.graphs:
            for node in graph.nodes:
                _ = (node.op, node.target, node.args, node.meta.get("val"))
        return time.process_time() - start


def main() -> None:
    """Time the variants of one network."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("network", metavar="NETWORK")
    parser.add_argument("variants", nargs="+", metavar="VARIANT")
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    # Threads do not outlive a fork.
    torch.set_num_threads(1)
    lower = lowering(options.network)
    found = [_forked(lower, variant) for variant in options.variants]
    sys.stdout.write("\n" + json.dumps(found))


def _forked(lower: object, variant: str) -> dict:
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.close(reader)
        status = 1
        try:
            with os.fdopen(writer, "w") as out:
                json.dump(_measured(lower, variant), out)
            status = 0
        finally:
            os._exit(status)
    os.close(writer)
    with os.fdopen(reader) as answer:
        text = answer.read()
    os.waitpid(child, 0)
    return json.loads(text)


def _measured(lower: object, variant: str) -> dict:
    words = [] if variant == "none" else variant.split(",")
    parts, patches = Parts(), Patches()
    parts.watch(patches)
    start = time.process_time()
    with accelerated([Mechanism(word) for word in words]) as ledger:
        edge = lower()
    seconds = time.process_time() - start
    patches.restore()
    return {
        "seconds": seconds,
        "decompositions_s": parts.decompositions_s,
        "passes_s": sum(run.cpu_s for run in ledger.passes),
        "walk_s": parts.walk_s(),
        "nodes": max(len(graph.nodes) for graph in parts.graphs),
        "digest": hashlib.sha256(edge.to_executorch().buffer).hexdigest(),
    }


if __name__ == "__main__":
    main()
