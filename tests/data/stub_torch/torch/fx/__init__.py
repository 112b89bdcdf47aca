"""Graphs, of which there are none."""


class GraphModule:
    """A module with a graph."""
