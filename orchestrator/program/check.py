"""Checks a decoded program: segments, data, methods, and every index, size and place.

Later stages, and the tables they generate, trust what is checked here without looking
again.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import prod
from typing import Final

from orchestrator.core.dtype import ALL, ScalarType, dtype_names
from orchestrator.program.limits import is_within_limits
from orchestrator.program.problems import Problems, method_place
from orchestrator.program.program import (
    DelegateCall,
    FreeCall,
    Instruction,
    JumpFalseCall,
    KernelCall,
    Method,
    MoveCall,
    Program,
    SubsegmentOffsets,
    UnknownInstruction,
)
from orchestrator.program.values import (
    BoolValue,
    IntListValue,
    IntValue,
    NoneValue,
    OptionalTensorListValue,
    TensorListValue,
    TensorValue,
    UnknownValue,
    Value,
    kind_name,
)


def check_program(program: Program, problems: Problems) -> None:
    """Note in `problems` everything in a decoded program that cannot be."""
    if program.version != 0:
        problems.unsupported(
            "the program has an unknown schema version",
            found=f"version {program.version}",
            expected="version 0",
            hint="export the model with a version of ExecuTorch that writes version 0",
        )
    _check_segments(program, problems)
    _check_data_tables(program, problems)
    if not program.methods:
        problems.damaged("the program has no method")
    # Before the walk over all items, which is what the limits bound.
    if not is_within_limits(program, problems):
        return  # what follows goes through every item
    seen: set[str] = set()
    for index, method in enumerate(program.methods):
        if not method.name or "\0" in method.name or method.name in seen:
            problems.damaged(
                "a method has an impossible name",
                place=f"method {index}",
                found=ascii(method.name),
                expected="a name that is not empty, unique, and without NUL",
            )
        seen.add(method.name)
        _Check(program, method, problems).run()


def _check_segments(program: Program, problems: Problems) -> None:
    header = program.header
    if header is None:
        available = 0
    # Shorter headers of earlier exporters end before this field: all that follows the
    # flatbuffer counts.
    elif header.segment_data_bytes is None:
        available = program.size_bytes - header.segment_base
    else:
        available = header.segment_data_bytes
    if header is not None and header.segment_base == 0:
        available = 0
    for index, segment in enumerate(program.segments):
        if segment.offset + segment.size_bytes > available:
            problems.damaged(
                "a segment ends after the segment data of the file",
                place=f"segment {index}",
                found=f"offset {segment.offset}, {segment.size_bytes} bytes",
                expected=f"to end at most at {available}"
                if available
                else "no segment data: the file has no extended header",
            )


def _check_data_tables(program: Program, problems: Problems) -> None:
    """Tables that lead to segments; offsets are checked where tensors use them."""
    if program.constants is not None:
        _check_segment_index(program, [program.constants], "constants", problems)
    _check_segment_index(program, program.mutable_segments, "mutable segment", problems)
    keys: set[str] = set()
    for index, named in enumerate(program.named_data):
        if named.segment_index >= len(program.segments):
            problems.damaged(
                "named data leads to a segment that is not there",
                place=f"named data {index}",
                found=f"segment {named.segment_index}",
                expected=f"below {len(program.segments)}",
            )
        if named.key in keys:
            problems.damaged(
                "two blocks of named data have the same name",
                place=f"named data {index}",
                found=ascii(named.key),
            )
        keys.add(named.key)


def _check_segment_index(
    program: Program, tables: Iterable[SubsegmentOffsets], place: str, problems: Problems
) -> None:
    for index, table in enumerate(tables):
        # A table of nothing but the reserved entry leads nowhere.
        if table.segment_index >= len(program.segments) and len(table.offsets) > 1:
            problems.damaged(
                "a table of data offsets leads to a segment that is not there",
                place=f"{place} {index}",
                found=f"segment {table.segment_index}",
                expected=f"below {len(program.segments)}",
            )


# In runtime/include/orch: `Instruction` has a uint16_t for the count.
_MOST_ARGS: Final = 65535
"""Most arguments of an instruction; the runtime counts them in 16 bits."""


class _Check:
    def __init__(self, program: Program, method: Method, problems: Problems) -> None:
        self._program = program
        self._method = method
        self._problems = problems
        self._count = len(method.values)
        self._place = method_place(method.name)

    def run(self) -> None:
        self._check_arenas()
        for index, value in enumerate(self._method.values):
            self._check_value(index, value)
        self._check_ends()
        for index in range(len(self._method.delegates)):
            self._check_delegate(index)
        for index, instruction in enumerate(self._method.instructions):
            self._check_instruction(f"instruction {index}", instruction)

    def _damaged(self, message: str, place: str, found: str = "", expected: str = "") -> None:
        self._problems.damaged(
            message, place=f"{self._place}, {place}", found=found, expected=expected
        )

    def _check_arenas(self) -> None:
        sizes = self._method.arena_bytes
        # Memory id 0 stands for constants in ExecuTorch's plans: entry 0 of the sizes
        # is reserved.
        for index, size in enumerate(sizes[1:], start=1):
            if not 0 <= size <= MAX_BYTES:
                self._damaged(
                    "an arena has an impossible size",
                    f"arena {index}",
                    f"{size} bytes",
                    f"0 to {MAX_BYTES}",
                )
        for index, device in enumerate(self._method.arena_devices):
            if device.device_type != 0 or not 0 <= device.buffer_index < len(sizes):
                self._problems.unsupported(
                    "an arena lies on another device than the CPU",
                    place=f"{self._place}, arena device {index}",
                    found=f"arena {device.buffer_index} on device type {device.device_type}",
                    expected=f"an arena below {len(sizes)} on device type 0 (CPU)",
                    hint="export the model for the CPU",
                )

    def _check_value(self, index: int, value: Value) -> None:
        match value:
            case TensorValue():
                place = f"{self._place}, value {index}"
                arenas = self._method.arena_bytes
                check_tensor(self._program, arenas, value, place, self._problems)
            case IntListValue():
                self._check_items(index, value.items, 0, (IntValue,))
            case TensorListValue():
                self._check_items(index, value.items, 0, (TensorValue,))
            case OptionalTensorListValue():
                self._check_items(index, value.items, -1, (TensorValue, NoneValue))
            case _:
                pass

    def _check_items(
        self, index: int, items: tuple[int, ...], least: int, kinds: tuple[type[Value], ...]
    ) -> None:
        values, count = self._method.values, self._count
        # Kinds of items are checked once here; kernels and generated tables rely on
        # them.
        for item in items:
            # -1, where allowed, stands for None and names no value.
            found_kinds = (*kinds, UnknownValue)
            if least <= item < count and (item < 0 or isinstance(values[item], found_kinds)):
                continue
            found = f"item {item}"
            if 0 <= item < count:
                found += f", {kind_name(type(values[item]))}"
            self._damaged(
                "a list has an item that it cannot have",
                f"value {index}",
                found,
                f"a value below {count}, {_names(kinds)}",
            )
            return  # one is enough, a list can be long

    def _check_ends(self) -> None:
        values = self._method.values
        for name, indices in (("input", self._method.inputs), ("output", self._method.outputs)):
            for position, index in enumerate(indices):
                self._check_index(index, f"{name} {position}")
        # After a move the input's slot leads to other memory, and the next call would
        # write its input there.
        moved = {i.target for i in self._method.instructions if isinstance(i, MoveCall)}
        for position, index in enumerate(self._method.inputs):
            value = values[index] if 0 <= index < self._count else None
            if not isinstance(value, TensorValue):
                continue
            # The device writes an input where it lies.
            if value.is_constant or index in moved:
                self._damaged(
                    "an input is a constant of the program"
                    if value.is_constant
                    else "an input is replaced by a move",
                    f"input {position}",
                    f"value {index}",
                    "a tensor that can be written",
                )

    def _check_index(self, index: int, place: str) -> bool:
        if 0 <= index < self._count:
            return True
        self._damaged(
            "a value is named that does not exist",
            place,
            f"value {index}",
            f"0 to {self._count - 1}" if self._count else "no value at all",
        )
        return False

    def _check_delegate(self, index: int) -> None:
        delegate = self._method.delegates[index]
        blocks = (
            len(self._program.inline_data) if delegate.is_inline else len(self._program.segments)
        )
        if not delegate.backend or delegate.data_index >= blocks:
            where = "inline data" if delegate.is_inline else "segment"
            self._damaged(
                "a delegate has no backend or no data",
                f"delegate {index}",
                f'backend "{delegate.backend}", {where} {delegate.data_index}',
                f"a name, {where} below {blocks}",
            )

    def _check_instruction(self, place: str, instruction: Instruction) -> None:
        match instruction:
            case KernelCall(operator=operator, args=args):
                self._check_callee(operator, len(self._method.operators), place)
                self._check_args(args, place)
            case DelegateCall(delegate=delegate, args=args):
                self._check_callee(delegate, len(self._method.delegates), place)
                self._check_args(args, place)
            case MoveCall(source=source, target=target):
                self._check_move(source, target, place)
            case JumpFalseCall(condition=condition, destination=destination):
                self._check_jump(condition, destination, place)
            case UnknownInstruction():
                pass
            case FreeCall(value=value):
                if self._check_index(value, place):
                    self._check_kind(value, place, (TensorValue,))

    def _check_callee(self, index: int, count: int, place: str) -> None:
        if not 0 <= index < count:
            self._damaged(
                "an instruction calls an operator or delegate that is not listed",
                place,
                f"index {index}",
                f"0 to {count - 1}" if count else "no call at all",
            )

    def _check_args(self, args: tuple[int, ...], place: str) -> None:
        # Without this the device would read the result of a call from before its
        # arguments.
        if not 1 <= len(args) <= _MOST_ARGS:
            # At the least, a call has the value it gives back.
            self._damaged(
                "a call has an impossible number of arguments",
                place,
                f"{len(args)} arguments",
                f"1 to {_MOST_ARGS}",
            )
        for arg in args:
            if not 0 <= arg < self._count:
                self._check_index(arg, place)
                return

    def _check_kind(self, index: int, place: str, kinds: tuple[type[Value], ...]) -> bool:
        value = self._method.values[index]
        if isinstance(value, (*kinds, UnknownValue)):
            return True
        self._damaged(
            "an instruction is given a value of the wrong kind",
            place,
            f"value {index}, {kind_name(type(value))}",
            _names(kinds),
        )
        return False

    def _check_move(self, source: int, target: int, place: str) -> None:
        # Kernels are chosen for the kind, dtype and dim order a value has at load.
        if not (self._check_index(source, place) and self._check_index(target, place)):
            return
        values = self._method.values
        if isinstance(values[target], UnknownValue):
            return
        if not self._check_kind(source, place, (type(values[target]),)):
            return
        a, b = values[source], values[target]
        if isinstance(a, TensorListValue | OptionalTensorListValue):
            self._damaged(
                "a move would change the tensors of a list",
                place,
                f"value {source}, {kind_name(type(a))}",
                "a tensor, a number or another list",
            )
        if isinstance(a, TensorValue) and isinstance(b, TensorValue):
            if (a.dtype, a.dim_order) != (b.dtype, b.dim_order):
                self._damaged(
                    "a move would change the dtype or dim order of a tensor",
                    place,
                    f"{a.dtype.name} {list(a.dim_order)}",
                    f"{b.dtype.name} {list(b.dim_order)}",
                )
            elif not b.is_dynamic and (a.is_dynamic or a.sizes != b.sizes):
                # Callers read an output of fixed sizes where it lies.
                self._damaged(
                    "a move would change the sizes of a tensor whose sizes are fixed",
                    place,
                    f"{list(a.sizes)}{' at most' if a.is_dynamic else ''}",
                    f"{list(b.sizes)}",
                )

    def _check_jump(self, condition: int, destination: int, place: str) -> None:
        # ExecuTorch's own exporter jumps one past the last instruction to leave a
        # method.
        last = len(self._method.instructions)  # one past the last ends the method
        if not 0 <= destination <= last:
            self._damaged(
                "a jump leads out of the method",
                place,
                f"to instruction {destination}",
                f"0 to {last}",
            )
        if not self._check_index(condition, place):
            return
        if not self._check_kind(condition, place, (BoolValue, TensorValue)):
            return
        value = self._method.values[condition]
        if isinstance(value, TensorValue) and (
            value.dtype is not ScalarType.Bool or any(s != 1 for s in value.sizes)
        ):
            self._damaged(
                "the condition of a jump is not a single truth value",
                place,
                f"value {condition}: {value.dtype.name} {list(value.sizes)}",
                "a Bool tensor of one element",
            )


def _names(kinds: tuple[type[Value], ...]) -> str:
    return " or ".join(kind_name(kind) for kind in kinds)


# ExecuTorch allows 16 (kTensorDimensionLimit); loops here keep a number for each on the
# stack. Must change with kMaxDim of runtime/include/orch/tensor.h.
MAX_DIM: Final = 8
"""Most dimensions of a tensor; `kMaxDim` of the runtime."""

# Also what a kernel may compute as an offset without overflow.
MAX_BYTES: Final = 2**31 - 1
"""Most bytes of a tensor or an arena; the runtime counts in signed 32 bits."""


def check_tensor(
    program: Program,
    arena_bytes: tuple[int, ...],
    tensor: TensorValue,
    place: str,
    problems: Problems,
) -> None:
    """Note in `problems` everything about a tensor that cannot be.

    Args:
        program: The program, for constants and initial state.
        arena_bytes: Sizes of the method's arenas by memory id.
        tensor: Any tensor of the method.
        place: Names the value in messages.
        problems: Gets what is found.
    """
    if tensor.dtype not in ALL:
        problems.unsupported(
            "a tensor has a dtype that the runtime does not have",
            place=place,
            found=tensor.dtype.name,
            expected=dtype_names(ALL),
            hint="convert the tensor to another dtype before exporting the model",
        )
    if not _check_shape(tensor, place, problems):
        return  # what follows needs a size in bytes
    _check_place(arena_bytes, tensor, place, problems)
    if tensor.is_constant or tensor.is_mutable_state:
        _check_data(program, tensor, place, problems)
    extra = tensor.extra
    if extra is None:
        return
    if extra.is_external and not extra.qualified_name:
        problems.damaged("an external tensor has no name", place=place)
    if extra.device_type != 0:
        problems.unsupported(
            "a tensor lies on another device than the CPU",
            place=place,
            found=f"device type {extra.device_type}",
            expected="device type 0 (CPU)",
            hint="export the model for the CPU",
        )


def _check_shape(tensor: TensorValue, place: str, problems: Problems) -> bool:
    sizes, dim_order = tensor.sizes, tensor.dim_order
    rank = len(sizes)
    # The kind of problem has to be the device's as well: tests compare both verdicts
    # for every damaged program of the corpus
    # (tests/integration/test_hostile_corpus.py).
    if len(dim_order) == rank > MAX_DIM:
        problems.unsupported(
            "a tensor has too many dimensions",
            place=place,
            found=f"{rank} dimensions",
            expected=f"at most {MAX_DIM}",
            hint="merge dimensions of the tensor before exporting the model",
        )
        return False
    if len(dim_order) != rank or sorted(dim_order) != list(range(rank)):
        problems.damaged(
            "the dim order of a tensor is not a permutation of its dimensions",
            place=place,
            found=str(list(dim_order[: MAX_DIM + 1])),
            expected=f"0 to {rank - 1} in some order" if rank else "[]",
        )
        return False
    if rank and min(sizes) < 0:
        problems.damaged("a tensor has a negative size", place=place, found=str(list(sizes)))
        return False
    # A size of 0 counts as 1: the device multiplies one by one, and the product must
    # not overflow on the way.
    largest = prod(max(size, 1) for size in sizes) * tensor.dtype.item_bytes
    if largest > MAX_BYTES:
        problems.damaged(
            "a tensor is impossibly large",
            place=place,
            found=f"{list(sizes)} of {tensor.dtype.name}, {largest} bytes",
            expected=f"at most {MAX_BYTES} bytes",
        )
        return False
    return True


def _check_place(
    arena_bytes: tuple[int, ...], tensor: TensorValue, place: str, problems: Problems
) -> None:
    allocation = tensor.allocation
    if allocation is None:
        return
    if not 1 <= allocation.memory_id < len(arena_bytes):
        problems.damaged(
            "a tensor is planned into an arena that is not there",
            place=place,
            found=f"memory id {allocation.memory_id}",
            expected=f"1 to {len(arena_bytes) - 1}"
            if len(arena_bytes) > 1
            else "no planned tensor, the method has no arena",
        )
        return
    size = arena_bytes[allocation.memory_id]
    if allocation.offset_bytes + tensor.size_bytes > size:
        problems.damaged(
            "a tensor is planned past the end of its arena",
            place=place,
            found=f"offset {allocation.offset_bytes}, {tensor.size_bytes} bytes",
            expected=f"to end at most at {size}",
        )
    _check_alignment(tensor, allocation.offset_bytes, "planned", place, problems)


def _check_data(program: Program, tensor: TensorValue, place: str, problems: Problems) -> None:
    if tensor.is_constant and program.has_inline_constants:
        _check_inline(program, tensor, place, problems)
        return
    index = tensor.data_buffer_index
    tables: tuple[SubsegmentOffsets, ...]
    if tensor.is_constant:
        constants = program.constants
        tables = () if constants is None else (constants,)
        number = 0
    else:
        tables = program.mutable_segments
        number = tensor.extra.mutable_segment_index if tensor.extra else 0
    if number >= len(tables) or index >= len(tables[number].offsets):
        problems.damaged(
            "a tensor has data that is not in the program",
            place=place,
            found=f"data buffer {index} of table {number}",
            expected=f"below {len(tables[number].offsets)}"
            if number < len(tables)
            else f"a table below {len(tables)}",
        )
        return
    table = tables[number]
    if table.segment_index >= len(program.segments):
        # Otherwise each of a thousand tensors would repeat it.
        return  # noted once, with the table
    segment = program.segments[table.segment_index]
    offset = table.offsets[index]
    if offset + tensor.size_bytes > segment.size_bytes:
        problems.damaged(
            "the data of a tensor leaves its segment",
            place=place,
            found=f"offset {offset}, {tensor.size_bytes} bytes",
            expected=f"to end at most at {segment.size_bytes}",
        )
    # Kernels read constants in place, so their alignment in the file is that in flash.
    elif tensor.is_constant:  # used where it lies; initial state is copied
        start = program.data_offset(tensor)
        _check_alignment(tensor, start, "stored", place, problems)


def _check_inline(program: Program, tensor: TensorValue, place: str, problems: Problems) -> None:
    index, constants = tensor.data_buffer_index, program.inline_constants
    if index >= len(constants):
        problems.damaged(
            "a tensor has data that is not in the program",
            place=place,
            found=f"constant {index} of the flatbuffer",
            expected=f"below {len(constants)}",
        )
        return
    start, size_bytes = constants[index]
    if tensor.size_bytes > size_bytes:
        problems.damaged(
            "a tensor has less data than it is large",
            place=place,
            found=f"{size_bytes} bytes",
            expected=f"{tensor.size_bytes}",
        )
        return
    _check_alignment(tensor, start, "stored", place, problems)


def _check_alignment(
    tensor: TensorValue, offset: int, what: str, place: str, problems: Problems
) -> None:
    if offset % tensor.dtype.alignment:
        problems.damaged(
            f"a tensor is {what} at an offset that its dtype cannot have",
            place=place,
            found=f"offset {offset} for {tensor.dtype.name}",
            expected=f"a multiple of {tensor.dtype.alignment}",
        )
