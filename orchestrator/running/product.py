"""What `run` needs to know of a built product: the text of `product.json`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Final, TypeVar

from orchestrator.core.dtype import ScalarType
from orchestrator.errors import Diagnostic, SourceSpan, UsageError
from orchestrator.pte.values import (
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

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from orchestrator.core.memory import MemoryPlan
    from orchestrator.pte.program import Method, Program
    from orchestrator.targets import Target

_VERSION: Final = 1
FIRMWARE: Final = "firmware.elf"
"""Name of the program in the output folder."""


class ValueKind(IntEnum):
    """What a value holds; the codes are those of `orch::Tag` in the runtime."""

    NONE = 0
    TENSOR = 1
    INT = 2
    DOUBLE = 3
    BOOL = 4
    STRING = 5
    INT_LIST = 6
    DOUBLE_LIST = 7
    BOOL_LIST = 8
    TENSOR_LIST = 9

    @property
    def label(self) -> str:
        """As messages and files name it: `tensor`, `int_list`."""
        return self.name.lower()


@dataclass(frozen=True, slots=True, kw_only=True)
class Port:
    """An input or output of a method.

    Args:
        kind: What it holds; the rest is said of tensors only.
        dtype: Element type; None unless it is a tensor.
        sizes: Outermost dimension first; upper bounds if `is_dynamic`.
        dim_order: Dimensions from outermost to innermost in memory.
        is_dynamic: The sizes may be smaller than `sizes`.
    """

    kind: ValueKind
    dtype: ScalarType | None = None
    sizes: tuple[int, ...] = ()
    dim_order: tuple[int, ...] = ()
    is_dynamic: bool = False

    def __str__(self) -> str:
        if self.dtype is None:
            return self.kind.label
        bound = "at most " if self.is_dynamic else ""
        return f"{self.dtype.name} {bound}{list(self.sizes)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProductMethod:
    """A method of one of the product's models.

    Args:
        index: In the product's method table.
        model: Name of the model.
        name: Of the method in the model's program.
        state_bytes: Exact size of its state block.
        inputs: In the order of the method.
        outputs: In the order of the method.
    """

    index: int
    model: str
    name: str
    state_bytes: int
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]

    def __str__(self) -> str:
        return f"{self.model}.{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Product:
    """A built product.

    Args:
        profile: Name of its profile.
        emulator: Program and arguments that run the firmware; empty on a host.
        firmware: File name in the output folder.
        methods: In the order of the product's method table.
    """

    profile: str
    emulator: tuple[str, ...]
    firmware: str
    methods: tuple[ProductMethod, ...]

    @property
    def models(self) -> tuple[str, ...]:
        """Names of the models, in the profile's order."""
        return tuple(dict.fromkeys(method.model for method in self.methods))


_KINDS: Final[dict[type[Value], ValueKind]] = {
    NoneValue: ValueKind.NONE,
    TensorValue: ValueKind.TENSOR,
    IntValue: ValueKind.INT,
    DoubleValue: ValueKind.DOUBLE,
    BoolValue: ValueKind.BOOL,
    StringValue: ValueKind.STRING,
    IntListValue: ValueKind.INT_LIST,
    DoubleListValue: ValueKind.DOUBLE_LIST,
    BoolListValue: ValueKind.BOOL_LIST,
    TensorListValue: ValueKind.TENSOR_LIST,
    OptionalTensorListValue: ValueKind.TENSOR_LIST,
}


