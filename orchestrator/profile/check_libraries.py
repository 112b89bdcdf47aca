"""Kernel libraries of a profile against each other and against those that exist."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from orchestrator.errors import Diagnostic, did_you_mean
from orchestrator.profile.explain import key_text
from orchestrator.profile.fields import (
    is_model_name,
    is_pattern,
    near_name,
    shown,
)
from orchestrator.profile.lowering import (
    LOWERINGS,
    PORTABLE,
    kernel_libraries,
    needed_library,
)
from orchestrator.profile.parsed import array_of, missing_file, table_of, text_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping
    from pathlib import Path

    from orchestrator.profile.checked import KeyPath
    from orchestrator.profile.document import Document

RESERVED = ("util",)
"""Names no library may have: folders beside the libraries."""
IMPLICIT = ("prim_ops",)
"""Tried last without being named: programs call their operators unasked."""


def check_libraries(
    document: Document,
    shipped: Collection[str],
    is_file: Callable[[Path], bool],
) -> Iterator[Diagnostic]:
    """Every problem of `[kernels]` that single values do not show.

    Args:
        document: The profile, merged with its base.
        shipped: Names of the kernel libraries that exist without the profile.
        is_file: Whether a path is a file; may raise `OSError`.
    """
    custom = custom_names(document)
    yield from _check_custom(document, custom, shipped, is_file)
    known = sorted({*shipped, *custom.values()})
    yield from _check_names(document, ("kernels", "libraries"), known)
    yield from _check_lowerings(document, custom)
    listed = array_of(document, "kernels", "libraries") or default_libraries(document)
    used = {*custom.values(), *(n for n in listed if isinstance(n, str)), *IMPLICIT}
    for operator in table_of(document, "kernels", "operators"):
        where = ("kernels", "operators", operator)
        yield from _check_names(document, where, known)
        for index, name in enumerate(array_of(document, *where)):
            if name in known and name not in used:
                yield _unused(document, (*where, index), str(name))


def default_libraries(document: Document) -> tuple[str, ...]:
    """Libraries that the models call, in the order they are tried."""
    chosen = [
        kernel_libraries(_lowering(document, index))
        for index in range(len(array_of(document, "models")))
    ]
    # Each is a tail of the longest.
    return max(chosen, key=len, default=kernel_libraries(None))


def _lowering(document: Document, index: int) -> str | None:
    """What a model is lowered for; None if it is not."""
    table = table_of(document, "models", index)
    if "source" not in table:
        return None
    return text_of(document, "models", index, "lowering") or PORTABLE


def _check_lowerings(
    document: Document, custom: Mapping[int, str]
) -> Iterator[Diagnostic]:
    """Models that are quantized for kernels of a library that is left out."""
    listed = [n for n in array_of(document, "kernels", "libraries") if n]
    # Others may have kernels for the same operators.
    if not listed or custom or table_of(document, "kernels", "operators"):
        return
    for index in range(len(array_of(document, "models"))):
        lowering = _lowering(document, index)
        if lowering not in LOWERINGS:
            continue
        library = needed_library(lowering)
        is_quantized = "quantize" in table_of(document, "models", index)
        if not is_quantized or not library or library in listed:
            continue
        every = [
            *(n for n in kernel_libraries(lowering) if n not in listed),
            *map(str, listed),
        ]
        yield Diagnostic(
            code="missing-library",
            message=f"a model quantized for {lowering} needs the kernel library"
            f" {shown(library)}",
            where=document.span("kernels", "libraries"),
            notes=(("asked by", str(document.span("models", index))),),
            hint=f"write libraries = [{', '.join(map(shown, every))}], or leave it out",
        )
        return


def _unused(document: Document, where: KeyPath, name: str) -> Diagnostic:
    return Diagnostic(
        code="unused-library",
        message=f"the profile does not use the kernel library {shown(name)}",
        where=document.span(*where),
        notes=(("expected", "a library of kernels.libraries or a custom one"),),
        hint=f"add {shown(name)} to kernels.libraries",
    )


def custom_names(document: Document) -> Mapping[int, str]:
    """Names of custom libraries by their index; one that has no name is left out."""
    names = {}
    for index in range(len(array_of(document, "kernels", "custom"))):
        table = ("kernels", "custom", index)
        name = text_of(document, *table, "name")
        if name is None and "name" not in table_of(document, *table):
            functions = text_of(document, *table, "functions") or ""
            name = default_name(functions)
        if name:
            names[index] = name
    return names


def default_name(functions: str) -> str:
    """Name of a library whose functions.yaml is there; "" if its folder gives none."""
    name = PurePosixPath(functions).parent.name
    return name if is_model_name(name) else ""


def _check_custom(
    document: Document,
    names: Mapping[int, str],
    shipped: Collection[str],
    is_file: Callable[[Path], bool],
) -> Iterator[Diagnostic]:
    first: dict[str, int] = {}
    for index, table in enumerate(array_of(document, "kernels", "custom")):
        if not isinstance(table, dict):
            continue
        where: KeyPath = ("kernels", "custom", index)
        yield from missing_file(
            document,
            (*where, "functions"),
            is_file,
            what="list of kernels",
            expected="a functions.yaml",
        )
        for at, source in enumerate(array_of(document, *where, "sources")):
            if isinstance(source, str) and not is_pattern(source):
                yield from missing_file(
                    document,
                    (*where, "sources", at),
                    is_file,
                    what="source",
                    expected="a source of the kernel library",
                )
        name = names.get(index)
        if name is None:
            if "name" not in table and "functions" in table:
                yield _nameless(document, where)
        elif name in shipped or name in RESERVED:
            yield _duplicate(document, where, name, "Orchestrator has one itself")
        elif name in first:
            other = ("kernels", "custom", first[name])
            found = f"{key_text(other)} is too, {document.span(*other, 'functions')}"
            yield _duplicate(document, where, name, found)
        else:
            first[name] = index


def _nameless(document: Document, where: KeyPath) -> Diagnostic:
    functions = text_of(document, *where, "functions") or ""
    folder = PurePosixPath(functions).parent.name
    return Diagnostic(
        code="missing-key",
        message=f"{key_text(where)} needs a name, its folder {shown(folder)} is none",
        where=document.span(*where, "functions"),
        notes=(("expected", "a small letter, then small letters, digits or _"),),
        hint=f'add name = "{near_name(folder, "_") or "my_ops"}"',
    )


def _duplicate(document: Document, where: KeyPath, name: str, found: str) -> Diagnostic:
    return Diagnostic(
        code="duplicate-library",
        message=f"two kernel libraries are named {shown(name)}",
        where=document.span(*where, "name")
        if text_of(document, *where, "name")
        else document.span(*where, "functions"),
        notes=(("found", found), ("expected", "a name of its own for each library")),
        hint=f'write name = "my_{name}", or whatever tells them apart',
    )


def _check_names(
    document: Document, key_path: KeyPath, known: Collection[str]
) -> Iterator[Diagnostic]:
    """Libraries that a key lists: each once, and one that there is."""
    names = ", ".join(known)
    seen: dict[str, int] = {}
    for index, library in enumerate(array_of(document, *key_path)):
        if not isinstance(library, str):
            continue
        where = document.span(*key_path, index)
        if library in seen:
            yield Diagnostic(
                code="duplicate-library",
                message=f"the kernel library {shown(library)} is named twice",
                where=where,
                notes=(
                    ("found", f"items {seen[library]} and {index}"),
                    ("expected", "each library once, in the order of preference"),
                ),
                hint="remove the second",
            )
        elif library not in known:
            yield Diagnostic(
                code="unknown-library",
                message=f"there is no kernel library {shown(library)}",
                where=where,
                notes=(("expected", names),),
                hint=did_you_mean(library, known)
                or f"choose {names.replace(', ', ' or ')}, or add it to"
                " [[kernels.custom]]",
            )
        seen.setdefault(library, index)
