"""Prelinked methods as constant tables in C++, and their constants as assembly."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from math import isnan, nan
from types import MappingProxyType
from typing import Final, TypeAlias

from orchestrator.core.layout import ALIGNMENT
from orchestrator.core.lazy_bytes import Bytes, joined
from orchestrator.core.operator import OperatorName, OpSchema
from orchestrator.emit.artifact import row_comment
from orchestrator.emit.generate.prepared import (
    exact,
    number_block,
    number_bytes,
    prepared_block,
    shape_block,
)
from orchestrator.memory.plan import model_section
from orchestrator.method.compact import WIDE, WIDE_TABLES, TableLayout
from orchestrator.method.linked import LinkedCall, LinkedInstruction, LinkedMethod, Prepared
from orchestrator.method.passes.packing.kernels import UNPREPARED, arguments_of
from orchestrator.method.steps import HEADER, StepTable, StepTemplate, step_table
from orchestrator.program.program import JumpFalseCall, MoveCall
from orchestrator.program.values import (
    BoolListValue,
    BoolValue,
    DoubleListValue,
    DoubleValue,
    IntListValue,
    IntValue,
    NoneValue,
    OptionalTensorListValue,
    StringValue,
    TensorListValue,
    TensorValue,
    Value,
)

# The steps of a method by rows in C++.


def template_name(base: str, number: int) -> str:
    """Name of the struct of a template."""
    return f"{base}_template{number}"


def steps_block(
    method: LinkedMethod,
    table: StepTable,
    base: str,
    layout: TableLayout,
    array: Callable[[str, Sequence[int]], str],
) -> Iterator[str]:
    """Definitions of a table, in the namespace orch; the structs come before.

    Args:
        method: The method.
        table: Its steps.
        base: Prefix of its names.
        layout: Of the tables of all methods of the product.
        array: Gives the name of a constant array of a C type.
    """
    rows = []
    for number, template in enumerate(table.templates):
        name = template_name(base, number)
        prepared = _prepared(method, template)
        pairs = [n for a in template.addresses for n in (a.pointer, a.unit)]
        changed = array("uint16_t", [*pairs, *template.words]) or "nullptr"
        shapes = array("int32_t", template.shapes) or "nullptr"
        # The order of StepTemplate's members (runtime/include/orch/steps.h).
        counts = (
            len(template.addresses),
            len(template.words),
            len(prepared.memory) + (prepared.shape is not None),
            len(numbers_of(prepared)),
            _header(prepared) if template.header_words else 0,
            template.header_words,
        )
        rows.append(f"    {{&{name}, {changed}, {shapes}, {', '.join(map(str, counts))}}}")
    count = len(rows)
    joined = ",\n".join(rows)
    yield f"constexpr StepTemplate {base}_templates[{count}] = {{\n{joined}}};"
    # The one block of RAM in which the executor makes the struct of a step; its size is
    # a constant expression of the templates, so that C++ computes it with the target's
    # pointers.
    yield f"alignas(void*) uint8_t {base}_step[step_bytes({base}_templates)];"
    size = sum(map(len, table.steps))
    lines = "\n".join(
        f"{_comment(method, number)}    {', '.join(map(str, step))},"
        for number, step in enumerate(table.steps)
    )
    yield f"constexpr uint8_t {base}_steps[{size}] = {{\n{lines}}};"
    run = ""
    if layout.given_rows:
        run = ",\n    nullptr, 0, 0"
    if table.given is not None:
        yield f"RowRun {base}_run;"
        run = f",\n    &{base}_run, {table.given}, {_input_bytes(method)}"
    yield (
        f"constexpr StepTable {base}_step_table = {{\n"
        f"    {{{base}_steps}}, {base}_templates, {base}_step{run}}};"
    )


def step_bytes(table: StepTable) -> bytes:
    """The bytes of all steps."""
    return b"".join(table.steps)


def numbers_of(prepared: Prepared) -> list[object]:
    """The numbers of a struct, those of structs in it as well."""
    found: list[object] = []
    rest: list[object] = [*prepared.numbers]
    while rest:
        item = rest.pop(0)
        if isinstance(item, tuple) and isinstance(item[1], tuple):
            # Structs in structs, flat and in order, as they lie in memory.
            rest = [*item[1], *rest]
        else:
            found.append(item)
    return found


def _input_bytes(method: LinkedMethod) -> int:
    """Bytes of the input that comes by rows, which is the only one."""
    value = method.values[method.inputs[0]]
    assert isinstance(value, TensorValue)  # noqa: S101  # the plan says so
    return value.size_bytes


def _header(prepared: Prepared) -> int:
    """Which address of a struct is that of the header, from 1."""
    return [name for name, _ in prepared.memory].index(HEADER) + 1


def _prepared(method: LinkedMethod, template: StepTemplate) -> Prepared:
    call = method.instructions[template.instruction]
    assert isinstance(call, LinkedCall)  # noqa: S101  # methods by rows have no others
    assert call.prepared is not None  # noqa: S101  # the same
    return call.prepared


def _comment(method: LinkedMethod, number: int) -> str:
    call = method.instructions[number]
    assert isinstance(call, LinkedCall)  # noqa: S101  # as above
    return row_comment(f"{number}: {call.operator}")


ListValue: TypeAlias = (
    StringValue
    | IntListValue
    | DoubleListValue
    | BoolListValue
    | TensorListValue
    | OptionalTensorListValue
)
_WORD = 0xFFFFFFFF
_CODES = {"uint8_t": "B", "uint16_t": "H", "int32_t": "i", "int64_t": "q", "double": "d"}
_INDEX_TYPES = {1: "uint8_t", 2: "uint16_t", WIDE: "int32_t"}
# Dimensions in a word: a dim order is bytes behind the sizes in compact tables
# (orch/tensor.h).
_ORDER_WORD = 4  # dimensions of a dim order in a 32-bit word
_USES: Final = 3
"""Most uses of a value in its comment; constants may have hundreds."""


def constant_symbols(own: Mapping[str, Sequence[Bytes]]) -> dict[Bytes, str]:
    """The symbol of each constant of prelinked models."""
    return {
        data: constant_symbol(name, index)
        for name, constants in own.items()
        for index, data in enumerate(constants)
    }


def constant_symbol(model: str, index: int) -> str:
    """Symbol of a constant's first byte."""
    return f"orch_constant_{model}_{index}"


