"""Data that a program leaves outside, or finds by name: constants, and of delegates.

Source: ExecuTorch `backends/xnnpack/operators/node_visitor.py`, where keys of scales
have a prefix, and `backends/arm/arm_vela.py`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from orchestrator.core.dtype import ScalarType
from orchestrator.errors import Diagnostic, ModelError, SourceSpan
from orchestrator.program.program import Delegate, ExternalData, Program
from orchestrator.program.values import TensorValue

if TYPE_CHECKING:
    from orchestrator.program.flat_tensor import StoredTensor

    _Given = dict[str, list[tuple[str, StoredTensor]]]
    """What files hold, by name of the data."""
    _Notes = list[tuple[str, str]]

_NAMES_KEYS: Final = ("XnnpackBackend", "EthosUBackend")
"""Backends that name their data by SHA-256 in what they get; others do not tell."""
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
    found = _constants(program, given, problems, ", ".join(files) or "no data file")
    delegates = [d for m in program.methods for d in m.delegates]
    backends = {d.backend for d in delegates}
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
