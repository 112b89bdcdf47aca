"""Programs that make one call, and what comes back from them."""

from __future__ import annotations

import struct
from dataclasses import replace
from functools import cache
from math import prod
from typing import TYPE_CHECKING, Final

import numpy as np

from orchestrator.core.dtype import COMPLEX, FLOATING, ScalarType
from orchestrator.core.operator import ArgKind, OperatorName
from orchestrator.program.encode import write_program
from orchestrator.program.program import KernelCall, Method, Program, SubsegmentOffsets
from orchestrator.program.values import (
    Allocation,
    Dynamism,
    OptionalTensorListValue,
    TensorListValue,
    TensorValue,
)
from tests.unit.method.recorded_calls import Call, Tensor, method_of
from tests.unit.schemas import schemas

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from orchestrator.program.values import Value

ALIGNMENT: Final = 16
NUMPY: Final = {
    ScalarType.Byte: np.uint8,
    ScalarType.Char: np.int8,
    ScalarType.Short: np.int16,
    ScalarType.Int: np.int32,
    ScalarType.Long: np.int64,
    ScalarType.Half: np.float16,
    ScalarType.Float: np.float32,
    ScalarType.Double: np.float64,
    ScalarType.ComplexHalf: np.float16,
    ScalarType.ComplexFloat: np.complex64,
    ScalarType.ComplexDouble: np.complex128,
    ScalarType.Bool: np.uint8,
    ScalarType.BFloat16: np.uint16,
    ScalarType.UInt16: np.uint16,
    ScalarType.UInt32: np.uint32,
    ScalarType.UInt64: np.uint64,
}
_WITH_NONE: Final = ("aten::index.Tensor_out", "aten::index_put.out", "aten::index_put_")
"""Operators whose lists of tensors may hold None: ExecuTorch has a kind for these."""


def tensors(call: Call) -> Iterator[Tensor]:
    """Those of a call, in order; also those in lists."""
    for argument in call.args:
        for item in argument if isinstance(argument, tuple) else (argument,):
            if isinstance(item, Tensor):
                yield item


