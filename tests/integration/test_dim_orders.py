"""Kernels take tensors for what their memory is, in whichever dim order it is named."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pytest

from tests.integration.host_kernels import recorded
from tests.integration.random_int8 import CALLS
from tests.tools import need_tool
from tests.unit.method.recorded_calls import Tensor, read_calls, reference_calls
from tests.unit.method.test_dim_orders import alike

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.unit.method.recorded_calls import Call

pytestmark = pytest.mark.toolchain

LEAST: Final = 200
"""Calls with other dim orders that kernels take."""


def _renamed(call: Call, rng: np.random.Generator) -> Call:
    """The call with tensors in other dim orders of the same memory."""

    def renamed(argument: Any) -> Any:
        if isinstance(argument, tuple):
            return tuple(map(renamed, argument))
        if not isinstance(argument, Tensor) or len(argument.sizes) > 5:
            return argument
        found = alike(argument)
        return found[rng.integers(len(found))]

    return replace(call, args=tuple(map(renamed, call.args)))


def _pairs() -> Iterator[tuple[Call, Call]]:
    rng = np.random.default_rng(38)
    for call in (*reference_calls(), *read_calls(CALLS)):
        other = _renamed(call, rng)
        if other != call:
            yield call, other


def test_kernels_give_the_same_or_refuse(tmp_path: Path) -> None:
    need_tool("g++", "clang++")
    pairs = [*_pairs()]
    plain = recorded([call for call, _ in pairs], tmp_path)
    other = recorded([call for _, call in pairs], tmp_path)
    taken = 0
    different = []
    for (call, renamed), one, two in zip(pairs, plain, other, strict=True):
        if two is None or one is None:
            continue
        taken += 1
        if one != two:
            different.append((call.operator, renamed.args))
    assert different == []
    assert taken >= LEAST
