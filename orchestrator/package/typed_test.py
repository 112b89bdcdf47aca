"""The self test of a package that has the library: a header, for C and C++.

The library has no symbol for the self test, and its bytes are in the lock. So the test
is text that the application compiles, and calls methods as applications do.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from orchestrator.core.layout import stored_items
from orchestrator.emit.generate.ports import ApiMethod, Port, c_item, c_scalar
from orchestrator.memory.plan import identifier
from orchestrator.package.rendering import rendered
from orchestrator.package.sources import byte_rows
from orchestrator.program.interface import NUMBER_LISTS
from orchestrator.program.values import IntListValue, StringValue, TensorValue
from orchestrator.running.npy import Array
from orchestrator.running.protocol import CallResult
from orchestrator.running.values import Call, ListValue, RunValue

# ARENA_ALIGNMENT; memory that the caller gives needs as much.
_ALIGNMENT: Final = 16
"""Alignment of tensors, in bytes."""
# Little-endian, as all targets are.
_FORMATS: Final = {"int64_t": "<q", "double": "<d", "uint8_t": "<B"}
_SIGN: Final = 0x80
"""Between the bytes of int8 numbers and of uint8 numbers larger by 128."""


def typed_test(
    product: str,
    methods: Sequence[ApiMethod],
    calls: Sequence[Call],
    results: Sequence[CallResult],
    *,
    prelinked: Collection[str],
) -> str:
    """The header; "" if a call gives an image by rows.

    Args:
        product: Name of the product.
        methods: All of the product.
        calls: The case.
        results: What came out.
        prelinked: Names of models that the build has loaded.
    """
    base = identifier(product)
    named = {(method.model, method.method.name): method for method in methods}
    owners = [named[call.method.model, call.method.name] for call in calls]
    if any(method.by_rows for method in owners):
        return ""
    texts = [
        _CallText(f"{base}_self_test_{number}", method, call, result)
        for number, (method, call, result) in enumerate(zip(owners, calls, results, strict=True))
    ]
    return rendered(
        "typed_test.h.j2",
        product=product,
        base=base,
        calls=calls,
        owners=[*dict.fromkeys(owners)],
        prelinked=prelinked,
        functions="\n".join(text.function() for text in texts),
        memory_bytes=max(1, *(text.memory_bytes for text in texts)),
        alignment=_ALIGNMENT,
    )


@dataclass(frozen=True, slots=True)
class _Argument:
    """An input or output of a call in C.

    Args:
        before: Statements before the call.
        words: Arguments.
        differs: Conditions under which an output is wrong.
    """

    before: str
    words: tuple[str, ...]
    differs: tuple[str, ...] = ()


class _CallText:
    """A function in C that makes one call and compares what comes out."""

    def __init__(self, name: str, method: ApiMethod, call: Call, result: CallResult) -> None:
        self.name = name
        self.memory_bytes = 0
        self._base = method.base
        self._arguments = [
            self._argument(port, (call.inputs if port.is_input else result.outputs)[port.index])
            for port in method.ports
        ]

    def function(self) -> str:
        """Its text."""
        before = "".join(argument.before for argument in self._arguments)
        words = ",\n      ".join(word for a in self._arguments for word in a.words)
        wrong = [text for argument in self._arguments for text in argument.differs]
        compared = "".join(f"  if ({text}) return ORCH_IMAGE_DAMAGED;\n" for text in wrong)
        return (
            f"static inline orch_status {self.name}(uint8_t* memory) {{\n"
            f"{before}  orch_status status = {self._base}({words});\n"
            "  (void)memory;\n  if (status != ORCH_OK) return status;\n"
            f"{compared}  return ORCH_OK;\n}}\n"
        )

    def _argument(self, port: Port, found: RunValue) -> _Argument:
        if port.item is not None:
            assert isinstance(found, ListValue)  # noqa: S101  # as the method says
            found = found.items[port.item]
        if isinstance(port.value, TensorValue):
            assert isinstance(found, Array)  # noqa: S101  # likewise
            return self._tensor(port, port.value, found)
        if isinstance(port.value, (StringValue, *NUMBER_LISTS)):
            return _list(port, found)
        return _number(port, found)

    def _tensor(self, port: Port, value: TensorValue, found: Array) -> _Argument:
        name = port.name
        data = stored_items(found.numpy, value.dim_order)
        if port.is_unsigned:
            data = bytes(byte ^ _SIGN for byte in data)
        most = max(value.numel, 1) * found.item_bytes
        before = _bytes(f"{name}_bytes", data.ljust(most, b"\0") if port.is_input else data)
        const = "const " if port.is_input else ""
        place = f"{name}_bytes"
        if port.is_given or not port.is_input:
            place = f"(memory + {self.memory_bytes})"
            # All calls use one block of memory, one after the other: its size is that
            # of the largest.
            self.memory_bytes += -(-most // _ALIGNMENT) * _ALIGNMENT
        if port.is_given and port.is_input:
            before += f"  memcpy({place}, {name}_bytes, sizeof {name}_bytes);\n"
        words = [f"({const}{port.c_type}*)({const}void*){place}"]
        differs = []
        if value.is_dynamic:
            sizes = ", ".join(map(str, found.shape)) or "0"
            count = max(len(found.shape), 1)
            before += f"  {const}int32_t {name}_sizes[{count}] = {{{sizes}}};\n"
            words.append(f"{name}_sizes")
        if not port.is_input:
            if value.is_dynamic:
                differs = [f"{name}_sizes[{at}] != {size}" for at, size in enumerate(found.shape)]
            if data:
                differs.append(f"memcmp({place}, {name}_bytes, sizeof {name}_bytes) != 0")
        return _Argument(before, tuple(words), tuple(differs))


def _number(port: Port, found: RunValue) -> _Argument:
    """A parameter, or where one comes out."""
    name = port.name
    data = struct.pack(_FORMATS[c_scalar(port.value)], found)
    before = f"{_bytes(f'{name}_bytes', data)}  {c_scalar(port.value)} {name} = 0;\n"
    if port.is_input:
        copied = f"  memcpy(&{name}, {name}_bytes, sizeof {name});\n"
        return _Argument(before + copied, (name,))
    wrong = f"memcmp(&{name}, {name}_bytes, sizeof {name}) != 0"
    return _Argument(before, (f"&{name}",), (wrong,))


def _list(port: Port, found: RunValue) -> _Argument:
    """A list of numbers or a string that comes out; none goes in."""
    name, value = port.name, port.value
    if isinstance(value, StringValue):
        item, count_name = "char", f"{name}_length"
        data = str(found).encode()
        count = len(data)
    else:
        assert isinstance(found, ListValue)  # noqa: S101  # as the method says
        item, count_name = c_item(value), f"{name}_count"
        data = b"".join(struct.pack(_FORMATS[item], number) for number in found.items)
        count = len(found.items)
    before = _bytes(f"{name}_bytes", data) + f"  uint32_t {count_name} = 0;\n"
    if isinstance(value, IntListValue):  # the only one that is copied
        before += f"  int64_t {name}[{max(port.most_items, 1)}];\n"
        words = (name, f"&{count_name}")
    else:
        before += f"  const {item}* {name} = NULL;\n"
        words = (f"&{name}", f"&{count_name}")
    differs = [f"{count_name} != {count}"]
    differs += [f"memcmp({name}, {name}_bytes, {len(data)}) != 0"] * bool(data)
    return _Argument(before, words, tuple(differs))


def _bytes(name: str, data: bytes) -> str:
    aligned = f"__attribute__((aligned({_ALIGNMENT})))"
    return (
        f"  static const uint8_t {name}[{max(len(data), 1)}] {aligned} = {{\n"
        f"{byte_rows(data or bytes(1))}  }};\n"
    )
