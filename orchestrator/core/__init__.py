"""Value types that cross stages: frozen, hashable, free of effects."""
