"""Write linked methods as a program again, for the device to load."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from orchestrator.core.lazy_bytes import Bytes
from orchestrator.method.linked import INDEX_LISTS, LinkedCall, LinkedInstruction, LinkedMethod
from orchestrator.program.encode import write_program
from orchestrator.program.program import Instruction, KernelCall, Method, Program
from orchestrator.program.reader import read_program
from orchestrator.program.shared import SHARED_ID
from orchestrator.program.values import TensorListValue, TensorValue, Value


class UnlinkError(Exception):
    """A call of the program cannot be written again. No exporter makes such calls."""


class WriteProofError(Exception):
    """The written program differs from its linked methods: it must not be used."""


def unlink_program(program: Program, linked: Sequence[LinkedMethod]) -> Program:
    """Write a program that consists of linked methods.

    Calls get back the arguments that kernels do not read: results, which repeat what
    was written. Unused constants are removed, even external ones.

    Args:
        program: What they were linked from, with the new sizes of its arenas. Its
            methods call no delegates.
        linked: Its methods, in order.

    Returns:
        The program as read back from the new bytes.

    Raises:
        UnlinkError: A call of the program returns a value that it does not write.
        WriteProofError: The bytes do not match the methods.
    """
    constants: dict[Bytes, int] = {}
    methods = tuple(
        _Unlinker(
            method,
            of,
            constants,
            _unused_state(method, of) if method.name in program.sharers else (),
        ).method()
        for method, of in zip(program.methods, linked, strict=True)
    )
    data = write_program(
        replace(program, methods=methods),
        constants=tuple(constants) if program.constants or constants else None,
    )
    has_delegates = any(method.delegates for method in methods)
    names = {
        value.extra.qualified_name
        for method in methods
        for value in method.values
        if isinstance(value, TensorValue) and value.is_external and value.extra
    }
    found = replace(
        read_program(data, file=""),
        external=tuple(e for e in program.external if has_delegates or e.name in names),
        sharers=program.sharers,
    )
    # As text, 0.0 differs from -0.0, and NaN equals NaN.
    if repr(found.methods) != repr(methods) or any(
        not _has_data(found, method, of) for method, of in zip(methods, linked, strict=True)
    ):
        raise WriteProofError("the new bytes say something else")
    return replace(found, methods=methods)  # with their marks


def _unused_state(method: Method, linked: LinkedMethod) -> Iterator[TensorValue]:
    """State that only other methods use: loading this method resets it as well."""
    places = {v.allocation for v in linked.values if isinstance(v, TensorValue)}
    for value in method.values:
        if (
            isinstance(value, TensorValue)
            and value.is_mutable_state
            and value.allocation not in places
            and value.allocation is not None
            and value.allocation.memory_id == SHARED_ID
        ):
            places.add(value.allocation)
            yield value


def _has_data(program: Program, method: Method, linked: LinkedMethod) -> bool:
    """Whether constants and initial state have the bytes of the linked method."""
    values = (method.values[index] for index, _ in linked.data)
    return all(
        isinstance(value, TensorValue)
        # State for which the program has no data begins with zeros.
        and ((value.is_state and not value.is_mutable_state) or program.data_bytes(value) == data)
        for value, (_, data) in zip(values, linked.data, strict=True)
    )


class _Unlinker:
    def __init__(
        self,
        method: Method,
        linked: LinkedMethod,
        constants: dict[Bytes, int],
        unused: Iterable[Value],
    ) -> None:
        self._method = method
        self._linked = linked
        self._constants = constants
        self._values = [*self._with_data(), *unused]
        used = {i.operator for i in linked.instructions if isinstance(i, LinkedCall)}
        self._operators = tuple(name for name in dict.fromkeys(method.operators) if name in used)
        # Kernels do not get lists that only hold results.
        named = {arg for i in linked.instructions if isinstance(i, LinkedCall) for arg in i.args}
        named.update((*linked.inputs, *linked.outputs))
        self._lists: dict[tuple[int, ...], int] = {
            value.items: index
            for index, value in enumerate(self._values)
            if isinstance(value, TensorListValue) and index not in named
        }

    def method(self) -> Method:
        linked, frames = self._linked, self._method.frames
        instructions = tuple(
            self._instruction(instruction, self._method.instructions[origin])
            for instruction, origin in zip(linked.instructions, linked.origins, strict=True)
        )
        return replace(
            self._method,
            values=tuple(self._values),
            inputs=linked.inputs,
            outputs=linked.outputs,
            instructions=instructions,
            operators=self._operators,
            frames=tuple(frames[origin] for origin in linked.origins) if frames else (),
        )

    def _with_data(self) -> Iterator[Value]:
        """Values; constants have the index of their data in the new file."""
        data = self._linked.contents
        for index, value in enumerate(self._linked.values):
            is_constant = isinstance(value, TensorValue) and value.is_constant
            if is_constant and isinstance(value, TensorValue):
                # The reserved buffer 0 stands for a tensor without data.
                number = len(self._constants) + 1
                number = self._constants.setdefault(data[index], number)
                yield replace(value, data_buffer_index=number)
            else:
                yield value

    def _instruction(self, instruction: LinkedInstruction, origin: Instruction) -> Instruction:
        if not isinstance(instruction, LinkedCall):
            return instruction
        if not isinstance(origin, KernelCall):
            raise WriteProofError("a call comes from no call")
        # Linked calls have the arguments that kernels read. What a program has behind them are
        # results.
        results = origin.args[len(instruction.args) :]
        new = self._renamed(origin.args, instruction.args)
        return KernelCall(
            operator=self._operators.index(instruction.operator),
            args=(*instruction.args, *(self._result(r, new) for r in results)),
        )

    def _renamed(self, before: Sequence[int], after: Sequence[int]) -> Mapping[int, int]:
        """By value of the program: the value that replaces it in a call."""
        old, new = self._method.values, self._linked.values
        found: dict[int, int] = {}
        for was, now in zip(before, after, strict=False):
            pairs: Iterable[tuple[int, int]] = ((was, now),)
            one, other = old[was], new[now]
            if isinstance(one, INDEX_LISTS) and isinstance(other, INDEX_LISTS):
                pairs = (*pairs, *zip(one.items, other.items, strict=True))
            found.update(pairs)
        return found

    def _result(self, index: int, new: Mapping[int, int]) -> int:
        """The value that a call returns: what it wrote, or a list of these values."""
        if index in new:
            return new[index]
        value = self._method.values[index]
        if not isinstance(value, TensorListValue) or not new.keys() >= {*value.items}:
            raise UnlinkError("a call returns something else than its outputs")
        items = tuple(new[item] for item in value.items)
        if items not in self._lists:
            self._lists[items] = len(self._values)
            self._values.append(TensorListValue(items))
        return self._lists[items]
