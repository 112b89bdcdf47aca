"""Value types that tables share, and helpers for validators.

A type defines which texts are valid, what they become, and the problem of other texts.
A type of a single table is beside that table.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence, Sized
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any, Final, TypeVar

from pydantic import (
    AfterValidator,
    Field,
    GetCoreSchemaHandler,
    StrictInt,
    StrictStr,
    WithJsonSchema,
)
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from orchestrator.core.operator import OperatorName
from orchestrator.core.spelling import SIZE, UNIT_BYTES, parse_size, size_text
from orchestrator.errors import did_you_mean
from orchestrator.profile.source_map import KeyPath
from orchestrator.targets.boards import ARENA_ALIGNMENT

# Characters. Names become parts of symbols, macros, sections and file names. Chosen by
# hand; the schema has it.
MAX_NAME_LENGTH: Final = 40
OPERATOR: Final = r"([A-Za-z_]\w*::)?[A-Za-z_]\w*(\.[A-Za-z_]\w*)?"
_MODEL_NAME = "[a-z][a-z0-9_]*"
_DEFINE = r"[A-Za-z_]\w*(=[\w.+-]+)?"

_Items = TypeVar("_Items", bound=Sized)
_Ordered = TypeVar("_Ordered", str, OperatorName)


@dataclass(frozen=True, slots=True)
class ReadFrom:
    """Annotates a value that has another type in profiles.

    `Annotated[OperatorName, ReadFrom(StrictStr, parse)]` validates a string, parses
    it, and has the JSON schema of a string.

    Args:
        written: Its type in the profile.
        read: Converts it; raises the errors of `problem`.
    """

    written: Any
    read: Callable[[Any], object]

    def __get_pydantic_core_schema__(
        self, source: object, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        """The schema that validates the value (a hook of pydantic)."""
        # The schema of the written type alone: the JSON Schema for editors is of what
        # is written, not of what it becomes.
        written = handler.generate_schema(self.written)
        return core_schema.no_info_after_validator_function(self.read, written)


def problem(code: str, message: str, *, expected: str = "", hint: str = "") -> PydanticCustomError:
    """The error that a validator raises: the parts of a diagnostic that it knows.

    Args:
        code: Code of the diagnostic.
        message: What is wrong; `{key}` is replaced by the key path.
        expected: Text of the note "expected".
        hint: What to do next.
    """
    # The template is filled in from the context, so braces in the message are safe.
    return PydanticCustomError(
        code, "{text}", {"text": message, "expected": expected, "hint": hint}
    )


def bad_value(value: object, *, expected: str, hint: str) -> PydanticCustomError:
    """The error for a value that the key cannot have."""
    message = f"{{key}} cannot be {shown(value)}"
    return problem("bad-value", message, expected=expected, hint=hint)


def only(accepts: Callable[[Any], object], *, expected: str, hint: str) -> AfterValidator:
    """A validator of values that a function accepts: `expected`, in words."""

    def check(value: object) -> object:
        if accepts(value):
            return value
        raise bad_value(value, expected=expected, hint=hint)

    return AfterValidator(check)


def one_of(known: Sequence[int], *, expected: str, hint: str) -> tuple[object, ...]:
    """Annotations of an integer from a closed set."""
    schema = Field(json_schema_extra={"enum": list(known)})
    return (only(known.__contains__, expected=expected, hint=hint), schema)


def shown_key(key: str) -> str:
    """A key in TOML's syntax."""
    return key if re.fullmatch("[A-Za-z0-9_-]+", key) else f'"{key}"'


def key_text(path: KeyPath) -> str:
    """A key path as text: `models[0].path`."""
    text = ""
    for key in path:
        if isinstance(key, int):
            text += f"[{key}]"
        else:
            text += ("." if text else "") + shown_key(key)
    return text


_LINE: Final = 80
"""Most characters of a value; each level of tables and arrays has at least one."""