def constants_file(model: str) -> str:
    """Path of the file with the constants of a model, in the build folder."""
    return f"models/{model}.constants"


def constants_bytes(constants: Sequence[Bytes]) -> Bytes:
    """The contents of that file: one after the other, at multiples of 16."""
    # One file for all: `.incbin` with offset and length takes its parts. As text in
    # assembly, constants made compiling take as long as they are large.
    return joined(part for data in constants for part in (data, bytes(-len(data) % ALIGNMENT)))


def constants_assembly(model: str, constants: Sequence[Bytes]) -> str:
    """The constants of a prelinked model, each in a section that linkers can drop."""
    text, offset = "", 0
    for index, data in enumerate(constants):
        symbol = constant_symbol(model, index)
        text += (
            # A section each, so that --gc-sections drops those that only removed calls
            # had.
            f'  .section {model_section(model)}.c{index},"a"\n'
            f"  .balign {ALIGNMENT}\n  .globl {symbol}\n{symbol}:\n"
            f'  .incbin "{constants_file(model)}", {offset}, {len(data)}\n\n'
        )
        offset += -(-len(data) // ALIGNMENT) * ALIGNMENT
    return text


@dataclass(frozen=True, slots=True, kw_only=True)
class PrelinkedText:
    """The tables of a prelinked method in C++.

    Args:
        text: All tables.
        values: Name of the constant table of values.
        instructions: Name of the table of instructions; "" if there are none.
        blocks: Name and bytes of each table and constant without addresses.
    """

    text: str
    values: str
    instructions: str
    blocks: tuple[tuple[str, Bytes], ...]


def prelinked_block(
    method: LinkedMethod,
    base: str,
    constants: Mapping[Bytes, str],
    *,
    layout: TableLayout = WIDE_TABLES,
    schemas: Mapping[OperatorName, OpSchema] = MappingProxyType({}),
) -> PrelinkedText:
    """A prelinked method without its arenas, in the namespace orch.

    Args:
        method: The method.
        base: Prefix of its names.
        constants: Symbols of all constants.
        layout: Of the tables of all methods of the product.
        schemas: Schemas of its operators, for names of arguments in comments.
    """
    return _Writer(method, base, constants, layout, _Comments(method, schemas)).block()


def argument_table(method: LinkedMethod) -> tuple[tuple[int, ...], dict[tuple[int, ...], int]]:
    """The arguments of calls in one table, equal lists once; and their offsets.

    Prepared calls have none.
    """
    # Equal lists once: many calls of a network differ in their tensors only by the
    # address, and in compact tables not even by that.
    starts: dict[tuple[int, ...], int] = {}
    table: list[int] = []
    for instruction in method.instructions:
        if isinstance(instruction, LinkedCall) and instruction.prepared is None:
            args = instruction.args
            if args not in starts:
                starts[args] = len(table)
                table += args
    return tuple(table), starts


class _Comments:
    """Comments that explain the rows of a method's tables."""

    def __init__(self, method: LinkedMethod, schemas: Mapping[OperatorName, OpSchema]) -> None:
        self._schemas = schemas
        self._instructions = method.instructions
        self._uses: list[list[str]] = [[] for _ in method.values]
        for place, index in enumerate(method.inputs):
            self._uses[index].append(f"input {place}")
        for number, instruction in enumerate(method.instructions):
            for name, index in self._arguments(instruction):
                self._uses[index].append(f"{name} of {_name(instruction)} [{number}]")
        for place, index in enumerate(method.outputs):
            self._uses[index].append(f"output {place}")
        for index, value in enumerate(method.values):
            if isinstance(value, TensorListValue | OptionalTensorListValue):
                for place, item in enumerate(value.items):
                    if item >= 0:
                        self._uses[item].append(f"item {place} of value {index}")

    def value(self, index: int) -> str:
        """The uses of a value: argument of operators, input, output."""
        # Comments cost no flash, and a constant may be an argument of hundreds of
        # calls.
        uses = self._uses[index]
        more = [f"{len(uses) - _USES} more"] if len(uses) > _USES else []
        return row_comment(f"{index}: {', '.join(uses[:_USES] + more) or 'not used'}")

    def instruction(self, number: int) -> str:
        """Operator and arguments of an instruction, with value indices."""
        instruction = self._instructions[number]
        if isinstance(instruction, JumpFalseCall):
            text = f"jump to {instruction.destination} unless {instruction.condition}"
        else:
            arguments = self._arguments(instruction)
            listed = ", ".join(f"{name}={index}" for name, index in arguments)
            text = f"{_name(instruction)}({listed})"
        return row_comment(f"{number}: {text}")

    def _arguments(self, instruction: LinkedInstruction) -> Iterator[tuple[str, int]]:
        """Names and value indices of arguments."""
        match instruction:
            case LinkedCall(operator=operator, args=args):
                schema = self._schemas.get(operator)
                names = [a.name for a in schema.arguments] if schema else []
                if instruction.prepared is not None:
                    names = [n for n, at in instruction.prepared.memory if at is not None]
                elif instruction.function in UNPREPARED:
                    names = [*arguments_of(UNPREPARED[instruction.function], len(args))]
                # Values after the arguments of the schema are results.
                beyond = "result" if schema else "argument"
                for index, name in zip_longest(args, names[: len(args)]):
                    yield name or beyond, index
            case MoveCall(source=source, target=target):
                yield from (("source", source), ("target", target))
            case JumpFalseCall(condition=condition):
                yield "condition", condition


def _name(instruction: LinkedInstruction) -> str:
    match instruction:
        case LinkedCall(operator=operator):
            return str(operator)
        case MoveCall():
            return "move"
        case JumpFalseCall():
            return "jump"


class _Writer:
    """Writes the tables of one method; equal lists and sizes are written once."""

    def __init__(
        self,
        method: LinkedMethod,
        base: str,
        constants: Mapping[Bytes, str],
        layout: TableLayout,
        comments: _Comments,
    ) -> None:
        self._method = method
        self._comments = comments
        self._base = base
        self._data = dict(method.data)
        self._symbol = constants
        self._compact = layout.compact
        self._kernel_calls = layout.kernel_calls
        self._index_type = _INDEX_TYPES[layout.index_bytes]
        # All bits set stands for None.
        self._none = (1 << 8 * layout.index_bytes) - 1 if self._compact else -1
        self._args = argument_table(method)
        self._layout = layout
        self._steps = step_table(method) if method.by_rows else None
        self._tables: dict[tuple[str, bytes], tuple[str, str]] = {}
        self._words = 0
        self._initial: list[tuple[str, str, str]] = []
        self._capacities: list[int] = []
        shapes = [p.shape for *_, p in self._prepared() if p.shape is not None]
        self._shapes = {
            shape: f"{base}_shape{number}" for number, shape in enumerate(dict.fromkeys(shapes))
        }

    def block(self) -> PrelinkedText:
        method, base = self._method, self._base
        self._initial += self._state_first()
        slots = method.values[: method.slots]
        values = [self._value(i, v) for i, v in enumerate(slots)]
        instructions = [
            self._instruction(number, i)
            for number, i in enumerate(method.instructions)
            if self._steps is None
        ]
        steps = (
            [*steps_block(method, self._steps, base, self._layout, self._array)]
            if self._steps is not None
            else []
        )
        inputs = self._array(self._index_type, method.inputs)
        outputs = self._array(self._index_type, method.outputs)
        lines = [f"constexpr {declared};" for _, declared in self._tables.values()]
        if self._words:
            start = ", ".join(map(str, self._capacities))
            lines += [
                f"int32_t {base}_sizes[{self._words}];",
                f"constexpr int32_t {base}_sizes_first[{self._words}] = {{{start}}};",
            ]
            self._initial.append((f"{base}_sizes", f"{base}_sizes_first", f"sizeof {base}_sizes"))
        if values:
            constant = method.has_constant_slots
            # Slots that a run never writes stay in flash; others are copied into RAM
            # when the method is made ready.
            name = f"{base}_values" if constant else f"{base}_values_first"
            table = ",\n".join(f"{self._comments.value(i)}    {v}" for i, v in enumerate(values))
            lines.append(f"const Value {name}[{len(values)}] = {{\n{table}}};")
            if not constant:
                lines.append(f"Value {base}_values[{len(values)}];")
                self._initial.append((f"{base}_values", name, f"sizeof {base}_values"))
        lines += [*self._prepared_calls(), *steps]
        code, declared = self._code(instructions)
        lines += declared
        if self._initial:
            table = ",\n".join(f"    {{{to}, {of}, {n}}}" for to, of, n in self._initial)
            lines.append(
                f"constexpr InitialBytes {base}_initial[{len(self._initial)}] = {{\n{table}}};"
            )
        table = "{}"
        if values:
            # Values are in one table, of which the executor writes only what is not
            # constant; the proof is `has_constant_slots`.
            cast = f"const_cast<Value*>({base}_values)"
            table = f"{{{cast}, {len(values)}}}"
        lines += [
            f"constexpr PrelinkedMethod {base}_prelinked = {{",
            f"    {{{{{code}}}, {table},",
            f"     {{{inputs}}}, {{{outputs}}}{self._table_of(code)}}},",
            f"    {{{f'{base}_initial' if self._initial else ''}}}, {self._state()}}};",
        ]
        name = "values" if method.has_constant_slots else "values_first"
        return PrelinkedText(
            text="\n".join(lines),
            values=f"{base}_{name}",
            instructions=code,
            blocks=tuple(self._blocks()),
        )

    def _code(self, instructions: Sequence[str]) -> tuple[str, list[str]]:
        """Name ("" if empty) and text of the table of instructions."""
        if not instructions:
            return "", []
        count = len(instructions)
        rows = ",\n".join(
            f"{self._comments.instruction(number)}    {instruction}"
            for number, instruction in enumerate(instructions)
        )
        if not self._compact:
            name = f"{self._base}_instructions"
            return name, [f"constexpr Instruction {name}[{count}] = {{\n{rows}}};"]
        if not self._kernel_calls:
            name = f"{self._base}_code"
            return name, [f"constexpr Instruction {name}[{count}] = {{\n{rows}}};"]
        args = self._args[0] or (0,)
        table = f"constexpr InstructionTable<{count}, {len(args)}> {self._base}_code"
        return f"{self._base}_code.instructions", [
            f"{table} = {{{{\n{rows}}},\n    {{{', '.join(map(str, args))}}}}};"
        ]

    def _table_of(self, code: str) -> str:
        """The table with arguments of a compact method's instructions, and steps."""
        found = ""
        if self._compact and self._kernel_calls:
            found = f", {self._base}_code.args" if code else ", nullptr"
        if self._layout.steps:
            found += f", &{self._base}_step_table" if self._steps else ", nullptr"
        return found

    def _blocks(self) -> Iterator[tuple[str, Bytes]]:
        """Constants and tables without addresses."""
        for data in self._method.constants:
            yield self._symbol[data], data
        if self._compact and self._args[0]:
            code = _CODES[self._index_type]
            packed = struct.pack(f"<{len(self._args[0])}{code}", *self._args[0])
            yield f"{self._base}_code.args", packed
        for name, _, _, prepared in self._prepared():
            block = number_block(prepared, name)
            if block is not None:
                yield block
        if self._steps is not None:
            yield f"{self._base}_steps", step_bytes(self._steps)
        for shape, name in self._shapes.items():
            yield f"&{name}", number_bytes(shape.numbers)
        for (_, packed), (name, _) in self._tables.items():
            yield name, packed
        if self._words:
            yield (f"{self._base}_sizes_first", struct.pack(f"<{self._words}i", *self._capacities))

    def _state(self) -> str:
        """RAM for changing slots and sizes, as a C++ expression."""
        slots = 0 if self._method.has_constant_slots else self._method.slots
        return f"{slots} * sizeof(Value) + {self._words} * sizeof(int32_t)"

    def _array(self, c_type: str, items: Iterable[float]) -> str:
        """Name of a constant array; "" if it is empty."""
        # C++ has one NaN.
        numbers = [nan if isnan(item) else item for item in items]
        if not numbers:
            return ""
        # By bytes: 0.0 and -0.0 compare as equal.
        key = (c_type, struct.pack(f"<{len(numbers)}{_CODES[c_type]}", *numbers))
        if key not in self._tables:
            name = f"{self._base}_table{len(self._tables)}"
            content = ", ".join(map(exact if c_type == "double" else str, numbers))
            self._tables[key] = name, f"{c_type} {name}[{len(numbers)}] = {{{content}}}"
        return self._tables[key][0]

    def _value(self, index: int, value: Value) -> str:
        if isinstance(value, TensorValue):
            return self._tensor(index, value)
        if isinstance(value, NoneValue | IntValue | BoolValue | DoubleValue):
            return _scalar(value)
        return self._list(value)

    def _list(self, value: ListValue) -> str:
        items: Sequence[float]
        match value:
            case StringValue(value=text):
                tag, c_type, items = "String", "uint8_t", text.encode()
            case DoubleListValue(items=numbers):
                tag, c_type, items = "DoubleList", "double", numbers
            case BoolListValue(items=truths):
                tag, c_type, items = "BoolList", "uint8_t", [*map(int, truths)]
            case IntListValue(items=indices):
                tag, c_type = ("IntList", self._index_type if self._compact else "int64_t")
                items = indices
            case TensorListValue(items=indices) | OptionalTensorListValue(items=indices):
                tag, c_type = "TensorList", self._index_type
                items = [self._none if i < 0 else i for i in indices]
        name = self._array(c_type, items) or "nullptr"
        return f"Value(List{{Tag::{tag}, {len(items)}, {name}}})"

    def _tensor(self, index: int, value: TensorValue) -> str:
        flags = []
        if value.is_contiguous:
            flags.append("Tensor::kContiguous")
        memory = self._memory(index)
        if value.allocation is None:
            if memory != "nullptr":
                memory = f"const_cast<uint8_t*>({memory})"
            given = self._method.given
            if index in given:
                flags.append("Tensor::kCaller")
            if index not in given or index in self._method.inputs:
                flags.append("Tensor::kReadOnly")
        if value.is_dynamic:
            flags.append("Tensor::kDynamic")
            dims = f"{self._base}_sizes + {self._words + 1}"
            self._words += 1 + len(value.sizes)
            # First the bytes that the plan has for it, then the sizes that a run may
            # change.
            self._capacities += [value.size_bytes, *value.sizes]
        else:
            behind = (
                _order_words(value.dim_order) if self._compact and not value.is_contiguous else ()
            )
            dims = self._array("int32_t", (*value.sizes, *behind)) or "nullptr"
        order = ""
        if not self._compact:
            order = f", {self._array('uint8_t', value.dim_order) or 'nullptr'}"
        return (
            f"Value(Tensor{{Tag::Tensor, ScalarType::{value.dtype.name},"
            f" {len(value.sizes)}, {' | '.join(flags) or '0'},\n"
            f"                 {memory}, {dims}{order}}})"
        )

    def _memory(self, index: int) -> str:
        """The address of a tensor, as a C++ expression."""
        value, data = self._method.values[index], self._data.get(index)
        if isinstance(value, TensorValue) and value.allocation is not None:
            place = value.allocation
            offset = place.offset_bytes
            return self._arena(index, offset) if value.size_bytes else "nullptr"
        return self._symbol[data] if data else "nullptr"

    def _arena(self, index: int, offset: int) -> str:
        """An offset in the arena of a tensor."""
        value = self._method.values[index]
        assert isinstance(value, TensorValue)  # noqa: S101  # with a place
        assert value.allocation is not None  # noqa: S101
        return f"{self._base}_arena{value.allocation.memory_id} + {offset}"

    def _state_first(self) -> Iterator[tuple[str, str, str]]:
        """Bytes of planned tensors that are written before the first call."""
        for index, data in sorted(self._data.items()):
            value = self._method.values[index]
            if isinstance(value, TensorValue) and value.is_planned and data:
                # No origin: state that begins with zeros takes no flash.
                zeros = self._method.starts_with_zeros(index, data)
                origin = "nullptr" if zeros else self._symbol[data]
                yield self._memory(index), origin, str(len(data))

    def _prepared(self) -> Iterator[tuple[str, int, LinkedCall, Prepared]]:
        """Names and numbers of the calls that have structs, and these."""
        numbers = {
            self._call_name(number): number for number in range(len(self._method.instructions))
        }
        if self._steps is not None:
            numbers = {
                template_name(self._base, at): template.instruction
                for at, template in enumerate(self._steps.templates)
            }
        for name, number in numbers.items():
            call = self._method.instructions[number]
            if isinstance(call, LinkedCall) and call.prepared is not None:
                yield name, number, call, call.prepared

    def _prepared_calls(self) -> Iterator[str]:
        for shape, name in self._shapes.items():
            yield shape_block(shape, name)
        for at, (name, number, call, prepared) in enumerate(self._prepared()):
            memory = [*map(self._memory, call.args)]
            if self._steps is not None:
                bases = {
                    address.pointer: address.base for address in self._steps.templates[at].addresses
                }
                for pointer, (_, position) in enumerate(prepared.memory):
                    # In a template an address is the first of its kind; steps add to
                    # it.
                    if pointer in bases and position is not None:
                        index = call.args[position]
                        memory[position] = self._arena(index, bases[pointer])
            yield prepared_block(
                call,
                prepared,
                name=name,
                number=number,
                tensors=[self._method.values[index] for index in call.args],
                memory=memory,
                shape=self._shapes[prepared.shape] if prepared.shape else "",
            )

    def _call_name(self, number: int) -> str:
        return f"{self._base}_call{number}"

    def _instruction(self, number: int, instruction: LinkedInstruction) -> str:
        match instruction:
            case LinkedCall(prepared=Prepared()):
                return f"Instruction({self._call_name(number)})"
            case LinkedCall(function=function, args=args):
                place: str | int = self._args[1].get(args, 0)
                if not self._compact:
                    place = self._array("int32_t", args) or "nullptr"
                return f"Instruction({{{function}, {place}}}, {len(args)})"
            case MoveCall(source=source, target=target):
                return f"Instruction(Instruction::Move{{{source}, {target}}})"
            case JumpFalseCall(condition=condition, destination=destination):
                return f"Instruction(Instruction::Jump{{{condition}, {destination}}})"


def _order_words(dim_order: Sequence[int]) -> Iterator[int]:
    """A dim order as stored after sizes: bytes packed into 32-bit words."""
    for at in range(0, len(dim_order), _ORDER_WORD):
        yield int.from_bytes(bytes(dim_order[at : at + _ORDER_WORD]), "little")


def _scalar(value: NoneValue | IntValue | BoolValue | DoubleValue) -> str:
    match value:
        case NoneValue():
            tag, bits = "None", 0
        case IntValue(value=number):
            tag, bits = "Int", number
        case BoolValue(value=truth):
            tag, bits = "Bool", int(truth)
        case DoubleValue(value=number):
            tag, bits = "Double", struct.unpack("<q", struct.pack("<d", number))[0]
    low, high = bits & _WORD, bits >> 32 & _WORD
    return f"Value(Scalar{{Tag::{tag}, {{{low}U, {high}U}}}})"
