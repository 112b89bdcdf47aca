"""The files `run` and the firmware exchange, as docs/runner-protocol.md has them."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from math import prod
from typing import Final, Self

from orchestrator.core.dtype import ScalarType
from orchestrator.core.layout import logical_items, stored_items
from orchestrator.errors import Diagnostic, MismatchError, UsageError
from orchestrator.program.values import ValueKind
from orchestrator.running.npy import Array
from orchestrator.running.product import Port
from orchestrator.running.values import (
    NPY_DTYPES,
    Call,
    ListValue,
    OtherValue,
    RunValue,
    input_misfit,
    kind_of,
)

# These numbers stand in runtime/app/runner.cpp too, and in docs/runner-protocol.md.
REQUEST_MAGIC: Final = 0x3151524F
"""The text `ORQ1`."""
RESPONSE_MAGIC: Final = 0x3153524F
"""The text `ORS1`."""
TRACED_MAGIC: Final = 0x3154524F
"""The text `ORT1`: the response of a product with trace hooks, with times."""
FRESH: Final = 1
"""Flag of a call: forget all loaded methods first."""
NO_INSTRUCTION: Final = 0xFFFFFFFF
"""What the device reports where no instruction failed."""
_NO_MORE_EVENTS: Final = 0xFFFFFFFF


class DeviceError(IntEnum):
    """Error codes of the runtime. Source: `runtime/include/orch/error.h`."""

    meaning: str
    """What went wrong, in a few words."""

    def __new__(cls, number: int, meaning: str = "") -> Self:
        """A status with its meaning."""
        status = int.__new__(cls, number)
        status._value_, status.meaning = number, meaning
        return status

    # tests/unit/running/test_protocol.py reads the enum of error.h; status.h and
    # docs/runtime.md have the same numbers. Devices in the field report them: a number
    # is never given away again.
    Ok = 0, "success"
    InvalidProgram = 1, "the program is damaged"
    UnsupportedProgram = 2, "the runtime does not support the program"
    OperatorMissing = 3, "an operator of the program is not linked"
    DtypeNotSelected = 4, "an operator is linked without a dtype it gets"
    DelegateMissing = 5, "a delegate of the program is not linked"
    NotFound = 6, "there is no such method, input or output"
    StateTooSmall = 7, "the block for the method state is too small"
    ArenaTooSmall = 8, "an arena is missing or smaller than planned"
    Misaligned = 9, "a block is not aligned as required"
    InvalidArgument = 10, "a kernel rejected a shape, an index or a value"
    ShapeTooLarge = 11, "a tensor would grow past its planned size"
    NotSupported = 12, "a kernel has no code for its arguments"
    InstructionLimit = 13, "too many instructions ran"
    ImageDamaged = 14, "flash does not hold what was linked"
    MemoryNotSet = 15, "an input or output has no memory"
    ScratchTooSmall = 16, "a kernel has less scratch memory than it needs"
    NotDone = 17, "a run in parts has instructions left"
    WrongFloatMode = 18, "the FPU flushes to zero, or does not round to nearest"


@dataclass(frozen=True, slots=True, kw_only=True)
class CallTrace:
    """How long a call took, in ticks of the runner's clock: nanoseconds on hosts.

    Args:
        load_ticks: For loading the method; 0 if it was loaded.
        events: (index in the method, ticks) of each instruction, in the order they
            ran in.
        run_ticks: From the first instruction to the end, the executor's own time and
            that of tracing included.
    """

    load_ticks: int
    events: tuple[tuple[int, int], ...]
    run_ticks: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CallResult:
    """The firmware's response to one call.

    Args:
        error: Anything but `Ok` ends the run.
        instruction: 0-based index of the one that failed; None if there is none: the
            call succeeded, or the method did not load.
        state_used_bytes: Of the method's state block.
        outputs: In the order of the method; empty after an error.
        trace: None unless the product has trace hooks.
    """

    error: DeviceError
    instruction: int | None
    state_used_bytes: int
    outputs: tuple[RunValue, ...]
    trace: CallTrace | None = None


def encode_request(calls: Sequence[Call]) -> bytes:
    """The request file for these calls.

    Raises:
        UsageError: An input does not fit its method (`bad-input`); all at once.
    """
    problems: list[Diagnostic] = []
    parts = [struct.pack("<II", REQUEST_MAGIC, len(calls))]
    for number, call in enumerate(calls):
        ports = call.method.inputs
        if len(call.inputs) != len(ports):
            problems.append(_wrong_count(number, call))
            continue
        flags = FRESH if call.fresh else 0
        parts.append(struct.pack("<III", call.method.index, flags, len(ports)))
        for index, (value, port) in enumerate(zip(call.inputs, ports, strict=True)):
            misfit = input_misfit(value, port)
            if misfit is None:
                parts.append(_encode(value, port))
                continue
            at = f"call {number} of {call.method}, input {index}"
            problems.append(Diagnostic.of("bad-input", at=at, **misfit._asdict()))
    UsageError.raise_if(problems)
    return b"".join(parts)


def _wrong_count(number: int, call: Call) -> Diagnostic:
    return Diagnostic.of(
        "bad-input",
        "the call has the wrong number of inputs for its method",
        at=f"call {number} of {call.method}",
        found=str(len(call.inputs)),
        expected=str(len(call.method.inputs)),
    )


def _encode(value: RunValue, port: Port) -> bytes:
    """An input that fits its port."""
    tag = struct.pack("<I", kind_of(value))
    # What the program was specialised for is no parameter on the device. `input_misfit`
    # has compared it, so that another value is not ignored.
    if isinstance(value, OtherValue | str) or (isinstance(value, ListValue) and port.is_fixed):
        return tag  # the program has it
    if isinstance(value, ListValue):
        pairs = zip(value.items, port.items, strict=True)
        items = b"".join(_encode(item, own) for item, own in pairs)
        return tag + struct.pack("<I", len(value.items)) + items
    if isinstance(value, Array):
        rank = len(value.shape)
        elements = stored_items(value.numpy, port.dim_order)
        return tag + struct.pack(f"<I{rank}i", rank, *value.shape) + elements
    return tag + struct.pack("<d" if isinstance(value, float) else "<q", value)


def decode_response(data: bytes, calls: Sequence[Call]) -> tuple[CallResult, ...]:
    """What a response file says.

    Args:
        data: The whole file; empty if the firmware wrote none.
        calls: Those of the request.

    Returns:
        One result per call; fewer only if the last one is an error of the runtime.

    Raises:
        MismatchError: The response is cut off or damaged, so the firmware crashed or
            is not the one of this product (`bad-response`).
    """
    reader = _Reader(data)
    try:
        return _results(reader, calls)
    except _ResponseError as error:
        raise _bad_response(reader, error) from None


def _bad_response(reader: _Reader, error: _ResponseError, *, before: int = 0) -> MismatchError:
    """The error of a response that `reader` takes apart from byte `before` on."""
    at, size = before + reader.at, before + reader.size
    return MismatchError.of(
        "bad-response",
        "the response of the firmware is damaged" if size else "the firmware wrote no response",
        at=f"{reader.place}, byte {at} of {size}",
        found=str(error),
        hint="the firmware has crashed or was built from something else; "
        "check its output and build again",
    )


def untraced(data: bytes, calls: Sequence[Call]) -> tuple[bytes, tuple[int, ...]]:
    """A response without times, and where in it each call ends.

    Args:
        data: The whole response.
        calls: Those of the request; none of them failed.

    Raises:
        MismatchError: The response is damaged (`bad-response`).
    """
    reader = _Reader(data)
    found = RESPONSE_MAGIC.to_bytes(4, "little")
    ends: list[int] = []
    try:
        magic = _magic(reader)
        for number, call in enumerate(calls):
            reader.place = f"call {number} of {call.method}"
            if magic == TRACED_MAGIC:
                _call_trace(reader)
            begin = reader.at
            _call_result(reader, call, None)
            found += data[begin : reader.at]
            ends.append(len(found))
    except _ResponseError as error:
        raise _bad_response(reader, error) from None
    return found, tuple(ends)


class ResponseReader:
    """Results of a response that the firmware is still writing.

    Args:
        calls: Those of the request.
    """

    def __init__(self, calls: Sequence[Call]) -> None:
        self._calls = calls
        self._data = b""
        self._magic = 0
        self._count = 0
        self._dropped = 0
        self._has_failed = False

    @property
    def is_incomplete(self) -> bool:
        """Whether results are missing, though no call has failed."""
        return not self._has_failed and self._count < len(self._calls)

    def add(self, data: bytes) -> list[CallResult]:
        """The results that are complete with these bytes of the response.

        Raises:
            MismatchError: The response is damaged (`bad-response`).
        """
        self._data += data
        reader = _Reader(self._data)
        results: list[CallResult] = []
        used = 0
        try:
            if not self._magic:
                self._magic = _magic(reader)
                used = reader.at
            while self.is_incomplete:
                call = self._calls[self._count]
                reader.place = f"call {self._count} of {call.method}"
                results.append(_next_result(reader, call, self._magic))
                used = reader.at
                self._count += 1
                self._has_failed |= results[-1].error is not DeviceError.Ok
            _nothing_follows(reader)
        except _CutOffError:
            pass  # the rest is not written yet
        except _ResponseError as error:
            raise _bad_response(reader, error, before=self._dropped) from None
        self._data = self._data[used:]
        self._dropped += used
        return results

    def cut_off(self) -> MismatchError:
        """The error if the firmware ended before it wrote every result."""
        reader = _Reader(self._data)
        reader.place = "the first word"
        if self._magic:
            call = self._calls[self._count]
            reader.place = f"call {self._count} of {call.method}"
        found = _CutOffError(f"it ends after {self._count} of {len(self._calls)} calls")
        return _bad_response(reader, found, before=self._dropped)


class _ResponseError(Exception):
    """The response is not what a sound firmware writes."""


class _CutOffError(_ResponseError):
    """The response ends too early."""


class _Reader:
    """Takes the response apart from front to back."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.at = 0
        self.place = "the first word"

    @property
    def size(self) -> int:
        return len(self._data)

    @property
    def rest(self) -> int:
        return self.size - self.at

    def take(self, size_bytes: int) -> bytes:
        if size_bytes > self.rest:
            raise _CutOffError(f"it is cut off: {self.rest} bytes are left of {size_bytes}")
        start = self.at
        self.at += size_bytes
        return self._data[start : self.at]

    def word(self) -> int:
        return int.from_bytes(self.take(4), "little")

    def ticks(self) -> int:
        return int.from_bytes(self.take(8), "little")


