"""Warnings about products that can be built."""

from __future__ import annotations

from dataclasses import replace

import pytest

from orchestrator.build.product_warnings import _drops_out
from orchestrator.core.operator import OperatorName
from orchestrator.program.values import BoolValue, DoubleValue, NoneValue
from tests.unit.method.methods import tensor
from tests.unit.method.test_effects import method


@pytest.mark.parametrize(
    ("train", "expected"),
    [(NoneValue(), True), (BoolValue(value=True), True), (BoolValue(value=False), False)],
)
def test_dropout_in_training_is_noticed(train: NoneValue | BoolValue, *, expected: bool) -> None:
    values = (tensor((4,), 0), DoubleValue(0.3), train, tensor((4,), 16))
    plain = method(values, ("aten::relu.out", (0, 1, 2, 3, 3)), inputs=(0,))
    assert not _drops_out(plain)
    names = tuple(map(OperatorName.parse, ["aten::native_dropout.out"]))
    assert _drops_out(replace(plain, operators=names)) is expected
