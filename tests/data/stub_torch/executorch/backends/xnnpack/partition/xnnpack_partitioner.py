"""XNNPACK."""


class XnnpackDynamicallyQuantizedPartitioner:
    """Nothing."""


class XnnpackPartitioner:
    """Nothing."""