def _magic(reader: _Reader) -> int:
    magic = reader.word()
    if magic not in (RESPONSE_MAGIC, TRACED_MAGIC):
        raise _ResponseError("it does not begin with ORS1")
    return magic


def _next_result(reader: _Reader, call: Call, magic: int) -> CallResult:
    trace = _call_trace(reader) if magic == TRACED_MAGIC else None
    return _call_result(reader, call, trace)


def _results(reader: _Reader, calls: Sequence[Call]) -> tuple[CallResult, ...]:
    magic = _magic(reader)
    results: list[CallResult] = []
    for number, call in enumerate(calls):
        reader.place = f"call {number} of {call.method}"
        results.append(_next_result(reader, call, magic))
        if results[-1].error is not DeviceError.Ok:
            break
    _nothing_follows(reader)
    return tuple(results)


def _nothing_follows(reader: _Reader) -> None:
    # A firmware of another product answers with other lengths: bytes that are left mean
    # that all before may be read wrongly.
    reader.place = "the end"
    if reader.rest:
        raise _ResponseError(f"{reader.rest} bytes follow the last call")


def _call_trace(reader: _Reader) -> CallTrace:
    events = []
    while (instruction := reader.word()) != _NO_MORE_EVENTS:
        events.append((instruction, reader.ticks()))
    return CallTrace(load_ticks=reader.ticks(), events=tuple(events), run_ticks=reader.ticks())


