"""Frame sizes of functions, as gcc and clang write them (`-fstack-usage`)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

_PLACE: Final = re.compile(r"^.*?:\d+(?::\d+)?:(.*)$")
_COLUMNS: Final = 3
"""Place and function, bytes, qualifiers; separated by tabs."""


class Frame(NamedTuple):
    """A line of a `.su` file.

    Args:
        function: The symbol with clang, the declaration with gcc.
        size_bytes: What it takes on the stack; the bound if there is one.
        is_dynamic: It may take more, without a bound.
    """

    function: str
    size_bytes: int
    is_dynamic: bool


def read_frames(text: str) -> Iterator[Frame]:
    """Functions of a `.su` file, in the order of the code; skips other lines."""
    for line in text.splitlines():
        columns = line.split("\t")
        if len(columns) != _COLUMNS or not columns[1].isdigit():
            continue
        found = _PLACE.match(columns[0])
        function = found[1] if found else columns[0]
        # "dynamic,bounded": the number is the bound.
        yield Frame(function, int(columns[1]), columns[2] == "dynamic")
