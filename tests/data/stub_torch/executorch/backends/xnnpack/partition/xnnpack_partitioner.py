"""XNNPACK."""


class XnnpackPartitioner:
    """Nothing."""
