"""Scratch memory: what calls need while they run.

In: programs and the kernels of their calls. Out: a `ScratchNeed` per scratch argument
of a call, with its bytes on this target; tables that show them; and the comparison of
CMSIS-NN's own sizes with tables.
"""

from orchestrator.scratch.needs import (
    ScratchNeed,
    SizedKernel,
    UnknownSize,
    method_scratch,
    policy_problems,
    product_scratch,
)

__all__ = [
    "ScratchNeed",
    "SizedKernel",
    "UnknownSize",
    "method_scratch",
    "policy_problems",
    "product_scratch",
]
