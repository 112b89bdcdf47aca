"""What more than one value decides: cpu against its variants, names, files.

The checks read the parsed file and not the pydantic model, so they also run when
something else in the profile is wrong; values of a wrong type, which pydantic
reports, they pass over.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.errors import Diagnostic, did_you_mean
from orchestrator.profile.check_delegates import check_delegates
from orchestrator.profile.check_libraries import check_libraries
from orchestrator.profile.check_models import check_models
from orchestrator.profile.check_regions import check_regions
from orchestrator.profile.fields import (
    shown,
)
from orchestrator.profile.model import ISAS, ProfileTable
from orchestrator.profile.parsed import array_of, missing_file, table_of, text_of
from orchestrator.profile.tables import keys_of
from orchestrator.targets.boards import boards_of
from orchestrator.targets.cores import BOARDS, CPUS, TOOLCHAINS

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator
    from pathlib import Path

    from orchestrator.profile.document import Document


def check(
    document: Document,
    *,
    known_libraries: Collection[str],
    is_file: Callable[[Path], bool],
) -> Iterator[Diagnostic]:
    """Every problem that the shape of single values does not show.

    Args:
        document: The profile, merged with its base.
        known_libraries: Names of kernel libraries that exist.
        is_file: Whether a path is a file; may raise `OSError`.
    """
    yield from _check_target(document)
    yield from check_models(document, is_file)
    yield from _check_yaml_files(document, is_file)
    yield from check_libraries(document, known_libraries, is_file)
    yield from check_delegates(document, is_file)
    yield from check_regions(document)
    yield from _check_selects_something(document)


def _check_target(document: Document) -> Iterator[Diagnostic]:
    cpu = CPUS.get(text_of(document, "target", "cpu") or "")
    isa, board = (text_of(document, "target", key) for key in ("isa", "board"))
    isas = tuple(cpu.isas) if cpu else ISAS
    if isa is not None and isa not in isas:
        yield Diagnostic(
            code="unknown-isa",
            message=f"{cpu.name} has no isa {shown(isa)}"
            if cpu
            else f"target.isa cannot be {shown(isa)}",
            where=document.span("target", "isa"),
            notes=(("expected", ", ".join(isas)),),
            hint=did_you_mean(isa, isas) or "leave it out for the default of the cpu",
        )
    if cpu and board and board in BOARDS and cpu.name not in BOARDS[board].cpus:
        boards = boards_of(cpu.name, BOARDS)
        yield Diagnostic(
            code="board-mismatch",
            message=f"target.board cannot be {shown(board)} with {cpu.name}",
            where=document.span("target", "board"),
            notes=(
                ("found", f"{board} has a {BOARDS[board].cpu}"),
                ("expected", ", ".join(boards) or f"no board for {cpu.name}"),
            ),
            hint=f'write board = "{boards[0]}", or change the cpu'
            if boards
            else "leave board out, or change the cpu",
        )
    toolchain = text_of(document, "target", "toolchain")
    if cpu and toolchain in TOOLCHAINS and toolchain not in cpu.toolchains:
        yield Diagnostic(
            code="toolchain-mismatch",
            message=f"the toolchain {shown(toolchain)} cannot build for {cpu.name}",
            where=document.span("target", "toolchain"),
            notes=(("expected", ", ".join(cpu.toolchains)),),
            hint=f'write toolchain = "{cpu.toolchains[0]}"',
        )
    unaligned = table_of(document, "target").get("unaligned")
    if cpu and not cpu.has_unaligned and isinstance(unaligned, bool):
        if cpu.is_arm and not unaligned:
            return  # that is how it is
        yield Diagnostic(
            code="unaligned-mismatch",
            message=f"target.unaligned cannot be chosen with {cpu.name}",
            where=document.span("target", "unaligned"),
            notes=(
                (
                    "found",
                    "the core loads words from aligned addresses only"
                    if cpu.is_arm
                    else "the key is for Cortex-M",
                ),
            ),
            hint="leave it out",
        )


def _check_yaml_files(
    document: Document, is_file: Callable[[Path], bool]
) -> Iterator[Diagnostic]:
    for index in range(len(array_of(document, "operators", "include_yaml"))):
        yield from missing_file(
            document,
            ("operators", "include_yaml", index),
            is_file,
            what="operator list",
            expected="a functions.yaml or selected_operators.yaml",
        )


def _check_selects_something(document: Document) -> Iterator[Diagnostic]:
    data = document.data
    misspelt = any(
        did_you_mean(key, ("models", "operators"))
        for key in data.keys() - set(keys_of(ProfileTable))
    )
    # A product without kernels is legal, but only one that says so.
    if not misspelt and not data.keys() & {"models", "operators"}:
        yield Diagnostic(
            code="nothing-selected",
            message="the profile says nothing about models or operators",
            where=document.span("models"),
            notes=(("expected", "[[models]] or [operators]"),),
            hint='add [[models]] and below it path = "model.pte", or [operators] and'
            " below it include = [] for a runtime without kernels",
        )
