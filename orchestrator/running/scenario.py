"""Scenarios: calls in order with their expected outputs, as a JSON file.

The format is that of `case.json` in the corpus of tests; keys it has besides are left
alone.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import repeat
from math import isfinite
from pathlib import PurePath
from typing import TYPE_CHECKING, Final, TypeGuard

from orchestrator.errors import Diagnostic, SourceSpan, UsageError, did_you_mean
from orchestrator.program.value_kind import ValueKind
from orchestrator.running.compare import Tolerance
from orchestrator.running.inputs import (
    Problems,
    check_input,
    find_method,
    read_array,
)
from orchestrator.running.product import Port
from orchestrator.running.values import Call, ListValue, OtherValue, stored_as

if TYPE_CHECKING:
    from orchestrator.running.inputs import ReadBytes
    from orchestrator.running.npy import Array
    from orchestrator.running.product import Product
    from orchestrator.running.values import RunValue

_BIT_PATTERNS: Final = "uint16 bit patterns"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """Calls in order, and how exact their outputs must be."""

    calls: tuple[Call, ...]
    tolerance: Tolerance


def read_scenario(
    text: str, *, file: str, product: Product, read_bytes: ReadBytes
) -> Scenario:
    """The scenario in the text of a JSON file.

    Args:
        text: The whole file.
        file: Its path; the files it names are relative to its folder.
        product: Whose methods are called.
        read_bytes: Reads the files it names.

    Raises:
        UsageError: All problems at once (`bad-scenario`, `bad-npy`).
    """
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        line = error.lineno if isinstance(error, json.JSONDecodeError) else 0
        raise UsageError(
            Diagnostic(
                code="bad-scenario",
                message="the scenario is no JSON text",
                where=SourceSpan(file=file, line=line),
                notes=(("found", str(error)),),
                hint="a scenario is an object with runs and tolerance",
            )
        ) from None
    reader = _Reader(file, product, read_bytes)
    scenario = reader.scenario(document)
    if scenario is None or reader.problems:
        raise reader.problems.error()
    return scenario


class _Reader:
    def __init__(self, file: str, product: Product, read_bytes: ReadBytes) -> None:
        self.problems = Problems(code="bad-scenario", file=file)
        self._folder = PurePath(file).parent
        self._product = product
        self._read_bytes = read_bytes

    def scenario(self, document: object) -> Scenario | None:
        if not _is_object(document):
            self._wrong("the whole file", document, "an object with runs and tolerance")
            return None
        runs = self._list(document.get("runs"), "runs", "a list of calls")
        if runs == []:
            self._wrong("runs", runs, "at least one call")
        calls = [self._call(run, f"runs[{i}]") for i, run in enumerate(runs or [])]
        tolerance = self._tolerance(document.get("tolerance"))
        if tolerance is None or None in calls:
            return None
        return Scenario(
            calls=tuple(call for call in calls if call is not None),
            tolerance=tolerance,
        )

    def _tolerance(self, node: object) -> Tolerance | None:
        if not _is_object(node):
            self._wrong("tolerance", node, "an object with atol and rtol")
            return None
        numbers = []
        for key in ("atol", "rtol"):
            number = _number(node.get(key))
            if number is None or not isfinite(number) or number < 0:
                expected = "a finite number that is not negative"
                self._wrong(f"tolerance.{key}", node.get(key), expected)
            else:
                numbers.append(number)
        match numbers:
            case [atol, rtol]:
                return Tolerance(atol=atol, rtol=rtol)
        return None

    def _call(self, run: object, at: str) -> Call | None:
        if not _is_object(run):
            self._wrong(at, run, "an object with method, inputs and outputs")
            return None
        model, method = run.get("model"), run.get("method")
        if model is not None and not isinstance(model, str):
            self._wrong(f"{at}.model", model, "the name of a model")
            return None
        fresh = run.get("fresh", False)
        if not isinstance(fresh, bool):
            self._wrong(f"{at}.fresh", fresh, "true or false")
        if not isinstance(method, str):
            self._wrong(f"{at}.method", method, "the name of a method")
            return None
        found = find_method(self._product, model, method, at, self.problems)
        if found is None:
            return None
        inputs = self._values(run.get("inputs"), found.inputs, f"{at}.inputs")
        outputs = self._values(run.get("outputs"), found.outputs, f"{at}.outputs")
        if inputs is None or outputs is None:
            return None
        for i, (value, port) in enumerate(zip(inputs, found.inputs, strict=True)):
            check_input(value, port, f"{at}.inputs[{i}]", self.problems)
        return Call(method=found, inputs=inputs, fresh=fresh is True, expected=outputs)

    def _values(
        self, node: object, ports: tuple[Port, ...], at: str
    ) -> tuple[RunValue, ...] | None:
        entries = self._list(node, at, f"a list of {len(ports)} entries")
        if entries is None:
            return None
        if len(entries) != len(ports):
            self.problems.add(
                at,
                "the call has another number of values than its method",
                found=str(len(entries)),
                expected=str(len(ports)) + "".join(f", {stored_as(p)}" for p in ports),
            )
            return None
        values = [
            self._value(entry, port, f"{at}[{i}]")
            for i, (entry, port) in enumerate(zip(entries, ports, strict=True))
        ]
        found = tuple(value for value in values if value is not None)
        return found if len(found) == len(values) else None

    def _value(self, entry: object, port: Port, at: str) -> RunValue | None:
        if not _is_object(entry):
            self._wrong(at, entry, "an object with kind, and file or value")
            return None
        kind, value = entry.get("kind"), entry.get("value")
        if kind == "tensor":
            return self._array(entry, port, at)
        if kind == "tensor_list":
            return self._tensors(entry, port, at)
        number = _plain_value(kind, value)
        if number is None:
            if isinstance(kind, str) and kind in _KINDS:
                self._wrong(f"{at}.value", value, _KINDS[kind])
            else:
                hint = did_you_mean(kind, _KINDS) if isinstance(kind, str) else ""
                self._wrong(f"{at}.kind", kind, ", ".join(_KINDS), hint=hint)
        return number

    def _tensors(
        self, entry: dict[str, object], port: Port, at: str
    ) -> RunValue | None:
        """Items that the method does not have are read as what they are."""
        entries = self._list(entry.get("items"), f"{at}.items", "a list of entries")
        if entries is None:
            return None
        ports = (*port.items, *repeat(Port(kind=ValueKind.NONE), len(entries)))
        found = [
            self._value(item, own, f"{at}.items[{i}]")
            for i, (item, own) in enumerate(zip(entries, ports, strict=False))
        ]
        items = tuple(item for item in found if item is not None)
        whole = len(items) == len(found)
        return ListValue(ValueKind.TENSOR_LIST, items) if whole else None

    def _array(self, entry: dict[str, object], port: Port, at: str) -> Array | None:
        file = entry.get("file")
        if not isinstance(file, str) or not file or "\0" in file:
            self._wrong(f"{at}.file", file, "the path of a .npy file")
            return None
        path = str(self._folder / file)
        found = read_array(path, stored_as(port), at, self.problems, self._read_bytes)
        if found is not None:
            self._check_claims(entry, found, path, at)
        return found

    def _check_claims(
        self, entry: dict[str, object], item: Array, path: str, at: str
    ) -> None:
        """A file that is not what the scenario says of it may be the wrong file."""
        shape, dtype = entry.get("shape"), entry.get("dtype")
        stored = entry.get("stored_as")
        if stored is not None and stored != _BIT_PATTERNS:
            self._wrong(f"{at}.stored_as", stored, f'"{_BIT_PATTERNS}"')
        stored_dtype = dtype if stored is None else "uint16"
        if stored_dtype not in (None, item.dtype_name):
            hint = ""
            if dtype == "bfloat16":
                hint = f'store bfloat16 with "stored_as": "{_BIT_PATTERNS}"'
            self.problems.add(
                f"{at}.dtype",
                "the file has another dtype than the scenario says",
                found=f"{path}: {item}",
                expected=str(stored_dtype),
                hint=hint,
            )
        if shape is None or shape == list(item.shape):
            return
        if isinstance(shape, list) and all(type(size) is int for size in shape):
            self.problems.add(
                f"{at}.shape",
                "the file has another shape than the scenario says",
                found=f"{path}: {item}",
                expected=f"{shape}",
            )
        else:
            self._wrong(f"{at}.shape", shape, "a list of sizes")

    def _list(self, node: object, at: str, expected: str) -> list[object] | None:
        if isinstance(node, list):
            return node
        self._wrong(at, node, expected)
        return None

    def _wrong(self, at: str, found: object, expected: str, *, hint: str = "") -> None:
        self.problems.add(
            at,
            "the scenario is not as it has to be",
            found=_excerpt(found),
            expected=expected,
            hint=hint,
        )


_KINDS: Final = {
    "tensor": "a file",
    "int": "an integer",
    "double": "a number",
    "bool": "true or false",
    "string": "a text",
    "int_list": "a list of integers",
    "double_list": "a list of numbers",
    "bool_list": "a list of true and false",
    "tensor_list": "a list of entries",
    "none": "nothing",
}


def _plain_value(  # noqa: PLR0911  # one per kind
    kind: object, value: object
) -> RunValue | None:
    """A value that stands in the scenario itself; None if it is of another kind."""
    match kind:
        case "none":
            return OtherValue(ValueKind.NONE)
        case "int" if type(value) is int:
            return value
        case "double":
            return _number(value)
        case "bool" if isinstance(value, bool):
            return value
        case "string" if isinstance(value, str):
            return value
        case "int_list" | "double_list" | "bool_list" if isinstance(value, list):
            return _numbers(ValueKind[kind.upper()], value)
    return None


def _numbers(kind: ValueKind, items: list[object]) -> ListValue | None:
    """A list of numbers of one kind; None if it has something else."""
    match kind:
        case ValueKind.INT_LIST:
            found: list[RunValue | None] = [
                i if type(i) is int else None for i in items
            ]
        case ValueKind.DOUBLE_LIST:
            found = [_number(item) for item in items]
        case _:
            found = [item if isinstance(item, bool) else None for item in items]
    numbers = tuple(item for item in found if item is not None)
    return ListValue(kind, numbers) if len(numbers) == len(found) else None


def _excerpt(node: object) -> str:
    """What a JSON value is, in a few words."""
    match node:
        case None:
            return "nothing"
        case dict():
            return "an object"
        case list():
            return f"a list of {len(node)} entries"
    return f"{json.dumps(node, ensure_ascii=False):.80}"


def _is_object(node: object) -> TypeGuard[dict[str, object]]:
    return isinstance(node, dict)


def _number(node: object) -> float | None:
    """A JSON number as a double; None if it is none, or too large."""
    # A truth value is an int to isinstance.
    if type(node) not in (int, float):
        return None
    try:
        return float(node)  # type: ignore[arg-type]  # int or float
    except OverflowError:
        return None
