"""A built product as `run` needs it, written to `product.json` and read back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Final, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    NonNegativeInt,
    PlainSerializer,
    PlainValidator,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
    ValidationError,
    model_validator,
)

from orchestrator.core.border import Quantization, border_of
from orchestrator.core.bounds import SizeBound, bounds_of
from orchestrator.core.dtype import ScalarType
from orchestrator.errors import SourceSpan, UsageError
from orchestrator.memory.plan import MemoryPlan
from orchestrator.program.interface import TENSOR_LISTS, given_inputs
from orchestrator.program.program import Method, Program
from orchestrator.program.values import (
    VALUE_KINDS,
    BoolListValue,
    DoubleListValue,
    IntListValue,
    NoneValue,
    TensorValue,
    Value,
    ValueKind,
)
from orchestrator.running.invalid import sentence_of
from orchestrator.targets.cores import Target

FIRMWARE: Final = "firmware.elf"
"""Name of the program in the output folder."""

Number = StrictBool | StrictInt | StrictFloat
Fixed = Number | StrictStr | tuple[Number, ...] | None
"""A value that the program has for an input and no call can choose."""


_FIXED_LISTS: Final = (ValueKind.INT_LIST, ValueKind.DOUBLE_LIST, ValueKind.BOOL_LIST)
_FIXED_TYPES: Final[dict[ValueKind, type]] = {
    ValueKind.NONE: type(None),
    ValueKind.INT: int,
    ValueKind.DOUBLE: float,
    ValueKind.BOOL: bool,
    ValueKind.STRING: str,
    ValueKind.INT_LIST: int,
    ValueKind.DOUBLE_LIST: float,
    ValueKind.BOOL_LIST: bool,
}
"""Types of fixed values, or of the items of fixed lists."""


def _kind(value: object) -> ValueKind:
    for kind in ValueKind:
        if value in (kind.label, kind):
            return kind
    raise ValueError(f"unknown kind {value!r:.80}")


def _dtype(value: object) -> ScalarType | None:
    if value is None or isinstance(value, ScalarType):
        return value
    if isinstance(value, str) and value in ScalarType.__members__:
        return ScalarType[value]
    raise ValueError(f"unknown dtype {value!r:.80}")


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, populate_by_name=True)


class Port(_Record):
    """An input or output of a method.

    `dtype` and what follows it is for tensors; `items` for lists of tensors.
    """

    kind: Annotated[
        ValueKind,
        PlainValidator(_kind),
        PlainSerializer(lambda kind: kind.label),
        Field(description="What it holds."),
    ]
    dtype: Annotated[
        ScalarType | None,
        PlainValidator(_dtype),
        PlainSerializer(lambda dtype: dtype.name),
        Field(description="Element type; None unless it is a tensor."),
    ] = None
    sizes: Annotated[
        tuple[NonNegativeInt, ...],
        Field(description="Outermost first; upper bounds if `is_dynamic`."),
    ] = ()
    dim_order: Annotated[
        tuple[StrictInt, ...],
        Field(description="Dimensions from outermost to innermost in memory."),
    ] = ()
    is_dynamic: Annotated[
        StrictBool, Field(alias="dynamic", description="Sizes may be smaller than `sizes`.")
    ] = False
    bounds: Annotated[
        tuple[SizeBound, ...],
        Field(description="Sizes that an input may have, besides upper bounds."),
    ] = ()
    items: Annotated[tuple[Port, ...], Field(description="Tensors and None.")] = ()
    fixed: Annotated[Fixed, Field(description="The value of an input that cannot be given.")] = None
    quantization: Annotated[
        Quantization | None, Field(description="Of int8 numbers that were floats in the program.")
    ] = None
    is_unsigned: Annotated[
        StrictBool,
        Field(alias="unsigned", description="The application has uint8 numbers, larger by 128."),
    ] = False

    @model_validator(mode="after")
    def _dim_order_fits_sizes(self) -> Self:
        if sorted(self.dim_order) != list(range(len(self.sizes))):
            sizes, order = list(self.sizes), list(self.dim_order)
            raise ValueError(f"sizes {sizes} with dim order {order}")
        return self

    @model_validator(mode="after")
    def _fixed_value_is_of_its_kind(self) -> Self:
        is_list = isinstance(self.fixed, tuple)
        items = self.fixed if isinstance(self.fixed, tuple) else (self.fixed,)
        wanted = _FIXED_TYPES.get(self.kind)
        if self.is_fixed and (
            is_list != (self.kind in _FIXED_LISTS)
            or not all(type(item) is wanted for item in items)
        ):
            raise ValueError(f"fixed value {self.fixed!r:.80} of another kind")
        return self

    @property
    def is_fixed(self) -> bool:
        """Whether it has a `fixed` value, which may be None."""
        return "fixed" in self.model_fields_set

    def __str__(self) -> str:
        if self.items:
            return f"{self.kind.label} of {', '.join(map(str, self.items))}"
        if self.dtype is None:
            return self.kind.label
        bound = "at most " if self.is_dynamic else ""
        return f"{self.dtype.name} {bound}{list(self.sizes)}{self.bounds_text}"

    @property
    def bounds_text(self) -> str:
        """The sizes that it may have, after the upper bounds."""
        return "".join(f", {bound}" for bound in self.bounds)


class ProductMethod(_Record):
    """A method of one of the product's models."""

    index: Annotated[StrictInt, Field(description="In the product's method table.")]
    model: Annotated[StrictStr, Field(description="Name of the model.")]
    name: Annotated[StrictStr, Field(alias="method", description="In the model's program.")]
    state_bytes: Annotated[StrictInt, Field(description="Size of its state block.")]
    inputs: Annotated[tuple[Port, ...], Field(description="In the method's order.")]
    outputs: Annotated[tuple[Port, ...], Field(description="In the method's order.")]

    def __str__(self) -> str:
        return f"{self.model}.{self.name}"


