"""The base of all tables of the profile, and salvaging invalid ones.

A profile is validated once. If that fails, `salvage` validates it again and drops
invalid values, so that rules over several values still run on the rest: a rule ends
with `BrokenValueError` where it touches a value that was reported already.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Final, NoReturn, Self, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    ValidationError,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    field_validator,
    model_validator,
)

_T = TypeVar("_T")
_TableT = TypeVar("_TableT", bound="Table")


class BrokenValueError(Exception):
    """A rule has read a value that is invalid itself."""


class _Broken:
    """Takes the place of an invalid value."""

    def __getattr__(self, name: str) -> NoReturn:
        raise BrokenValueError(name)


_BROKEN: Final = _Broken()
_SALVAGE: Final = object()


class Table(BaseModel):
    """A table of the profile: frozen, without unknown keys.

    A field is the value of a key. Where the rest of the program takes another type, or
    a default follows from other values, the field's name ends in `_` and a property
    without it returns that.
    """

    # Frozen: stages are keyed by what they read, and a table that changed later would
    # not be what the key says. Forbidden: a misspelt key must not be a default.
    model_config = ConfigDict(frozen=True, extra="forbid")
    any_key: ClassVar[tuple[str, type[Table]] | None] = None
    """An example of the other keys that a profile may choose, and their tables."""

    @property
    def written_keys(self) -> frozenset[str]:
        """Keys that the profile has, valid or not."""
        keys = keys_of(type(self))
        return frozenset(keys[name] for name in self.model_fields_set)

    @model_validator(mode="before")
    @classmethod
    def _complete(cls, value: object, info: ValidationInfo) -> object:
        if info.context is not _SALVAGE or not isinstance(value, dict):
            return value
        # Required keys that are missing become broken values, so that a table is there
        # for its other keys; unknown ones are left out, as they are reported already.
        return {
            key: value.get(key, _BROKEN)
            for name, key in keys_of(cls).items()
            if key in value or cls.model_fields[name].is_required()
        }

    @field_validator("*", mode="wrap")
    @classmethod
    def _keep_what_is_right(
        cls, value: object, handler: ValidatorFunctionWrapHandler, info: ValidationInfo
    ) -> object:
        salvages = info.context is _SALVAGE
        return _salvaged(value, handler) if salvages else handler(value)

    @model_validator(mode="after")
    def _without_broken(self, info: ValidationInfo) -> Self:
        if info.context is _SALVAGE:
            for name in [n for n, value in self if value is _BROKEN]:
                # Without the attribute, reading it comes to `__getattr__`: a rule ends
                # there instead of working with a value that is none.
                del self.__dict__[name]
        return self

    if not TYPE_CHECKING:  # mypy should not see this: it would accept any attribute

        def __getattr__(self, name: str) -> object:
            if name in type(self).model_fields:
                raise BrokenValueError(name)
            return super().__getattr__(name)


def keys_of(table: type[Table]) -> Mapping[str, str]:
    """Keys of a table as written in profiles, by the names of their fields."""
    return {name: f.alias or name for name, f in table.model_fields.items()}


def salvage(table: type[_TableT], data: Mapping[str, Any]) -> _TableT:
    """Validate a table without its invalid values and unknown keys."""
    return table.model_validate(data, context=_SALVAGE)


def _salvaged(value: object, read: Callable[[Any], Any], depth: int = 2) -> object:
    """A value with its valid items and entries; `_BROKEN` for invalid ones.

    Args:
        value: The value in the profile.
        read: Validates it.
        depth: Deepest nesting of arrays and entries of any key.
    """
    try:
        return read(value)
    except ValidationError:
        pass
    # Each item or entry is validated alone.
    if depth and isinstance(value, list):
        items = tuple(_salvaged(v, _item(read), depth - 1) for v in value)
        return items if any(v is not _BROKEN for v in items) else _BROKEN
    if depth and isinstance(value, dict):
        entries = {k: _salvaged(v, _entry(k, read), depth - 1) for k, v in value.items()}
        right = {k: v for k, v in entries.items() if v is not _BROKEN}
        return right or _BROKEN
    return _BROKEN


def _item(read: Callable[[Any], Any]) -> Callable[[object], Any]:
    return lambda one: read([one])[0]


def _entry(key: object, read: Callable[[Any], Any]) -> Callable[[object], Any]:
    return lambda one: read({key: one})[key]


def sound(items: Iterable[_T]) -> Iterator[tuple[int, _T]]:
    """Valid items of an array, with their indices."""
    return ((i, item) for i, item in enumerate(items) if item is not _BROKEN)