def program_of(call: Call, *, dynamic: bool) -> tuple[bytes, bytes]:
    """A program that makes the call, and its inputs as `load_file` reads them.

    ExecuTorch's runtime takes the program, too.

    Args:
        call: The call; its tensors are inputs and outputs of the program.
        dynamic: Whether the tensors may change their sizes.
    """
    linked = method_of([call])
    given = [*tensors(call)]
    values: list[Value] = []
    inputs, outputs, numbers = [], [], iter(given)
    end, data = 0, []
    for index, value in enumerate(linked.values):
        if isinstance(value, TensorListValue) and call.operator in _WITH_NONE:
            values.append(OptionalTensorListValue(value.items))
            continue
        if not isinstance(value, TensorValue):
            values.append(value)
            continue
        tensor = next(numbers)
        values.append(
            replace(
                value,
                data_buffer_index=0,
                allocation=Allocation(memory_id=1, offset_bytes=end),
                dynamism=Dynamism.BOUNDED if dynamic else Dynamism.STATIC,
            )
        )
        end += -(-max(value.size_bytes, 1) // ALIGNMENT) * ALIGNMENT
        if tensor.is_out:
            outputs.append(index)
        else:
            inputs.append(index)
            rank = len(tensor.sizes)
            head = struct.pack("<cBB", b"T", tensor.dtype, rank)
            data += [head, struct.pack(f"<{rank}i", *tensor.sizes), tensor.data]
    (instruction,) = linked.instructions
    name = OperatorName.parse(call.operator)
    args = (*instruction.args,)  # type: ignore[union-attr]  # it is a call
    result = schemas()[name].result
    if result is not None and result.kind == ArgKind.TENSOR_LIST:
        values.append(TensorListValue(tuple(outputs)))
        args = (*args, len(values) - 1)
    elif result is not None:
        # Where `self` is changed in place, other arguments come after it.
        places = [
            place
            for place, argument in enumerate(call.args)
            if isinstance(argument, Tensor) and argument.is_out
        ]
        # Hostile calls may have no output at all.
        args = (*args, args[max(places, default=-1)])
    method = Method(
        name="forward",
        values=tuple(values),
        inputs=tuple(inputs),
        outputs=tuple(outputs),
        instructions=(KernelCall(operator=0, args=args),),
        operators=(name,),
        delegates=(),
        arena_bytes=(0, max(end, ALIGNMENT)),
    )
    return bytes(write_program(_program(method))), b"".join(data)


def _program(method: Method) -> Program:
    return Program(
        version=0,
        header=None,
        methods=(method,),
        segments=(),
        # ExecuTorch's runtime wants an offset even where no tensor is constant.
        constants=SubsegmentOffsets(segment_index=0, offsets=(0,)),
        mutable_segments=(),
        named_data=(),
        inline_constants=(),
        inline_data=(),
        data=b"",
    )


def outputs_of(data: bytes) -> list[tuple[ScalarType, tuple[int, ...], bytes]]:
    """Dtype, sizes and memory of the tensors that `load_file` wrote."""
    found, at = [], 0
    while at < len(data):
        letter, code, rank = struct.unpack_from("<cBB", data, at)
        assert letter == b"T"
        sizes = struct.unpack_from(f"<{rank}i", data, at + 3)
        at += 3 + 4 * rank
        dtype = ScalarType(code)
        size = prod(sizes) * dtype.item_bytes
        found.append((dtype, sizes, data[at : at + size]))
        at += size
    return found


def difference(call: Call, got: list[Any]) -> tuple[str, bool]:
    """What is wrong with the results, "" if nothing; whether all bits are equal."""
    equal = True
    for want, (dtype, sizes, data) in zip(call.outs, got, strict=True):
        if (dtype, sizes) != (want.dtype, want.sizes):
            return f"sizes {sizes} instead of {want.sizes}", False
        if data == want.data:
            continue
        one, other = numbers(dtype, want.data), numbers(dtype, data)
        nan = np.isnan(one) & np.isnan(other)
        size = dtype.item_bytes
        bits = np.dtype(f"u{size}" if size <= 8 else f"({size // 8},)u8")
        same = np.frombuffer(data, bits) == np.frombuffer(want.data, bits)
        same = same.reshape(len(one), -1).all(1)
        if (same | nan).all():
            continue
        equal = False
        with np.errstate(all="ignore"):
            allowed = call.atol + call.rtol * np.abs(one)
            right = (one == other) | nan | (np.abs(one - other) <= allowed)
        if dtype not in FLOATING | COMPLEX:
            right = same
        if not right.all() and call.operator in _DIM and dtype == ScalarType.Long:
            right |= want is not call.outs[0] and _points_to_values(call, got)
        if not right.all():
            at = int(np.argmin(right))
            return f"{other[at]!r} instead of {one[at]!r} at item {at}", False
    return "", equal


_DIM: Final = {
    "aten::topk.values": 2,
    "aten::median.dim_values": 1,
    "aten::nanmedian.dim_values": 1,
    "aten::kthvalue.values": 2,
    "aten::mode.values": 1,
}
"""Operators that may give the index of any of several equal items; the place of the
dimension among their arguments."""


def _points_to_values(call: Call, got: list[Any]) -> bool:
    """Whether the indices, the second output, are those of the values, the first."""
    first, dim = next(tensors(call)), call.args[_DIM[call.operator]]
    items = _by_index(first, first.data)
    values, indices = (
        _by_index(want, data) for want, (_, _, data) in zip(call.outs, got, strict=True)
    )
    if items.ndim == 0:
        return bool((indices == 0).all())
    if values.ndim < items.ndim:
        values, indices = (np.expand_dims(x, dim) for x in (values, indices))
    if not ((indices >= 0) & (indices < items.shape[dim])).all():
        return False
    if (np.diff(np.sort(indices, dim), axis=dim) == 0).any():
        return False  # an item is there twice
    found = np.take_along_axis(items, indices, dim)
    return bool(((found == values) | (np.isnan(found) & np.isnan(values))).all())


def _by_index(tensor: Tensor, data: bytes) -> np.ndarray[Any, Any]:
    """Items of a tensor by their indices."""
    items = numbers(tensor.dtype, data)
    items = items.reshape([tensor.sizes[d] for d in tensor.order])
    return items.transpose(np.argsort(tensor.order)) if tensor.order else items


def numbers(dtype: ScalarType, data: bytes) -> np.ndarray[Any, Any]:
    """Items as numbers; floats in double."""
    items = np.frombuffer(data, NUMPY[dtype])
    if dtype == ScalarType.BFloat16:
        return (items.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    if dtype == ScalarType.ComplexHalf:
        parts = items.astype(np.float64).reshape(-1, 2)
        return parts.view(np.complex128)[:, 0]
    if dtype in COMPLEX:
        return items.astype(np.complex128)
    return items.astype(np.float64) if dtype in FLOATING else items


@cache
def short(dtypes: tuple[ScalarType, ...]) -> str:
    """Names of dtypes, for messages."""
    return ", ".join(d.name for d in dtypes)
