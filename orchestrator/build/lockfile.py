"""The lock file: the inputs and outputs of a build, one fact per line."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import MISSING, dataclass, fields
from functools import cache
from typing import Any

import tomli
from pydantic import BaseModel, ConfigDict, StrictStr, ValidationError, create_model

import orchestrator
from orchestrator.emit.artifact import Artifact
from orchestrator.errors import Diagnostic, LockError, SourceSpan

# Raised only where an older version would read a new lock wrongly; tables are added
# without (`parse_lock`).
SCHEMA = 1

Facts = tuple[tuple[str, str], ...]
"""Sorted (name, value) pairs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lock:
    """All facts of one build.

    Args:
        profile: Name, file and digest of the profile (and of its base), and what it
            has from a workspace.
        models: By name: digest of the program.
        exports: For models given as Python: code, lowering, and digests of
            every file that was read.
        sources: By path relative to the folder of runtime/ and kernels/: digests of
            every source, header and functions.yaml that was read.
        generated: By path: digests of the generated files.
        target: Core, ISA, board and optimization.
        toolchain: Name, version, flags and digests of its programs.
        python: Versions of the Python distributions that affect the outputs.
        outputs: By path: "sha256:<digest> <size in bytes>".
        firmware: What it offers to programs installed later: `core/firmware.py`.
        memory: Arenas, and the scratch memory that they were planned with:
            `core/contract.py`.
        size: Flash, RAM and stack in bytes, so that a change of the lock shows them.
    """

    profile: Facts
    models: Facts
    sources: Facts
    generated: Facts
    target: Facts
    toolchain: Facts
    python: Facts
    outputs: Facts
    exports: Facts = ()
    firmware: Facts = ()
    memory: Facts = ()
    size: Facts = ()

    def inputs(self) -> Lock:
        """The lock without outputs of the build: what must match before it starts."""
        return Lock(
            **{f.name: getattr(self, f.name) for f in fields(self)}
            # What `--frozen` cannot know before it builds.
            | dict.fromkeys(("outputs", "generated", "firmware", "memory", "size"), ())
        )


def facts(pairs: Iterable[tuple[str, str]]) -> Facts:
    """Pairs in canonical order."""
    return tuple(sorted(pairs))


def output_facts(artifacts: Iterable[Artifact]) -> Facts:
    """Facts of output files."""
    return facts((a.path, f"sha256:{a.sha256} {a.size_bytes}") for a in artifacts)


def digest_of(fact: str) -> str:
    """The digest in the fact of an output."""
    return fact.partition(" ")[0].removeprefix("sha256:")


def lock_text(lock: Lock) -> str:
    """Canonical text: equal locks give equal bytes."""
    lines = ["# Written by Orchestrator: commit it, do not edit it.", f"schema = {SCHEMA}"]
    for field in fields(lock):
        # Locks without models given as Python stay what they were before there were
        # any.
        if field.name == "exports" and not lock.exports:
            continue
        lines += ["", f"[{field.name}]"]
        lines += [
            f"{_quoted(name)} = {_quoted(value)}" for name, value in getattr(lock, field.name)
        ]
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    """A TOML basic string; JSON uses the same escapes."""
    # JSON does not escape DEL, which TOML requires.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def parse_lock(text: str, *, file: str) -> Lock:
    """Read a lock.

    Raises:
        LockError: It is damaged (`bad-lock`), or a newer Orchestrator made it
            (`newer-lock`).
    """
    try:
        data = tomli.loads(text)
    # tomli follows nested arrays by recursion: a file of brackets is damaged, not a
    # crash.
    except (ValueError, RecursionError) as error:
        raise damaged(file, str(error)) from error
    schema = data.pop("schema", None)
    if type(schema) is int and schema > SCHEMA:
        raise _newer(file, f"schema {schema}", f"schema {SCHEMA}")
    if type(schema) is not int or schema != SCHEMA:
        raise damaged(file, f"schema is {schema!r}, not {SCHEMA}")
    try:
        document = _layout().model_validate(data)
    except ValidationError as error:
        # Tables may be added without a new schema version, so a failed validation may
        # only mean that a newer Orchestrator wrote the file.
        python = data.get("python")
        maker = python.get("orchestrator") if isinstance(python, dict) else None
        # Damaged and newer have different remedies: one is restored, the other needs an
        # update of Orchestrator.
        if _release(maker) > _release(orchestrator.__version__):
            version = f"Orchestrator {orchestrator.__version__}"
            raise _newer(file, f"Orchestrator {maker}", version) from error
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise damaged(file, f"{place}: {first['msg']}") from error
    return Lock(**{f.name: facts(getattr(document, f.name).items()) for f in fields(Lock)})


@cache
def _layout() -> type[BaseModel]:
    """The tables of the file; those with a default are missing in locks of earlier versions."""
    tables: dict[str, Any] = {
        f.name: (dict[StrictStr, StrictStr], ... if f.default is MISSING else {})
        for f in fields(Lock)
    }
    # Made when a lock is read: a model of pydantic takes time to make that other
    # commands save.
    return create_model("Lock", __config__=ConfigDict(extra="forbid", frozen=True), **tables)


def _release(version: object) -> tuple[int, ...]:
    """The numbers of a version, to compare; empty if it is not a release."""
    found = re.match(r"\d+(\.\d+)*", version) if isinstance(version, str) else None
    return tuple(map(int, found[0].split("."))) if found else ()


def damaged(file: str, found: str) -> LockError:
    """The error for a lock that cannot be read."""
    return LockError.of(
        "bad-lock",
        "the lock file is damaged, or it is not a lock file",
        where=SourceSpan(file=file),
        found=found,
        hint="restore it; if it was a lock, remove it and build again; if not, name another"
        " file with --lock",
    )


def _newer(file: str, found: str, expected: str) -> LockError:
    """The error for a lock of a newer version."""
    return LockError.of(
        "newer-lock",
        "the lock file was made by a newer Orchestrator",
        where=SourceSpan(file=file),
        found=found,
        expected=f"{expected} or older",
        hint="update Orchestrator; to go back to this version, remove the lock and build again",
    )


def differences(old: Lock, new: Lock) -> tuple[str, ...]:
    """The differences, a line each: `sources: kernels/portable/op_add.cpp changed`."""
    lines: list[str] = []
    for field in fields(Lock):
        before = dict(getattr(old, field.name))
        after = dict(getattr(new, field.name))
        for name in sorted(before.keys() | after.keys()):
            if name not in after:
                lines.append(f"{field.name}: {name} is gone")
            elif name not in before:
                lines.append(f"{field.name}: {name} is new")
            elif before[name] != after[name]:
                change = f"{before[name]} -> {after[name]}"
                shown = f" ({change})" if len(change) <= _MAX_SHOWN else ""
                lines.append(f"{field.name}: {name} changed{shown}")
    return tuple(lines)


# Characters; two versions fit, two digests do not, of which nobody compares the digits.
_MAX_SHOWN = 60


def stale(file: str, lines: tuple[str, ...]) -> LockError:
    """The error for a lock that does not match."""
    shown = lines[:_MOST_LINES]
    rest = len(lines) - len(shown)
    notes = [("changed", line) for line in shown]
    if rest:
        notes.append(("and", f"{rest} more"))
    return LockError(
        Diagnostic(
            code="stale-lock",
            message="the lock file does not match",
            where=SourceSpan(file=file),
            notes=tuple(notes),
            hint="`orchestrator lock` updates it; commit the result",
        )
    )


# Chosen by hand: a new compiler changes every output, and the first lines say so.
_MOST_LINES = 12
