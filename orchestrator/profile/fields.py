"""Value types of the profile: what each scalar may be, and what is said if it is not.

Validators check and give the value back as it was written; `load.py` converts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sized
from fractions import Fraction
from pathlib import PureWindowsPath
from typing import Annotated, TypeVar

from pydantic import (
    AfterValidator,
    BeforeValidator,
    StrictInt,
    StrictStr,
    WithJsonSchema,
)
from pydantic_core import PydanticCustomError

from orchestrator.core.dtype import ScalarType
from orchestrator.core.kernel import KernelKey
from orchestrator.core.operator import OperatorName
from orchestrator.errors import did_you_mean

MAX_NAME_LENGTH = 40

_MODEL_NAME = "[a-z][a-z0-9_]*"
_SIZE = "([1-9][0-9]{0,8}) ?(B|KiB|MiB)"
_UNIT_BYTES = {"B": 1, "KiB": 1024, "MiB": 1024 * 1024}
_OPERATOR = r"([A-Za-z_]\w*::)?[A-Za-z_]\w*(\.[A-Za-z_]\w*)?"
_KERNEL_KEY = r"v1/[0-9]+;[0-9,]*(\|[0-9]+;[0-9,]*)*"
_BACKEND = r"[A-Za-z_]\w*"
_NAMESPACE = r"[A-Za-z_]\w*(::[A-Za-z_]\w*)*"
_DEFINE = r"[A-Za-z_]\w*(=[\w.+-]+)?"


def problem(
    code: str, message: str, *, expected: str = "", hint: str = ""
) -> PydanticCustomError:
    """What a validator raises: the parts of a diagnostic it knows.

    Args:
        code: Of the diagnostic.
        message: What is wrong; `{key}` stands for the key path.
        expected: Text of the note "expected".
        hint: What to do next.
    """
    # The template is filled in from the context, so braces in the message are safe.
    return PydanticCustomError(
        code,
        "{text}",
        {"text": message, "expected": expected, "hint": hint},
    )


def shown_key(key: str) -> str:
    """A key as TOML would write it."""
    return key if re.fullmatch("[A-Za-z0-9_-]+", key) else f'"{key}"'


def shown(value: object) -> str:
    """A value as TOML would write it, shortened to fit a line."""
    match value:
        case str():
            text = f'"{value}"'
        case bool():
            text = str(value).lower()
        case int() if value.bit_length() > 64:  # noqa: PLR2004
            text = f"{value:#x}"  # Python refuses to write thousands of decimals
        case list():
            text = "[" + ", ".join(map(shown, value)) + "]"
        case dict():
            text = (
                "{"
                + ", ".join(f"{shown_key(k)} = {shown(v)}" for k, v in value.items())
                + "}"
            )
        case _:
            text = str(value)
    return text if len(text) <= 80 else text[:76] + " ..."  # noqa: PLR2004


def is_model_name(text: str) -> bool:
    """Whether a model may have that name."""
    return len(text) <= MAX_NAME_LENGTH and bool(re.fullmatch(_MODEL_NAME, text))


def near_name(text: str, filler: str) -> str:
    """A valid name close to the text, with `filler` for what it cannot have; or ""."""
    near = re.sub("[^a-z0-9]+", filler, text.lower()).lstrip("-_0123456789")
    return near[:MAX_NAME_LENGTH].rstrip("-_")


def parse_size(text: str) -> int | None:
    """Bytes of a size such as `96 KiB`; None if it is none."""
    match = re.fullmatch(_SIZE, text)
    return int(match[1]) * _UNIT_BYTES[match[2]] if match else None


def sizetext_schema(size_bytes: int) -> str:
    """The shortest exact way to write a size: `96 KiB`."""
    for unit in ("MiB", "KiB"):
        if size_bytes % _UNIT_BYTES[unit] == 0:
            return f"{size_bytes // _UNIT_BYTES[unit]} {unit}"
    return f"{size_bytes} B"


def one_of(code: str, known: Iterable[str]) -> Callable[[str], str]:
    """A validator for a closed set of texts."""
    names = tuple(known)

    def check(value: str) -> str:
        if value in names:
            return value
        expected = ", ".join(names)
        hint = did_you_mean(value, names)
        message = f"{{key}} cannot be {shown(value)}"
        raise problem(code, message, expected=expected, hint=hint)

    return check


def choice(known: Iterable[str], code: str = "bad-value") -> tuple[object, ...]:
    """Annotations of a text out of a closed set."""
    names = list(known)
    schema = WithJsonSchema({"type": "string", "enum": names})
    return (AfterValidator(one_of(code, names)), schema)


def name_like(pattern: str, filler: str) -> Callable[[str], str]:
    """A validator for names of that form, whose words `filler` separates."""

    def check(value: str) -> str:
        if re.fullmatch(pattern, value) and len(value) <= MAX_NAME_LENGTH:
            return value
        near = near_name(value, filler)
        raise problem(
            "bad-value",
            f"{{key}} cannot be {shown(value)}",
            expected=f"a small letter, then small letters, digits or {filler}; "
            f"at most {MAX_NAME_LENGTH} characters",
            hint=f'write "{near}"' if near else "choose a name of that form",
        )

    return check


def is_relative_path(text: str) -> bool:
    """Whether the text is a path that means the same on every machine."""
    windows = PureWindowsPath(text)
    anchored = text.startswith("/") or windows.drive or windows.root
    return bool(text) and not anchored and "\\" not in text and "\0" not in text


def check_path(value: str) -> str:
    """A validator for paths that mean the same on every machine."""
    if is_relative_path(value):
        return value
    windows = PureWindowsPath(value)
    relative = value and not (windows.drive or windows.root) and "\0" not in value
    raise problem(
        "bad-value",
        f"{{key}} cannot be {shown(value)}",
        expected="a path relative to the profile, with / between folders",
        hint=f'write "{windows.as_posix()}"'
        if relative
        else "write the path as seen from the folder of the profile",
    )


def is_pattern(text: str) -> bool:
    """Whether a path stands for any number of files."""
    return "*" in text


SOURCE_SUFFIXES = (".cpp", ".cc", ".cxx", ".c", ".S")
"""What a custom library may have compiled."""


def _check_source(value: str) -> str:
    check_path(value)
    if value.endswith(SOURCE_SUFFIXES):
        return value
    raise problem(
        "bad-value",
        f"{{key}} cannot be {shown(value)}",
        expected=f"a file or pattern that ends in {', '.join(SOURCE_SUFFIXES)}",
        hint="headers need not be named: those of the library's folders are found",
    )


def _check_define(value: str) -> str:
    if re.fullmatch(_DEFINE, value, re.ASCII):
        return value
    raise problem(
        "bad-value",
        f"{{key}} cannot be {shown(value)}",
        expected="NAME or NAME=VALUE, the value of letters, digits and _ . + -",
        hint="put anything longer into a header",
    )


def _check_operator_or_backend(value: str) -> str:
    # A backend's id, such as XnnpackBackend, is a bare name.
    return value if re.fullmatch(r"[A-Za-z]\w*", value) else _check_operator(value)


def identifier(
    pattern: str, expected: str, where: str = "the code does"
) -> Callable[[str], str]:
    """A validator for names.

    Args:
        pattern: What they match.
        expected: The same in words.
        where: Whose spelling is to be used, for the hint.
    """

    def check(value: str) -> str:
        if re.fullmatch(pattern, value, re.ASCII):
            return value
        raise problem(
            "bad-value",
            f"{{key}} cannot be {shown(value)}",
            expected=expected,
            hint=f"write it as {where}",
        )

    return check


def _check_size(value: object) -> object:
    if isinstance(value, str) and parse_size(value) is not None:
        return value
    near = _near_size(value)
    raise problem(
        "bad-size",
        f"{{key}} is not a size: {shown(value)}",
        expected='a positive integer with a unit, B, KiB or MiB, such as "96 KiB"',
        hint=f'write "{near}"; 1 KiB is 1024 B' if near else "1 KiB is 1024 B",
    )


_LOOSE_SIZE = re.compile(
    r"\s*([0-9]{1,9}(?:\.[0-9]{1,9})?)\s*([KM]?)I?B?\s*", re.IGNORECASE
)


def _near_size(value: object) -> str:
    """The size that is probably meant, or ""."""
    match = _LOOSE_SIZE.fullmatch(value if isinstance(value, str) else shown(value))
    if not match or isinstance(value, bool):
        return ""
    number, unit = match[1], {"": "B", "K": "KiB", "M": "MiB"}[match[2].upper()]
    if parse_size(f"{number} {unit}") and unit != "B":
        return f"{number} {unit}"
    size_bytes = Fraction(number) * _UNIT_BYTES[unit]
    is_size = size_bytes > 0 and size_bytes.denominator == 1
    return sizetext_schema(int(size_bytes)) if is_size else ""


def _check_operator(value: str) -> str:
    try:
        OperatorName.parse(value)
    except ValueError as error:
        raise problem(
            "bad-operator",
            f"{{key}} is not an operator name: {shown(value)}",
            expected="namespace::base.overload",
            hint="write it as selected_operators.yaml does, such as aten::add.out",
        ) from error
    return value


def _check_dtype(value: str) -> str:
    try:
        is_key = value.startswith("v1") and bool(KernelKey.parse(value).tensors)
    except ValueError:
        is_key = False
    if is_key or value in ScalarType.__members__:
        return value
    raise problem(
        "bad-dtype",
        f"{{key}} is neither a dtype nor a kernel key: {shown(value)}",
        expected="a dtype such as Float, or a kernel key such as v1/6;0,1|6;0,1",
        hint=did_you_mean(value, ScalarType.__members__)
        or "write Float, Half, Char, Int, Long, Bool or another name of ScalarType",
    )


MOST_KERNELS = 65535


def _check_count(value: int) -> int:
    if 1 <= value <= MOST_KERNELS:
        return value
    raise problem(
        "bad-value",
        f"{{key}} cannot be {shown(value)}",
        expected=f"an integer from 1 to {MOST_KERNELS}",
        hint="write how many kernels fit, or leave it out for as many as there are",
    )


_Items = TypeVar("_Items", bound=Sized)


def not_empty(items: _Items) -> _Items:
    """A validator for arrays that say nothing when they are empty."""
    if not items:
        raise problem(
            "bad-value",
            "{key} is empty",
            expected="at least one item",
            hint="add one, or leave the key out",
        )
    return items


def text_schema(title: str, pattern: str, **more: object) -> WithJsonSchema:
    """Annotation of a text that matches a pattern, under a title."""
    schema = {"type": "string", "title": title, "pattern": f"^{pattern}$"}
    return WithJsonSchema(schema | more)


ModelName = Annotated[
    StrictStr,
    AfterValidator(name_like(_MODEL_NAME, "_")),
    text_schema("name", _MODEL_NAME, maxLength=MAX_NAME_LENGTH),
]
RelativePath = Annotated[
    StrictStr, AfterValidator(check_path), text_schema("path", r"[^/\\][^\\]*")
]
Size = Annotated[StrictStr, BeforeValidator(_check_size), text_schema("size", _SIZE)]
Operator = Annotated[
    StrictStr, AfterValidator(_check_operator), text_schema("operator", _OPERATOR)
]
OperatorOrBackend = Annotated[
    StrictStr,
    AfterValidator(_check_operator_or_backend),
    text_schema("operator or backend", _OPERATOR),
]
RelativePattern = Annotated[
    StrictStr,
    AfterValidator(check_path),
    text_schema("path or pattern", r"[^/\\][^\\]*"),
]
SourcePattern = Annotated[
    StrictStr,
    AfterValidator(_check_source),
    text_schema("path or pattern", r"[^/\\][^\\]*\.(cpp|cc|cxx|c|S)"),
]
Define = Annotated[
    StrictStr, AfterValidator(_check_define), text_schema("macro", _DEFINE)
]
Backend = Annotated[
    StrictStr,
    AfterValidator(identifier(_BACKEND, "letters, digits and _, no digit first")),
    text_schema("backend", _BACKEND),
]
Namespace = Annotated[
    StrictStr,
    AfterValidator(identifier(_NAMESPACE, "a C++ namespace such as my::backend")),
    text_schema("namespace", _NAMESPACE),
]
KernelCount = Annotated[
    StrictInt,
    AfterValidator(_check_count),
    WithJsonSchema({"type": "integer", "minimum": 1, "maximum": MOST_KERNELS}),
]
Dtype = Annotated[
    StrictStr,
    AfterValidator(_check_dtype),
    WithJsonSchema(
        {
            "title": "dtype or kernel key",
            "anyOf": [
                {"type": "string", "enum": list(ScalarType.__members__)},
                {"type": "string", "pattern": f"^{_KERNEL_KEY}$"},
            ],
        }
    ),
]
