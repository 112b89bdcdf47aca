"""Judges streams: each call gives the bits of the window that ends with it.

    python -m tests.differential.windows [PROGRAM ...]

makes streams of programs, along every dimension of every input that can be one, and
compares them with the windows of the program as it is, without passes. Default: all
checked-in programs.
"""

from __future__ import annotations

import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from orchestrator.core.border import Stream
from orchestrator.program.reader import read_program
from orchestrator.program.values import TensorValue
from orchestrator.running.npy import Array
from orchestrator.running.protocol import DeviceError
from orchestrator.running.values import Call
from orchestrator.streams import StreamError, streamed
from tests.differential.judge import PLAIN, bits_of, built, carried_out, write_profile

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt

    from orchestrator.program.program import Method, Program

    Items = npt.NDArray[Any]

FORMS: Final = {"Float": "<f4", "Char": "i1"}
"""NumPy's names of the dtypes that inputs may have."""
TOGETHER: Final = 12
"""Streams in a product."""
_ROOT: Final = Path(__file__).parents[2]
_MOST_BYTES: Final = 400_000
"""Of a program: larger ones take long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Streamed:
    """A program, and what of it is a stream.

    Args:
        name: Of the program, for messages.
        program: Its bytes.
        index: Of the input.
        stream: Its dimension, and how many positions come with a call.
    """

    name: str
    program: bytes
    index: int
    stream: Stream

    def __str__(self) -> str:
        at = f"input {self.index}, axis {self.stream.axis}, hop {self.stream.hop}"
        return f"{self.name}: {at}"

    def __post_init__(self) -> None:
        """Raises StreamError: it cannot be one."""
        streamed(read_program(self.program, file=""), self.index, self.stream)


def streams_of(name: str, data: bytes) -> Iterator[Streamed]:
    """Streams of a program of one method without state, a hop for each dimension."""
    program = read_program(data, file=name)
    method = program.methods[0]
    if len(program.methods) > 1 or method.delegates or not _stands_alone(program):
        return
    inputs = [method.values[index] for index in method.inputs]
    if any(not _is_given(value) for value in inputs):
        return
    for index, value in enumerate(inputs):
        assert isinstance(value, TensorValue)
        for axis, size in enumerate(value.sizes):
            for hop in sorted({1, 2, size // 2}):
                if 0 < hop < size:
                    try:
                        yield Streamed(
                            name=name, program=data, index=index, stream=Stream(axis=axis, hop=hop)
                        )
                    except StreamError:
                        continue


def _is_given(value: object) -> bool:
    return isinstance(value, TensorValue) and value.dtype.name in FORMS and not value.is_dynamic


def _stands_alone(program: Program) -> bool:
    """Whether it has no state, and all of its constants."""
    values = (v for m in program.methods for v in m.values if isinstance(v, TensorValue))
    return not any(v.is_mutable_state or v.is_external for v in values)


def differences(
    streams: Sequence[Streamed], target: str, load: str, folder: Path
) -> dict[str, str]:
    """What differs, by stream."""
    calls = {str(s): _inputs(s) for s in streams}
    tables = [_io(s) for s in streams]
    profile, out = write_profile(
        folder / "given", [s.program for s in streams], target, load, tables
    )
    product = built(profile, out)
    assert product is not None, f"{profile} cannot be built"
    plain, plain_out = write_profile(folder / "meant", [s.program for s in streams], PLAIN, "pte")
    windows = built(plain, plain_out)
    assert windows is not None, f"{plain} cannot be built"
    got, want, owners = [], [], []
    for number, stream in enumerate(streams):
        name = f"p{number}"
        method = next(m for m in product.methods if m.model == name)
        window = next(m for m in windows.methods if m.model == name)
        length = window.inputs[stream.index].sizes[stream.stream.axis]
        warm = -(-length // stream.stream.hop)
        for call, (fresh, whole) in enumerate(calls[str(stream)]):
            got.append(Call(method=method, inputs=tuple(map(Array.of, fresh))))
            want.append(Call(method=window, inputs=tuple(map(Array.of, whole))))
            owners.append((stream, call + 1 >= warm))
    found: dict[str, str] = {}
    results = zip(
        owners, carried_out(product, out, got), carried_out(windows, plain_out, want), strict=True
    )
    for (stream, is_warm), one, other in results:
        assert other.error is DeviceError.Ok, f"{stream}: {other}"
        if one.error is not DeviceError.Ok:
            found.setdefault(str(stream), f"the stream gives {one.error.name}")
        elif is_warm:
            for a, b in zip(one.outputs, other.outputs, strict=True):
                if not _is_end(a, b):
                    found.setdefault(str(stream), "other bits")
    return found


def _io(stream: Streamed) -> str:
    at = f"axis = {stream.stream.axis}, hop = {stream.stream.hop}"
    return f"[models.io]\ninput{stream.index} = {{ stream = {{ {at} }} }}\n"


def _inputs(stream: Streamed) -> list[tuple[list[Items], list[Items]]]:
    """Of each call: inputs of the stream, and those of the window that ends with it."""
    method = read_program(stream.program, file="").methods[0]
    rng = np.random.default_rng(5)
    others = [_random(rng, method, at) for at in range(len(method.inputs))]
    axis, hop = stream.stream.axis, stream.stream.hop
    window = others[stream.index]
    length = window.shape[axis]
    count = -(-length // hop) + 3
    parts = range(count * hop // length + 1)
    after = [_random(rng, method, stream.index) for _ in parts]
    whole = np.concatenate([np.zeros_like(window), *after], axis)
    found = []
    for call in range(1, count + 1):
        end = length + call * hop
        fresh, now = [*others], [*others]
        fresh[stream.index] = np.take(whole, range(end - hop, end), axis)
        now[stream.index] = np.take(whole, range(end - length, end), axis)
        found.append((fresh, now))
    return found


def _random(rng: np.random.Generator, method: Method, at: int) -> Items:
    value = method.values[method.inputs[at]]
    assert isinstance(value, TensorValue)
    items = rng.integers(-128, 128, value.sizes)
    form = FORMS[value.dtype.name]
    return (items / 64 if form == "<f4" else items).astype(form)


def _is_end(one: object, other: object) -> bool:
    """Whether one array is the end of another, along each dimension."""
    assert isinstance(one, Array)
    assert isinstance(other, Array)
    a, b = one.numpy, other.numpy
    part = tuple(slice(n - m, n) for m, n in zip(a.shape, b.shape, strict=True))
    return a.dtype == b.dtype and bits_of(a) == bits_of(b[part])


def checked_in() -> list[Path]:
    """Programs whose operators have kernels."""
    data = _ROOT / "tests" / "data"
    found = {
        path.read_bytes(): path
        for folder in (data / "held_out", data / "corpus", _ROOT / "examples")
        for path in sorted(folder.rglob("*.pte"))
        if path.stat().st_size < _MOST_BYTES and "bad" not in path.parts
    }
    return [
        *sorted((data / "streams").glob("*.pte")),
        *(path for data, path in found.items() if b"my_ops" not in data),
    ]


def main(names: Sequence[str]) -> int:
    """Judge streams of programs, and print what differs."""
    paths = [*map(Path, names)] or checked_in()
    streams = [s for path in paths for s in streams_of(str(path), path.read_bytes())]
    failed = 0
    for begin in range(0, len(streams), TOGETHER):
        part = streams[begin : begin + TOGETHER]
        with tempfile.TemporaryDirectory() as folder:
            target = '[target]\ncpu = "host"\ntoolchain = "zig"\n'
            for stream, what in differences(part, target, "prelinked", Path(folder)).items():
                failed += 1
                print(f"{stream}: {what}")
        print(f"{begin + len(part)} of {len(streams)}, {failed} differ", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
