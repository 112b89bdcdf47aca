"""Make ExecuTorch's lowering faster, with the same results.

Its packages are not modified on disk.

Needs PyTorch and ExecuTorch (the extra `export`); nothing else of the project imports
this package. `orchestrator.lowering.record` compares the graphs of two runs.
"""

from orchestrator.lowering.install import accelerated
from orchestrator.lowering.patches import Mechanism
from orchestrator.lowering.registry import HEADINGS, Ledger, PassLedger

__all__ = ["HEADINGS", "Ledger", "Mechanism", "PassLedger", "accelerated"]
