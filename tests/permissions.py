"""File permissions that hold root back, as they hold everybody else back."""

from __future__ import annotations

import ctypes
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_VERSION = 0x20080522
_DAC_OVERRIDE, _DAC_READ_SEARCH = 1, 2


class _Header(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class _Sets(ctypes.Structure):
    _fields_ = (
        ("effective", ctypes.c_uint32),
        ("permitted", ctypes.c_uint32),
        ("inheritable", ctypes.c_uint32),
    )


@contextmanager
def permissions_hold() -> Iterator[None]:
    """Give up the right to pass over permissions, which root has, for a while.

    The user stays the same: a checkout in a folder that only root may read can still
    be read.

    Source: capabilities(7), capget(2).
    """
    if os.geteuid() != 0:
        yield
        return
    libc = ctypes.CDLL(None, use_errno=True)
    header, before = _Header(_VERSION, 0), (_Sets * 2)()
    _check(libc.capget(ctypes.byref(header), before))
    held_back = (_Sets * 2).from_buffer_copy(before)
    held_back[0].effective &= ~(1 << _DAC_OVERRIDE | 1 << _DAC_READ_SEARCH)
    _check(libc.capset(ctypes.byref(header), held_back))
    try:
        yield
    finally:
        _check(libc.capset(ctypes.byref(header), before))


def _check(result: int) -> None:
    if result != 0:
        raise OSError(ctypes.get_errno(), "capabilities cannot be changed")
