"""Tokens of values for operators that only read metadata."""

from __future__ import annotations

from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor


class UnknownValueError(Exception):
    """A value has no token, or only its content would give one."""


def token_of(value: Any) -> Any:
    """A token that is equal for values that an operator cannot distinguish.

    Raises:
        UnknownValueError: There is no such thing.
    """
    kind = type(value)
    if kind is FakeTensor:
        return _tensor_token(value)
    if kind is float:
        return kind, value.hex()
    if kind in PLAIN:
        return kind, value
    if kind in (tuple, list) or isinstance(value, (tuple, list)):
        return kind, tuple(map(token_of, value))
    if isinstance(value, dict):
        return kind, tuple((key, token_of(item)) for key, item in value.items())
    raise UnknownValueError


PLAIN = frozenset(
    {
        *(int, bool, float, str, type(None), type(...)),
        *(torch.dtype, torch.device, torch.layout, torch.memory_format),
    }
)
"""Kinds of values that a graph has as they are."""


def _tensor_token(tensor: FakeTensor) -> Any:
    sizes, strides = tuple(tensor.shape), tuple(tensor.stride())
    offset = tensor.storage_offset()
    if (
        tensor.constant is not None
        or tensor.layout is not torch.strided
        or not all(type(n) is int for n in (*sizes, *strides, offset))
        or tensor.is_quantized
        or tensor.is_conj()
        or tensor.is_neg()
    ):
        raise UnknownValueError
    return (
        *(FakeTensor, id(tensor.fake_mode), tensor.dtype, tensor.fake_device),
        *(sizes, strides, offset, tensor.requires_grad, tensor.is_leaf),
    )
