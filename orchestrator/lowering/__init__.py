"""Lowering made faster, provably unchanged: around the unmodified packages.

Needs PyTorch and ExecuTorch (the extra `export`); nothing else of the project imports
this package. `orchestrator.lowering.record` compares what two runs made of a network.
"""

from orchestrator.lowering.accelerate import Ledger, accelerated
from orchestrator.lowering.mechanisms import Mechanism

__all__ = ["Ledger", "Mechanism", "accelerated"]
