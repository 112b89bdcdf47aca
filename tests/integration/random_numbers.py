"""Random calls of kernels that return a number."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from orchestrator.core.dtype import FLOATING, INTEGRAL, ScalarType
from tests.unit.method.recorded_calls import Call, Returned

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.integration.random_calls import RandomCalls

_S = ScalarType
_DTYPES: Final = [*sorted(INTEGRAL | FLOATING), _S.Bool]
_TOP: Final = 1 << 63
_INTS: Final = (
    *(0, 1, -1, 2, -2, 3, 7, -7, 100, 1 << 31, -(1 << 31), (1 << 53) + 1, 1 << 62),
    *(_TOP - 1, -_TOP, 3037000500, -3037000500),
)
_DOUBLES: Final = (
    *(0.0, -0.0, 0.5, -0.5, 1.5, 2.5, -2.5, 0.1, -0.1, 1.0, -3.0, 7.25, 1e300, -1e300),
    *(5e-324, 2.0**63, -(2.0**63), 2.0**53 + 2, 9007199254740993.0, 1e19, 4.5e15 + 0.5),
    *(float("inf"), float("-inf"), float("nan")),
)


def _number(r: RandomCalls) -> Any:
    return r.one([r.one(_INTS), r.one(_INTS[:9]), r.one(_DOUBLES)])


def _kind(*numbers: Any) -> Returned:
    """What a result of these is that the schema calls Scalar."""
    if any(isinstance(n, float) for n in numbers):
        return Returned(float)
    return Returned(bool if all(isinstance(n, bool) for n in numbers) else int)


def _of_two(r: RandomCalls) -> Iterator[Call]:
    for base in ("add", "sub", "mul", "floordiv", "truediv"):
        a, b = _number(r), _number(r)
        kind = Returned(float) if base == "truediv" else _kind(a, b)
        yield Call(f"executorch_prim::{base}.Scalar", (a, b, kind))
    for base in ("eq", "gt", "lt", "ge", "le"):
        a = _number(r)
        b = r.one([a, _number(r), _number(r)])
        if r.one([False, False, True]):
            a, b = r.one([True, False]), r.one([True, False, 1])
        yield Call(f"executorch_prim::{base}.Scalar", (a, b, Returned(bool)))
    for name in ("floordiv.int", "mod.int", "mod.Scalar", "sym_max.Scalar"):
        a, b = r.one(_INTS), r.one(_INTS)
        yield Call(f"executorch_prim::{name}", (a, b, Returned(int)))
    pair = (r.one(_INTS), r.one(_INTS))
    yield Call("executorch_prim::sym_min.Scalar", (*pair, Returned(int)))


def _of_one(r: RandomCalls) -> Iterator[Call]:
    a = _number(r)
    yield Call("executorch_prim::neg.Scalar", (a, _kind(a)))
    for base in ("ceil", "round", "trunc", "sym_int"):
        a = r.one([_number(r), r.one(_DOUBLES), True])
        yield Call(f"executorch_prim::{base}.Scalar", (a, Returned(int)))
    a = r.one([_number(r), True])
    yield Call("executorch_prim::sym_float.Scalar", (a, Returned(float)))
    truth = r.one([True, False])
    yield Call("executorch_prim::sym_not.Scalar", (truth, Returned(bool)))
    pair = (_number(r), _number(r))
    yield Call("executorch_prim::sym_ite.Scalar", (truth, *pair, _kind(*pair)))


def _of_tensors(r: RandomCalls) -> Iterator[Call]:
    dtype, sizes = r.one(_DTYPES), r.sizes()
    a = r.tensor(dtype, sizes)
    dim = r.one([0, -1, 1, 5])
    yield Call("aten::sym_size.int", (a, dim, Returned(int)))
    yield Call("aten::sym_numel", (a, Returned(int)))
    kind = bool if dtype is _S.Bool else float if dtype in FLOATING else int
    yield Call("aten::_local_scalar_dense", (a, Returned(kind)))


MAKERS: Final = (_of_two, _of_one, _of_tensors)
