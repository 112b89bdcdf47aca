"""Read the kernels of `functions.yaml` texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import lru_cache

from yaml.nodes import MappingNode, Node, ScalarNode

from orchestrator.catalog.entry import Catalog, EntryReader, LibraryText
from orchestrator.catalog.nodes import YamlFile
from orchestrator.core.kernel import Kernel, KernelKey
from orchestrator.core.operator import OperatorName, OpSchema, parse_schema
from orchestrator.errors import Diagnostic, ProfileError

_NO_SCHEMAS: Mapping[OperatorName, OpSchema] = {}
# Chosen by hand: products of a workspace mostly have one list of libraries, some a few.
_MOST_KNOWN = 8


def read_catalog(
    libraries: Sequence[LibraryText], order: tuple[tuple[OperatorName, tuple[str, ...]], ...] = ()
) -> Catalog:
    """Read kernel libraries.

    An entry `- op: add.out` takes its schema from any of the libraries that has an
    entry `- func:` of that operator.

    Args:
        libraries: In the order in which they are tried.
        order: `Catalog.order`.

    Raises:
        ProfileError: Every problem of every file.
    """
    kernels = _read_once(tuple(libraries))
    names = [library.name for library in libraries]
    return Catalog(libraries=tuple(zip(names, kernels, strict=True)), order=order)


def read_library(
    text: str, *, library: str, file: str, schemas: Mapping[OperatorName, OpSchema] = _NO_SCHEMAS
) -> tuple[Kernel, ...]:
    """Read one kernel library.

    Args:
        text: Text of its `functions.yaml`.
        library: Its name, as the profile writes it.
        file: Path of the text, for messages and `Kernel.entry`.
        schemas: Schemas for entries that have only the operator's name.

    Returns:
        Its kernels in the order of the file.

    Raises:
        ProfileError: Every problem of the file.

    Source: ExecuTorch `docs/source/kernel-library-custom-aten-kernel.md` for the
    syntax; the keys from `sources` on are Orchestrator's.
    """
    return _read([LibraryText(name=library, file=file, text=text)], schemas)[0]


@lru_cache(maxsize=_MOST_KNOWN)
def _read_once(libraries: tuple[LibraryText, ...]) -> list[tuple[Kernel, ...]]:
    """Reads each text once, as all products of a workspace have them in common."""
    return _read(libraries, _NO_SCHEMAS)


def _read(
    libraries: Sequence[LibraryText], schemas: Mapping[OperatorName, OpSchema]
) -> list[tuple[Kernel, ...]]:
    files = [YamlFile(library.file, library.text) for library in libraries]
    entries = [_entries(file) for file in files]
    known = dict(schemas)
    for schema in (_schema(node) for nodes in entries for node in nodes):
        if schema is not None:
            # The first schema of an operator counts; `_clashes` reports those that differ.
            known.setdefault(schema.name, schema)
    kernels = []
    for library, file, nodes in zip(libraries, files, entries, strict=True):
        reader = EntryReader(file, library, known)
        kernels.append(tuple(k for node in nodes for k in reader.read(node)))
    problems = [problem for file in files for problem in file.problems]
    for file, of_library in zip(files, kernels, strict=True):
        problems += _clashes(file, of_library, known)
    if problems:
        raise ProfileError(problems)
    return kernels


def _entries(file: YamlFile) -> list[Node]:
    root = file.root()
    nodes = file.sequence(root, "a kernel library") if root is not None else None
    return nodes or []


def _schema(entry: Node) -> OpSchema | None:
    """Schema of an entry; None if it has none that can be read."""
    if not isinstance(entry, MappingNode):
        return None
    for key, value in entry.value:
        if key.value == "func" and isinstance(value, ScalarNode):
            with suppress(ValueError):  # the reader of the entry reports it
                return parse_schema(value.value)
    return None


def _clashes(
    file: YamlFile, kernels: Sequence[Kernel], schemas: Mapping[OperatorName, OpSchema]
) -> list[Diagnostic]:
    """Problems between entries: duplicate keys, different schemas of an operator."""
    problems = []
    first: dict[tuple[OperatorName, KernelKey | None], Kernel] = {}
    for kernel in kernels:
        for key in kernel.keys or (None,):
            other = first.setdefault((kernel.operator, key), kernel)
            if other is not kernel:
                problems.append(_duplicate(file, kernel, other, key))
    seen = set()
    for kernel in kernels:
        expected = schemas[kernel.operator]
        if kernel.entry not in seen and not _same_form(kernel.schema, expected):
            seen.add(kernel.entry)
            problems.append(
                Diagnostic.of(
                    "schema-conflict",
                    f"two schemas for {kernel.operator}",
                    where=file.span(_line(kernel.entry)),
                    found=kernel.schema.text,
                    expected=expected.text,
                    hint="give every library the schema the operator really has",
                )
            )
    return problems


def _duplicate(file: YamlFile, kernel: Kernel, first: Kernel, key: KernelKey | None) -> Diagnostic:
    what = f"kernel key {key}" if key else "a fallback kernel"
    return Diagnostic.of(
        "duplicate-kernel",
        f"{kernel.library} offers {what} of {kernel.operator} twice",
        where=file.span(_line(kernel.entry)),
        first=f"{first.function}, {first.entry}",
        again=f"{kernel.function}, {kernel.entry}",
        hint="remove one of the entries, or put it in a library of its own",
    )


def _line(entry: str) -> int:
    return int(entry.rpartition(":")[2])


def _same_form(a: OpSchema, b: OpSchema) -> bool:
    """Whether two schemas are the same for programs and the device."""
    return a is b or (a.signature == b.signature and _result_form(a) == _result_form(b))


def _result_form(schema: OpSchema) -> tuple[object, ...]:
    result = schema.result
    return (result.kind, result.optional) if result is not None else ()
