"""Programs and constants as C: other assemblers and build systems find no files."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from orchestrator.core.lazy_bytes import Bytes

_BLOCK: Final = re.compile(
    r"""\ *\.section\ (?P<section>[^,\n]+),"a"\n
    \ *\.balign\ (?P<alignment>\d+)\n
    \ *\.globl\ (?P<symbol>\w+)\n
    (?P=symbol):\n
    \ *\.incbin\ "(?P<file>[^"\n]+)"(?:,\ (?P<begin>\d+),\ (?P<size>\d+))?\n""",
    re.VERBOSE,
)
_SAME: Final = re.compile(r" *\.globl (\w+)\n *\.set \1, (\w+)\n")
"""One more name of bytes that an earlier block has."""
_ROW: Final = 24  # numbers; below 100 columns


def constants_source(head: str, assembly: str, files: Mapping[str, Bytes]) -> str:
    """The generated assembly of programs and constants as arrays in C.

    Args:
        head: Text of the first line.
        assembly: What the build assembles.
        files: What it includes, by path.

    Raises:
        ValueError: The assembly has something else.
    """
    body, _, _ = assembly.partition("#if defined(__ELF__)")
    rest = _SAME.sub("", _BLOCK.sub("", body))
    if re.sub(r"//.*", "", rest).strip():
        raise ValueError(f"unknown assembly: {rest.strip()[:200]}")
    blocks = [_array(match, files) for match in _BLOCK.finditer(body)]
    return "\n".join([f"/* {head} */\n#include <stdint.h>\n", *blocks])


def symbols_of(assembly: str) -> dict[str, str]:
    """Symbols of programs and constants; each with the one that is defined as array."""
    own = {match["symbol"]: match["symbol"] for match in _BLOCK.finditer(assembly)}
    return own | {match[1]: match[2] for match in _SAME.finditer(assembly)}


def _array(match: re.Match[str], files: Mapping[str, Bytes]) -> str:
    data = bytes(files[match["file"]])
    if match["begin"] is not None:
        begin = int(match["begin"])
        data = data[begin : begin + int(match["size"])]
    name, size = match["symbol"], max(len(data), 1)
    return (
        f"extern const uint8_t {name}[{size}];\n"
        f"__attribute__((aligned({match['alignment']}),"
        f' section("{match["section"]}")))\n'
        f"const uint8_t {name}[{size}] = {{\n{byte_rows(data or bytes(1))}}};\n"
    )


def byte_rows(data: bytes) -> str:
    """Bytes as the rows of an initializer."""
    rows = (data[at : at + _ROW] for at in range(0, len(data), _ROW))
    return "".join(f"  {','.join(map(str, row))},\n" for row in rows)