class Product(_Record):
    """A built product."""

    # Rises when an older `run` would misread the file. Fields that came later have
    # defaults and are left out where they have those (`exclude_unset`): product.json,
    # whose digest locks have, stays the same for products that do not use them.
    version: Literal[1] = 1
    profile: Annotated[StrictStr, Field(description="Name of its profile.")]
    board: Annotated[StrictStr, Field(description='What the firmware is for; "" on Linux.')]
    emulator: Annotated[
        tuple[StrictStr, ...],
        Field(
            description="Program and arguments that run the firmware; empty on a host,"
            " and for boards without one."
        ),
    ]
    machine: Annotated[
        StrictStr,
        Field(
            description="Machine that runs it without emulator, as `uname -m` says;"
            ' "": the one it was built on, or none.'
        ),
    ] = ""
    via: Annotated[
        StrictStr, Field(description="How a board reaches the host: `semihosting` or `uart`.")
    ] = "semihosting"
    firmware: Annotated[StrictStr, Field(description="Name in the output folder.")]
    methods: Annotated[
        tuple[ProductMethod, ...], Field(description="In order of the method table.")
    ]

    @model_validator(mode="after")
    def _methods_are_in_order(self) -> Self:
        for index, method in enumerate(self.methods):
            if method.index != index:
                raise ValueError(f"method {index} is out of order")
        return self

    def emulator_on(self, machine: str) -> tuple[str, ...]:
        """The emulator that the firmware needs on a machine; empty without one."""
        return () if self.machine == machine else self.emulator

    @property
    def models(self) -> tuple[str, ...]:
        """Names of the models, in the profile's order."""
        return tuple(dict.fromkeys(method.model for method in self.methods))


