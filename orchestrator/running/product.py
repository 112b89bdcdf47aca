"""What `run` needs to know of a built product: the text of `product.json`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeVar

from orchestrator.core.dtype import ScalarType
from orchestrator.errors import Diagnostic, SourceSpan, UsageError
from orchestrator.program.interface import TENSOR_LISTS, can_be_given
from orchestrator.program.value_kind import VALUE_KINDS, ValueKind
from orchestrator.program.values import (
    BoolListValue,
    DoubleListValue,
    IntListValue,
    NoneValue,
    TensorValue,
    Value,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from orchestrator.memory.plan import MemoryPlan
    from orchestrator.program.program import Method, Program
    from orchestrator.targets.cores import Target

_VERSION: Final = 1
FIRMWARE: Final = "firmware.elf"
"""Name of the program in the output folder."""


Fixed = bool | int | float | str | tuple[bool | int | float, ...] | None
"""A value that the program has for an input and no call can choose."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Port:
    """An input or output of a method.

    Args:
        kind: What it holds.
        dtype: Element type; None unless it is a tensor. As is said of tensors only:
        sizes: Outermost dimension first; upper bounds if `is_dynamic`.
        dim_order: Dimensions from outermost to innermost in memory.
        is_dynamic: The sizes may be smaller than `sizes`.
        items: Of a list of tensors: tensors and None.
        is_fixed: An input that is `fixed` and cannot be given.
        fixed: That value.
    """

    kind: ValueKind
    dtype: ScalarType | None = None
    sizes: tuple[int, ...] = ()
    dim_order: tuple[int, ...] = ()
    is_dynamic: bool = False
    items: tuple[Port, ...] = ()
    is_fixed: bool = False
    fixed: Fixed = None

    def __str__(self) -> str:
        if self.items:
            return f"{self.kind.label} of {', '.join(map(str, self.items))}"
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
        board: What the firmware is for; "" on a host.
        emulator: Program and arguments that run the firmware; empty on a host, and
            for boards without one.
        firmware: File name in the output folder.
        methods: In the order of the product's method table.
    """

    profile: str
    board: str = ""
    emulator: tuple[str, ...]
    firmware: str
    methods: tuple[ProductMethod, ...]

    @property
    def models(self) -> tuple[str, ...]:
        """Names of the models, in the profile's order."""
        return tuple(dict.fromkeys(method.model for method in self.methods))


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
        "board": target.board.name if target.board else "",
        "emulator": list(target.board.emulator) if target.board else [],
        "firmware": FIRMWARE,
        "methods": [
            {
                "index": index,
                "model": model,
                "method": method.name,
                "state_bytes": state_bytes[model, method.name],
                "inputs": [_input(method, i) for i in method.inputs],
                "outputs": [_port(method, method.values[i]) for i in method.outputs],
            }
            for index, (model, method) in enumerate(methods)
        ],
    }
    return json.dumps(document, indent=1) + "\n"


def _input(method: Method, index: int) -> dict[str, object]:
    value = method.values[index]
    port = _port(method, value)
    return port if can_be_given(method, index) else {**port, **_fixed(method, value)}


def _fixed(method: Method, value: Value) -> dict[str, object]:
    """A value that the program has: as JSON, ints of a list by what they are."""
    found = getattr(value, "value", None)
    if isinstance(value, IntListValue):
        found = [getattr(method.values[item], "value", 0) for item in value.items]
    elif isinstance(value, DoubleListValue | BoolListValue):
        found = list(value.items)
    return {"fixed": found}


def _port(method: Method, value: Value) -> dict[str, object]:
    kind = VALUE_KINDS[type(value)].label
    if isinstance(value, TENSOR_LISTS):
        items = [method.values[i] if i >= 0 else NoneValue() for i in value.items]
        return {"kind": kind, "items": [_port(method, item) for item in items]}
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
        board=_get(document, "board", str),
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
    if kind is ValueKind.TENSOR_LIST:
        return Port(kind=kind, items=tuple(map(_read_port, _get(node, "items", list))))
    if kind is not ValueKind.TENSOR:
        return _read_fixed(node, kind)
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


def _read_fixed(node: object, kind: ValueKind) -> Port:
    """A port that is no tensor; as an input it may have the value it is fixed to."""
    if not isinstance(node, dict) or "fixed" not in node:
        return Port(kind=kind)
    fixed = node["fixed"]
    if kind in _FIXED_ITEMS:
        fixed = _items(node, "fixed", _FIXED_ITEMS[kind])
    elif type(fixed) is not _FIXED[kind]:
        raise ValueError(f"{node!r:.80} has a value of another kind")
    return Port(kind=kind, is_fixed=True, fixed=fixed)


_FIXED: Final[dict[ValueKind, type]] = {
    ValueKind.NONE: type(None),
    ValueKind.INT: int,
    ValueKind.DOUBLE: float,
    ValueKind.BOOL: bool,
    ValueKind.STRING: str,
}
_FIXED_ITEMS: Final[dict[ValueKind, type]] = {
    ValueKind.INT_LIST: int,
    ValueKind.DOUBLE_LIST: float,
    ValueKind.BOOL_LIST: bool,
}
