"""The calls that `test` makes, and how their outputs are compared."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from orchestrator.build import Shell, judging
from orchestrator.build.judging import Trial, _value, _values, _Variants
from orchestrator.core.bounds import SizeBound
from orchestrator.core.dtype import ScalarType
from orchestrator.errors import UsageError
from orchestrator.program.values import ValueKind
from orchestrator.running.npy import Array
from orchestrator.running.product import Port, ProductMethod
from orchestrator.running.protocol import CallResult, DeviceError
from orchestrator.running.values import Call, ListValue
from tests.unit.build.fake_project import project_in, write_project

if TYPE_CHECKING:
    from collections.abc import Sequence


def tensor(
    sizes: tuple[int, ...], *bounds: SizeBound, dtype: ScalarType = ScalarType.Float
) -> Port:
    """A port whose sizes may change."""
    return Port(
        kind=ValueKind.TENSOR,
        dtype=dtype,
        sizes=sizes,
        dim_order=tuple(range(len(sizes))),
        is_dynamic=True,
        bounds=bounds,
    )


def bound(dim: int, least: int, step: int = 1) -> SizeBound:
    return SizeBound(input=0, dim=dim, least=least, step=step)


@pytest.mark.parametrize(
    ("port", "shapes"),
    [
        (tensor((1, 12, 8), bound(1, 4, 4)), [(1, 12, 8), (1, 8, 8)] * 2),
        (tensor((2, 9), bound(1, 1, 2)), [(2, 9), (2, 5)] * 2),
        (tensor((9, 7), bound(0, 7), bound(1, 2)), [(9, 7), (7, 3)] * 2),
        (tensor((2, 1, 5)), [(2, 1, 5), (1, 1, 5), (2, 1, 5), (2, 1, 2)]),
        (tensor((1,)), [(1,)] * 4),
    ],
)
def test_sizes_are_within_their_bounds(port: Port, shapes: list[tuple[int, ...]]) -> None:
    random = np.random.default_rng(0)
    found = [_value(port, random, run) for run in range(4)]
    assert [x.shape for x in found if isinstance(x, Array)] == shapes
    for shape in shapes:
        assert all(bound.allows(shape[bound.dim]) for bound in port.bounds)


def array(patterns: list[int], stored: str, dtype: str) -> Array:
    """Elements with these bits."""
    return Array.of(np.array(patterns, stored).view(dtype))


BFLOAT16, HALVES, FLOATS = "<u2", "<u4", "<c8"
"""How arrays of BFloat16, ComplexHalf and ComplexFloat are stored."""


@pytest.mark.parametrize(
    ("dtype", "got", "want", "index"),
    [
        (ScalarType.Float, array([0xFFC00000], "<u4", "<f4"), 0x7FC00001, None),
        (ScalarType.Float, array([1 << 31], "<u4", "<f4"), 0, 0),
        (ScalarType.BFloat16, array([0xFFC0], "<u2", BFLOAT16), 0x7FC0, None),
        (ScalarType.BFloat16, array([0x8000], "<u2", BFLOAT16), 0, 0),
        (ScalarType.BFloat16, array([0x7FC0], "<u2", BFLOAT16), 0x7F80, 0),
        (ScalarType.ComplexHalf, array([0x3C00FE00], "<u4", HALVES), 0x3C007E00, None),
        (ScalarType.ComplexHalf, array([0x3C00FE00], "<u4", HALVES), 0x40007E00, 0),
        (
            ScalarType.ComplexFloat,
            array([0x3F800000_7FC00000], "<u8", FLOATS),
            0x3F800000_FFC00000,
            None,
        ),
        (
            ScalarType.ComplexFloat,
            array([0x3F800000_7FC00000], "<u8", FLOATS),
            0x40000000_7FC00000,
            0,
        ),
        (ScalarType.Bool, array([1], "|u1", "|b1"), 0, 0),
    ],
)
def test_bits_are_compared_and_nan_has_no_sign(
    dtype: ScalarType, got: Array, want: int, index: int | None
) -> None:
    """Of each part of a complex number, whatever the other part is."""
    port = tensor((1,), dtype=dtype)
    other = array([want], f"<u{got.item_bytes}", got.dtype)
    found = [at for at, *_ in _values(got, other, port)]
    assert found == ([] if index is None else [(index,)])
    several = Port(kind=ValueKind.TENSOR_LIST, items=(port,))
    ours, theirs = (ListValue(several.kind, (x,)) for x in (got, other))
    differ = _values(ours, theirs, several)
    assert [at for at, *_ in differ] == [(0, *at) for at in found]


FORWARD = ProductMethod(index=0, model="net", name="forward", state_bytes=8, inputs=(), outputs=())


def reference_of(
    text: str, folder: Path, monkeypatch: pytest.MonkeyPatch, scenario: str = ""
) -> tuple[str, list[str]]:
    """The calls that a reference carries out, and those of each of its runs.

    A letter is a call; `x` is one that the program refuses, `!` goes before one that
    begins with fresh state.
    """
    runs: list[str] = []

    def shown(calls: Sequence[Call]) -> str:
        return "".join("!" * call.fresh + str(call.inputs[0]) for call in calls)

    def run(_: object, __: object, calls: Sequence[Call], ___: Trial) -> object:
        runs.append(shown(calls))
        results = []
        for call in calls:
            bad = call.inputs[0] == "x"
            error = DeviceError.InvalidArgument if bad else DeviceError.Ok
            results.append(CallResult(error=error, instruction=0, state_used_bytes=8, outputs=()))
            if bad:
                break
        return tuple(results)

    monkeypatch.setattr(judging, "_run", run)
    monkeypatch.setattr(_Variants, "_built", lambda *_: (None, None))
    write_project(folder)
    project = project_in(folder)
    trial = Trial(scenario=Path("calls.json"))
    given, more = (
        tuple(Call(method=FORWARD, inputs=(name,)) for name in names) for names in (text, scenario)
    )
    variants = _Variants(project, trial, Shell())
    kept, results = variants.reference(project.profile, "r", given, more)
    assert len(kept) == len(results)
    assert all(result.error is DeviceError.Ok for result in results)
    return shown(kept), runs


@pytest.mark.parametrize(
    ("calls", "kept", "runs"),
    [
        ("ab", "ab", ["ab"]),
        ("axbcx", "a!bc", ["axbcx", "!bcx"]),
        ("xxab", "!ab", ["xxab", "!xab", "!ab"]),
        ("x", "", ["x"]),
        ("", "", []),
    ],
)
def test_calls_after_one_that_is_refused_begin_anew(
    calls: str, kept: str, runs: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No call that was carried out runs twice."""
    assert reference_of(calls, tmp_path, monkeypatch) == (kept, runs)


def test_a_call_of_a_scenario_is_not_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, _ = reference_of("ax", tmp_path, monkeypatch, scenario="bc")
    assert found == "a!bc"
    for scenario, number in [("xab", 0), ("abx", 2)]:
        with pytest.raises(UsageError) as raised:
            reference_of("axb", tmp_path, monkeypatch, scenario=scenario)
        (problem,) = raised.value.diagnostics
        assert problem.code == "bad-scenario"
        assert problem.message == (
            f"the program refuses call {number} of the scenario: net.forward"
        )
        assert str(problem.where) == "calls.json"
