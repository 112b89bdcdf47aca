"""Reads and writes `.npy` files without numpy.

Source: numpy `doc/neps/nep-0001-npy-format.rst`, format versions 1.0, 2.0 and 3.0.
"""

from __future__ import annotations

import ast
import re
import sys
import warnings
from array import array
from dataclasses import dataclass
from math import prod
from struct import Struct
from typing import Final

from orchestrator.errors import Diagnostic, SourceSpan, UsageError
from orchestrator.running.layout import to_logical_order

_MAGIC: Final = b"\x93NUMPY"
_LENGTHS: Final = {(1, 0): Struct("<H"), (2, 0): Struct("<I"), (3, 0): Struct("<I")}
_MAX_HEADER_BYTES: Final = 10_000
"""Longest header that is parsed, as in numpy: the parser's cost is not bounded."""
_MAX_RANK: Final = 64
_ALIGNMENT: Final = 64
_KEYS: Final = frozenset({"descr", "fortran_order", "shape"})

_NAMES: Final = {
    "|b1": "bool",
    "|i1": "int8",
    "<i2": "int16",
    "<i4": "int32",
    "<i8": "int64",
    "|u1": "uint8",
    "<u2": "uint16",
    "<u4": "uint32",
    "<u8": "uint64",
    "<f2": "float16",
    "<f4": "float32",
    "<f8": "float64",
}
_DESCR: Final = re.compile(r"([<>|]?)(\?|[a-z]\d+)")
_SWAP_CODES: Final = {2: "H", 4: "I", 8: "Q"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Array:
    """A dense array of numbers or truth values.

    Args:
        dtype: numpy's `descr`, little endian: `<f4`, `|i1`, `|b1`.
        shape: Sizes, outermost dimension first; empty for a single element.
        data: The elements in C order, little endian; `numel * item_bytes` bytes.
    """

    dtype: str
    shape: tuple[int, ...]
    data: bytes

    @property
    def item_bytes(self) -> int:
        """Size of one element in bytes."""
        return int(self.dtype[2:])

    @property
    def numel(self) -> int:
        """Number of elements."""
        return prod(self.shape)

    @property
    def dtype_name(self) -> str:
        """Name of the dtype as numpy has it: `float32`."""
        return _NAMES[self.dtype]

    def __str__(self) -> str:
        return f"{self.dtype_name} {list(self.shape)}"


def dtype_name(dtype: str) -> str:
    """Name that numpy gives a dtype of `Array`: `float32` for `<f4`."""
    return _NAMES[dtype]


def read_npy(data: bytes, *, file: str) -> Array:
    """The array in the bytes of a `.npy` file.

    Any byte order and both memory orders are read. Nothing in the file is trusted.

    Args:
        data: The whole file.
        file: Its name, for messages.

    Raises:
        UsageError: The file is no `.npy` file, is damaged, or holds something else
            than numbers or truth values (`bad-npy`).
    """
    try:
        return _read(data)
    except _NpyError as error:
        raise UsageError(
            Diagnostic(
                code="bad-npy",
                message=error.message,
                where=SourceSpan(file=file),
                notes=(("found", error.found), ("expected", error.expected)),
                hint=error.hint,
            )
        ) from None


def write_npy(item: Array) -> bytes:
    """The bytes of a `.npy` file, format version 1.0, as numpy writes them."""
    header = (
        f"{{'descr': '{item.dtype}', 'fortran_order': False, 'shape': {item.shape}, }}"
    )
    start = len(_MAGIC) + 2 + _LENGTHS[1, 0].size
    padding = -(start + len(header) + 1) % _ALIGNMENT
    text = header.encode() + b" " * padding + b"\n"
    return _MAGIC + b"\x01\x00" + _LENGTHS[1, 0].pack(len(text)) + text + item.data


_SAVE_HINT: Final = "write it with numpy.save"


class _NpyError(Exception):
    def __init__(
        self, message: str, *, found: str, expected: str, hint: str = _SAVE_HINT
    ) -> None:
        super().__init__(message)
        self.message = message
        self.found = found
        self.expected = expected
        self.hint = hint


def _read(data: bytes) -> Array:
    header, start = _header(data)
    dtype, swapped = _dtype(header["descr"])
    shape, fortran = _shape(header["shape"]), header["fortran_order"]
    if not isinstance(fortran, bool):
        raise _NpyError(
            "the .npy header is damaged",
            found=f"fortran_order {fortran!r:.80}",
            expected="True or False",
        )
    item_bytes = int(dtype[2:])
    size_bytes = prod(shape) * item_bytes
    elements = data[start:]
    if len(elements) != size_bytes:
        raise _NpyError(
            "the .npy file does not have the size its header asks for",
            found=f"{len(elements)} bytes of elements",
            expected=f"{size_bytes} for {_NAMES[dtype]} {list(shape)}",
        )
    if swapped:
        words = array(_SWAP_CODES[item_bytes], elements)
        words.byteswap()
        elements = words.tobytes()
    if dtype == "|b1" and (wrong := elements.translate(None, b"\0\1")):
        raise _NpyError(
            "the .npy file has a truth value that is neither true nor false",
            found=f"byte {wrong[0]}",
            expected="0 or 1",
        )
    if fortran:
        elements = to_logical_order(
            elements,
            sizes=shape,
            dim_order=tuple(reversed(range(len(shape)))),
            item_bytes=item_bytes,
        )
    return Array(dtype=dtype, shape=shape, data=elements)


def _header(data: bytes) -> tuple[dict[str, object], int]:
    """The header, and where the elements begin."""
    if data[: len(_MAGIC)] != _MAGIC:
        raise _NpyError(
            "the file is no .npy file",
            found=f"{len(data)} bytes, beginning with {data[:6]!r}",
            expected=repr(_MAGIC),
        )
    version = tuple(data[len(_MAGIC) : len(_MAGIC) + 2])
    length = _LENGTHS.get(version) if len(version) == 2 else None  # noqa: PLR2004
    if length is None:
        raise _NpyError(
            "the .npy file has an unknown format version",
            found=".".join(map(str, version)) or "none",
            expected="1.0, 2.0 or 3.0",
        )
    start = len(_MAGIC) + 2 + length.size
    header_bytes = 0
    if len(data) >= start:
        (header_bytes,) = length.unpack_from(data, start - length.size)
    if len(data) < start + header_bytes:
        raise _NpyError(
            "the .npy header is cut off",
            found=f"{len(data)} bytes",
            expected=f"at least {start + header_bytes}",
        )
    if header_bytes > _MAX_HEADER_BYTES:
        raise _NpyError(
            "the .npy header is too long",
            found=f"{header_bytes} bytes",
            expected=f"at most {_MAX_HEADER_BYTES}",
        )
    encoding = "utf-8" if version == (3, 0) else "latin-1"
    raw = data[start : start + header_bytes]
    try:
        with warnings.catch_warnings():
            # Damaged text can be dubious Python; that is nobody's business.
            warnings.simplefilter("ignore")
            header = ast.literal_eval(raw.decode(encoding))
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        header = None
    if not isinstance(header, dict) or header.keys() != _KEYS:
        raise _NpyError(
            "the .npy header is damaged",
            found=f"{raw[:80]!r}",
            expected="{'descr': ..., 'fortran_order': ..., 'shape': ...}",
        )
    return header, start + header_bytes


def _dtype(descr: object) -> tuple[str, bool]:
    """The dtype as `Array` has it, and whether the elements are big endian."""
    match = _DESCR.fullmatch(descr) if isinstance(descr, str) else None
    order, letters = match.groups() if match else ("", "")
    letters = "b1" if letters == "?" else letters
    normal = ("|" if letters.endswith("1") else "<") + letters
    is_multibyte = not letters.endswith("1")
    if normal not in _NAMES or (is_multibyte and order not in ("<", ">")):
        raise _NpyError(
            "the .npy file holds elements of a type that no tensor has",
            found=f"{descr!r:.80}",
            expected=", ".join(_NAMES.values()),
            hint="convert the array with astype before it is saved",
        )
    return normal, is_multibyte and order == ">"


def _shape(shape: object) -> tuple[int, ...]:
    if (
        not isinstance(shape, tuple)
        or len(shape) > _MAX_RANK
        or not all(type(size) is int and 0 <= size <= sys.maxsize for size in shape)
    ):
        raise _NpyError(
            "the .npy header is damaged",
            found=f"shape {shape!r:.80}",
            expected=f"a tuple of at most {_MAX_RANK} sizes",
        )
    return shape
