"""Inputs and outputs of methods as parameters of C functions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from orchestrator.core.border import Border, Quantization, border_of, port_name
from orchestrator.core.bounds import SizeBound, bounds_of
from orchestrator.core.dtype import COMPLEX, ScalarType
from orchestrator.core.layout import memory_sizes
from orchestrator.errors import Diagnostic, ModelError
from orchestrator.memory.plan import MemoryPlan, MethodMemory, method_symbol
from orchestrator.program.caller import caller_values, own_outputs
from orchestrator.program.interface import NUMBER_LISTS, TENSOR_LISTS, given_inputs, most_items
from orchestrator.program.program import Method, Program
from orchestrator.program.values import (
    BoolListValue,
    BoolValue,
    DoubleListValue,
    DoubleValue,
    IntListValue,
    IntValue,
    NoneValue,
    StringValue,
    TensorValue,
    Value,
    kind_name,
)
from orchestrator.targets.c_names import is_c_function

C_TYPES = {
    ScalarType.Byte: "uint8_t",
    ScalarType.Char: "int8_t",
    ScalarType.Short: "int16_t",
    ScalarType.Int: "int32_t",
    ScalarType.Long: "int64_t",
    # C has no type for halves that all compilers know; bits are the same everywhere.
    ScalarType.Half: "uint16_t",
    ScalarType.Float: "float",
    ScalarType.Double: "double",
    ScalarType.ComplexHalf: "orch_complex_half",
    ScalarType.ComplexFloat: "orch_complex_float",
    ScalarType.ComplexDouble: "orch_complex_double",
    # `bool` may have another size, and a byte in it that is neither 0 nor 1 is
    # undefined.
    ScalarType.Bool: "uint8_t",
    ScalarType.BFloat16: "uint16_t",
    ScalarType.UInt16: "uint16_t",
    ScalarType.UInt32: "uint32_t",
    ScalarType.UInt64: "uint64_t",
}
"""C type of a tensor's elements. Half and BFloat16 are bit patterns, Bool is 0 or 1."""


def has_complex(programs: Mapping[str, Program]) -> bool:
    """Whether an input or output has complex numbers, whose C types are ours."""
    return any(
        isinstance(port.value, TensorValue) and port.value.dtype in COMPLEX
        for method in api_methods("", programs)
        for port in method.ports
    )


_SCALARS: Mapping[type[Value], tuple[str, str]] = {
    IntValue: ("int64_t", "int"),
    DoubleValue: ("double", "double"),
    BoolValue: ("uint8_t", "bool"),
}
"""C type of a number, and the suffix of its accessors."""

_LIST_ITEMS: Mapping[type[Value], str] = {
    IntListValue: "int64_t",
    DoubleListValue: "double",
    BoolListValue: "uint8_t",
}
"""C type of the items of a list of numbers."""


def c_scalar(value: Value) -> str:
    """C type of a number."""
    return _SCALARS[type(value)][0]


def accessor(value: Value) -> str:
    """`int` for `Value::to_int` and `Value::set_int`."""
    return _SCALARS[type(value)][1]


def c_item(value: Value) -> str:
    """C type of the items of a list of numbers."""
    return _LIST_ITEMS[type(value)]


@dataclass(frozen=True, slots=True)
class Accessor:
    """A function that accesses a port without a copy.

    Args:
        c_type: What it returns.
        result: The same as a C++ expression over `method`.
        end: Suffix of its name.
        parameters: As declared in C.
    """

    c_type: str
    result: str
    end: str = ""
    parameters: str = "void"