def _call_result(reader: _Reader, call: Call, trace: CallTrace | None) -> CallResult:
    code, instruction, state_used_bytes = (reader.word() for _ in range(3))
    if code not in DeviceError.__members__.values():
        raise _ResponseError(f"the error code {code} is unknown")
    error = DeviceError(code)
    outputs: list[RunValue] = []
    if error is DeviceError.Ok:
        count, ports = reader.word(), call.method.outputs
        if count != len(ports):
            raise _ResponseError(f"it has {count} outputs, the method {len(ports)}")
        for index, port in enumerate(ports):
            try:
                outputs.append(_decode(reader, port))
            except _ResponseError as problem:
                raise type(problem)(f"output {index}: {problem}") from None
    failed_at = None
    if error is not DeviceError.Ok and instruction != NO_INSTRUCTION:
        failed_at = instruction
    return CallResult(
        error=error,
        instruction=failed_at,
        state_used_bytes=state_used_bytes,
        outputs=tuple(outputs),
        trace=trace,
    )


def _decode(reader: _Reader, port: Port) -> RunValue:  # one per kind
    tag = reader.word()
    if tag not in ValueKind.__members__.values():
        raise _ResponseError(f"the tag {tag} is unknown")
    match kind := ValueKind(tag):
        case ValueKind.NONE:
            return OtherValue(kind)
        case ValueKind.TENSOR:
            return _decode_tensor(reader, port)
        case ValueKind.TENSOR_LIST:
            return _decode_tensors(reader, port)
        case ValueKind.INT_LIST | ValueKind.DOUBLE_LIST | ValueKind.BOOL_LIST:
            code, size = _LIST_CODES[kind]
            count = reader.word()
            data = reader.take(size * count)
            return ListValue(kind, struct.unpack(f"<{count}{code}", data))
        case ValueKind.STRING:
            # A program's string may hold any bytes; one that is no UTF-8 must not end
            # as an error of ours.
            return reader.take(reader.word()).decode(errors="backslashreplace")
    return _decode_number(kind, reader.take(8))


