from __future__ import annotations

from dataclasses import replace

import pytest

from orchestrator.core.operator import OperatorName
from orchestrator.method.effects import Effect, MethodEffects
from orchestrator.method.lifetimes import lifetimes, live_bytes, split_at_writes
from orchestrator.program.interface import macs_of
from orchestrator.program.values import Allocation, BoolValue, NoneValue, TensorValue, Value
from orchestrator.report.arena import peak_of
from tests.conftest import CASES
from tests.unit.products import program_of
from tests.unit.report.report_cases import NO_KERNELS, facts_of
from tests.unit.schemas import schemas

PORTABLE = [c for c in CASES if c not in NO_KERNELS]


def _tensor(*sizes: int) -> TensorValue:
    values = program_of("mlp").methods[0].values
    (found, *_) = (v for v in values if isinstance(v, TensorValue))
    return replace(found, sizes=sizes)


def _macs(operator: str, **named: Value) -> int | None:
    schema = schemas()[OperatorName.parse(operator)]
    values = [named.get(a.name, NoneValue()) for a in schema.arguments]
    return macs_of(schema, range(len(values)), values)


@pytest.mark.parametrize(
    ("operator", "named", "macs"),
    [
        # Each of 2*5*5 places sums 3*2*2 products for each of 8 channels.
        (
            "aten::convolution.out",
            {"input": (2, 3, 6, 6), "weight": (8, 3, 2, 2), "out": (2, 8, 5, 5)},
            2 * 5 * 5 * 8 * 3 * 2 * 2,
        ),
        # Depthwise: a filter sees one channel.
        (
            "cortex_m::quantized_depthwise_conv2d.out",
            {"input": (1, 8, 6, 6), "weight": (1, 3, 3, 8), "out": (1, 8, 4, 4)},
            4 * 4 * 8 * 3 * 3,
        ),
        (
            "cortex_m::quantized_conv2d_nhwc.out",
            {"input": (1, 6, 6, 3), "weight": (8, 3, 3, 3), "out": (1, 4, 4, 8)},
            4 * 4 * 8 * 3 * 3 * 3,
        ),
        # Each input goes to 3*3 places of 4 channels.
        (
            "cortex_m::quantized_transpose_conv2d.out",
            {"input": (1, 2, 5, 5), "weight": (4, 3, 3, 2), "out": (1, 4, 11, 11)},
            5 * 5 * 2 * 4 * 3 * 3,
        ),
        (
            "cortex_m::quantized_linear.out",
            {"input": (7, 16), "weights": (4, 16), "out": (7, 4)},
            7 * 4 * 16,
        ),
        ("aten::bmm.out", {"self": (3, 4, 5), "mat2": (3, 5, 6), "out": (3, 4, 6)}, 360),
        ("aten::addmm.out", {"self": (6,), "mat1": (2, 5), "out": (2, 6)}, 60),
        ("aten::add.out", {"self": (2, 5), "other": (2, 5), "out": (2, 5)}, None),
        ("aten::mm.out", {}, None),
        ("aten::convolution.out", {"weight": (8, 3, 2, 2), "out": ()}, None),
    ],
)
def test_macs(operator: str, named: dict[str, tuple[int, ...]], macs: int | None) -> None:
    tensors = {name: _tensor(*sizes) for name, sizes in named.items()}
    assert _macs(operator, **tensors) == macs


def test_macs_of_a_transposed_convolution_count_inputs() -> None:
    found = _macs(
        "aten::convolution.out",
        input=_tensor(1, 2, 5, 5),
        weight=_tensor(2, 4, 3, 3),
        out=_tensor(1, 4, 11, 11),
        transposed=BoolValue(value=True),
    )
    assert found == 5 * 5 * 2 * 4 * 3 * 3


def test_constants_come_from_no_step() -> None:
    (method,) = facts_of("mlp").methods
    (first, *_) = method.steps
    assert first.operator == "aten::permute_copy.out"
    assert (first.after, method.tensors[first.reads[0]].role) == ((), "weight")


