"""Make ExecuTorch's lowering faster, with the same results.

Its packages are not modified on disk.

Needs PyTorch and ExecuTorch (the extra `export`); nothing else of the project imports
this package. `orchestrator.lowering.record` compares the graphs of two runs.
"""

from orchestrator.lowering.accelerate import accelerated
from orchestrator.lowering.mechanisms import HEADINGS, Ledger, Mechanism, PassLedger

__all__ = ["HEADINGS", "Ledger", "Mechanism", "PassLedger", "accelerated"]
