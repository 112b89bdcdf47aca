"""Faults of plans, and what a delegate reads and writes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from orchestrator.method.separate import plan_faults, separated
from orchestrator.method.state import with_state
from orchestrator.program.program import DelegateCall, JumpFalseCall, Method, Program
from orchestrator.program.values import BoolValue, TensorValue
from tests.unit.method.methods import tensor
from tests.unit.method.test_effects import SCHEMAS, method
from tests.unit.pte.programs import program_of

A, B, C, D = (tensor((4, 4), 16 * at) for at in range(4))
VIEW = tensor((16,), 0)
"""Of A, without an instruction."""


def kept(*methods: Method) -> list[list[int]]:
    """By method: the values that outlive a run."""
    found = with_state(program_of(*methods), SCHEMAS)
    return [
        [i for i, v in enumerate(m.values) if isinstance(v, TensorValue) and v.is_state]
        for m in found.methods
    ]
