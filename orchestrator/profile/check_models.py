"""`[[models]]`: names against each other, files, and what goes with what."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from orchestrator.errors import Diagnostic
from orchestrator.profile.check_lowering import check_quantize, check_vela
from orchestrator.profile.explain import key_text
from orchestrator.profile.fields import (
    is_model_name,
    is_pattern,
    near_name,
)
from orchestrator.profile.parsed import array_of, missing_file, table_of, text_of
from orchestrator.profile.source_fields import is_model_path, split_callable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from orchestrator.profile.checked import KeyPath
    from orchestrator.profile.document import Document

_OF_SOURCES = ("lowering", "quantize", "vela", "reads")


def check_models(
    document: Document, is_file: Callable[[Path], bool]
) -> Iterator[Diagnostic]:
    """Every problem of `[[models]]` that single values do not show.

    Args:
        document: The profile, merged with its base.
        is_file: Whether a path is a file; may raise `OSError`.
    """
    first_with: dict[str, KeyPath] = {}
    for index, model in enumerate(array_of(document, "models")):
        if not isinstance(model, dict):
            continue
        yield from _check_origin(document, index)
        yield from _check_limit(document, index)
        yield from _check_files(document, index, is_file)
        name = text_of(document, "models", index, "name")
        where: KeyPath = ("models", index, "name")
        path = _path(document, index)
        if path is not None and is_model_path(path) and "name" not in model:
            where = ("models", index, "path" if "path" in model else "source")
            name = PurePosixPath(path).stem
            if not is_model_name(name):
                yield _unusable_stem(document, where, name)
        if name is None:
            continue
        if name in first_with:
            yield _duplicate(document, where, name, first_with[name])
        else:
            first_with[name] = where


def _path(document: Document, index: int) -> str | None:
    """The file that a model comes from, as written; None if there is no text."""
    path = text_of(document, "models", index, "path")
    source = text_of(document, "models", index, "source")
    if path is None and source is not None:
        path, name = split_callable(source)
        # Anything else the validator reports.
        return path if path.endswith(".py") and name.isidentifier() else None
    return path


def _check_files(
    document: Document, index: int, is_file: Callable[[Path], bool]
) -> Iterator[Diagnostic]:
    model = ("models", index)
    if "path" in table_of(document, *model):
        yield from missing_file(
            document,
            (*model, "path"),
            is_file,
            what="model file",
            expected="an exported program, a .pte file",
        )
    elif (path := _path(document, index)) is not None:
        yield from missing_file(
            document,
            (*model, "source"),
            is_file,
            what="model file",
            expected="Python code of the model",
            written=path,
        )
    yield from missing_file(
        document,
        (*model, "vela", "config"),
        is_file,
        what="configuration of Vela",
        expected="an .ini file with its sections",
    )
    for key, what, expected in (
        ("data", "data file", "constants of the program, a .ptd file"),
        ("reads", "file", "what the code of the model reads"),
    ):
        for at, value in enumerate(array_of(document, *model, key)):
            if isinstance(value, str) and not (key == "reads" and is_pattern(value)):
                yield from missing_file(
                    document,
                    (*model, key, at),
                    is_file,
                    what=what,
                    expected=expected,
                )


def _check_origin(document: Document, index: int) -> Iterator[Diagnostic]:
    """A program or code, with the keys that belong to it."""
    model = table_of(document, "models", index)
    if "path" not in model and "source" not in model:
        yield Diagnostic(
            code="missing-key",
            message='the key "path" is missing in [[models]]',
            where=document.span("models", index),
            notes=(("expected", "an exported program, or `source`, the code of one"),),
            hint='add path = "../models/vww_int8.pte"',
        )
        return
    if "path" in model and "source" in model:
        yield Diagnostic(
            code="bad-choice",
            message=f"{key_text(('models', index))} has both path and source",
            where=document.span("models", index, "source"),
            notes=(("expected", "a program, or the code that it is made of"),),
            hint="leave one of them out",
        )
    if "source" not in model:
        for key in _OF_SOURCES:
            if key in model:
                yield Diagnostic(
                    code="bad-choice",
                    message=f"{key_text(('models', index, key))} is for models with"
                    " `source`",
                    where=document.span("models", index, key),
                    notes=(("found", "a program, which is lowered already"),),
                    hint=f"leave {key} out, or name the code of the model",
                )
        return
    yield from check_quantize(document, index)
    yield from check_vela(document, index)


def _check_limit(document: Document, index: int) -> Iterator[Diagnostic]:
    model = table_of(document, "models", index)
    if "max_instructions" in model and model.get("load") == "prelinked":
        yield Diagnostic(
            code="bad-choice",
            message=f"{key_text(('models', index, 'max_instructions'))} requires"
            ' load = "pte"',
            where=document.span("models", index, "max_instructions"),
            notes=(("found", "a prelinked model, which no other program replaces"),),
            hint="leave max_instructions out",
        )


def _unusable_stem(document: Document, where: KeyPath, stem: str) -> Diagnostic:
    return Diagnostic(
        code="missing-key",
        message=f'{key_text(where[:2])} needs a name, its file name "{stem}" is none',
        where=document.span(*where),
        notes=(("expected", "a small letter, then small letters, digits or _"),),
        hint=f'add name = "{near_name(stem, "_") or "model"}"',
    )


def _duplicate(
    document: Document, where: KeyPath, name: str, first: KeyPath
) -> Diagnostic:
    verb = "write" if where[-1] == "name" else "add"
    return Diagnostic(
        code="duplicate-model",
        message=f'two models are named "{name}"',
        where=document.span(*where),
        notes=(
            (
                "found",
                f'{key_text(first[:2])} is "{name}" too, {document.span(*first)}',
            ),
            ("expected", "a name of its own for each model"),
        ),
        hint=f'{verb} name = "{name}_2", or whatever tells them apart',
    )
