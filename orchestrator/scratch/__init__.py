"""Scratch memory: what calls need for the time they run.

In: programs with the kernels of their calls. Out: bytes for each scratch argument on
this target, shown, and compared with tables of CMSIS-NN's own sizes.
"""

from orchestrator.scratch.calls import ScratchCall, scratch_calls
from orchestrator.scratch.show import scratch_json, scratch_text
from orchestrator.scratch.table import check_tables

__all__ = [
    "ScratchCall",
    "check_tables",
    "scratch_calls",
    "scratch_json",
    "scratch_text",
]
