"""Quantization that changes nothing."""


def prepare_pt2e(module, quantizer):
    """The module."""
    del quantizer
    return module


def convert_pt2e(module):
    """The module."""
    return module
