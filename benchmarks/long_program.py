"""Programs of thousands of instructions, made of the corpus, and of many bytes.

Made when it is measured, so that no large file has to be kept.
"""

from __future__ import annotations

import json
import struct
from copy import deepcopy
from typing import TYPE_CHECKING, Any

from benchmarks.product import CORPUS
from benchmarks.table import NotMeasuredError

if TYPE_CHECKING:
    from collections.abc import Callable

_OF_VALUES = ("IntList", "TensorList", "OptionalTensorList")
"""Kinds of values whose items are numbers of other values; -1 is None."""


def repeated_program(case: str, times: int) -> bytes:
    """A program that does what the first method of a case does, several times over.

    Every copy has values and instructions of its own; operators, constants and the
    memory plan are shared. Inputs are those of the first copy, outputs of the last.

    Raises:
        NotMeasuredError: The test dependencies are not installed.
    """
    write = _writer()
    program = json.loads((CORPUS / case / "program.json").read_text())
    method = program["execution_plan"][0]
    (chain,) = method["chains"]
    values, instructions = method["values"], chain["instructions"]
    method["values"], chain["instructions"] = [], []
    for copy in range(times):
        first = copy * len(values)
        method["values"] += [_moved(value, first) for value in values]
        for instruction in instructions:
            moved = deepcopy(instruction)
            call = moved["instr_args"]
            call["args"] = [first + index for index in call["args"]]
            chain["instructions"].append(moved)
    method["outputs"] = [first + index for index in method["outputs"]]
    return write(program, _segments(case))


def scalar_program(case: str, times: int) -> bytes:
    """A program of a case with sums of two integers behind its own instructions.

    Their kernel is one addition, so that what is left is the executor.

    Raises:
        NotMeasuredError: The test dependencies are not installed.
    """
    write = _writer()
    program = json.loads((CORPUS / case / "program.json").read_text())
    method = program["execution_plan"][0]
    operator, first = len(method["operators"]), len(method["values"])
    method["operators"].append({"name": "executorch_prim::add", "overload": "Scalar"})
    method["values"] += [{"val_type": "Int", "val": {"int_val": value}} for value in (1, 2, 0)]
    call = {"op_index": operator, "args": [first, first + 1, first + 2]}
    method["chains"][0]["instructions"] += [
        {"instr_args_type": "KernelCall", "instr_args": call}
    ] * times
    return write(program, _segments(case))


def linear_program(layers: int, width: int) -> bytes:
    """A program of linear layers, with `layers * width * width` floats.

    Raises:
        NotMeasuredError: The test dependencies are not installed.
    """
    _writer()
    from tests.unit.program import large_program  # noqa: PLC0415

    return large_program.linear_program(layers, width)


def _writer() -> Callable[[Any, bytes], bytes]:
    try:
        from tests.unit.program.program_writer import write_program  # noqa: PLC0415
    except ImportError as error:
        message = f"the extra `test` is not installed: {error}"
        raise NotMeasuredError(message) from error
    return write_program


def _moved(value: dict[str, Any], first: int) -> dict[str, Any]:
    if value["val_type"] not in _OF_VALUES:
        return value
    items = value["val"]["items"]
    moved = [first + item if item >= 0 else item for item in items]
    return {**value, "val": {**value["val"], "items": moved}}


def _segments(case: str) -> bytes:
    """Constants of a case.

    Source: ExecuTorch `schema/extended_header.h`: behind the flatbuffer's first 8
    bytes magic, length, program size, segment base offset and segment data size.
    """
    data = (CORPUS / case / "model.pte").read_bytes()
    base, size = struct.unpack_from("<QQ", data, 24)
    return data[base : base + size]
