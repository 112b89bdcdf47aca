"""Turn pydantic's errors into diagnostics in the terms of TOML."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date, datetime, time

from pydantic_core import ErrorDetails

from orchestrator.errors import Diagnostic, did_you_mean
from orchestrator.profile.fields import key_text, shown
from orchestrator.profile.source_map import FindSpan, KeyPath
from orchestrator.profile.table import Table, keys_of
from orchestrator.profile.tables import field_of, header_of, is_array, tables

_EXPECTED = {
    "string_type": "a string",
    "is_instance_of": "a string",  # a `Text`
    "int_type": "an integer",
    "bool_type": "a boolean",
    "tuple_type": "an array",
    "dict_type": "a table",
    "model_type": "a table",
}


def explain(
    errors: Sequence[ErrorDetails], span: FindSpan, root: type[Table] | None = None
) -> Iterator[Diagnostic]:
    """One diagnostic per error; a misspelt key is not also reported as missing.

    Args:
        errors: Of pydantic.
        span: Where a key path was written.
        root: The table of the whole file; None for a profile.
    """
    # A misspelt required key makes two errors of pydantic: one that is unknown, one
    # that is missing. The user made one mistake.
    unknown = [_key_path(e) for e in errors if e["type"] == "extra_forbidden"]
    for error in errors:
        path = _key_path(error)
        match error["type"]:
            case "extra_forbidden":
                yield _unknown_key(path, span, root)
            case "missing":
                siblings = [str(u[-1]) for u in unknown if u[:-1] == path[:-1]]
                if not did_you_mean(str(path[-1]), siblings):
                    yield _missing_key(path, span, root)
            case kind if kind in _EXPECTED:
                expected = _EXPECTED[kind]
                yield _wrong_type(path, span, expected, error["input"], root)
            case code:
                yield _from_validator(path, span, code, error)


def _key_path(error: ErrorDetails) -> KeyPath:
    # An error about a key of a table of operators, not its value, ends in "[key]".
    path = error["loc"]
    return path[:-1] if path[-3::2] == ("operators", "[key]") else path


def _table_of(path: KeyPath) -> tuple[str, ...]:
    return tuple(key for key in path[:-1] if isinstance(key, str))


def _unknown_key(path: KeyPath, span: FindSpan, root: type[Table] | None) -> Diagnostic:
    table, key = _table_of(path), str(path[-1])
    known = keys_of(tables(root)[table]).values()
    place = f" in {header_of(table, root)}" if table else ""
    return Diagnostic.of(
        "unknown-key",
        f'unknown key "{key}"{place}',
        where=span(*path),
        expected=", ".join(known),
        hint=_where_it_belongs(key, root) or did_you_mean(key, known) or "remove it",
    )


def _where_it_belongs(key: str, root: type[Table] | None) -> str:
    for table, model in tables(root).items():
        if key in keys_of(model).values():
            place = f"in {header_of(table, root)}" if table else "above the first [table]"
            return f'"{key}" belongs {place}'
    return ""


def _missing_key(path: KeyPath, span: FindSpan, root: type[Table] | None) -> Diagnostic:
    table, key = _table_of(path), str(path[-1])
    place = f" in {header_of(table, root)}" if table else ""
    what, hint = f'the key "{key}"', f"add {_example(path, root)}"
    if (*table, key) in tables(root):
        what = header_of((key,), root)
        hint = f"add {_beginning((*table, key), root)}"
    description = field_of(path, root)[1].description or ""
    return Diagnostic.of(
        "missing-key",
        f"{what} is missing{place}",
        where=span(*path[:-1]),
        expected=description.partition(". ")[0].rstrip("."),
        hint=hint,
    )


def _example(path: KeyPath, root: type[Table] | None) -> str:
    """An example assignment, such as `cpu = "cortex-m55"`, or ""."""
    key, field = field_of(path, root)
    return f"{key} = {shown(field.examples[0])}" if field.examples else ""


def _beginning(table: tuple[str, ...], root: type[Table] | None) -> str:
    """The beginning of a table: its header and its first required key."""
    model = tables(root)[table]
    required = (
        key for name, key in keys_of(model).items() if model.model_fields[name].is_required()
    )
    # A rule requires path or source of a model, so neither is required by its field.
    first = _example((*table, next(required, "path")), root)
    return f"{header_of(table, root)} and below it {first}"


def _wrong_type(
    path: KeyPath, span: FindSpan, expected: str, value: object, root: type[Table] | None
) -> Diagnostic:
    return Diagnostic.of(
        "wrong-type",
        f"{key_text(path)} must be {expected}",
        where=span(*path),
        found=f"{_type_name(value)} {shown(value)}",
        expected=expected,
        hint=_type_hint(path, expected, value, root),
    )


def _type_hint(path: KeyPath, expected: str, value: object, root: type[Table] | None) -> str:
    table = tuple(key for key in path if isinstance(key, str))
    is_table = path == table and table in tables(root)
    example = _example(path, root)
    hint = f"write it like {example}" if example else "see docs/profile.md"
    match expected, value:
        case "a string", bool() | int() | float():
            hint = f'write "{shown(value)}", in quotes'
        case "a boolean" | "an integer", "true" | "false" | "1":
            hint = f"write {value}, without quotes"
        case "an array", str():
            hint = f"write [{shown(value)}]"
        case "an array", dict() if is_table:
            hint = f"write {header_of(table, root)}, with two brackets"
        case "a table", list() if is_table:
            hint = f"write {header_of(table, root)}, with one bracket"
        case "a table", _ if table in tables(root) and is_array(table, root):
            hint = f"write {_beginning(table, root)}"
    return hint


# In Python a bool is an int, and a datetime is a date, so the order matters.
_TYPE_NAMES: tuple[tuple[type, str], ...] = (
    (bool, "boolean"),
    (int, "integer"),
    (float, "float"),
    (str, "string"),
    (list, "array"),
    (dict, "table"),
    (datetime, "date and time"),
    (date, "date"),
    (time, "time"),
)


def _type_name(value: object) -> str:
    return next(name for type_, name in _TYPE_NAMES if isinstance(value, type_))


def _from_validator(path: KeyPath, span: FindSpan, code: str, error: ErrorDetails) -> Diagnostic:
    """The diagnostic of an error from `fields.problem`."""
    parts = error["ctx"]
    choices = parts["expected"].replace(", ", " or ")
    return Diagnostic(
        code=code,
        # Validators do not know where their value stands: the place is filled in here,
        # once, as what the user wrote may have these characters too.
        message=parts["text"].replace("{key}", key_text(path), 1),
        where=span(*path),
        notes=(("expected", parts["expected"]),) if parts["expected"] else (),
        hint=parts["hint"]
        or ("choose one of these" if len(choices) > _LONG else f"choose {choices}"),
    )


_LONG = 80
"""Characters of choices that a hint does not repeat."""
