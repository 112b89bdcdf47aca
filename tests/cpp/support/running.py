"""Runs methods with `load_file`: inputs of the corpus in, outputs back."""

from __future__ import annotations

import struct
import subprocess
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from orchestrator.program.values import TensorValue
from tests.conftest import CORPUS

if TYPE_CHECKING:
    from pathlib import Path

    from orchestrator.program.program import Method

_TYPES: Final = {
    0: np.uint8,
    1: np.int8,
    2: np.int16,
    3: np.int32,
    4: np.int64,
    5: np.float16,
    6: np.float32,
    7: np.float64,
    11: np.bool_,
    15: np.uint16,  # bfloat16: bits
}


def run_method(
    load_file: Path, program: Path, method: Method, run: dict[str, Any], *, case: str, folder: Path
) -> bytes:
    """Outputs of one call, byte for byte.

    Args:
        load_file: The program that runs it, with every kernel.
        program: The `.pte` file.
        method: The method as the case has it.
        run: A call out of `case.json`.
        case: Of the inputs.
        folder: For the files that are exchanged.
    """
    inputs, outputs = folder / "inputs", folder / "outputs"
    inputs.write_bytes(encoded(case, method, run["inputs"]))
    outputs.unlink(missing_ok=True)
    done = subprocess.run(
        [load_file, "run", program, method.name, inputs, outputs],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return outputs.read_bytes()


def encoded(case: str, method: Method, entries: list[dict[str, Any]]) -> bytes:
    """Inputs of a call of a case, as `load_file run` reads them."""
    data = b""
    for index, entry in zip(method.inputs, entries, strict=True):
        if entry["kind"] != "tensor":
            code = {"int": "q", "bool": "q", "double": "d"}[entry["kind"]]
            letter = entry["kind"][0].upper().encode()
            data += letter + struct.pack(f"<{code}", entry["value"])
            continue
        value = method.values[index]
        assert isinstance(value, TensorValue)
        array = np.load(CORPUS / case / entry["file"])
        assert array.dtype == _TYPES[value.dtype]
        data += struct.pack("<cBB", b"T", value.dtype, array.ndim)
        data += struct.pack(f"<{array.ndim}i", *array.shape)
        data += np.ascontiguousarray(array.transpose(value.dim_order)).tobytes()
    return data


def decoded(data: bytes, method: Method) -> list[Any]:
    """Outputs that `load_file run` wrote."""
    found: list[Any] = []
    at = 0

    def take(code: str) -> tuple[Any, ...]:
        nonlocal at
        at += struct.calcsize(f"<{code}")
        return struct.unpack_from(f"<{code}", data, at - struct.calcsize(f"<{code}"))

    for index in method.outputs:
        (letter,) = take("c")
        if letter == b"T":
            dtype, rank = take("BB")
            sizes = take(f"{rank}i")
            value = method.values[index]
            assert isinstance(value, TensorValue)
            order = value.dim_order
            count = int(np.prod(sizes, dtype=np.int64))
            array: np.ndarray[Any, Any] = np.frombuffer(data, _TYPES[dtype], count, at)
            at += array.nbytes
            stored = array.reshape([sizes[d] for d in order])
            found.append(stored.transpose(np.argsort(order)))
        elif letter == b"S":
            found.append(take(f"{take('I')[0]}s")[0].decode())
        else:
            found.append(take("d" if letter == b"D" else "q")[0])
    assert at == len(data)
    return found
