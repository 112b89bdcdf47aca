"""executorch."""
