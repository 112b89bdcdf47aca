"""Load a profile: parse, merge, validate, and report all problems at once."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from orchestrator.errors import Diagnostic, ProfileError, SourceSpan
from orchestrator.profile.board import read_board
from orchestrator.profile.document import Document, Text, read_document
from orchestrator.profile.explain import explain
from orchestrator.profile.fields import key_text
from orchestrator.profile.models import with_instances
from orchestrator.profile.paths import Facts, is_relative_path
from orchestrator.profile.table import salvage
from orchestrator.profile.tables import SCHEMA_VERSION, Profile, ProfileTable, rule_problems
from orchestrator.profile.target import SUFFIX, OwnBoard


def load_profile(
    path: Path,
    *,
    text_of: Callable[[Path], str],
    is_file: Callable[[Path], bool],
    known_libraries: Collection[str],
    member: Member | None = None,
) -> Profile:
    """Read a profile and its base, and check everything in them.

    Args:
        path: Path of the profile, as the user named it.
        text_of: Reads a file's text; raises `OSError` or `UnicodeDecodeError`.
        is_file: Whether a path is a file, for every file the profile names; may raise
            `OSError`.
        known_libraries: Names of the kernel libraries that exist without the profile.
        member: What the product has besides its profile; None for nothing.

    Raises:
        ProfileError: With every problem, in the order of the file.
    """
    document = read_document(path, text_of=text_of)
    problems: list[Diagnostic] = []
    files = [path]
    base_path = base_path_of(document)
    lacks_base = False
    if base_path is not None:
        files.append(base_path)
        try:
            document = document.over(_read_base(document, base_path, text_of))
        except ProfileError as error:
            problems += error.diagnostics
            lacks_base = True
    # Base first, then what the workspace gives: a profile's own base is nearer than the
    # defaults of its repository.
    if member is not None:
        if member.inherited is not None:
            document = document.over(member.inherited)
        if member.name is not None:
            document = document.named(member.name)
    board = _own_board(document, text_of)
    if board is not None:
        files.append(board[0])
        # Read before validation: pydantic cannot read files, and the board's regions
        # are needed by rules.
        document = document.with_value("target", "board", board[1])
    try:
        table = ProfileTable.model_validate(document.data)
    except ValidationError as error:
        problems += explain(error.errors(include_url=False), document.span)
        table = salvage(ProfileTable, document.data)
    facts = Facts(
        span=document.span, keys=document.data.keys(), is_file=is_file, libraries=known_libraries
    )
    problems += rule_problems(table, facts)
    if lacks_base:  # keys that seem to be missing may be in the base
        problems = [p for p in problems if p.code not in _ABSENCES]
    if problems or lacks_base:
        raise ProfileError(_in_order(problems, path))
    table = table.with_defaults(known_libraries)
    models, spans = with_instances(table.models, document.spans.items())
    # Not validated again: values are no longer what a profile writes, which is all that
    # the fields take.
    return Profile.model_construct(
        **{**dict(table), "models": models},
        file=path,
        files=tuple(files),
        spans=spans,
        **(member or Member()).facts(),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """What a product has besides its profile.

    Args:
        inherited: Values of a workspace, which the profile and its base take
            precedence over; None if it is in none.
        name: Its name, if a workspace makes several products of the profile.
        build_root: Folder in which its build folder is, in `build`.
        looked_for: States of all files that might have been that of its workspace.
        settings: Variables that its workspace sets where the user did not.
    """

    inherited: Document | None = None
    name: str | None = None
    build_root: Path = Path()
    looked_for: tuple[tuple[str, Sequence[int]], ...] = ()
    settings: tuple[tuple[str, str], ...] = ()

    def facts(self) -> dict[str, Any]:
        """Fields of the profile that do not come from its text."""
        data = {} if self.inherited is None else self.inherited.data
        return {
            "inherited": tuple(_leaves(data)),
            "is_variant": self.name is not None,
            "build_root": self.build_root,
            "looked_for": self.looked_for,
            "settings": self.settings,
        }


def _leaves(value: object, *path: str) -> Iterator[tuple[str, str]]:
    """Keys of tables in tables, each with its value as JSON."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _leaves(inner, *path, key)
    else:
        yield key_text(path), json.dumps(value, sort_keys=True, default=str)


_ABSENCES = frozenset({"missing-key", "nothing-selected"})


def _in_order(problems: list[Diagnostic], path: Path) -> list[Diagnostic]:
    """Sort problems by place, those of the profile itself before those of its base."""

    def place(problem: Diagnostic) -> tuple[bool, int, str]:
        where = problem.where or SourceSpan(file="")
        return where.file != str(path), where.line, problem.message

    return sorted(problems, key=place)


def base_path_of(document: Document) -> Path | None:
    """The base that a profile names; None if it has none, or the value is wrong."""
    extends = document.data.get("extends")
    if isinstance(extends, str) and is_relative_path(extends):
        return document.path.parent / extends
    return None  # no base, or a value that the validator reports


def _own_board(document: Document, text_of: Callable[[Path], str]) -> tuple[Path, OwnBoard] | None:
    """The board that the profile describes in a file, and that file.

    Raises:
        ProfileError: It cannot be read, or something in it is wrong.
    """
    target = document.data.get("target")
    written = target.get("board") if isinstance(target, dict) else None
    if not isinstance(written, Text) or not written.endswith(SUFFIX):
        return None  # no path: the validator knows the boards
    if not is_relative_path(written):
        return None  # it reports that as well
    path = written.folder / written
    named_by = document.span("target", "board")
    return path, read_board(path, written, text_of=text_of, named_by=named_by)


def _read_base(document: Document, base_path: Path, text_of: Callable[[Path], str]) -> Document:
    """Read the base of a profile.

    Raises:
        ProfileError: It cannot be read, has a base itself, or has another schema.
    """
    named_by = document.span("extends")
    if base_path == document.path:
        raise ProfileError.of(
            "bad-extends",
            "the profile extends itself",
            where=named_by,
            expected="another profile",
            hint="name the base, or remove extends",
        )
    base = read_document(base_path, text_of=text_of, named_by=named_by)
    problems = []
    if "extends" in base.data:
        problems.append(
            Diagnostic.of(
                "bad-extends",
                "the base extends another profile",
                where=base.span("extends"),
                found=f"{document.path} extends {base_path} ({named_by})",
                expected="one base at most",
                hint="extend the last base directly, and repeat what is between",
            )
        )
    version = base.data.get("schema", SCHEMA_VERSION)
    if "schema" in document.data and version != SCHEMA_VERSION:
        # After merging, the profile's `schema` hides that of the base from validation.
        problems.append(
            Diagnostic.of(
                "unknown-schema",
                "the base has another schema",
                where=base.span("schema"),
                found=f"schema = {version}",
                expected="1",
                hint=f"write schema = {SCHEMA_VERSION}",
            )
        )
    ProfileError.raise_if(problems)
    return base