@dataclass(frozen=True, slots=True)
class Port:
    """An input or output of a method, or a tensor in one that is a list.

    Args:
        index: Index of the input or output.
        value: Its value.
        is_input: Whether it is an input; else it is an output.
        item: Position in the list; None if it is not in a list.
        most_items: Most items of a list of numbers.
        is_given: The caller provides its memory.
        border: What the profile changed there.
        bounds: Sizes that it may have.
    """

    index: int
    value: Value
    is_input: bool
    item: int | None = None
    most_items: int = 0
    is_given: bool = False
    border: Border | None = None
    bounds: tuple[SizeBound, ...] = ()

    @property
    def is_tensor(self) -> bool:
        """Whether it is a tensor."""
        return isinstance(self.value, TensorValue)

    @property
    def is_dynamic(self) -> bool:
        """Whether it is a tensor whose sizes are upper bounds."""
        return isinstance(self.value, TensorValue) and self.value.is_dynamic

    @property
    def is_text(self) -> bool:
        """Whether it is a string."""
        return isinstance(self.value, StringValue)

    @property
    def is_list(self) -> bool:
        """Whether it is a list of numbers."""
        return isinstance(self.value, NUMBER_LISTS)

    @property
    def is_ints(self) -> bool:
        """Whether it is a list of integers, which programs compute one by one."""
        return isinstance(self.value, IntListValue)

    @property
    def c_type(self) -> str:
        """C type of the elements of a tensor or list, of characters, or of a number."""
        if isinstance(self.value, TensorValue):
            return "uint8_t" if self.is_unsigned else C_TYPES[self.value.dtype]
        if self.is_text:
            return "char"
        return c_item(self.value) if self.is_list else c_scalar(self.value)

    @property
    def number(self) -> str:
        """`int` for `Value::to_int` and `Value::set_int`."""
        return accessor(self.value)

    @property
    def sizes(self) -> str:
        """Sizes of a tensor as a C++ expression: those that the caller gives, if any."""
        if isinstance(self.value, TensorValue) and self.value.is_dynamic:
            return f"{{{self.name}_sizes, {len(self.value.sizes)}}}"
        return f"{self.place}.tensor().sizes()"

    @property
    def accessors(self) -> tuple[Accessor, ...]:
        """Functions that access it without a copy; numbers are parameters of run."""
        items = f"{self.place}.list()"
        first = Accessor(
            f"const {self.c_type}*", f"static_cast<const {self.c_type}*>({items}.items)"
        )
        count = Accessor("uint32_t", f"{items}.count", "_count")
        match self.value:
            case TensorValue():
                const = "" if self.is_input else "const "
                result = f"{self.place}.tensor().mutable_data<{self.c_type}>()"
                return (Accessor(f"{const}{self.c_type}*", result),)
            case _ if self.is_input:
                return ()
            case StringValue():
                return first, replace(count, end="_length")
            case DoubleListValue() | BoolListValue():
                return first, count
            case IntListValue():
                item = f"orch::list_int(method, {self.index}, index)"
                return Accessor("int64_t", item, "_item", "uint32_t index"), count
        return (Accessor(self.c_type, f"{self.place}.to_{self.number}()"),)

    @property
    def c_memory(self) -> str:
        """The parameter for memory of the caller in C."""
        return f"{self._const}{self.c_type}* memory"

    @property
    def cpp_memory(self) -> str:
        """The parameter for memory of the caller in C++: an array of checked length."""
        assert isinstance(self.value, TensorValue)  # noqa: S101  # only tensors are given
        return f"{self._const}{self.c_type} (&memory)[{self.value.numel}]"

    @property
    def _const(self) -> str:
        return "const " if self.is_input else ""

    @property
    def is_unsigned(self) -> bool:
        """Whether the caller has numbers larger by 128 than those of the method."""
        return self.border is not None and self.border.is_unsigned

    @property
    def quantization(self) -> Quantization | None:
        """The quantization of the numbers that the caller has, if known."""
        return None if self.border is None else self.border.caller_quantization

    @property
    def verb(self) -> str:
        """End of the name of the function that converts one number."""
        return "quantize" if self.is_input else "dequantize"

    @property
    def is_kept(self) -> bool:
        """Whether a run leaves the input as it is."""
        return self.border is not None and self.border.is_kept

    @property
    def rows(self) -> int:
        """Rows that the caller gives at a time; 0 for all of them."""
        return 0 if self.border is None else self.border.rows

    @property
    def row_count(self) -> int:
        """Rows of an image."""
        assert isinstance(self.value, TensorValue)  # noqa: S101  # the caller knows
        return memory_sizes(self.value.sizes, self.value.dim_order)[1]

    @property
    def row_items(self) -> int:
        """Elements of a row of an image."""
        assert isinstance(self.value, TensorValue)  # noqa: S101  # the caller knows
        return self.value.numel // self.row_count

    @property
    def row_bytes(self) -> int:
        """Bytes of a row of an image."""
        assert isinstance(self.value, TensorValue)  # noqa: S101  # the caller knows
        return self.row_items * self.value.dtype.item_bytes

    @property
    def name(self) -> str:
        """Name of its parameter."""
        own = port_name(self.index, is_input=self.is_input)
        return own if self.item is None else f"{own}_item{self.item}"

    @property
    def names(self) -> list[str]:
        """Names of its parameters: the second is that of its sizes, length or count."""
        # The order in which the functions take them.
        ends = ["_sizes"] * self.is_dynamic + ["_length"] * self.is_text + ["_count"] * self.is_list
        return [self.name, *(f"{self.name}{end}" for end in ends)]

    def declared(self, bound: str) -> list[str]:
        """Its parameters.

        Args:
            bound: Format of the length of an array; `{}` for references to arrays, in C++.
        """
        name, c_type = self.name, f"{self._const}{self.c_type}"

        def array(name: str, length: int) -> str:
            length_text = bound.format(max(length, 1))
            return f"(&{name})[{length_text}]" if bound == "{}" else f"{name}[{length_text}]"

        match self.value:
            case TensorValue(is_dynamic=True):
                # The sizes decide how many items there are.
                # C++ would demand an array of the largest size for a smaller tensor.
                items = f"*{name}" if bound == "{}" else array(name, self.value.numel)
                sizes = array(f"{name}_sizes", len(self.value.sizes))
                # Sizes beside the items: in C they are what bounds the read.
                return [f"{c_type} {items}", f"{self._const}int32_t {sizes}"]
            case TensorValue():
                return [f"{c_type} {array(name, self.value.numel)}"]
            case IntListValue():
                return [f"int64_t {array(name, self.most_items)}", f"uint32_t* {name}_count"]
            case StringValue() | DoubleListValue() | BoolListValue():
                return [f"const {self.c_type}** {name}", f"uint32_t* {self.names[1]}"]
        return [f"{self.c_type}{'' if self.is_input else '*'} {name}"]

    @property
    def place(self) -> str:
        """Its value as a C++ expression over `method`."""
        own = f"orch::{'input' if self.is_input else 'output'}(method, {self.index})"
        return own if self.item is None else f"orch::item(method, {own}, {self.item})"

    @property
    def comment(self) -> str:
        """`Float [1, 12]`, with further facts for callers."""
        if isinstance(self.value, NUMBER_LISTS):
            return f"{kind_name(type(self.value))} of at most {self.most_items}"
        if not isinstance(self.value, TensorValue):
            return type(self.value).__name__.removesuffix("Value").lower()
        dtype = ScalarType.Byte if self.is_unsigned else self.value.dtype
        text = f"{dtype.name} {list(self.value.sizes)}"
        if not self.value.is_contiguous:
            text += f", in memory in dim order {list(self.value.dim_order)}"
        if self.value.is_dynamic:
            text += ", sizes are upper bounds"
        text += "".join(f", {bound}" for bound in self.bounds)
        if self.is_given:
            text += ", in your memory"
        if self.rows:
            text += f", {self.rows} rows at a time"
        return text


