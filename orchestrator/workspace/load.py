"""Read `orchestrator.toml`, and give each profile what it inherits."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from orchestrator.errors import Diagnostic, ProfileError, SourceSpan, did_you_mean
from orchestrator.profile.document import Document, Text, read_document
from orchestrator.profile.explain import explain
from orchestrator.profile.fields import key_text, shown
from orchestrator.profile.load import Member
from orchestrator.profile.reference import SchemaGenerator, json_schema, without_null
from orchestrator.profile.source_map import KeyPath
from orchestrator.profile.tables import Profile, ProfileTable
from orchestrator.profile.target import AXES, SUFFIX
from orchestrator.shell import files
from orchestrator.shell.settings import CACHE, LAUNCHER, PUBLISHED, PUBLISHED_KEY
from orchestrator.workspace.product import Product
from orchestrator.workspace.tables import WorkspaceTable


@dataclass(frozen=True, slots=True, kw_only=True)
class Workspace:
    """A checked `orchestrator.toml`.

    Args:
        file: Its path, as messages show it.
        document: Its values with their lines.
        table: The same, checked.
    """

    file: Path
    document: Document
    table: WorkspaceTable

    @property
    def root(self) -> Path:
        """Its folder."""
        return self.file.parent

    @property
    def settings(self) -> dict[str, str]:
        """Variables of the environment that it sets where the user did not."""
        cache, launcher = self.table.cache, self.table.build.launcher
        found = {}
        if cache.path is not None:
            found[CACHE] = str(cache.path.path.absolute())
        if cache.published is not None:
            place = cache.published
            if "://" not in place:
                place = str((self.root / place).absolute())
            found[PUBLISHED] = place
        if cache.published_key is not None:
            found[PUBLISHED_KEY] = str(cache.published_key.path.absolute())
        if launcher is not None:
            found[LAUNCHER] = launcher
        return found

    def members(self) -> tuple[Path, ...]:
        """Files that the patterns match, as messages show them.

        Raises:
            ProfileError: A pattern matches no file, or one outside of the workspace.
        """
        left_out = {self.file}
        for pattern in self.table.workspace.exclude:
            left_out.update(self.root.glob(pattern))
        found: set[Path] = set()
        problems = []
        for index, pattern in enumerate(self.table.workspace.profiles):
            matched = [p for p in self.root.glob(pattern) if p.is_file()]
            if not matched:
                problems.append(self._no_files(index, pattern))
            found.update(matched)
        problems += [_outside(p) for p in sorted(found - left_out) if self._leaves(p)]
        ProfileError.raise_if(problems)
        return tuple(sorted(found - left_out))

    def _leaves(self, member: Path) -> bool:
        """Whether a file lies elsewhere, by a link of its own or of a folder."""
        # A repository may come from anybody: a link in it must not make a build read or
        # write elsewhere.
        return not Path(os.path.realpath(member)).is_relative_to(os.path.realpath(self.root))

    def has_member(self, profile: Path) -> bool:
        """Whether a file is matched by the patterns.

        Raises:
            ProfileError: It is, and a link leads outside of the workspace.
        """
        there = os.path.realpath(profile)

        def is_matched(patterns: Iterable[str]) -> bool:
            paths = (path for p in patterns for path in self.root.glob(p))
            return any(
                path.name == profile.name and os.path.realpath(path) == there for path in paths
            )

        table = self.table.workspace
        found = is_matched(table.profiles) and not is_matched(table.exclude)
        if found and self._leaves(profile):
            raise ProfileError(_outside(profile))
        return found

    def _no_files(self, index: int, pattern: str) -> Diagnostic:
        return Diagnostic.of(
            "no-profiles",
            f'no file matches "{pattern}"',
            where=self.document.span("workspace", "profiles", index),
            found=f"no such file below {self.root}",
            hint="patterns start at the folder of orchestrator.toml; remove it if it"
            " is not needed any more",
        )

    def member_of(self, product: Product) -> Member:
        """What a product has besides its profile."""
        data: dict[str, Any] = dict(self.document.data.get("defaults", {}))
        spans: dict[KeyPath, SourceSpan] = {
            path[1:]: span
            for path, span in self.document.spans.items()
            if path[0] == "defaults" and path[1:]
        }
        if "budgets" in self.document.data:
            data["budget"] = self.document.data["budgets"]
            spans |= {
                ("budget", *path[1:]): span
                for path, span in self.document.spans.items()
                if path[0] == "budgets"
            }
        target = dict(data.get("target", {}))
        for axis, key in AXES:
            for taken, value in product.target:
                if taken == key:
                    index = self.table.matrix.axis(axis).index(value)
                    target[key] = Text(value, self.root)
                    span = self.document.span("matrix", axis, index)
                    spans["target", key] = span
                    spans.setdefault(("target",), span)
        if target:
            data["target"] = target
        return Member(
            inherited=Document(path=self.file, data=data, spans=spans),
            name=product.name if product.is_variant else None,
            build_root=self.root,
            settings=tuple(self.settings.items()),
        )


def _outside(path: Path) -> Diagnostic:
    return Diagnostic.of(
        "no-profiles",
        f"{path} is a link that leads outside of the workspace",
        where=SourceSpan(file=str(path)),
        found=f"it leads to {os.path.realpath(path)}",
        hint="put the file there, or add it to [workspace] exclude",
    )


def text_of(path: Path) -> str:
    """The text of a file of the workspace. Raises OSError, UnicodeDecodeError."""
    return files.read_text_file(path, most_bytes=files.MOST_PROFILE_BYTES)


def seen_from_here(path: str) -> Path:
    """An absolute path, relative to the current folder."""
    return Path(os.path.relpath(path))


def read_workspace(file: Path) -> Workspace:
    """Read and check `orchestrator.toml`; profiles are not read yet.

    Raises:
        ProfileError: Every problem of the file.
    """
    document = read_document(file, text_of=text_of, what="workspace")
    problems: list[Diagnostic] = []
    table = None
    try:
        table = WorkspaceTable.model_validate(document.data)
    except ValidationError as error:
        problems += explain(error.errors(include_url=False), document.span, WorkspaceTable)
    problems += _default_problems(document)
    if problems or table is None:
        raise ProfileError(sorted(problems, key=lambda p: p.where.line if p.where else 0))
    return Workspace(file=file, document=document, table=table)


NOT_INHERITED = {
    "schema": "each profile has its own",
    "name": "each profile has its own",
    "description": "each profile has its own",
    "extends": "name the tables of the base here instead",
    "matrix": "write [matrix] instead",
    "budget": "write [budgets] instead",
}
"""Keys of profiles that a workspace does not give, each with the remedy."""


def _default_problems(document: Document) -> Iterator[Diagnostic]:
    """What is wrong in `[defaults]`: it has some tables of a profile."""
    data = document.data.get("defaults", {})
    if not isinstance(data, dict):
        return  # reported already

    def span(*path: str | int) -> SourceSpan:
        return document.span("defaults", *path)

    for key in data.keys() & NOT_INHERITED.keys():
        yield Diagnostic(
            code="bad-value",
            message=f"{key_text(('defaults', key))} cannot be inherited",
            where=span(key),
            hint=NOT_INHERITED[key],
        )
    tables = {k: v for k, v in data.items() if k not in NOT_INHERITED}
    try:
        ProfileTable.model_validate(tables)
    except ValidationError as error:
        # A file that describes a board is read with the profile.
        wrong = [
            e
            for e in error.errors(include_url=False)
            if e["type"] != "missing"
            and not (e["loc"] == ("target", "board") and str(e["input"]).endswith(SUFFIX))
        ]
        yield from explain(wrong, span)


def matrix_problems(profile: Profile, workspace: Workspace) -> Iterator[Diagnostic]:
    """Values of the profile's `[matrix]` that the workspace does not have."""
    for axis, _ in AXES:
        known: Sequence[str] = workspace.table.matrix.axis(axis)
        for index, value in enumerate(profile.matrix.axis(axis)):
            if value not in known:
                place = workspace.document.span("matrix", axis)
                yield Diagnostic.of(
                    "bad-value",
                    f"{key_text(('matrix', axis))} has {shown(value)}, which"
                    " the workspace's matrix has not",
                    where=profile.span("matrix", axis, index),
                    expected=f"{', '.join(known) or 'nothing'} ({place})",
                    hint=did_you_mean(value, known)
                    or "add it to [matrix] of orchestrator.toml, or leave it out here",
                )


# JSON Schema of `orchestrator.toml`, generated from its tables.


def workspace_schema() -> dict[str, Any]:
    """JSON Schema (draft 2020-12) of `orchestrator.toml`."""
    schema = without_null(
        WorkspaceTable.model_json_schema(by_alias=True, schema_generator=SchemaGenerator)
    )
    for part in (schema, *schema["$defs"].values()):
        part.pop("title")  # the class name
    profile = json_schema()
    definitions: Mapping[str, Any] = profile["$defs"]
    schema["$defs"] = {**definitions, **schema["$defs"]}
    schema["properties"]["defaults"] = {
        "type": "object",
        "description": schema["properties"]["defaults"]["description"],
        "additionalProperties": False,
        "properties": {
            key: value for key, value in profile["properties"].items() if key not in NOT_INHERITED
        },
    }
    return {"$schema": SchemaGenerator.schema_dialect, "title": "Orchestrator workspace", **schema}


def workspace_schema_text() -> str:
    """Text of `schema/orchestrator.schema.json`."""
    return json.dumps(workspace_schema(), indent=2) + "\n"
