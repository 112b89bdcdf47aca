"""The number that PyTorch gives to what it records of gradients.

Dispatching with gradients counts on, and nodes of graphs are numbered by that
(`seq_nr`). Where a result is known without dispatching, the number goes on as far.

Source: PyTorch 2.13 `torch/csrc/autograd/function.h`, `Node`: each one that is made
takes the next number.
"""

from __future__ import annotations

import torch


def sequence_number() -> int:
    """The number that comes next."""
    return int(torch.autograd._get_sequence_nr())


def advance(count: int) -> None:
    """Let `count` numbers be taken."""
    for _ in range(count):
        torch._C._functions.UndefinedGrad()
