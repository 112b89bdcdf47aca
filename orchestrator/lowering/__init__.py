"""Lowering made faster, provably unchanged: around the unmodified packages.

Needs PyTorch and ExecuTorch (the extra `export`); nothing else of the project imports
this package.
"""

from orchestrator.lowering.accelerate import accelerated
from orchestrator.lowering.mechanisms import Mechanism
from orchestrator.lowering.record import Difference, Recording, recorded

__all__ = ["Difference", "Mechanism", "Recording", "accelerated", "recorded"]