@dataclass(frozen=True)
class ApiMethod:
    """A method with the names of its functions; no slots, for what it keeps."""

    model: str
    method: Method
    base: str
    index: int

    @cached_property
    def ports(self) -> list[Port]:
        """The ports of inputs, then of outputs."""
        m = self.method
        given = [(i, v) for i, v in enumerate(m.inputs) if v in self._given_inputs]
        return [
            *(p for i, v in given for p in self._ports(i, v, is_input=True)),
            *(p for i, v in enumerate(m.outputs) for p in self._ports(i, v, is_input=False)),
        ]

    @cached_property
    def _given_inputs(self) -> frozenset[int]:
        return given_inputs(self.method)

    @cached_property
    def _most_items(self) -> Mapping[int, int]:
        return most_items(self.method)

    @cached_property
    def _in_caller(self) -> tuple[tuple[bool, ...], tuple[bool, ...]]:
        """By position of outputs and inputs: whether the caller has their memory."""
        given = caller_values(self.method)
        return own_outputs(self.method), tuple(i in given for i in self.method.inputs)

    def _ports(self, index: int, slot: int, *, is_input: bool) -> Iterable[Port]:
        value = self.method.values[slot]
        if isinstance(value, TENSOR_LISTS):
            for item, at in enumerate(value.items):
                tensor = self.method.values[at] if at >= 0 else NoneValue()
                if isinstance(tensor, TensorValue):
                    yield Port(index, tensor, is_input, item)
        elif isinstance(value, NUMBER_LISTS):
            yield Port(index, value, is_input, None, self._most_items[slot])
        elif not isinstance(value, NoneValue):
            is_given = self.is_given(index, is_input=is_input)
            border = border_of(self.method.borders, index, is_input=is_input)
            bounds = bounds_of(self.method.bounds, index) if is_input else ()
            yield Port(*(index, value, is_input), is_given=is_given, border=border, bounds=bounds)

    @property
    def remarks(self) -> Iterable[str]:
        """Remarks on inputs and outputs without a port: `input1: int 7, fixed`."""
        m = self.method
        for i, slot in enumerate(m.inputs):
            if slot not in self._given_inputs:
                yield f"input{i}: {_fixed(m, slot)}, fixed by the program"
        for side, slots in (("input", m.inputs), ("output", m.outputs)):
            for i, slot in enumerate(slots):
                value = m.values[slot]
                if isinstance(value, TENSOR_LISTS):
                    kind = kind_name(type(value))
                    yield f"{side}{i}: {kind} of {len(value.items)}"
                    for item, at in enumerate(value.items):
                        if at < 0 or isinstance(m.values[at], NoneValue):
                            yield f"{side}{i}_item{item}: None"
                elif isinstance(value, NoneValue) and side == "output":
                    yield f"output{i}: None"

    @property
    def upper(self) -> str:
        """Prefix of its constants."""
        return self.base.upper()

    @property
    def inputs(self) -> list[Port]:
        """The ports of inputs."""
        return [port for port in self.ports if port.is_input]

    @property
    def outputs(self) -> list[Port]:
        """The ports of outputs."""
        return [port for port in self.ports if not port.is_input]

    @property
    def parameters(self) -> str:
        """Parameters of the function that copies inputs and outputs, in C."""
        return _listed([d for port in self.ports for d in port.declared("ORCH_AT_LEAST({})")])

    @property
    def cpp_parameters(self) -> str:
        """The parameters in C++, with references to arrays."""
        return ", ".join(d for port in self.ports for d in port.declared("{}"))

    @property
    def arguments(self) -> str:
        """Names of these parameters."""
        return ", ".join(name for port in self.ports for name in port.names)

    def run_parameters(self, *, first: str = "", last: str = "") -> str:
        """Parameters of run: numbers and dynamic sizes, which have no accessor to write.

        Args:
            first: A parameter before them.
            last: One behind them.
        """
        own = [
            declared
            for port in self.inputs
            for declared in port.declared("ORCH_AT_LEAST({})")[port.is_tensor :]
        ]
        return _listed([*filter(None, [first]), *own, *filter(None, [last])])

    @property
    def by_rows(self) -> Port | None:
        """The input of which the caller gives some rows at a time."""
        return next((port for port in self.ports if port.rows), None)

    @property
    def given(self) -> list[Port]:
        """Ports whose memory the caller provides."""
        return [port for port in self.ports if port.is_given]

    def is_given(self, position: int, *, is_input: bool) -> bool:
        """Whether the caller provides the memory of an input or output."""
        return self._in_caller[is_input][position]

    @cached_property
    def names(self) -> list[str]:
        """Names of its functions in C, and the prefix of its constants."""
        own = [
            end
            for port in self.ports
            for end in (
                [f"_set_{port.name}"]
                if port.is_given
                else [f"_{port.name}{end}" for end in accessor_ends(port)]
            )
        ]
        own += [f"_{p.name}_{p.verb}" for p in self.ports if p.quantization]
        own += ["_begin", "_push_rows", "_finish"] if self.by_rows else []
        ends = [
            "",
            "_run",
            "_run_at",
            "_prepare",
            "_step",
            "_cancel",
            *own,
            "_load",
            "_reset",
            "_sizes",
        ]
        # Methods `run` and `Run` would have the same constants.
        upper = self.base.upper()
        return [*(f"{self.base}{end}" for end in ends), upper, f"{upper}_CALL"]


