"""Constants that a program leaves outside: finding them in data files."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from orchestrator.errors import Diagnostic, ModelError, SourceSpan
from orchestrator.program.program import ExternalData
from orchestrator.program.values import TensorValue

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from orchestrator.program.flat_tensor import StoredTensor
    from orchestrator.program.program import Program


def with_data(
    program: Program,
    files: Mapping[str, tuple[StoredTensor, ...]],
    *,
    model: str,
    where: SourceSpan | None,
) -> Program:
    """The program with the data of its external constants.

    Args:
        program: The program.
        files: What its data files hold, by name of the file.
        model: Its name in the profile.
        where: The profile line that names it.

    Raises:
        ModelError: With everything that does not fit (`external-data`).
    """
    wanted: dict[str, TensorValue] = {}
    problems: list[tuple[str, str]] = []
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
        stored = [(f, t) for f, ts in files.items() for t in ts if t.name == name]
        if len(stored) > 1:
            places = " and in ".join(file for file, _ in stored)
            problems.append((name, f"is there twice: in {places}"))
        elif not stored:
            given = ", ".join(files) or "no data file"
            problems.append((name, f"is not there: the profile names {given}"))
        else:
            file, tensor = stored[0]
            if (facts := _stored(tensor)) != _facts(value):
                text = f"is {facts} in {file}, and {_facts(value)} in the program"
                problems.append((name, text))
            found[name] = ExternalData(name=name, dtype=value.dtype, data=tensor.data)
    if problems:
        raise ModelError(
            Diagnostic(
                code="external-data",
                message=f'data of model "{model}" does not fit the program',
                where=where,
                notes=tuple(
                    (f'"{name}"', text) for name, text in dict.fromkeys(problems)
                ),
                hint="name the .ptd files that were exported with the program in"
                " `data` of its [[models]]",
            )
        )
    return replace(program, external=tuple(found.values()))


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
