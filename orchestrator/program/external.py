"""Data that a program leaves outside, or finds by name: constants, and of delegates.

Source: ExecuTorch `backends/xnnpack/operators/node_visitor.py`, where keys of scales
have a prefix, and `backends/arm/arm_vela.py`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import prod
from struct import Struct
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TypeAlias

from orchestrator.core.dtype import ScalarType
from orchestrator.core.lazy_bytes import Bytes, part_of
from orchestrator.errors import Diagnostic, ModelError, SourceSpan
from orchestrator.program.flatbuffer import DATA_FILE, Buffer, Table
from orchestrator.program.foreign import foreign_error
from orchestrator.program.problems import DecodeError, Problems
from orchestrator.program.program import Delegate, ExternalData, Program
from orchestrator.program.values import TensorValue

if TYPE_CHECKING:
    _Given: TypeAlias = "dict[str, list[tuple[str, StoredTensor]]]"
    """What files hold, by name of the data."""
    _Notes = list[tuple[str, str]]

_NAMES_KEYS: Final = ("XnnpackBackend", "EthosUBackend")
"""Backends that name their data by SHA-256 in what they get; others do not tell."""
# Strings in these backends' own flatbuffers follow a zero byte, the end of their length
# or padding.
_KEY: Final = re.compile(rb"\0((?:scale_)?[0-9a-f]{64})")


def with_data(
    program: Program,
    files: Mapping[str, tuple[StoredTensor, ...]],
    *,
    model: str,
    where: SourceSpan | None,
    takes: Mapping[str, bool] = MappingProxyType({}),
) -> Program:
    """The program with the data of its external constants, and of its delegates.

    Args:
        program: The program.
        files: What its data files hold, by name of the file.
        model: Its name in the profile.
        where: The profile line that names it.
        takes: By backend of a delegate of the profile: whether it takes named data.

    Raises:
        ModelError: With everything that does not fit (`external-data`); delegates
            cannot have their data (`delegate-data`), or nothing of a file is used
            (`unused-data`).
    """
    given: _Given = {}
    for file, tensors in files.items():
        for tensor in tensors:
            given.setdefault(tensor.name, []).append((file, tensor))
    problems: _Notes = []
    # Everything that does not fit is one error: files are mostly wrong as a whole.
    found = _constants(program, given, problems, ", ".join(files) or "no data file")
    delegates = [d for m in program.methods for d in m.delegates]
    backends = {d.backend for d in delegates}
    # Only a delegate knows what it will ask for: it gets all that the files have.
    if any(takes.get(backend) for backend in backends):
        _add_named(found, given, problems)
    if problems:
        without = sorted(backends - takes.keys())
        problems += [(backend, "is a backend without delegate") for backend in without]
        raise ModelError(
            Diagnostic(
                code="external-data",
                message=f'data of model "{model}" does not fit the program',
                where=where,
                notes=tuple((f'"{name}"', text) for name, text in dict.fromkeys(problems)),
                hint="name the .ptd files that were exported with the program in"
                " `data` of its [[models]]"
                + "; [[delegates]] links delegates, see docs/delegates.md"
                * bool(without),
            )
        )
    refused = [
        Diagnostic.of(
            "unused-data",
            f'model "{model}" uses nothing of the data file "{file}"',
            where=where,
            expected="constants of the program, or data of its delegates",
            hint="name the .ptd that was exported with the program; delegates get its"
            " data with `named_data = true`",
        )
        for file, stored in files.items()
        # A backend without a delegate is a problem of its own.
        if backends <= takes.keys() and not any(t.name in found for t in stored)
    ]
    if problem := data_problem(program, delegates, takes, found):
        message = f'model "{model}": {problem.message}'
        refused.append(replace(problem, message=message, where=where))
    if refused:
        raise ModelError(refused)
    return replace(program, external=tuple(data for _, data in sorted(found.items())))


def _constants(
    program: Program, given: _Given, problems: _Notes, names: str
) -> dict[str, ExternalData]:
    """External constants by name; notes those that do not fit."""
    wanted: dict[str, TensorValue] = {}
    for value in _externals(program):
        extra = value.extra
        name = extra.qualified_name if extra else ""
        first = wanted.setdefault(name, value)
        if _facts(first) != _facts(value):
            problems.append((name, f"is {_facts(first)} and {_facts(value)}"))
        if value.is_planned:
            problems.append((name, "is not a constant: its initial state lies outside"))
    found: dict[str, ExternalData] = {}
    for name, value in sorted(wanted.items()):
        stored = given.get(name, [])
        if len(stored) > 1:
            text = f"is there twice: in {' and in '.join(f for f, _ in stored)}"
            problems.append((name, text))
        elif not stored:
            problems.append((name, f"is not there: the profile names {names}"))
        else:
            file, tensor = stored[0]
            if (facts := _stored(tensor)) != _facts(value):
                text = f"is {facts} in {file}, and {_facts(value)} in the program"
                problems.append((name, text))
            found[name] = ExternalData(name=name, dtype=value.dtype, data=tensor.data)
    return found


def _add_named(found: dict[str, ExternalData], given: _Given, problems: _Notes) -> None:
    """Add what delegates may ask for: they alone know which of it they do."""
    for name, places in given.items():
        if name in found:
            continue
        file, tensor = places[0]
        if len(places) > 1:
            problems.append((name, f"is there twice: in {file} and in {places[1][0]}"))
        dtype = tensor.dtype or ScalarType.Byte
        found[name] = ExternalData(name=name, dtype=dtype, data=tensor.data, is_constant=False)


def data_problem(
    program: Program,
    delegates: Collection[Delegate],
    takes: Mapping[str, bool],
    outside: Iterable[str],
) -> Diagnostic | None:
    """Why delegates cannot have their named data.

    Args:
        program: That has the delegates.
        delegates: Those that are made ready together.
        takes: By backend of a linked delegate: whether it takes named data.
        outside: Names of the data beside the program.
    """
    keys = {named.key for named in program.named_data}
    refusing = [d for d in delegates if not takes.get(d.backend, True)]
    refused = needed_keys(program, refusing)
    if refusing and len(refusing) == len(delegates):
        refused |= keys
    asked = [d for d in delegates if d.backend in takes]
    missing = needed_keys(program, asked) - {*keys, *outside}
    twice = keys & {*outside} if asked else set()
    names = ", ".join(sorted({d.backend for d in refusing}))
    notes = dict.fromkeys(sorted(missing), "is not there")
    notes |= dict.fromkeys(sorted(twice), "is in the program and beside it")
    notes |= dict.fromkeys(sorted(refused), f"is not taken by {names}")
    if not notes:
        return None
    return Diagnostic(
        code="delegate-data",
        message="a delegate cannot have its named data",
        notes=tuple((f'"{key}"', text) for key, text in notes.items()),
        hint="leave the file out of `data`: the program has what is in it"
        if {*notes} == twice
        else "name the .ptd files that were exported with the program in `data`, and"
        " set `named_data = true` of its delegate (docs/delegates.md#named-data)",
    )


def needed_keys(program: Program, delegates: Iterable[Delegate]) -> set[str]:
    """Keys that these delegates of a program certainly ask for."""
    known = [d for d in delegates if d.backend in _NAMES_KEYS]
    found: set[str] = set()
    # Segments may overlap: no more is read than the file has.
    # Delegates may name one segment each and overlap: without a bound a small file
    # makes this read gigabytes.
    left = program.size_bytes
    for delegate in {(d.is_inline, d.data_index): d for d in known}.values():
        data = program.delegate_bytes(delegate)
        left -= len(data)
        if left >= 0:
            found.update(key.decode() for key in _KEY.findall(bytes(data)))
    return found


def _externals(program: Program) -> Iterator[TensorValue]:
    for method in program.methods:
        for value in method.values:
            if isinstance(value, TensorValue) and value.is_external:
                yield value


def _facts(value: TensorValue) -> str:
    order = f" in order {list(value.dim_order)}" if not value.is_contiguous else ""
    return f"{value.dtype.name} {list(value.sizes)}{order}"


def _stored(tensor: StoredTensor) -> str:
    if tensor.dtype is None:
        return f"{len(tensor.data)} bytes of no tensor"
    is_plain = tensor.dim_order == tuple(range(len(tensor.sizes)))
    order = f" in order {list(tensor.dim_order)}" if not is_plain else ""
    return f"{tensor.dtype.name} {list(tensor.sizes)}{order}"


# Reads `.ptd` data files: bytes in, where each named tensor lies out.
#
# Source: ExecuTorch `extension/flat_tensor/serialize/flat_tensor.fbs` and `flat_tensor_header.h`
# (FT01).

_IDENTIFIER: Final = b"FT01"
_MAGIC: Final = b"FH01"
_HEADER_AT: Final = 8
# Magic, length, offset and size of the flatbuffer, base and size of segments
# (flat_tensor_header.h).
_HEADER: Final = Struct("<4sIQQQQ")


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredTensor:
    """A tensor in a data file.

    Args:
        name: By which programs name it.
        dtype: Element type; None for data that is not a tensor.
        sizes: Outermost dimension first.
        dim_order: Dimensions from outermost to innermost in memory.
        data: Its bytes.
    """

    name: str
    dtype: ScalarType | None
    sizes: tuple[int, ...]
    dim_order: tuple[int, ...]
    data: Bytes = field(repr=False)


def is_data_file(data: Bytes) -> bool:
    """Whether bytes say that they are such a file."""
    return bytes(data[4:8]) == _IDENTIFIER


def read_flat_tensors(data: Bytes, *, file: str) -> tuple[StoredTensor, ...]:
    """What is in the bytes of a `.ptd` file, in its order.

    Nothing in the file is trusted: every offset, index, count and size is checked.

    Args:
        data: The whole file.
        file: Its name, for messages.

    Raises:
        ModelError: Not such a file, or a damaged one (`bad-program`).
    """
    problems = Problems(file)
    try:
        tensors = _read(data)
    except DecodeError as error:
        problems.undecodable(error, "data file")
        raise problems.error() from error
    return tensors


def _read(data: Bytes) -> tuple[StoredTensor, ...]:
    head = bytes(data[: _HEADER_AT + _HEADER.size])
    if head[4:8] != _IDENTIFIER:
        raise foreign_error(bytes(data), "data file", ".ptd")
    if len(data) < _HEADER_AT + _HEADER.size:
        raise DecodeError("the header is cut off", found=f"{len(data)} bytes")
    magic, length, offset, size, base, base_bytes = _HEADER.unpack_from(head, _HEADER_AT)
    if magic != _MAGIC or length < _HEADER.size:
        raise DecodeError("the header is none", found=f"magic {magic!r}, {length} bytes")
    # Offsets count from the start of the file: the header lies in the flatbuffer.
    size += offset
    if not _HEADER_AT + length <= size <= len(data):
        raise DecodeError(
            "the flatbuffer does not lie inside the file",
            found=f"to byte {size}",
            expected=f"{_HEADER_AT + length} to {len(data)}",
        )
    if base < size or base + base_bytes > len(data):
        raise DecodeError(
            "the segments do not lie behind the flatbuffer, inside the file",
            found=f"{base_bytes} bytes at byte {base}",
            expected=f"from byte {size} to {len(data)}",
        )
    root = Buffer(bytes(data[:size]), size, DATA_FILE).root()
    if root["version"] != 0:
        raise DecodeError("the file has another version", found=str(root["version"]), expected="0")
    segments = [_segment(root.entry("segments", at), base, base_bytes) for at in root["segments"]]
    found = [_tensor(root.entry("named_data", at), segments, data) for at in root["named_data"]]
    names = Counter(tensor.name for tensor in found)
    if twice := next((name for name, count in names.items() if count > 1), ""):
        raise DecodeError("a name is there twice", found=f'"{twice}"')
    return tuple(found)


def _segment(table: Table, base: int, base_bytes: int) -> tuple[int, int]:
    """Where a segment begins and ends in the file."""
    offset, size = table.values()
    if offset + size > base_bytes:
        raise DecodeError(
            "a segment leaves the file",
            found=f"offset {offset}, {size} bytes",
            expected=f"to end at most at {base_bytes}",
        )
    return base + offset, base + offset + size


def _tensor(table: Table, segments: list[tuple[int, int]], data: Bytes) -> StoredTensor:
    name, index, layout = table.values()
    if not name or index >= len(segments):
        raise DecodeError(
            "an entry has no name, or a segment that is not there",
            found=f'"{name}", segment {index}',
            expected=f"a name, a segment below {len(segments)}",
        )
    begin, end = segments[index]
    content = part_of(data, begin, end - begin)
    if layout is None:
        return StoredTensor(name=name, dtype=None, sizes=(), dim_order=(), data=content)
    code, sizes, dim_order = layout["scalar_type"], layout["sizes"], tuple(layout["dim_order"])
    if code not in set(ScalarType):
        raise DecodeError("a tensor has an unknown dtype", found=f'"{name}", {code}')
    dtype = ScalarType(code)
    if sorted(dim_order) != list(range(len(sizes))) or min(sizes, default=0) < 0:
        raise DecodeError(
            "a tensor has impossible sizes",
            found=f'"{name}", {list(sizes)} in order {list(dim_order)}',
        )
    # Exactly: a tensor in a data file has a segment of its own.
    if prod(sizes) * dtype.item_bytes != end - begin:
        raise DecodeError(
            "a tensor is not as large as its data",
            found=f'"{name}", {prod(sizes) * dtype.item_bytes} bytes',
            expected=f"{end - begin} bytes",
        )
    return StoredTensor(name=name, dtype=dtype, sizes=sizes, dim_order=dim_order, data=content)