def accessor_ends(port: Port) -> tuple[str, ...]:
    """Suffixes of the functions that access a port without a copy."""
    return tuple(access.end for access in port.accessors)


def _fixed(method: Method, slot: int) -> str:
    """A value that the program fixes: `int 7`, `int list [1, 2]`."""
    value = method.values[slot]
    kind = kind_name(type(value))
    match value:
        case IntListValue(items=items):
            numbers = [method.values[i] for i in items]
            return f"{kind} {[n.value for n in numbers if isinstance(n, IntValue)]}"
        case DoubleListValue(items=numbers) | BoolListValue(items=numbers):
            return f"{kind} {list(numbers)}"
        case IntValue() | DoubleValue() | BoolValue():
            return f"{kind} {value.value}"
    return kind  # None, or a string, whose text is not safe in a comment


def update_names(profile: str, model: str) -> tuple[str, str]:
    """Functions of a model that takes signed updates: to check one, and to load it."""
    base = method_symbol(profile, model, "")
    return f"{base}check_update", f"{base}load_update"


def api_methods(
    profile: str,
    programs: Mapping[str, Program],
    *,
    checked: bool = False,
    updates: Iterable[str] = (),
) -> list[ApiMethod]:
    """Every method of every model, in order of the method table.

    With `checked` each has one more function, which checks that flash holds what was
    linked; models in `updates` have functions of their own.

    Raises:
        ModelError: Two functions or constants would have the same name (`name-clash`).
    """
    methods = _all_methods(profile, programs)
    owners: dict[str, ApiMethod] = {}
    clashes: dict[str, tuple[ApiMethod, ApiMethod]] = {}
    for method in methods:
        check = [f"{method.base}_check"] if checked else []
        for name in (*method.names, *check):
            other = owners.setdefault(name, method)
            if other is not method:
                clashes.setdefault(name, (other, method))
    for name in [n for m in updates for n in update_names(profile, m)]:
        if name in owners:
            # Model `a` with method `load_update` against the function of model `a` that
            # loads updates.
            clashes.setdefault(name, (owners[name], owners[name]))
    problems = [_clash(name, *pair) for name, pair in clashes.items()]
    problems += [_taken(n, m) for n, m in owners.items() if is_c_function(n)]
    if problems:
        raise ModelError(problems)
    return methods


