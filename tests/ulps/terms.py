"""Measures errors that grow with a number of terms, against NumPy in long double.

    python -m tests.ulps.terms

Prints, for Float and Double, by number of terms or rows, the largest error in units in
the last place: of products and of logarithms of sums along an axis of each item, of
factors of matrices of the largest item. Matrices are far from those without an inverse:
what others lose, their condition number says.
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Final

import numpy as np

from orchestrator.core.dtype import ScalarType
from tests.cpp.support import native
from tests.opinfo.programs import NUMPY, outputs_of, program_of
from tests.opinfo.run import Runner
from tests.unit.method.recorded_calls import Call, Tensor

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeAlias

    Items: TypeAlias = np.ndarray[Any, Any]

DTYPES: Final = (ScalarType.Float, ScalarType.Double)
TERMS: Final = (10, 100, 2000)
ROWS: Final = (2, 8, 32, 64)
MATRICES: Final = 20


def _out(dtype: ScalarType, *sizes: int) -> Tensor:
    data = bytes(int(np.prod(sizes)) * dtype.item_bytes)
    return Tensor(dtype, sizes, tuple(range(len(sizes))), data, is_out=True)


def _run(runner: Runner, operator: str, *args: Any) -> list[Items]:
    failed, data = runner.run(*program_of(Call(operator, args), dynamic=False))
    if failed:
        sys.exit(f"{operator}: {failed}")
    return [
        np.frombuffer(memory, NUMPY[dtype]).reshape(sizes).astype(np.longdouble)
        for dtype, sizes, memory in outputs_of(data)
    ]


def _given(dtype: ScalarType, items: Items) -> Tensor:
    order = tuple(range(items.ndim))
    return Tensor(dtype, items.shape, order, items.tobytes())


def products(runner: Runner, dtype: ScalarType, count: int) -> float:
    """Of numbers about 1: each of them, and of a whole line."""
    rng = np.random.default_rng(count)
    real: Any = NUMPY[dtype]
    given = np.exp(rng.standard_normal((20, count)) / 8).astype(real)
    want = np.cumprod(given.astype(np.longdouble), axis=1)
    step = np.spacing(want.astype(real))
    args = _given(dtype, given), 1, None, _out(dtype, *given.shape)
    (got,) = _run(runner, "aten::cumprod.out", *args)
    whole = _given(dtype, given), 1, False, None, _out(dtype, len(given))
    (last,) = _run(runner, "aten::prod.int_out", *whole)
    errors = abs(got - want) / step, abs(last - want[:, -1]) / step[:, -1]
    return float(max(e.max() for e in errors))


def logarithms(runner: Runner, dtype: ScalarType, count: int) -> float:
    """Of sums of powers of e, by exponents near and far from each other."""
    worst = 0.0
    real: Any = NUMPY[dtype]
    for scale in (1, 8, 90):
        rng = np.random.default_rng(count)
        given = (rng.standard_normal((20, count)) * scale).astype(real)
        exact = given.astype(np.longdouble)
        want = np.logaddexp.accumulate(exact, axis=1)
        terms = np.logaddexp.accumulate(abs(exact), axis=1)
        step = np.spacing(terms.astype(real))
        args = _given(dtype, given), 1, _out(dtype, *given.shape)
        (got,) = _run(runner, "aten::logcumsumexp.out", *args)
        worst = max(worst, float((abs(got - want) / step).max()))
    return worst


def _matrices(real: Any, n: int) -> Items:
    """As far from those without an inverse as the identity, rows in any order."""
    rng = np.random.default_rng(n)
    made = rng.uniform(-0.5, 0.5, (MATRICES, n, n)) + n * np.eye(n)
    return np.stack([m[rng.permutation(n)] for m in made]).astype(real)


def _factors(given: Items, pivots: Items) -> Items:
    """Exact ones, with the same rows swapped."""
    a = given.astype(np.longdouble)
    for k, row in enumerate(pivots.astype(int) - 1):
        a[[k, row]] = a[[row, k]]
        a[k + 1 :, k] /= a[k, k]
        a[k + 1 :, k + 1 :] -= np.outer(a[k + 1 :, k], a[k, k + 1 :])
    return a


def _worst(got: Items, want: Items, real: Any) -> float:
    """Largest error in units in the last place of the largest item."""
    return float(abs(got - want).max() / np.spacing(real(abs(want).max())))


def factors(runner: Runner, dtype: ScalarType, n: int) -> float:
    """Of a lower and an upper triangle."""
    real: Any = NUMPY[dtype]
    worst = 0.0
    for given in _matrices(real, n):
        outs = _out(dtype, n, n), _out(ScalarType.Int, n), _out(ScalarType.Int)
        args = _given(dtype, given), True, False, *outs
        got, pivots, _ = _run(runner, "aten::linalg_lu_factor_ex.out", *args)
        worst = max(worst, _worst(got, _factors(given, pivots), real))
    return worst


def determinants(runner: Runner, dtype: ScalarType, n: int) -> float:
    """Of a product of pivots."""
    real: Any = NUMPY[dtype]
    worst = 0.0
    for made in _matrices(real, n):
        given = made / real(n)  # its determinant is a float
        outs = _out(dtype), _out(dtype, n, n), _out(ScalarType.Int, n)
        args = _given(dtype, given), *outs
        got, _, pivots = _run(runner, "aten::_linalg_det.result", *args)
        swaps = (pivots != np.arange(1, n + 1)).sum()
        want = np.diagonal(_factors(given.T, pivots)).prod() * (-1) ** int(swaps)
        worst = max(worst, _worst(got, want, real))
    return worst


def log_determinants(runner: Runner, dtype: ScalarType, n: int) -> float:
    """Of a sum of logarithms of pivots."""
    real: Any = NUMPY[dtype]
    worst = 0.0
    for given in _matrices(real, n):
        outs = _out(dtype), _out(dtype), _out(dtype, n, n), _out(ScalarType.Int, n)
        args = _given(dtype, given), *outs
        _, got, _, pivots = _run(runner, "aten::_linalg_slogdet.sign", *args)
        want = np.log(abs(np.diagonal(_factors(given.T, pivots)))).sum()
        worst = max(worst, _worst(got, want, real))
    return worst


def roots(runner: Runner, dtype: ScalarType, n: int) -> float:
    """Of symmetric matrices."""
    real: Any = NUMPY[dtype]
    worst = 0.0
    for made in _matrices(real, n):
        given = (made @ made.T + np.eye(n, dtype=real)).astype(real)
        a = np.tril(given).astype(np.longdouble)
        for j in range(n):
            a[j:, j] -= a[j:, :j] @ a[j, :j]
            a[j:, j] /= np.sqrt(a[j, j])
        args = _given(dtype, given), False, _out(dtype, n, n)
        (got,) = _run(runner, "aten::cholesky.out", *args)
        worst = max(worst, _worst(got, a, real))
    return worst


MEASURED: Final[dict[str, tuple[Callable[..., float], tuple[int, ...]]]] = {
    "aten::cumprod.out": (products, TERMS),
    "aten::logcumsumexp.out": (logarithms, TERMS),
    "aten::linalg_lu_factor_ex.out": (factors, ROWS),
    "aten::_linalg_det.result": (determinants, ROWS),
    "aten::_linalg_slogdet.sign": (log_determinants, ROWS),
    "aten::cholesky.out": (roots, ROWS),
}


def main() -> None:
    """Build, run and print."""
    argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0]).parse_args()
    program = native.build(
        "load_file",
        folder=native.ROOT / "build" / "opinfo-run",
        operators=(*MEASURED, "aten::prod.int_out"),
    )
    runner = Runner(program)
    for operator, (measure, counts) in MEASURED.items():
        for dtype in DTYPES:
            cells = [f"{n}: {measure(runner, dtype, n):.2f}" for n in counts]
            print(f"{operator:32}{dtype.name:8}" + "   ".join(cells))


if __name__ == "__main__":
    main()