def product_json(
    *,
    profile: str,
    programs: Mapping[str, Program],
    memory: MemoryPlan,
    target: Target,
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
    methods = [
        (model, m) for model, program in programs.items() for m in program.methods
    ]
    document = {
        "version": _VERSION,
        "profile": profile,
        "emulator": list(target.board.emulator) if target.board else [],
        "firmware": FIRMWARE,
        "methods": [
            {
                "index": index,
                "model": model,
                "method": method.name,
                "state_bytes": state_bytes[model, method.name],
                "inputs": _ports(method, method.inputs),
                "outputs": _ports(method, method.outputs),
            }
            for index, (model, method) in enumerate(methods)
        ],
    }
    return json.dumps(document, indent=1) + "\n"


def _ports(method: Method, indices: Iterable[int]) -> list[dict[str, object]]:
    return [_port(method.values[index]) for index in indices]


def _port(value: Value) -> dict[str, object]:
    kind = _KINDS[type(value)].label
    if not isinstance(value, TensorValue):
        return {"kind": kind}
    return {
        "kind": kind,
        "dtype": value.dtype.name,
        "sizes": list(value.sizes),
        "dim_order": list(value.dim_order),
        "dynamic": value.is_dynamic,
    }


def read_product(text: str, *, file: str = "product.json") -> Product:
    """The product in the text of a `product.json`.

    Args:
        text: The whole file.
        file: Its name, for messages.

    Raises:
        UsageError: The text was not written by this version (`bad-product`).
    """
    try:
        return _read(json.loads(text))
    except (ValueError, RecursionError) as error:
        raise UsageError(
            Diagnostic(
                code="bad-product",
                message="the description of the built product cannot be read",
                where=SourceSpan(file=file),
                notes=(("found", str(error)),),
                hint="run `orchestrator build` for the profile again",
            )
        ) from None


def _read(document: object) -> Product:
    version = _get(document, "version", int)
    if version != _VERSION:
        raise ValueError(f"version {version}, expected {_VERSION}")
    methods = _get(document, "methods", list)
    return Product(
        profile=_get(document, "profile", str),
        emulator=_items(document, "emulator", str),
        firmware=_get(document, "firmware", str),
        methods=tuple(_read_method(m, index) for index, m in enumerate(methods)),
    )


_T = TypeVar("_T")


def _get(node: object, key: str, kind: type[_T]) -> _T:
    found = node.get(key) if isinstance(node, dict) else None
    # A truth value is an int to isinstance.
    if type(found) is not kind:
        raise ValueError(f'"{key}" is {found!r:.80}, expected {kind.__name__}')
    return found


def _items(node: object, key: str, kind: type[_T]) -> tuple[_T, ...]:
    items = _get(node, key, list)
    if not all(type(item) is kind for item in items):
        raise ValueError(f'"{key}" has an item that is no {kind.__name__}')
    return tuple(items)


def _read_method(node: object, index: int) -> ProductMethod:
    if _get(node, "index", int) != index:
        raise ValueError(f"method {index} is out of order")
    return ProductMethod(
        index=index,
        model=_get(node, "model", str),
        name=_get(node, "method", str),
        state_bytes=_get(node, "state_bytes", int),
        inputs=tuple(map(_read_port, _get(node, "inputs", list))),
        outputs=tuple(map(_read_port, _get(node, "outputs", list))),
    )


def _read_port(node: object) -> Port:
    kinds = {kind.label: kind for kind in ValueKind}
    kind = kinds.get(_get(node, "kind", str))
    if kind is None:
        raise ValueError(f"{node!r:.80} is of an unknown kind")
    if kind is not ValueKind.TENSOR:
        return Port(kind=kind)
    dtype = _get(node, "dtype", str)
    sizes = _items(node, "sizes", int)
    dim_order = _items(node, "dim_order", int)
    if dtype not in ScalarType.__members__:
        raise ValueError(f'unknown dtype "{dtype}"')
    if sorted(dim_order) != list(range(len(sizes))) or min(sizes, default=0) < 0:
        raise ValueError(f"sizes {list(sizes)} with dim order {list(dim_order)}")
    return Port(
        kind=kind,
        dtype=ScalarType[dtype],
        sizes=sizes,
        dim_order=dim_order,
        is_dynamic=_get(node, "dynamic", bool),
    )
