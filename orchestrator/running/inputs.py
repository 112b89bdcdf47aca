"""Values and methods as the user names them, and a call made from a command line."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from math import prod
from pathlib import Path
from typing import Final

import numpy as np

from orchestrator.errors import Diagnostic, SourceSpan, UsageError, did_you_mean, nearest_path
from orchestrator.program.values import ValueKind
from orchestrator.running.compare import elements
from orchestrator.running.npy import Array, read_npy, write_npy
from orchestrator.running.product import Port, Product, ProductMethod
from orchestrator.running.protocol import CallResult
from orchestrator.running.values import (
    NPY_DTYPES,
    PATTERNS,
    Call,
    ListValue,
    OtherValue,
    RunValue,
    given,
    input_misfit,
    kind_of,
    stored_as,
)

ReadBytes = Callable[[str], bytes]
"""Reads the file of a path; raises OSError as `open` does."""


class Problems:
    """Collects what is wrong with what the user gave, to be raised once."""

    def __init__(self, *, code: str, file: str = "") -> None:
        self._code = code
        self._where = SourceSpan(file=file) if file else None
        self._problems: list[Diagnostic] = []

    def add(self, at: str, message: str, *, found: str = "", expected: str, hint: str = "") -> None:
        """Note one problem.

        Args:
            at: The option, or the place in the file: `runs[2].inputs[0]`.
            message: What is wrong.
            found: What was there; "" for nothing.
            expected: What should have been.
            hint: What to do.
        """
        notes = {"at": at, "found": found, "expected": expected}
        kept = {label: text for label, text in notes.items() if text}
        self._problems.append(
            Diagnostic.of(self._code, message, where=self._where, hint=hint, **kept)
        )

    def add_error(self, at: str, error: UsageError) -> None:
        """Note the problems of a file that is named at a place."""
        self._problems += [replace(d, notes=(("at", at), *d.notes)) for d in error.diagnostics]

    def __bool__(self) -> bool:
        return bool(self._problems)

    def error(self) -> UsageError:
        """Everything noted, to be raised."""
        return UsageError(self._problems)


def command_line_call(  # one per option, all named
    product: Product,
    *,
    model: str | None,
    method: str,
    inputs: Sequence[str],
    read_bytes: ReadBytes,
    expected: Sequence[str] | None = None,
) -> Call:
    """The call that `--model`, `--method` and `--input` stand for.

    A tensor is a `.npy` file; an int, double or bool is such a file with one element.
    They, and a tensor of one element, may be a number, if there is no such file. Items
    of a list are separated by commas; None is `none`.

    Args:
        product: What was built.
        model: May be None if only one model has the method.
        method: Name of the method.
        inputs: In the order of the method.
        read_bytes: Reads the files that `inputs` and `expected` name.
        expected: Likewise, one per output; None if nothing is expected.

    Raises:
        UsageError: All problems at once (`bad-input`, `bad-npy`).
    """
    problems = Problems(code="bad-input")
    at = f"--method {method}" if model is None else f"--model {model} --method {method}"
    found = find_method(product, model, method, at, problems)
    if found is None:
        raise problems.error()
    sides = {"--input": (inputs, found.inputs)}
    if expected is not None:
        sides["--expect"] = (expected, found.outputs)
    values: dict[str, tuple[RunValue, ...]] = {}
    for option, (texts, ports) in sides.items():
        if len(texts) != len(ports):
            problems.add(
                option,
                f"wrong number of {_SIDES[option]}s for method {found}",
                found=str(len(texts)),
                expected=str(len(ports)) + "".join(f", {stored_as(p)}" for p in ports),
                hint=f"give {option} once for each, in the order of the method",
            )
        # Values are read to the end, whatever is wrong with one: all problems are told
        # at once.
        pairs = [
            _read_value(text, port, f"{option} {text}", problems, read_bytes)
            for text, port in zip(texts, ports, strict=False)
        ]
        if option == "--input":
            pairs = [
                value if value is None else given(value, port)
                for value, port in zip(pairs, ports, strict=False)
            ]
        values[option] = tuple(value for value in pairs if value is not None)
        if option == "--input":
            for text, value, port in zip(texts, pairs, ports, strict=False):
                if value is not None:
                    check_input(value, port, f"--input {text}", problems)
    if problems:
        raise problems.error()
    return Call(method=found, inputs=values["--input"], expected=values.get("--expect"))


_SIDES: Final = {"--input": "input", "--expect": "output"}


def find_method(
    product: Product, model: str | None, method: str, at: str, problems: Problems
) -> ProductMethod | None:
    """The method of this name; None if there is none or more than one.

    Args:
        product: Whose methods.
        model: None if any model's will do.
        method: Name of the method.
        at: Where it is named.
        problems: Takes what is wrong.
    """
    if model is not None and model not in product.models:
        problems.add(
            at,
            f'the product has no model "{model}"',
            expected=", ".join(product.models) or "no model at all",
            hint=did_you_mean(model, product.models),
        )
        return None
    known = [m for m in product.methods if model in (None, m.model)]
    found = [m for m in known if m.name == method]
    if len(found) == 1:
        return found[0]
    if found:
        problems.add(
            at,
            f'several models have a method "{method}"',
            expected="one of the models " + ", ".join(m.model for m in found),
            hint='name the model: --model, or "model" in the call of a scenario',
        )
    else:
        owner = f'the model "{model}"' if model else "the product"
        names = dict.fromkeys(m.name for m in known)
        problems.add(
            at,
            f'{owner} has no method "{method}"',
            expected=", ".join(names) or "no method at all",
            hint=did_you_mean(method, names),
        )
    return None


def check_input(value: RunValue, port: Port, at: str, problems: Problems) -> None:
    """Note why a value does not fit an input, if it does not."""
    misfit = input_misfit(value, port)
    if misfit is not None:
        problems.add(at, **misfit._asdict())


def read_array(
    path: str, expected: str, at: str, problems: Problems, read_bytes: ReadBytes
) -> Array | None:
    """The array in a file; None if it cannot be read.

    Args:
        path: Of the `.npy` file.
        expected: What it should hold, for messages.
        at: Where it is named.
        problems: Takes what is wrong.
        read_bytes: Reads the file.
    """
    try:
        return read_npy(read_bytes(path), file=path)
    except UsageError as error:
        problems.add_error(at, error)
    except OSError as error:
        near = nearest_path(Path(path))
        hint = f'did you mean "{near}"?' if near else "write one with numpy.save"
        if _FLOAT.fullmatch(path):
            hint = f"a number stands for one value only: {hint}"
        problems.add(
            at,
            "cannot read the file",
            found=f"{path}: {error.strerror or error}",
            expected=f"a .npy file with {expected}",
            hint=hint,
        )
    return None


def _element(text: str, port: Port, read_bytes: ReadBytes) -> Array | None:
    """The number that is the only element of a tensor; None if it is a file."""
    if port.dtype is None or port.dtype in PATTERNS or prod(port.sizes) != 1:
        return None
    dtype = NPY_DTYPES.get(port.dtype, "")
    number = _parse_number(text, _KINDS.get(dtype[1:2], ValueKind.DOUBLE))
    # A file of that name is meant, even if the name is a number.
    with suppress(OSError):
        read_bytes(text)
        return None
    if dtype and number is not None:
        with suppress(OverflowError):  # more than the dtype holds
            return Array.of(np.full(port.sizes, number, dtype))
    return None


def _read_value(  # noqa: PLR0911  # one per kind
    text: str, port: Port, at: str, problems: Problems, read_bytes: ReadBytes
) -> RunValue | None:
    if port.kind is ValueKind.STRING:
        return text
    if port.kind is ValueKind.NONE:
        return _none(text, at, problems)
    if port.kind in _LISTS:
        return _read_list(text, port, at, problems, read_bytes)
    expected = stored_as(port)
    if port.kind not in _NUMBERS:
        if (item := _element(text, port, read_bytes)) is not None:
            return item
        return read_array(text, expected, at, problems, read_bytes)
    try:
        data = read_bytes(text)
    except OSError:
        number = _parse_number(text, port.kind)
        if number is None:
            problems.add(
                at,
                f"neither a file nor a value of kind {expected}",
                found=text,
                expected=f"{_NUMBERS[port.kind]}, or a .npy file with one element",
            )
        return number
    try:
        return _number_in(read_npy(data, file=text), port.kind)
    except UsageError as error:
        problems.add_error(at, error)
        return None


def _none(text: str, at: str, problems: Problems) -> RunValue | None:
    if text == "none":
        return OtherValue(ValueKind.NONE)
    problems.add(at, "not a value of kind none", found=text, expected="none")
    return None


def _read_list(
    text: str, port: Port, at: str, problems: Problems, read_bytes: ReadBytes
) -> RunValue | None:
    """Items between commas; nothing at all is an empty list."""
    texts = text.split(",") if text else []
    kind = _LISTS[port.kind]
    if kind is not None:
        ports = (Port(kind=kind),) * len(texts)
    elif len(texts) == len(port.items):
        ports = port.items
    else:
        problems.add(
            at,
            "the list has the wrong length for this method",
            found=str(len(texts)),
            expected=stored_as(port),
        )
        return None
    found = [
        _read_value(item, own, at, problems, read_bytes)
        for item, own in zip(texts, ports, strict=True)
    ]
    items = tuple(item for item in found if item is not None)
    return ListValue(port.kind, items) if len(items) == len(found) else None


_LISTS: Final = {
    ValueKind.INT_LIST: ValueKind.INT,
    ValueKind.DOUBLE_LIST: ValueKind.DOUBLE,
    ValueKind.BOOL_LIST: ValueKind.BOOL,
    ValueKind.TENSOR_LIST: None,
}
"""What the items of a list are; None for tensors, of which each has its own port."""
_NUMBERS: Final = {
    ValueKind.INT: "an integer such as 3",
    ValueKind.DOUBLE: "a number such as 2.5",
    ValueKind.BOOL: "true or false",
}
# Digits: 64 bits have 19, and `int` refuses 4,300 and more with an error of its own.
# What is too large is told by `input_misfit`.
_INTEGER: Final = re.compile(r"[+-]?\d{1,40}", re.ASCII)
_FLOAT: Final = re.compile(
    r"[+-]?((\d+\.?\d*|\.\d+)(e[+-]?\d+)?|inf|nan)", re.ASCII | re.IGNORECASE
)
_TRUTH: Final = {"true": True, "false": False}


def _parse_number(text: str, kind: ValueKind) -> RunValue | None:
    if kind is ValueKind.BOOL:
        return _TRUTH.get(text.lower())
    if kind is ValueKind.INT:
        return int(text) if _INTEGER.fullmatch(text) else None
    return float(text) if _FLOAT.fullmatch(text) else None


def _number_in(item: Array, kind: ValueKind) -> RunValue:
    """The only element of an array as a number of this kind; else the array."""
    family = item.dtype[1]
    if item.numel != 1 or family not in _FAMILIES[kind]:
        return item
    (number,) = elements(item, None)
    if kind is ValueKind.BOOL:
        return bool(number)
    real = number.real  # it is not complex
    return float(real) if kind is ValueKind.DOUBLE else int(real)


_KINDS: Final = {"i": ValueKind.INT, "u": ValueKind.INT, "b": ValueKind.BOOL}
_FAMILIES: Final = {ValueKind.INT: "iu", ValueKind.DOUBLE: "fiu", ValueKind.BOOL: "b"}


# Outputs of a run as files.


# Changes together with `output_files`: `run --output-dir` replaces files of this form,
# and no others.
_OUTPUT: Final = re.compile(r"(run\d+\.)?out\d+(\.item\d+)*\.(npy|txt)")


def may_be_output(name: str) -> bool:
    """Whether `output_files` may give a file this name."""
    return _OUTPUT.fullmatch(name) is not None


def output_files(results: Sequence[CallResult]) -> tuple[tuple[str, bytes], ...]:
    """(file name, content) of every output that has a content.

    Output 0 of call 0 is `out0.npy`, that of call 1 `run1.out0.npy`. Numbers and truth
    values are arrays without dimensions, lists of them arrays with one, strings are
    text files (`out0.txt`). Tensors of a list have a file each, `out0.item1.npy`.
    """
    files: list[tuple[str, bytes]] = []
    for number, result in enumerate(results):
        # One call is the usual case; its files have no number.
        prefix = f"run{number}." if number else ""
        for index, value in enumerate(result.outputs):
            files += _files(f"{prefix}out{index}", value)
    return tuple(files)


def _files(name: str, value: RunValue) -> Iterator[tuple[str, bytes]]:
    if isinstance(value, ListValue) and value.kind is ValueKind.TENSOR_LIST:
        for number, item in enumerate(value.items):
            yield from _files(f"{name}.item{number}", item)
    elif isinstance(value, str):
        yield f"{name}.txt", value.encode()
    elif (array := _as_array(value)) is not None:
        yield f"{name}.npy", write_npy(array)


def _as_array(value: RunValue) -> Array | None:
    match value:
        case Array():
            return value
        case bool() | int() | float():
            return Array.of(np.array(value, _DTYPES[kind_of(value)]))
        case ListValue():
            return Array.of(np.array(value.items, _DTYPES[value.kind]))
    return None


_DTYPES: Final = {
    ValueKind.INT: "<i8",
    ValueKind.DOUBLE: "<f8",
    ValueKind.BOOL: "|b1",
    ValueKind.INT_LIST: "<i8",
    ValueKind.DOUBLE_LIST: "<f8",
    ValueKind.BOOL_LIST: "|b1",
}
