"""Lowering made faster, provably unchanged: around the unmodified packages.

Needs PyTorch and ExecuTorch (the extra `export`); nothing else of the project imports
this package. `orchestrator.lowering.record` compares what two runs made of a network.
"""

from orchestrator.lowering.accelerate import accelerated
from orchestrator.lowering.ledger import HEADINGS, Ledger, PassLedger
from orchestrator.lowering.mechanisms import Mechanism

__all__ = ["HEADINGS", "Ledger", "Mechanism", "PassLedger", "accelerated"]
