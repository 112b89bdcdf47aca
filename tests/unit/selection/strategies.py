"""Hypothesis strategies for what models and profiles ask for."""

from __future__ import annotations

from typing import Final

from hypothesis import strategies as st

from orchestrator.core.dtype import ScalarType
from orchestrator.core.kernel import KernelKey, TensorMeta
from orchestrator.core.operator import OperatorName
from orchestrator.selection.op_info import (
    CallPattern,
    DelegateUse,
    OpCall,
    OpInfo,
    Origin,
    SelectedOperator,
)

# Few of each, so that examples overlap.
_NAMES: Final = st.builds(
    OperatorName,
    st.sampled_from(["aten", "quantized_decomposed"]),
    st.sampled_from(["add", "add_", "relu"]),
    st.sampled_from(["", "out"]),
)
_METAS: Final = st.builds(
    TensorMeta,
    st.sampled_from([ScalarType.Float, ScalarType.Char]),
    st.sampled_from([(), (0,), (1, 0)]),
)
_PATTERNS: Final = st.lists(_METAS, max_size=2).map(
    lambda metas: CallPattern("T" * len(metas), tuple(enumerate(metas)))
)
_KEYS: Final = st.lists(_METAS, max_size=2).map(lambda m: KernelKey(tuple(m)))
_METHODS: Final = st.sampled_from(["forward", "encode"])
_CALLS: Final = st.builds(
    OpCall, operator=_NAMES, pattern=_PATTERNS, method=_METHODS, instruction=st.integers(0, 3)
)
_USES: Final = st.builds(
    DelegateUse,
    backend=st.sampled_from(["A", "B"]),
    method=_METHODS,
    instruction=st.integers(-1, 1),
)

INFOS: Final = st.builds(
    OpInfo,
    model=st.sampled_from(["kws", "vww"]),
    operators=st.lists(st.tuples(_METHODS, _NAMES), max_size=3).map(tuple),
    calls=st.lists(_CALLS, max_size=4).map(tuple),
    delegates=st.lists(_USES, max_size=2).map(tuple),
)
EXTRAS: Final = st.builds(
    SelectedOperator,
    name=_NAMES,
    keys=st.lists(_KEYS, max_size=2).map(tuple),
    every_dtype=st.booleans(),
    origins=st.just((Origin("operators.include"),)),
)
