"""torchao."""
