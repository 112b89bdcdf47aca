"""How the items of tensors lie to each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.method.passes.arguments import strides_of

if TYPE_CHECKING:
    from orchestrator.program.values import TensorValue


def lie_alike(*tensors: TensorValue) -> bool:
    """Whether tensors have the same sizes, and their items the same order in memory."""
    return (
        len({tensor.sizes for tensor in tensors}) == 1
        and len(
            {
                tuple(
                    stride
                    for size, stride in zip(
                        tensor.sizes, strides_of(tensor), strict=True
                    )
                    if size != 1
                )
                for tensor in tensors
            }
        )
        == 1
    )