def shown(value: object, levels: int = _LINE) -> str:
    """A value in TOML's syntax, shortened to fit a line."""
    match value:
        case list() | dict() if not levels:
            text = "..."
        case str():
            text = f'"{value}"'
        case bool():
            text = str(value).lower()
        case int() if value.bit_length() > 64:  # noqa: PLR2004
            text = f"{value:#x}"  # Python refuses to write thousands of decimals
        case list():
            text = "[" + ", ".join(shown(item, levels - 1) for item in value) + "]"
        case dict():
            items = (f"{shown_key(k)} = {shown(v, levels - 1)}" for k, v in value.items())
            text = "{" + ", ".join(items) + "}"
        case _:
            text = str(value)
    return text if len(text) <= _LINE else text[: _LINE - 4] + " ..."


def is_model_name(text: str) -> bool:
    """Whether a model may have this name."""
    return len(text) <= MAX_NAME_LENGTH and bool(re.fullmatch(_MODEL_NAME, text))


def near_name(text: str, filler: str) -> str:
    """A valid name close to the text, with `filler` for invalid characters; or ""."""
    near = re.sub("[^a-z0-9]+", filler, text.lower()).lstrip("-_0123456789")
    return near[:MAX_NAME_LENGTH].rstrip("-_")


def choice(
    known: Iterable[str], code: str = "bad-value", *, elsewhere: Callable[[str], str] = lambda _: ""
) -> tuple[object, ...]:
    """Annotations of a value from a closed set; an enumeration's values are members.

    `elsewhere` gives the hint for a value that is of another set, else "".
    """
    names = tuple(map(str, known))

    def read(value: str) -> str:
        if value in names:
            return known(value) if isinstance(known, type) else value
        expected = ", ".join(names)
        hint = elsewhere(value) or did_you_mean(value, names)
        message = f"{{key}} cannot be {shown(value)}"
        raise problem(code, message, expected=expected, hint=hint)

    schema = WithJsonSchema({"type": "string", "enum": list(names)})
    return (ReadFrom(StrictStr, read), schema)


def sorted_set(items: Iterable[_Ordered]) -> tuple[_Ordered, ...]:
    """A validator for arrays whose order and repetitions do not matter."""
    return tuple(sorted(set(items)))


def name_like(pattern: str, filler: str) -> Callable[[str], str]:
    """A validator for names that match a pattern; `filler` separates their words."""

    def check(value: str) -> str:
        if re.fullmatch(pattern, value) and len(value) <= MAX_NAME_LENGTH:
            return value
        near = near_name(value, filler)
        raise bad_value(
            value,
            expected=f"a small letter, then small letters, digits or {filler}; "
            f"at most {MAX_NAME_LENGTH} characters",
            hint=f'write "{near}"' if near else "choose a name of that form",
        )

    return check


def text_schema(title: str, pattern: str, **more: object) -> WithJsonSchema:
    """Annotation of a text that matches a pattern, under a title."""
    schema = {"type": "string", "title": title, "pattern": f"^{pattern}$"}
    return WithJsonSchema(schema | more)


def matching(title: str, pattern: str, *, expected: str, hint: str) -> tuple[object, ...]:
    """Annotations of a text that matches a pattern: `expected`, in words."""
    # `\w` without ASCII takes letters that C and linker scripts do not.
    accepts = re.compile(pattern, re.ASCII).fullmatch
    check = only(accepts, expected=expected, hint=hint)
    return (check, text_schema(title, pattern))


def whole_number(first: int, last: int, *, hint: str) -> tuple[object, ...]:
    """Annotations of an integer from `first` to `last`."""
    expected = f"an integer from {first} to {last}"
    check = only(lambda n: first <= n <= last, expected=expected, hint=hint)
    schema = {"type": "integer", "minimum": first, "maximum": last}
    return (check, WithJsonSchema(schema))


def not_empty(items: _Items) -> _Items:
    """A validator for arrays that must not be empty."""
    if not items:
        raise problem(
            "bad-value",
            "{key} is empty",
            expected="at least one item",
            hint="add one, or leave the key out",
        )
    return items


def _read_size(value: object) -> int:
    size_bytes = parse_size(value) if isinstance(value, str) else None
    if size_bytes is not None:
        return size_bytes
    near = _near_size(value)
    raise problem(
        "bad-size",
        f"{{key}} is not a size: {shown(value)}",
        expected='a positive integer with a unit, B, KiB or MiB, such as "96 KiB"',
        hint=f'write "{near}"; 1 KiB is 1024 B' if near else "1 KiB is 1024 B",
    )