def _decode_number(kind: ValueKind, data: bytes) -> RunValue:
    if kind is ValueKind.DOUBLE:
        (number,) = struct.unpack("<d", data)
        return float(number)
    if kind is ValueKind.BOOL:
        return any(data)
    return int.from_bytes(data, "little", signed=True)


_LIST_CODES: Final = {
    ValueKind.INT_LIST: ("q", 8),
    ValueKind.DOUBLE_LIST: ("d", 8),
    ValueKind.BOOL_LIST: ("?", 1),
}


def _decode_tensors(reader: _Reader, port: Port) -> ListValue:
    count = reader.word()
    if count != len(port.items):
        raise _ResponseError(f"it is a list of {count} items, expected {port}")
    items = []
    for number, own in enumerate(port.items):
        try:
            items.append(_decode(reader, own))
        except _ResponseError as problem:
            raise type(problem)(f"item {number}: {problem}") from None
    return ListValue(ValueKind.TENSOR_LIST, tuple(items))


def _decode_tensor(reader: _Reader, port: Port) -> Array:
    code, rank = reader.word(), reader.word()
    # The response says nothing of the dim order: it has to be the tensor we know.
    if code != port.dtype or code not in NPY_DTYPES or rank != len(port.sizes):
        dtypes = ScalarType.__members__.values()
        name = ScalarType(code).name if code in dtypes else f"dtype {code}"
        raise _ResponseError(f"it is a tensor {name} of {rank} dimensions, expected {port}")
    sizes = struct.unpack(f"<{rank}i", reader.take(4 * rank))
    # Larger ones than it has memory for would be waited for, for ever.
    if min(sizes, default=0) < 0 or prod(sizes) > prod(port.sizes):
        raise _ResponseError(f"it has the sizes {list(sizes)}, expected {port}")
    dtype = NPY_DTYPES[ScalarType(code)]
    data = reader.take(prod(sizes) * ScalarType(code).item_bytes)
    elements = logical_items(data, dtype, sizes, port.dim_order)
    return Array(dtype=dtype, shape=sizes, data=elements.tobytes())