def product_json(
    *, profile: str, programs: Mapping[str, Program], memory: MemoryPlan, target: Target
) -> str:
    """Text of `product.json`.

    Args:
        profile: Name of the profile.
        programs: By model name, in the profile's order: with the order of their
            methods, that of the method table.
        memory: Has a row for every method of every program.
        target: What is built for.
    """
    state_bytes = {
        (method.model, method.method): method.state_bytes
        for model in memory.models
        for method in model.methods
    }
    methods = [(model, m) for model, program in programs.items() for m in program.methods]
    board = target.board
    product = Product(
        version=1,
        profile=profile,
        board=board.name if board else "",
        emulator=board.emulator if board else target.cpu.emulator,
        firmware=FIRMWARE,
        methods=tuple(
            ProductMethod(
                index=index,
                model=model,
                name=method.name,
                state_bytes=state_bytes[model, method.name],
                inputs=input_ports(method),
                outputs=output_ports(method),
            )
            for index, (model, method) in enumerate(methods)
        ),
        # Given only if there is one, so that `exclude_unset` leaves it out elsewhere.
        **({"machine": target.cpu.machine} if target.cpu.machine else {}),
        **({"via": target.via} if target.via != "semihosting" else {}),
    )
    document = product.model_dump(mode="json", by_alias=True, exclude_unset=True)
    return json.dumps(document, indent=1) + "\n"


def input_ports(method: Method) -> tuple[Port, ...]:
    """Inputs of a method, in its order."""
    given = given_inputs(method)
    return tuple(
        _with_border(_input(method, index, at, is_given=index in given), method, at, is_input=True)
        for at, index in enumerate(method.inputs)
    )


def output_ports(method: Method) -> tuple[Port, ...]:
    """Outputs of a method, in its order."""
    return tuple(
        _with_border(_port(method, method.values[index]), method, at, is_input=False)
        for at, index in enumerate(method.outputs)
    )


def _with_border(port: Port, method: Method, at: int, *, is_input: bool) -> Port:
    # `model_copy(update=...)` marks fields as set, which `exclude_unset` goes by.
    border = border_of(method.borders, at, is_input=is_input)
    if border is None:
        return port
    update: dict[str, object] = {}
    if border.quantization is not None:
        update["quantization"] = border.quantization
    if border.is_unsigned:
        update["is_unsigned"] = True
    return port.model_copy(update=update)


def _input(method: Method, index: int, at: int, *, is_given: bool) -> Port:
    value = method.values[index]
    port = _port(method, value)
    if bounds := bounds_of(method.bounds, at):
        port = port.model_copy(update={"bounds": bounds})
    if is_given:
        return port
    return port.model_copy(update={"fixed": _fixed(method, value)})


def _fixed(method: Method, value: Value) -> Fixed:
    """The value of an input that cannot be given; items that vary count as 0."""
    if isinstance(value, IntListValue):
        return tuple(getattr(method.values[i], "value", 0) for i in value.items)
    if isinstance(value, DoubleListValue | BoolListValue):
        return value.items
    fixed: Fixed = getattr(value, "value", None)
    return fixed


def _port(method: Method, value: Value) -> Port:
    kind = VALUE_KINDS[type(value)]
    if isinstance(value, TENSOR_LISTS):
        items = [method.values[i] if i >= 0 else NoneValue() for i in value.items]
        return Port(kind=kind, items=tuple(_port(method, item) for item in items))
    if not isinstance(value, TensorValue):
        return Port(kind=kind)
    return Port(
        kind=kind,
        dtype=value.dtype,
        sizes=value.sizes,
        dim_order=value.dim_order,
        is_dynamic=value.is_dynamic,
    )


def read_product(text: str, *, file: str = "product.json") -> Product:
    """The product in the text of a `product.json`.

    Args:
        text: The whole file.
        file: Its name, for messages.

    Raises:
        UsageError: The text was not written by this version (`bad-product`).
    """
    try:
        return Product.model_validate_json(text)
    except ValidationError as error:
        raise UsageError.of(
            "bad-product",
            "cannot read the description of the built product",
            where=SourceSpan(file=file),
            found=sentence_of(error.errors()[0]),
            hint="run `orchestrator build` for the profile again",
        ) from None