# Nine digits on each side of the point: more is no size, and slow as a Fraction.
_LOOSE_SIZE = re.compile(r"\s*([0-9]{1,9}(?:\.[0-9]{1,9})?)\s*([KM]?)I?B?\s*", re.IGNORECASE)


def _near_size(value: object) -> str:
    """The size that was probably meant, or ""."""
    match = _LOOSE_SIZE.fullmatch(value if isinstance(value, str) else shown(value))
    if not match or isinstance(value, bool):
        return ""
    number, unit = match[1], {"": "B", "K": "KiB", "M": "MiB"}[match[2].upper()]
    if parse_size(f"{number} {unit}") and unit != "B":
        return f"{number} {unit}"
    # "0.5 KiB" is 512 B exactly; floats would round "0.1 MiB" to a size.
    size_bytes = Fraction(number) * UNIT_BYTES[unit]
    is_size = size_bytes > 0 and size_bytes.denominator == 1
    return size_text(int(size_bytes)) if is_size else ""


def read_operator(value: str) -> OperatorName:
    """A validator for names of operators, with or without `aten::`."""
    try:
        return OperatorName.parse(value)
    except ValueError as error:
        raise problem(
            "bad-operator",
            f"{{key}} is not an operator name: {shown(value)}",
            expected="namespace::base.overload",
            hint="write it as selected_operators.yaml does, such as aten::add.out",
        ) from error


ModelName = Annotated[
    StrictStr,
    AfterValidator(name_like(_MODEL_NAME, "_")),
    text_schema("name", _MODEL_NAME, maxLength=MAX_NAME_LENGTH),
]
Size = Annotated[int, ReadFrom(Any, _read_size), text_schema("size", SIZE)]
Operator = Annotated[
    OperatorName, ReadFrom(StrictStr, read_operator), text_schema("operator", OPERATOR)
]
Symbol = Annotated[
    StrictStr,
    *matching(
        "symbol",
        r"[A-Za-z_]\w*",
        expected="letters, digits and _, no digit first",
        hint='name what is declared extern "C"',
    ),
]
Define = Annotated[
    StrictStr,
    *matching(
        "macro",
        _DEFINE,
        expected="NAME or NAME=VALUE, the value of letters, digits and _ . + -",
        hint="put anything longer into a header",
    ),
]

ADDRESS_END: Final = 1 << 32
"""One past the last address of 32 bits."""


def _check_address(value: int) -> int:
    if 0 <= value < ADDRESS_END:
        return value
    raise problem(
        "bad-value",
        f"{{key}} cannot be {value:#x}",
        expected="an address of 32 bits",
        hint="write it as in the manual of the chip, origin = 0x20000000",
    )


Address = Annotated[
    StrictInt,
    AfterValidator(_check_address),
    Field(json_schema_extra={"minimum": 0, "maximum": ADDRESS_END - 1}),
]

# Chosen by hand: it catches mistakes only, as the estimate is linear in it.
_MOST_WAIT_STATES: Final = 15

WaitStates = Annotated[
    StrictInt,
    only(
        range(_MOST_WAIT_STATES + 1).__contains__,
        expected=f"a number from 0 to {_MOST_WAIT_STATES}",
        hint="write the latency of the memory, in cycles of the core",
    ),
    Field(json_schema_extra={"minimum": 0, "maximum": _MOST_WAIT_STATES}),
]
# 16 to 4,096 bytes. Arenas are never aligned less than ARENA_ALIGNMENT.
_ALIGNMENTS: Final = tuple(ARENA_ALIGNMENT << n for n in range(9))

Alignment = Annotated[
    StrictInt,
    *one_of(
        _ALIGNMENTS,
        expected=f"one of {', '.join(map(str, _ALIGNMENTS))}",
        hint="write the bytes of a line of the data cache: 32 on Cortex-M",
    ),
]
"""Alignment of arenas or of single tensors, in bytes."""
