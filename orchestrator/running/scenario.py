"""Scenarios: calls in order with their expected outputs, as a JSON file.

The format is that of `case.json` in the corpus of tests; other keys of an object are
ignored.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import repeat
from pathlib import PurePath
from typing import Annotated, Any, Final, Generic, Literal, TypeVar, assert_never

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from orchestrator.errors import SourceSpan, UsageError
from orchestrator.program.values import ValueKind
from orchestrator.running.compare import Tolerance
from orchestrator.running.inputs import Problems, ReadBytes, check_input, find_method, read_array
from orchestrator.running.invalid import problem_of
from orchestrator.running.npy import Array
from orchestrator.running.product import Port, Product
from orchestrator.running.values import Call, ListValue, OtherValue, RunValue, given, stored_as

_BIT_PATTERNS: Final = "uint16 bit patterns"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """Calls in order, and how exact their outputs must be."""

    calls: tuple[Call, ...]
    tolerance: Tolerance


class _Object(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True)


class _Tensor(_Object):
    kind: Literal["tensor"]
    file: Annotated[str, Field(pattern=r"^[^\x00]+$")]
    shape: list[int] | None = None
    dtype: str | None = None
    stored_as: Literal["uint16 bit patterns"] | None = None


class _TensorList(_Object):
    kind: Literal["tensor_list"]
    items: list[_Entry]


class _None(_Object):
    kind: Literal["none"]


_Kind = TypeVar("_Kind", bound=str)
_Held = TypeVar("_Held")


class _Valued(_Object, Generic[_Kind, _Held]):
    kind: _Kind
    value: _Held


_Number = (
    _Valued[Literal["int"], int]
    | _Valued[Literal["double"], float]
    | _Valued[Literal["bool"], bool]
    | _Valued[Literal["string"], str]
)
_NumberList = (
    _Valued[Literal["int_list"], list[int]]
    | _Valued[Literal["double_list"], list[float]]
    | _Valued[Literal["bool_list"], list[bool]]
)
_Entry = Annotated[
    _Tensor | _TensorList | _None | _Number | _NumberList, Field(discriminator="kind")
]


class _Run(_Object):
    model: str | None = None
    method: str
    fresh: bool = False
    inputs: list[_Entry]
    outputs: list[_Entry] | None = None


_Limit = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class _Tolerance(_Object):
    atol: _Limit
    rtol: _Limit


class _Document(_Object):
    """The parts are checked one by one, so that a wrong one hides no other."""

    runs: Annotated[list[Any], Field(min_length=1)]
    tolerance: Any


def read_scenario(text: str, *, file: str, product: Product, read_bytes: ReadBytes) -> Scenario:
    """The scenario in the text of a JSON file.

    Args:
        text: The whole file.
        file: Its path; the files it names are relative to its folder.
        product: Whose methods are called.
        read_bytes: Reads the files it names.

    Raises:
        UsageError: All problems at once (`bad-scenario`, `bad-npy`); the values
            of a call are read once its form is right.
    """
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        # RecursionError, of lists that are nested too deep, has no line.
        line = error.lineno if isinstance(error, json.JSONDecodeError) else 0
        raise UsageError.of(
            "bad-scenario",
            "the scenario is not valid JSON",
            where=SourceSpan(file=file, line=line),
            found=str(error),
            hint="a scenario is an object with runs and tolerance",
        ) from None
    reader = _Reader(file, product, read_bytes)
    scenario = reader.scenario(document)
    if scenario is None or reader.problems:
        raise reader.problems.error()
    return scenario


_Model = TypeVar("_Model", bound=_Object)


class _Reader:
    def __init__(self, file: str, product: Product, read_bytes: ReadBytes) -> None:
        self.problems = Problems(code="bad-scenario", file=file)
        self._folder = PurePath(file).parent
        self._product = product
        self._read_bytes = read_bytes

    def scenario(self, node: object) -> Scenario | None:
        document = self._checked(_Document, node, "")
        if document is None:
            return None
        calls = [self._call(run, f"runs[{i}]") for i, run in enumerate(document.runs)]
        tolerance = self._checked(_Tolerance, document.tolerance, "tolerance")
        if tolerance is None:
            return None
        return Scenario(
            calls=tuple(call for call in calls if call is not None),
            tolerance=Tolerance(atol=tolerance.atol, rtol=tolerance.rtol),
        )

    def _checked(self, model: type[_Model], node: object, at: str) -> _Model | None:
        """What a JSON value is; None if it has another form, which is noted."""
        try:
            return model.model_validate(node)
        except ValidationError as error:
            for details in error.errors(include_url=False):
                problem = problem_of(details, at)
                self.problems.add(
                    problem.at or "the whole file",
                    "invalid scenario",
                    found=problem.found,
                    expected=problem.expected,
                    hint=problem.hint,
                )
            return None

    def _call(self, node: object, at: str) -> Call | None:
        run = self._checked(_Run, node, at)
        if run is None:
            return None
        method = find_method(self._product, run.model, run.method, at, self.problems)
        if method is None:
            return None
        inputs = self._values(run.inputs, method.inputs, f"{at}.inputs")
        outputs: tuple[RunValue, ...] | None = None
        if run.outputs is not None:
            outputs = self._values(run.outputs, method.outputs, f"{at}.outputs")
            if outputs is None:
                return None
        if inputs is None:
            return None
        pairs = zip(inputs, method.inputs, strict=True)
        inputs = tuple(given(value, port) for value, port in pairs)
        for i, (value, port) in enumerate(zip(inputs, method.inputs, strict=True)):
            check_input(value, port, f"{at}.inputs[{i}]", self.problems)
        return Call(method=method, inputs=inputs, fresh=run.fresh, expected=outputs)

    def _values(
        self, entries: Sequence[_Entry], ports: tuple[Port, ...], at: str
    ) -> tuple[RunValue, ...] | None:
        if len(entries) != len(ports):
            self.problems.add(
                at,
                "the call has the wrong number of values for its method",
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

    def _value(self, entry: _Entry, port: Port, at: str) -> RunValue | None:
        match entry:
            case _Tensor():
                return self._array(entry, port, at)
            case _TensorList():
                return self._tensors(entry, port, at)
            case _None():
                return OtherValue(ValueKind.NONE)
            case _Valued(kind=kind, value=value):
                if isinstance(value, list):
                    return ListValue(ValueKind[kind.upper()], tuple(value))
                return value
        assert_never(entry)

    def _tensors(self, entry: _TensorList, port: Port, at: str) -> RunValue | None:
        """Items that the method does not have are read as what they are."""
        count = len(entry.items)
        ports = (*port.items, *repeat(Port(kind=ValueKind.NONE), count))[:count]
        found = self._values(entry.items, ports, f"{at}.items")
        return None if found is None else ListValue(ValueKind.TENSOR_LIST, found)

    def _array(self, entry: _Tensor, port: Port, at: str) -> Array | None:
        path = str(self._folder / entry.file)
        found = read_array(path, stored_as(port), at, self.problems, self._read_bytes)
        if found is not None:
            self._check_claims(entry, found, path, at)
        return found

    def _check_claims(self, entry: _Tensor, item: Array, path: str, at: str) -> None:
        """A file that is not what the scenario says of it may be the wrong file."""
        stored_dtype = entry.dtype if entry.stored_as is None else "uint16"
        if stored_dtype not in (None, item.dtype_name):
            hint = ""
            if entry.dtype == "bfloat16":
                hint = f'store bfloat16 with "stored_as": "{_BIT_PATTERNS}"'
            self.problems.add(
                f"{at}.dtype",
                "the dtype of the file differs from the scenario",
                found=f"{path}: {item}",
                expected=str(stored_dtype),
                hint=hint,
            )
        if entry.shape not in (None, list(item.shape)):
            self.problems.add(
                f"{at}.shape",
                "the shape of the file differs from the scenario",
                found=f"{path}: {item}",
                expected=f"{entry.shape}",
            )
