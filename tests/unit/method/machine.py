"""A machine that runs prelinked methods on bytes: what passes must not change.

It knows nothing of the passes' analyses. Kernels that compute mix the bytes of all
they read into every byte they write, one byte after the other, so that whoever reads
another byte, or writes where it still reads, gets another result.
"""

from __future__ import annotations

import struct
from itertools import product
from math import prod
from typing import TYPE_CHECKING

from orchestrator.method.linked import LinkedCall
from orchestrator.program.program import JumpFalseCall, MoveCall
from orchestrator.program.values import IntListValue, TensorListValue, TensorValue
from tests.unit.method.methods import GARBAGE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from orchestrator.method.linked import LinkedMethod

LIMIT = 60
"""Instructions after which a run that may loop for ever is stopped."""


_ITEM_BY_ITEM = frozenset({"quantized_activation", "dequantize_per_tensor", "quantize_per_tensor"})


def _signed(item: bytes) -> int:
    return int.from_bytes(item, "little", signed=True)


class Tensor:
    """A tensor at run time; a move gives its memory and its sizes to another slot."""

    def __init__(self, value: TensorValue, memory: bytearray, begin: int) -> None:
        self.value = value
        self.memory = memory
        self.begin = begin
        self.sizes = list(value.sizes)

    @property
    def size_bytes(self) -> int:
        """Bytes it has at the moment."""
        return prod(self.sizes) * self.value.dtype.item_bytes

    def read(self) -> bytes:
        """Its bytes at the moment."""
        return bytes(self.memory[self.begin : self.begin + self.size_bytes])

    def offsets(self) -> list[int]:
        """Where in memory its items are, in the order of their indices."""
        strides = {}
        inner = self.value.dtype.item_bytes
        for dim in reversed(self.value.dim_order):
            strides[dim] = inner
            inner *= self.sizes[dim]
        return [
            self.begin + sum(i * strides[d] for d, i in enumerate(index))
            for index in product(*map(range, self.sizes))
        ]

    def items(self) -> list[bytes]:
        """Its items in the order of their indices."""
        item = self.value.dtype.item_bytes
        return [bytes(self.memory[at : at + item]) for at in self.offsets()]

    def store(self, items: Sequence[bytes]) -> None:
        """Give it other items, in the order of their indices."""
        for at, item in zip(self.offsets(), items, strict=True):
            self.memory[at : at + len(item)] = item