def test_results_are_followed_through_memory() -> None:
    # A pass drops the view between pooling and the last layer.
    (method,) = facts_of("kws_dscnn_int8_m55", prelinked=True).methods
    assert [s.after for s in method.steps] == [(n,) for n in range(-1, len(method.steps) - 1)]
    assert all(step.function.startswith("orch::cortex_m::") for step in method.steps)


def _effect(time: int, reads: tuple[int, ...], fills: tuple[int, ...]) -> Effect:
    return Effect(reads=reads, fills=fills, next=(time + 1,))


def test_a_value_lives_anew_when_it_is_written_anew() -> None:
    one = replace(
        _tensor(4), allocation=Allocation(memory_id=1, offset_bytes=0), data_buffer_index=0
    )
    other = replace(one, allocation=Allocation(memory_id=1, offset_bytes=64))
    effects = MethodEffects(
        values=(one, other),
        at=(
            _effect(0, (0,), (1,)),  # the input is used here for the last time
            _effect(1, (1,), (1,)),  # in place
            _effect(2, (1,), (0,)),
            _effect(3, (0,), (0,)),
        ),
        inputs=(0,),
        outputs=(0,),
        moved=(),
        is_known=True,
    )
    whole = lifetimes(effects, 1)
    assert [(v.index, v.first, v.last) for v in sorted(whole)] == [(0, -1, 4), (1, 0, 2)]
    split = sorted(split_at_writes(effects, whole))
    assert [(v.index, v.first, v.last) for v in split] == [
        *((0, -1, 0), (1, 0, 1), (1, 1, 2), (0, 2, 3), (0, 3, 4))
    ]
    jump = replace(effects.at[3], next=(4, 1))
    loop = replace(effects, at=(*effects.at[:3], jump))
    assert split_at_writes(loop, whole) == whole


@pytest.mark.parametrize("case", PORTABLE)
def test_lives_never_exceed_the_plan(case: str) -> None:
    for method in facts_of(case).methods:
        for arena in method.arenas:
            peak = peak_of(arena)
            assert 0 <= peak.size_bytes <= arena.plan.size_bytes
            assert peak.size_bytes == max(
                (count for _, count in live_bytes(arena.lives)), default=0
            )
            assert all(0 <= v.begin < v.end for v in arena.lives)
            assert all(-1 <= v.first <= v.last <= len(method.steps) for v in arena.lives)


def test_what_passes_removed_is_listed() -> None:
    (method,) = facts_of("kws_dscnn_fp32", prelinked=True).methods
    before = program_of("kws_dscnn_fp32").methods[0]
    assert len(method.steps) + len(method.removed) == len(before.instructions)
    assert all("::" in name for _, name in method.removed)


def test_a_kernel_says_who_needs_it() -> None:
    facts = facts_of("mlp", "linear_softmax")
    (addmm,) = (k for k in facts.kernels if k.operator == "aten::addmm.out")
    assert {r.source for r in addmm.requesters} == {"mlp", "linear_softmax"}
    assert addmm.sources == ("op_addmm.cpp", "prepared_matmul.cpp")


@pytest.mark.parametrize(
    ("case", "cpu"),
    [
        ("kws_dscnn_int8_m55", "cortex-m55"),
        ("ic_resnet8_int8_m55", "cortex-m55"),
        ("kws_dscnn_fp32", "host"),
        ("transformer_block", "host"),
    ],
)
def test_prelinked_calls_have_the_macs_of_the_program(case: str, cpu: str) -> None:
    """Packed and prepared calls have other arguments than the operator's schema."""
    loaded, prelinked = (
        [
            (step.operator, step.macs)
            for step in facts_of(case, cpu=cpu, prelinked=is_prelinked).methods[0].steps
            if step.macs is not None
        ]
        for is_prelinked in (False, True)
    )
    assert loaded
    assert loaded == prelinked
