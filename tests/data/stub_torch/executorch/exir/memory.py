"""Operators of memory."""


def view(base, size):
    """No program has one."""