class Machine:
    """A method with its memory, which stays from run to run.

    Args:
        method: The method.
        garbage: What the arena begins with before the first run; zeros follow.
    """

    def __init__(self, method: LinkedMethod, garbage: bytes) -> None:
        self.method = method
        ends = [p.end for p in method.places.values() if p.space[0] == "arena"]
        arena = bytearray(garbage).ljust(max(ends, default=0), b"\0")
        self._constants: list[tuple[bytearray, bytes]] = []
        data = {index: bytes(items) for index, items in method.data}
        self.slots: list[object] = []
        for index, value in enumerate(method.values):
            if not isinstance(value, TensorValue):
                self.slots.append(getattr(value, "value", None))
                continue
            if value.allocation is None:
                memory = bytearray(data[index])
                self._constants.append((memory, data[index]))
                self.slots.append(Tensor(value, memory, 0))
                continue
            begin = value.allocation.offset_bytes
            if index in data:
                arena[begin : begin + len(data[index])] = data[index]
            self.slots.append(Tensor(value, arena, begin))

    def run(self, inputs: Sequence[bytes]) -> tuple[object, ...]:
        """Outputs of a run, or where it failed, as the program counts."""
        for index, content in zip(self.method.inputs, inputs, strict=True):
            tensor = self._tensor(index)
            if tensor.value.is_dynamic:
                tensor.sizes[0] = content[0] % (tensor.value.sizes[0] + 1)
            size = tensor.size_bytes
            tensor.memory[tensor.begin : tensor.begin + size] = content[:size]
        at = 0
        for _ in range(LIMIT):
            if at == len(self.method.instructions):
                return tuple(self._result(index) for index in self.method.outputs)
            try:
                at = self._step(at)
            except RuntimeError:
                return ("failed", self.method.origins[at])
        return ("limit",)

    def check_constants(self) -> None:
        """Nothing has written to a constant."""
        assert all(memory == data for memory, data in self._constants)

    def _result(self, index: int) -> object:
        slot = self.slots[index]
        return (tuple(slot.sizes), slot.items()) if isinstance(slot, Tensor) else slot

    def _step(self, at: int) -> int:
        match self.method.instructions[at]:
            case LinkedCall() as call:
                self._call(call)
            case MoveCall(source=source, target=target):
                slot = self.slots[source]
                if isinstance(slot, Tensor):
                    moved = Tensor(slot.value, slot.memory, slot.begin)
                    moved.sizes = slot.sizes  # shared, as on the device
                    slot = moved
                self.slots[target] = slot
            case JumpFalseCall(condition=condition, destination=destination):
                found = self.slots[condition]
                if isinstance(found, Tensor):
                    found = found.read()[:1] > b"\x7f"
                if not found:
                    return destination
        return at + 1

    def _tensor(self, index: int) -> Tensor:
        tensor = self.slots[index]
        assert isinstance(tensor, Tensor)
        return tensor

    def _tensors(self, indices: Sequence[int]) -> Iterator[Tensor]:
        for index in indices:
            value = self.method.values[index]
            if isinstance(value, TensorListValue):
                yield from map(self._tensor, value.items)
            elif isinstance(value, TensorValue):
                yield self._tensor(index)

    def _ints(self, index: int) -> list[int]:
        value = self.method.values[index]
        assert isinstance(value, IntListValue)
        return [self._int(item) for item in value.items]

    def _int(self, index: int) -> int:
        found = self.slots[index]
        assert isinstance(found, int)
        return found

    def _call(self, call: LinkedCall) -> None:
        base = call.operator.base
        if base == "relu":
            self._mix(call)
        elif base == "add":
            self._add(call)
        elif base == "mul":
            one, other = (self._tensor(a).items() for a in call.args[:2])
            pairs = zip(one, other, strict=True)
            items = [bytes([a[0] * b[0] % 256]) for a, b in pairs]
            self._tensor(call.args[2]).store(items)
        elif base == "change":
            self._change(call)
        elif base in ("pad_contiguous", "quantized_max_pool2d_nhwc"):
            self._window(base, call)
        elif base in _ITEM_BY_ITEM:
            self._items(base, call)
        else:
            self._move(base, call)

    def _mix(self, call: LinkedCall) -> None:
        """Every byte of the outputs from all bytes of the inputs."""
        outs = [self._tensor(out) for out in call.outs]
        ins = [self._tensor(a) for a in call.args[: -len(outs)]]
        if ins and sum(ins[0].read()) % 11 == 0:
            raise RuntimeError
        for number, out in enumerate(outs):
            if out.value.is_dynamic:
                most = out.value.sizes[0]
                out.sizes[0] = sum(sum(t.read()) for t in ins) % (most + 1)
            for at in range(out.size_bytes):
                seen = sum((i + 3) * b for t in ins for i, b in enumerate(t.read()))
                out.memory[out.begin + at] = (seen * 7 + at * 13 + number) % 256

    def _add(self, call: LinkedCall) -> None:
        """Each byte of the output from those of the inputs at the same place."""
        (out,) = (self._tensor(out) for out in call.outs)
        ins = [self._tensor(a) for a in call.args[:-1]]
        for at in range(out.size_bytes):
            seen = [t.memory[t.begin + at % t.size_bytes] for t in ins]
            weighed = sum((n + 3) * s for n, s in enumerate(seen))
            out.memory[out.begin + at] = (weighed + 29) % 256

    def _change(self, call: LinkedCall) -> None:
        """Some bytes of the output from those it has and those of the inputs."""
        (out,) = (self._tensor(out) for out in call.outs)
        for at in range(0, out.size_bytes, 3):
            seen = sum(i * b for t in self._tensors(call.args) for i, b in enumerate(t.read(), 1))
            out.memory[out.begin + at] = (seen + at) % 256

    def _window(self, base: str, call: LinkedCall) -> None:
        """Pads, or largest items, of images of one line, [1, 1, W, C]."""
        source, out = self._tensor(call.args[0]), self._tensor(call.args[-1])
        channels = source.sizes[3]
        items = source.items()
        columns = [items[i : i + channels] for i in range(0, len(items), channels)]
        if base == "pad_contiguous":
            before, after = (self._ints(a)[2] for a in call.args[1:3])
            value = [bytes([self._int(call.args[3]) % 256])] * channels
            found = [*[value] * before, *columns, *[value] * after]
        else:
            kernel, padding = (self._ints(call.args[at])[1] for at in (1, 3))
            low, high = (self._int(call.args[at]) for at in (8, 9))
            found = []
            for column in range(out.sizes[2]):
                first = column - padding
                taps = columns[max(first, 0) : max(first + kernel, 0)]
                most = [max(_signed(tap[c]) for tap in taps) for c in range(channels)]
                found.append([bytes([min(max(item, low), high) % 256]) for item in most])
        out.store([item for column in found for item in column])

    def _items(self, base: str, call: LinkedCall) -> None:
        """A table, or floats of items and items of floats."""
        source, out = self._tensor(call.args[0]), self._tensor(call.args[-1])
        if base == "quantized_activation":
            table = self._tensor(call.args[1]).items()
            out.store([table[_signed(item) + 128] for item in source.items()])
            return
        scale, zero = self.slots[call.args[1]], self._int(call.args[2])
        assert isinstance(scale, float)
        if base == "dequantize_per_tensor":
            numbers = [(_signed(item) - zero) * scale for item in source.items()]
            out.store([struct.pack("<f", number) for number in numbers])
            return
        found = []
        for item in source.items():
            (number,) = struct.unpack("<f", item)
            is_small = -1000 < number < 1000  # NaN is not
            rounded = round(number / scale) + zero if is_small else -128
            found.append(bytes([min(max(rounded, -128), 127) % 256]))
        out.store(found)

    def _move(self, base: str, call: LinkedCall) -> None:
        args = call.args
        if base == "cat":
            tensors = [*self._tensors(args[:1])]
            self._tensor(args[2]).store([i for t in tensors for i in t.items()])
        elif base == "split_with_sizes_copy":
            items = self._tensor(args[0]).items()
            for out in self._tensors(args[3:4]):
                count = prod(out.sizes)
                out.store(items[:count])
                items = items[count:]
        elif base == "copy_":
            self._tensor(args[0]).store(self._tensor(args[1]).items())
        elif base in ("slice_copy", "select_copy"):
            source = self._tensor(args[0])
            row = prod(source.sizes[1:])
            first = self._int(args[2]) * row
            out = self._tensor(args[-1])
            out.store(source.items()[first : first + prod(out.sizes)])
        elif base == "permute_copy":
            source = self._tensor(args[0])
            by_index = dict(zip(product(*map(range, source.sizes)), source.items(), strict=True))
            rank = len(source.sizes)
            dims = [d % rank for d in self._ints(args[1])]
            out = self._tensor(args[2])
            found = []
            for index in product(*map(range, out.sizes)):
                own = dict(zip(dims, index, strict=True))
                found.append(by_index[tuple(own[d] for d in range(len(dims)))])
            out.store(found)
        else:
            self._tensor(args[-1]).store(self._tensor(args[0]).items())


def behaves_alike(before: LinkedMethod, after: LinkedMethod, contents: bytes) -> None:
    """Compare three runs in a row."""
    one, other = Machine(before, GARBAGE), Machine(after, GARBAGE)
    for run in range(3):
        inputs = [
            bytes((c + 57 * run + 11 * n) % 256 for c in contents)
            for n in range(len(before.inputs))
        ]
        found = one.run(inputs)
        assert found == other.run(inputs)
        other.check_constants()
        if found == ("limit",):  # a pass leaves out instructions: not the same point
            return
