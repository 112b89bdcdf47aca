"""Measures the errors of Fourier transforms against NumPy in double.

    python -m tests.ulps.fft

Prints, for Float and Double and by kind of length, the largest error of any item in
units of the last place of the largest item, and the root mean square of the errors
relative to that of the items.
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
    from typing import Any

LENGTHS: Final = {
    "2^n": (2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 16384),
    "2, 3, 5": (6, 12, 15, 20, 48, 60, 100, 160, 240, 400, 480, 1000, 1200, 9600),
    "to 13": (7, 11, 13, 77, 91, 143, 169, 343, 441, 1001, 2197, 8008),
    "primes": (17, 37, 101, 127, 251, 331, 509, 1021),
}
WIDE: Final = {
    ScalarType.Float: ScalarType.ComplexFloat,
    ScalarType.Double: ScalarType.ComplexDouble,
}
OPERATORS: Final = ("aten::_fft_r2c.out", "aten::_fft_c2c.out", "aten::_fft_c2r.out")


def _tensor(dtype: ScalarType, items: np.ndarray[Any, Any], *, is_out: bool = False) -> Tensor:
    data = items.astype(NUMPY[dtype]).tobytes()
    order = tuple(range(items.ndim))
    return Tensor(dtype, items.shape, order, data, is_out)


def _errors(runner: Runner, operator: str, dtype: ScalarType, size: int) -> tuple[float, float]:
    """Largest error, and the relative root mean square."""
    rng = np.random.default_rng(size)
    real: Any = NUMPY[dtype]
    wide = WIDE[dtype]
    want: Any
    given: Any = rng.standard_normal((4, size)).astype(real)
    more: tuple[Any, ...] = ((1,), 0, True)
    kinds = dtype, wide
    if operator == OPERATORS[0]:
        want = np.fft.rfft(given.astype(np.longdouble))
    elif operator == OPERATORS[1]:
        given = given + 1j * rng.standard_normal((4, size)).astype(real)
        want = np.fft.fft(given.astype(np.clongdouble))
        kinds = wide, wide
    else:
        given = np.fft.rfft(given).astype(NUMPY[wide])
        want = np.fft.irfft(given.astype(np.clongdouble), size, norm="forward")
        more = ((1,), 0, size)
        kinds = wide, dtype
    out = _tensor(kinds[1], want, is_out=True)
    call = Call(operator, (_tensor(kinds[0], given), *more, out))
    failed, data = runner.run(*program_of(call, dynamic=False))
    if failed:
        sys.exit(f"{operator} of {size}: {failed}")
    ((_, _, memory),) = outputs_of(data)
    got = np.frombuffer(memory, NUMPY[kinds[1]]).reshape(want.shape)
    error = np.abs(got - want)
    step = float(np.finfo(real).eps)
    square = float(np.sqrt((error**2).mean() / (np.abs(want) ** 2).mean()))
    return float(error.max() / np.abs(want).max()) / step, square / step


def main() -> None:
    """Build, run and print."""
    argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0]).parse_args()
    program = native.build(
        "load_file", folder=native.ROOT / "build" / "opinfo-run", operators=OPERATORS
    )
    runner = Runner(program)
    for dtype in WIDE:
        for kind, lengths in LENGTHS.items():
            cells = []
            for operator in OPERATORS:
                found = [_errors(runner, operator, dtype, n) for n in lengths]
                largest, square = (max(x) for x in zip(*found, strict=True))
                name = operator.partition("_fft_")[2][:3]
                cells.append(f"{name} {largest:5.2f} {square:5.2f}")
            print(f"{dtype.name:7}{kind:9}" + "   ".join(cells))


if __name__ == "__main__":
    main()
