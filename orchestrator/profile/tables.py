"""The tables and keys of a profile, by their key paths."""

from __future__ import annotations

from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, get_args

from orchestrator.profile.delegates import DelegateTable
from orchestrator.profile.model import CustomTable, ProfileTable
from orchestrator.profile.model_tables import ModelTable
from orchestrator.profile.region_tables import RegionTable, TensorTable
from orchestrator.profile.table import Table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic.fields import FieldInfo

    from orchestrator.profile.checked import KeyPath


_ARRAYS = (ModelTable, CustomTable, DelegateTable, RegionTable, TensorTable)


@cache
def tables() -> Mapping[tuple[str, ...], type[Table]]:
    """Every table of the profile, by its keys from the top; `()` is the top."""
    found: dict[tuple[str, ...], type[Table]] = {}

    def add(path: tuple[str, ...], table: type[Table]) -> None:
        found[path] = table
        for name, field in table.model_fields.items():
            for candidate in (field.annotation, *get_args(field.annotation)):
                if isinstance(candidate, type) and issubclass(candidate, Table):
                    add((*path, field.alias or name), candidate)

    add((), ProfileTable)
    return MappingProxyType(found)


def is_array(table: tuple[str, ...]) -> bool:
    """Whether a profile may have any number of the table."""
    return tables()[table] in _ARRAYS


def keys_of(table: type[Table]) -> tuple[str, ...]:
    """Keys of a table as a profile writes them."""
    return tuple(f.alias or name for name, f in table.model_fields.items())


def field_of(path: KeyPath) -> tuple[str, FieldInfo]:
    """Key and field that a key path means; deeper down, that it lies in.

    Raises:
        KeyError: No table has such a key.
    """
    keys = tuple(key for key in path if isinstance(key, str))
    for length in range(len(keys) - 1, -1, -1):
        model = tables().get(keys[:length])
        for name, field in model.model_fields.items() if model else ():
            if (field.alias or name) == keys[length]:
                return keys[length], field
    raise KeyError(path)


def header_of(table: tuple[str, ...]) -> str:
    """How a profile opens the table: `[target]`, `[[models]]`."""
    text = f"[{'.'.join(table)}]"
    return f"[{text}]" if is_array(table) else text
