"""Orchestrator: Cargo for on-device PyTorch."""

__version__ = "0.1.0"
