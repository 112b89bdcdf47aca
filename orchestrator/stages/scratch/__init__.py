"""Scratch memory: what calls need, and CMSIS-NN's sizes against tables."""

from orchestrator.stages.scratch.calls import ScratchCall, scratch_calls
from orchestrator.stages.scratch.show import scratch_json, scratch_text
from orchestrator.stages.scratch.table import check_tables

__all__ = [
    "ScratchCall",
    "check_tables",
    "scratch_calls",
    "scratch_json",
    "scratch_text",
]