def _clash(name: str, one: ApiMethod, other: ApiMethod) -> Diagnostic:
    return Diagnostic(
        code="name-clash",
        message=f"the generated API would have two meanings of {name}",
        notes=(("found", _described(one)), ("found", _described(other))),
        hint="export the model with another name for one of its methods"
        if one.model == other.model
        else "give one of the models another name in the profile",
    )


def _taken(name: str, method: ApiMethod) -> Diagnostic:
    return Diagnostic.of(
        "name-clash",
        f"the generated API would have {name}, which C libraries have",
        found=_described(method),
        hint="give the product or the model another name in the profile",
    )


def _described(method: ApiMethod) -> str:
    return f'model "{method.model}", method {method.method.name}'


def _all_methods(profile: str, programs: Mapping[str, Program]) -> list[ApiMethod]:
    return [
        ApiMethod(model, method, method_symbol(profile, model, method.name), index)
        for model, program in programs.items()
        for index, method in enumerate(program.methods)
    ]


def memory_of(memory: MemoryPlan, method: ApiMethod) -> MethodMemory:
    """The memory of a method in the plan."""
    return next(
        x
        for model in memory.models
        for x in model.methods
        if x.model == method.model and x.method == method.method.name
    )


def _listed(parameters: list[str]) -> str:
    return ", ".join(parameters) or "void"
