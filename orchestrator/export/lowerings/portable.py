"""Lowering for portable kernels: no backend."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import torch
from executorch.exir import EdgeCompileConfig, to_edge
from executorch.exir.passes.constant_prop_pass import constant_prop_pass

from orchestrator.export.lowerings.xnnpack import quantizer

if TYPE_CHECKING:
    from orchestrator.export.request import Request

__all__ = ["lowered", "quantizer"]

# Chosen by hand: folding may add as much as the call that it removes took.
_MOST_GROWTH_BYTES = 64
"""About what a call and its arguments take in a program."""


def lowered(program: Any, request: Request) -> Any:
    """Lower an exported program."""
    del request
    # Quantized graphs mix dtypes, and what is not a core operator, as those of complex
    # numbers, may have a kernel or be decomposed: validation rejects both.
    config = EdgeCompileConfig(_check_ir_validity=False)
    edge = to_edge(program, compile_config=config)
    before = edge.exported_program()
    # A copy, as the pass changes the program in place and its result may be refused
    # below.
    after = constant_prop_pass(copy.deepcopy(before))
    # The usual case is weights that are transposed in each run. A result that is large
    # only at run time, such as a mask, would have to be stored.
    if _constant_bytes(after) <= _constant_bytes(before) + _MOST_GROWTH_BYTES:
        edge._edge_programs["forward"] = after  # noqa: SLF001
    return edge


def _constant_bytes(program: Any) -> int:
    tensors = {**program.state_dict, **program.constants}.values()
    return sum(t.nbytes for t in tensors if isinstance(t, torch.Tensor))
