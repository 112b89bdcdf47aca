"""What pydantic finds wrong in JSON, as users read it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pydantic_core import ErrorDetails


def place_of(location: Sequence[int | str]) -> str:
    """`methods[0].inputs[2].kind`; "" for the whole document."""
    text = "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in location)
    return text.removeprefix(".")


def sentence_of(error: ErrorDetails) -> str:
    """`version: Input should be 1`."""
    place, message = place_of(error["loc"]), error["msg"].removeprefix("Value error, ")
    return f"{place}: {message}" if place else message
