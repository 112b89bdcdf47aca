"""Value types of the profile: what a text may be, what it becomes, what is wrong."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sized
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeVar

from pydantic import AfterValidator, InstanceOf, StrictInt, StrictStr, WithJsonSchema
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from orchestrator.core.dtype import ScalarType
from orchestrator.core.kernel import KernelKey
from orchestrator.core.operator import OperatorName
from orchestrator.errors import Diagnostic, SourceSpan, did_you_mean
from orchestrator.profile.lowering import VELA_SET
from orchestrator.targets.c_names import HEADERS, LIBRARIES

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler

    from orchestrator.profile.document import Text
    from orchestrator.profile.source_map import FindSpan, KeyPath

MAX_NAME_LENGTH: Final = 40

_PRODUCT_NAME = "[a-z][a-z0-9-]*"
_OF_THE_RUNTIME = "orch(-.*)?"
_MODEL_NAME = "[a-z][a-z0-9_]*"
_SIZE = "([1-9][0-9]{0,8}) ?(B|KiB|MiB)"
_UNIT_BYTES = {"B": 1, "KiB": 1024, "MiB": 1024 * 1024}
_OPERATOR = r"([A-Za-z_]\w*::)?[A-Za-z_]\w*(\.[A-Za-z_]\w*)?"
_KERNEL_KEY = r"v1/[0-9]+;[0-9,]*(\|[0-9]+;[0-9,]*)*"
_BACKEND = r"[A-Za-z_]\w*"
_NAMESPACE = r"[A-Za-z_]\w*(::[A-Za-z_]\w*)*"
_DEFINE = r"[A-Za-z_]\w*(=[\w.+-]+)?"
_PATH = r"[^/\\][^\\]*"
_SECTION = r"[A-Za-z0-9_.-]+"
_LONG_OPTION = r"--[a-z][a-z0-9-]*(=[^\s=]+)?"


_Items = TypeVar("_Items", bound=Sized)
_Ordered = TypeVar("_Ordered", str, OperatorName)


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedFile:
    """A file, folder or pattern of files that a profile names.

    Args:
        path: Where it is, as seen from where the user named the profile.
        written: The path as the profile has it.
    """

    path: Path
    written: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PythonCallable(NamedFile):
    """A Python file and the name of a callable in it; `written` is the file alone."""

    function: str


@dataclass(frozen=True, slots=True)
class ReadFrom:
    """Annotation of a value that a profile writes as another type.

    `Annotated[OperatorName, ReadFrom(StrictStr, parse)]` validates a string, parses
    it, and has the JSON schema of a string.

    Args:
        written: Type that the profile has.
        read: Gives the value; raises what `problem` makes.
    """

    written: Any
    read: Callable[[Any], object]

    def __get_pydantic_core_schema__(
        self, source: object, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        """The schema that validates the value (a hook of pydantic)."""
        written = handler.generate_schema(self.written)
        return core_schema.no_info_after_validator_function(self.read, written)


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


def key_text(path: KeyPath) -> str:
    """A key path as people write it: `models[0].path`."""
    text = ""
    for key in path:
        if isinstance(key, int):
            text += f"[{key}]"
        else:
            text += ("." if text else "") + shown_key(key)
    return text


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


def size_text(size_bytes: int) -> str:
    """The shortest exact way to write a size: `96 KiB`."""
    for unit in ("MiB", "KiB"):
        if size_bytes % _UNIT_BYTES[unit] == 0:
            return f"{size_bytes // _UNIT_BYTES[unit]} {unit}"
    return f"{size_bytes} B"


def choice(known: Iterable[str], code: str = "bad-value") -> tuple[object, ...]:
    """Annotations of a value out of a closed set; an enumeration gives its members."""
    names = tuple(map(str, known))

    def read(value: str) -> str:
        if value in names:
            return known(value) if isinstance(known, type) else value
        expected = ", ".join(names)
        hint = did_you_mean(value, names)
        message = f"{{key}} cannot be {shown(value)}"
        raise problem(code, message, expected=expected, hint=hint)

    schema = WithJsonSchema({"type": "string", "enum": list(names)})
    return (ReadFrom(StrictStr, read), schema)


def sorted_set(items: Iterable[_Ordered]) -> tuple[_Ordered, ...]:
    """A validator for arrays whose order and repetitions mean nothing."""
    return tuple(sorted(set(items)))


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


def _read_path(value: Text) -> NamedFile:
    if is_relative_path(value):
        return NamedFile(path=value.folder / value, written=str(value))
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


def _read_model_path(value: Text) -> NamedFile:
    # Models and their data may be on this machine only.
    if is_relative_path(value.lstrip("/")):
        return NamedFile(path=value.folder / value, written=str(value))
    return _read_path(value)


def _read_callable(value: Text) -> PythonCallable:
    path, _, function = value.rpartition(":")
    if path.endswith(".py") and is_relative_path(path) and function.isidentifier():
        return PythonCallable(path=value.folder / path, written=path, function=function)
    near = value if value.endswith(".py") else f"{PurePosixPath(value).stem}.py"
    raise problem(
        "bad-value",
        f"{{key}} cannot be {shown(value)}",
        expected="a Python file relative to the profile, and a callable in it",
        hint=f'write it as "{near}:build"'
        if ":" not in value and value
        else 'write it as "models/kws.py:build"',
    )


def is_pattern(text: str) -> bool:
    """Whether a path stands for any number of files."""
    return "*" in text


def missing_file(
    file: NamedFile,
    where: SourceSpan,
    is_file: Callable[[Path], bool],
    *,
    what: str,
    expected: str,
) -> Iterator[Diagnostic]:
    """The problem of a path where there is no file.

    Args:
        file: What the profile names.
        where: Its line.
        is_file: Whether a path is a file; may raise `OSError`.
        what: What the file is to the profile, "model file".
        expected: What it should hold.
    """
    with suppress(OSError):  # a name that the file system cannot have
        if is_file(file.path):
            return
    yield Diagnostic(
        code="missing-file",
        message=f'there is no {what} "{file.written}"',
        where=where,
        notes=(("found", f"nothing to read at {file.path}"), ("expected", expected)),
        hint="check the path; it is sought from the folder of the profile that has it",
    )


def missing_sources(
    sources: Iterable[tuple[int, NamedFile]],
    where: KeyPath,
    span: FindSpan,
    is_file: Callable[[Path], bool],
    *,
    owner: str,
) -> Iterator[Diagnostic]:
    """Problems of `sources` that are missing; whether patterns match, the build sees.

    Args:
        sources: With their places.
        where: Key path of the table that has the key.
        span: Where a key path was written.
        is_file: Whether a path is a file; may raise `OSError`.
        owner: What they are for, "the delegate".
    """
    for at, file in sources:
        if not is_pattern(file.written):
            yield from missing_file(
                file,
                span(*where, "sources", at),
                is_file,
                what="source",
                expected=f"a source of {owner}",
            )


SOURCE_SUFFIXES = (".cpp", ".cc", ".cxx", ".c", ".S")
"""What a custom library may have compiled."""


def _read_source(value: Text) -> NamedFile:
    file = _read_path(value)
    if value.endswith(SOURCE_SUFFIXES):
        return file
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
    return size_text(int(size_bytes)) if is_size else ""


def _read_operator(value: str) -> OperatorName:
    try:
        return OperatorName.parse(value)
    except ValueError as error:
        raise problem(
            "bad-operator",
            f"{{key}} is not an operator name: {shown(value)}",
            expected="namespace::base.overload",
            hint="write it as selected_operators.yaml does, such as aten::add.out",
        ) from error


def _check_operator(value: str) -> str:
    _read_operator(value)
    return value


def _read_dtype(value: str) -> ScalarType | KernelKey:
    if value in ScalarType.__members__:
        return ScalarType[value]
    with suppress(ValueError):
        if value.startswith("v1") and (key := KernelKey.parse(value)).tensors:
            return key
    raise problem(
        "bad-dtype",
        f"{{key}} is neither a dtype nor a kernel key: {shown(value)}",
        expected="a dtype such as Float, or a kernel key such as v1/6;0,1|6;0,1",
        hint=did_you_mean(value, ScalarType.__members__)
        or "write Float, Half, Char, Int, Long, Bool or another name of ScalarType",
    )


def whole_number(first: int, last: int, hint: str) -> tuple[object, ...]:
    """Annotations of an integer from `first` to `last`."""

    def check(value: int) -> int:
        if first <= value <= last:
            return value
        raise problem(
            "bad-value",
            f"{{key}} cannot be {shown(value)}",
            expected=f"an integer from {first} to {last}",
            hint=hint,
        )

    schema = {"type": "integer", "minimum": first, "maximum": last}
    return (AfterValidator(check), WithJsonSchema(schema))


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


def _check_option(value: str) -> str:
    if not re.fullmatch(_LONG_OPTION, value, re.ASCII):
        raise problem(
            "bad-value",
            f"{{key}} cannot be {shown(value)}",
            expected="a long option of Vela, with = before its value",
            hint='write it as "--optimise=Size"',
        )
    name = value.partition("=")[0]
    if name in VELA_SET:
        raise problem(
            "bad-value",
            f"{{key}} cannot have {name}",
            expected="options that no key of the profile decides",
            hint="leave it out: lowering, system_config, memory_mode and config say it",
        )
    return value


def _check_product_name(value: str) -> str:
    """Its header, its library and its functions have the name, too."""
    if re.fullmatch(_OF_THE_RUNTIME, value):
        taken = "functions and headers of the runtime begin with orch"
    elif value in HEADERS:
        taken = f"C libraries and compilers have a header {value}.h"
    elif value in LIBRARIES:
        taken = f"toolchains have a library lib{value}.a"
    else:
        return value
    raise problem(
        "bad-value",
        f"{{key}} cannot be {shown(value)}: {taken}",
        hint=f'choose another name, such as "my-{value}"',
    )


ProductName = Annotated[
    StrictStr,
    AfterValidator(name_like(_PRODUCT_NAME, "-")),
    AfterValidator(_check_product_name),
    text_schema(
        "name",
        _PRODUCT_NAME,
        maxLength=MAX_NAME_LENGTH,
        **{
            "not": {
                "anyOf": [
                    {"pattern": f"^{_OF_THE_RUNTIME}$"},
                    {"enum": sorted(HEADERS | LIBRARIES)},
                ]
            }
        },
    ),
]
ModelName = Annotated[
    StrictStr,
    AfterValidator(name_like(_MODEL_NAME, "_")),
    text_schema("name", _MODEL_NAME, maxLength=MAX_NAME_LENGTH),
]
RelativePath = Annotated[
    NamedFile, ReadFrom(InstanceOf[str], _read_path), text_schema("path", _PATH)
]
RelativePattern = Annotated[
    NamedFile,
    ReadFrom(InstanceOf[str], _read_path),
    text_schema("path or pattern", _PATH),
]
SourcePattern = Annotated[
    NamedFile,
    ReadFrom(InstanceOf[str], _read_source),
    text_schema("path or pattern", _PATH + r"\.(cpp|cc|cxx|c|S)"),
]
ModelPath = Annotated[
    NamedFile,
    ReadFrom(InstanceOf[str], _read_model_path),
    text_schema("path", r"[^\\]+"),
]
ModelCode = Annotated[
    PythonCallable,
    ReadFrom(InstanceOf[str], _read_callable),
    text_schema("file and callable", _PATH + r"\.py:[A-Za-z_]\w*"),
]
Size = Annotated[int, ReadFrom(Any, _read_size), text_schema("size", _SIZE)]
Operator = Annotated[
    OperatorName,
    ReadFrom(StrictStr, _read_operator),
    text_schema("operator", _OPERATOR),
]
OperatorKey = Annotated[
    StrictStr, AfterValidator(_check_operator), text_schema("operator", _OPERATOR)
]
"""An operator as the profile writes it, which finds its line."""
OperatorOrBackend = Annotated[
    StrictStr,
    AfterValidator(_check_operator_or_backend),
    text_schema("operator or backend", _OPERATOR),
]
Dtype = Annotated[
    ScalarType | KernelKey,
    ReadFrom(StrictStr, _read_dtype),
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
Section = Annotated[
    StrictStr,
    AfterValidator(
        identifier(_SECTION, "letters, digits, _, - and .", "Vela's file has it")
    ),
    text_schema("section", _SECTION),
]
VelaOption = Annotated[
    StrictStr, AfterValidator(_check_option), text_schema("option", _LONG_OPTION)
]
KernelCount = Annotated[
    StrictInt,
    *whole_number(
        1,
        65535,
        "write how many kernels fit, or leave it out for as many as there are",
    ),
]
InstructionCount = Annotated[
    StrictInt,
    *whole_number(
        0,
        2**32 - 1,  # the runtime counts them in 32 bits
        "write how many instructions a run may take; 0 is no limit",
    ),
]
