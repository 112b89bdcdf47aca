"""PyTorch's sequence number for gradient records.

Dispatching with gradients counts on, and nodes of graphs are numbered by that
(`seq_nr`). If a result is known without dispatching, the number advances by as much.

Source: PyTorch 2.13 `torch/csrc/autograd/function.h`, `Node`: each one that is made
takes the next number.
"""

from __future__ import annotations

import torch


def sequence_number() -> int:
    """The next number."""
    return int(torch.autograd._get_sequence_nr())


def advance(count: int) -> None:
    """Consume `count` numbers."""
    for _ in range(count):
        torch._C._functions.UndefinedGrad()
