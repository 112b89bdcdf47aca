"""Kernel keys."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.core.dtype import ScalarType
from orchestrator.core.kernel import KernelKey, TensorMeta

METAS = st.builds(
    TensorMeta,
    st.sampled_from(ScalarType),
    st.integers(0, 5).flatmap(lambda n: st.permutations(range(n))).map(tuple),
)
KEYS = st.builds(KernelKey, st.lists(METAS, max_size=5).map(tuple))


@given(KEYS)
def test_text_round_trips(key: KernelKey) -> None:
    assert KernelKey.parse(str(key)) == key


def test_text_is_that_of_the_format() -> None:
    key = KernelKey((TensorMeta(ScalarType.Float, (0, 2, 3, 1)), TensorMeta(ScalarType.Long, ())))
    assert str(key) == "v1/6;0,2,3,1|4;"
    assert key.dtypes == {ScalarType.Float, ScalarType.Long}
    assert str(KernelKey(())) == "v1"
    assert KernelKey.parse(" v1/6;\n") == KernelKey((TensorMeta(ScalarType.Float, ()),))


@pytest.mark.parametrize(
    "text", ["", "v2/6;0", "default", "v1/", "v1/6", "v1/x;0", "v1/99;0", "v1/6;0,a"]
)
def test_other_text_is_refused(text: str) -> None:
    message = f'"{text}" is not a kernel key like v1/6;0,1|6;0,1'
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        KernelKey.parse(text)
