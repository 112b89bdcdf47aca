"""Checks what one method says: every index, size and place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from orchestrator.core.dtype import ScalarType
from orchestrator.program.check_tensor import MAX_BYTES, check_tensor
from orchestrator.program.problems import method_place
from orchestrator.program.program import (
    DelegateCall,
    FreeCall,
    JumpFalseCall,
    KernelCall,
    MoveCall,
)
from orchestrator.program.values import (
    BoolValue,
    IntListValue,
    IntValue,
    NoneValue,
    OptionalTensorListValue,
    TensorListValue,
    TensorValue,
    kind_name,
)

if TYPE_CHECKING:
    from orchestrator.program.problems import Problems
    from orchestrator.program.program import Instruction, Method, Program
    from orchestrator.program.values import Value

_ITEMS_PER_BYTE: Final = 2
"""Of the flatbuffer, that calls and lists of a method may have together.

Calls may share one list of arguments, and without a bound a small file would keep the
device busy for as long as the square of its size. What each has for itself takes four
bytes or more. `MethodLoader::spend` of the runtime counts the same.
"""
_MOST_ARGS: Final = 65535
"""Of an instruction; the runtime counts them in 16 bits."""


_LISTS: Final = (IntListValue, TensorListValue, OptionalTensorListValue)
"""Whose items name values."""


def check_method(program: Program, method: Method, problems: Problems) -> None:
    """Note in `problems` everything in a method that cannot be."""
    _Check(program, method, problems).run()


class _Check:
    def __init__(self, program: Program, method: Method, problems: Problems) -> None:
        self._program = program
        self._method = method
        self._problems = problems
        self._count = len(method.values)
        self._place = method_place(method.name)

    def run(self) -> None:
        if not self._check_items_in_all():
            return  # what follows goes through every item
        self._check_arenas()
        for index, value in enumerate(self._method.values):
            self._check_value(index, value)
        self._check_ends()
        for index in range(len(self._method.delegates)):
            self._check_delegate(index)
        for index, instruction in enumerate(self._method.instructions):
            self._check_instruction(f"instruction {index}", instruction)

    def _damaged(
        self, message: str, place: str, found: str = "", expected: str = ""
    ) -> None:
        self._problems.damaged(
            message,
            place=f"{self._place}, {place}",
            found=found,
            expected=expected,
        )

    def _check_items_in_all(self) -> bool:
        method = self._method
        calls = [
            i.args
            for i in method.instructions
            if isinstance(i, KernelCall | DelegateCall)
        ]
        lists = {
            index: len(value.items)
            for index, value in enumerate(method.values)
            if isinstance(value, _LISTS)
        }
        most = _ITEMS_PER_BYTE * self._program.flatbuffer_bytes
        count = sum(map(len, calls)) + sum(lists.values())
        count += sum(len(delegate.compile_specs) for delegate in method.delegates)
        if count <= most:  # the kernel of a call depends on the tensors in its lists
            count += sum(
                lists[arg]
                for i in method.instructions
                if isinstance(i, KernelCall)
                for arg in i.args
                if arg in lists and not isinstance(method.values[arg], IntListValue)
            )
        if count > most:
            self._problems.damaged(
                "calls and lists share their items too often",
                place=self._place,
                found=f"{count} items or more",
                expected=f"at most {most}, {_ITEMS_PER_BYTE} per byte of the program",
            )
        return count <= most

    def _check_arenas(self) -> None:
        sizes = self._method.arena_bytes
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
                    found=f"arena {device.buffer_index} on device type "
                    f"{device.device_type}",
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
        self,
        index: int,
        items: tuple[int, ...],
        least: int,
        kinds: tuple[type[Value], ...],
    ) -> None:
        values, count = self._method.values, self._count
        for item in items:
            # -1, where allowed, stands for None and names no value.
            if least <= item < count and (item < 0 or isinstance(values[item], kinds)):
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
        for name, indices in (
            ("input", self._method.inputs),
            ("output", self._method.outputs),
        ):
            for position, index in enumerate(indices):
                self._check_index(index, f"{name} {position}")
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
            len(self._program.inline_data)
            if delegate.is_inline
            else len(self._program.segments)
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

    def _check_kind(
        self, index: int, place: str, kinds: tuple[type[Value], ...]
    ) -> bool:
        value = self._method.values[index]
        if isinstance(value, kinds):
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
            if (a.dtype, a.dim_order) == (b.dtype, b.dim_order):
                return
            self._damaged(
                "a move would change the dtype or dim order of a tensor",
                place,
                f"{a.dtype.name} {list(a.dim_order)}",
                f"{b.dtype.name} {list(b.dim_order)}",
            )

    def _check_jump(self, condition: int, destination: int, place: str) -> None:
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
                "the condition of a jump is no single truth value",
                place,
                f"value {condition}: {value.dtype.name} {list(value.sizes)}",
                "a Bool tensor of one element",
            )


def _names(kinds: tuple[type[Value], ...]) -> str:
    return " or ".join(kind_name(kind) for kind in kinds)
