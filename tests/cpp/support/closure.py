"""Builds every kernel for the narrowest selections its declaration allows.

A kernel is asked for one call: with a dtype for each argument that takes it, where it
decides, and with a partner for the arguments that do not. What that selects, closure
included, comes from the stages that select for a product. Kernels of one library that
are asked for the same dtypes are linked with `tests/cpp/closure` to one program, which
knows what it was built for and replays the calls with known results.

    python -m tests.cpp.support.closure

builds by hand, in `build/closure-tests`, and prints the programs.
"""

from __future__ import annotations

import argparse
import hashlib
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final

from orchestrator.catalog import Catalog, LibraryText, read_catalog
from orchestrator.core.dtype import ALL, ScalarType
from orchestrator.core.kernel import TensorMeta
from orchestrator.core.operator import ArgKind
from orchestrator.emit.generate.tables import dtype_set, selected_headers
from orchestrator.selection.op_info import CallPattern, Origin, SelectedOperator, Selection
from orchestrator.selection.resolve import resolve
from orchestrator.shell.ninja import ninja_program
from tests.cpp.support.suite import INCLUDES, RUNTIME, WARNINGS
from tests.targets import EVERY_PAIR
from tests.tools import need_file, need_tool

if TYPE_CHECKING:
    from collections.abc import Iterable

    from orchestrator.core.kernel import Kernel
    from orchestrator.core.operator import Argument
    from orchestrator.selection.resolution import Binding, Resolution

ROOT: Final = Path(__file__).parents[3]
FOLDER: Final = ROOT / "build" / "closure-tests"
TESTS: Final = ROOT / "tests" / "cpp"
_S = ScalarType

MIXED: Final = (
    frozenset({_S.Byte, _S.Char, _S.Float}),
    frozenset({_S.Half, _S.BFloat16, _S.Double}),
)
"""Dtypes whose mixtures are computed in one that none of the arguments has."""

SINGLE: Final = (
    sorted(ALL)
    if EVERY_PAIR
    else (_S.Char, _S.Int, _S.Long, _S.Half, _S.Float, _S.ComplexFloat, _S.Bool)
)
"""Dtypes that are asked for alone: one of each kind, as kernels have one template for
those that differ in width or sign. All of them if everything is requested."""

_PARTNERS: Final = (_S.Float, _S.Char)
"""What an argument is given first that does not take the dtype asked for."""

_FLAGS: Final = ("-std=c++17", "-DORCH_COMPLEX_DOUBLE=1", "-O0", "-ffp-contract=off", *WARNINGS)
_TEST_SOURCES: Final = (
    TESTS / "closure" / "closure_test.cpp",
    TESTS / "closure" / "hand_made.cpp",
    TESTS / "support" / "doctest_main.cpp",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Library:
    """A kernel library.

    Args:
        name: Begins the names of its programs.
        folder: Of its sources.
        text: Its kernel list.
    """

    name: str
    folder: Path
    text: str

    @property
    def catalog(self) -> Catalog:
        """Its kernels, and no others."""
        file = str(self.folder / "functions.yaml")
        return read_catalog([LibraryText(name=self.name, file=file, text=self.text)])


def library(folder: Path) -> Library:
    """The library in a folder."""
    text = (folder / "functions.yaml").read_text(encoding="utf-8")
    return Library(name=folder.name, folder=folder, text=text)


def libraries() -> tuple[Library, ...]:
    """Every library of the project with kernels that differ by dtypes."""
    files = sorted((ROOT / "kernels").glob("*/functions.yaml"))
    found = (library(file.parent) for file in files)
    return tuple(one for one in found if _depends_on_dtypes(one))


def _depends_on_dtypes(one: Library) -> bool:
    """Whether a dtype decides about the code of some kernel."""
    return any(k.dtype_arguments for _, own in one.catalog.libraries for k in own)


def narrowest_call(kernel: Kernel, dtype: ScalarType) -> CallPattern:
    """A call in which everything that can be `dtype` is, and what cannot, a partner."""
    assert not kernel.keys, "needs calls of the keys it is specialised for"
    arguments = kernel.schema.arguments
    taken = dict(kernel.dtypes)
    tensors = []
    for position, argument in enumerate(arguments):
        if own := taken.get(argument.name):
            chosen = next((d for d in (dtype, *_PARTNERS) if d in own), min(own))
            tensors.append((position, TensorMeta(chosen, (0,))))
    kinds = [_kind(argument) for argument in arguments]
    result = kernel.schema.result
    if result is not None:
        kinds.append(_kind(result))
        if result.kind in (ArgKind.TENSOR, ArgKind.TENSOR_LIST):
            # The last out argument once more.
            tensors.append((len(arguments), tensors[-1][1]))
    return CallPattern(kinds="".join(kinds), tensors=tuple(tensors))


def _kind(argument: Argument) -> str:
    """Letter of what a call has for an argument."""
    return str(ArgKind.INT if argument.kind is ArgKind.SCALAR else argument.kind)


def asked(kernel: Kernel, dtypes: frozenset[ScalarType]) -> frozenset[ScalarType]:
    """Those of `dtypes` that an argument takes whose dtype decides."""
    taken = dict(kernel.dtypes)
    every = frozenset[ScalarType]().union(*(taken[a] for a in kernel.dtype_arguments))
    return dtypes & every & ALL


def narrow_resolution(
    catalog: Catalog, dtypes: frozenset[ScalarType]
) -> tuple[Resolution, tuple[Kernel, ...]]:
    """What a build selects for the narrowest calls of these dtypes."""
    kernels = tuple(k for _, offered in catalog.libraries for k in offered)
    origin = (Origin(source="narrow", method="forward", instruction=0),)
    selection = Selection(
        operators=tuple(
            SelectedOperator(
                name=kernel.operator,
                patterns=tuple(
                    (call, origin) for call in sorted({narrowest_call(kernel, d) for d in mine})
                ),
                origins=origin,
            )
            for kernel in sorted(kernels, key=lambda k: str(k.operator))
            if (mine := asked(kernel, dtypes))
        )
    )
    resolution = resolve(selection, catalog, every_dtype=False, span_of=lambda _: None)
    return resolution, kernels


def build(found: Iterable[Library]) -> dict[str, Path]:
    """Programs by name, `portable-Float`; compiled only where something changed.

    Skips or fails the test if a tool is not installed.
    """
    compiler = need_tool("clang++-14", "clang++")
    need_file("/usr/include/doctest/doctest.h", "doctest-dev")
    ninja = _Ninja(compiler)
    shared = [
        ninja.object(source)
        for source in (*_TEST_SOURCES, *(ROOT / f"runtime/src/{n}.cpp" for n in RUNTIME))
    ]
    programs = {}
    for each in found:
        catalog = each.catalog
        for dtypes in (*(frozenset({d}) for d in SINGLE), *MIXED):
            resolution, kernels = narrow_resolution(catalog, dtypes)
            if not resolution.operators:
                continue
            name = "-".join((each.name, *(d.name for d in sorted(dtypes))))
            own = _objects(ninja, each, resolution, kernels)
            table = FOLDER / "tables" / f"{name}.cpp"
            _write_if_changed(table, _table(resolution, dtypes))
            ninja.link(name, [*shared, *own, ninja.object(table)])
            programs[name] = FOLDER / name
    _write_if_changed(FOLDER / "build.ninja", ninja.text())
    done = subprocess.run(
        [str(ninja_program()), "-j2", "--quiet"],
        cwd=FOLDER,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return programs


def _objects(
    ninja: _Ninja, library: Library, resolution: Resolution, kernels: tuple[Kernel, ...]
) -> list[str]:
    """Objects of the kernels, shared by programs that select the same dtypes."""
    headers = {
        PurePosixPath(header.path).stem: header.text
        for header in selected_headers("For tests.", resolution, kernels)
    }
    objects = []
    for source in (s for _, sources in resolution.sources for s in sources):
        stem = PurePosixPath(source).stem
        digest = hashlib.sha256(headers[stem].encode()).hexdigest()[:16]
        include = FOLDER / "selected" / library.name / digest
        _write_if_changed(include / "orch_selected" / f"{stem}.h", headers[stem])
        objects.append(ninja.object(library.folder / source, include))
    return objects


def _table(resolution: Resolution, dtypes: frozenset[ScalarType]) -> str:
    """Text of the source that tells a program what its kernels were built for."""
    bindings = [b for operator in resolution.operators for b in operator.bindings]
    declarations, rows = "", ""
    for binding in bindings:
        namespace, _, function = binding.kernel.function.rpartition("::")
        prototype = f"orch::Error {function}(const orch::Args&);"
        declarations += f"namespace {namespace} {{\n{prototype}\n}}\n"
        rows += _row(binding, dtypes)
    return (
        f'#include "closure/narrow.h"\n\n{declarations}\n'
        "namespace orch::test {\n\n"
        f"static const Narrow kTable[] = {{\n{rows}}};\n"
        "extern const Span<const Narrow> kNarrow = kTable;\n\n"
        "}  // namespace orch::test\n"
    )


def _row(binding: Binding, dtypes: frozenset[ScalarType]) -> str:
    kernel = binding.kernel
    deciding = 0
    selected = set()
    for position, argument in enumerate(kernel.schema.arguments):
        if argument.name in kernel.dtype_arguments:
            deciding |= 1 << position
            for dtype in asked(kernel, dtypes):
                call = narrowest_call(kernel, dtype)
                selected.add(dict(call.tensors)[position].dtype)
    sets = (asked(kernel, dtypes), selected, binding.dtypes)
    fields = ",\n   ".join(dtype_set(s) for s in sets)
    return f'  {{"{kernel.operator}", {kernel.function}, {deciding:#x}U,\n   {fields}}},\n'


class _Ninja:
    """The text of a build.ninja."""

    def __init__(self, compiler: str) -> None:
        flags = shlex.join([*_FLAGS, *(f"-I{ROOT / i}" for i in INCLUDES)])
        self._objects: dict[str, None] = {}
        self._lines = [
            "rule cxx",
            f"  command = {compiler} {flags} $more -MMD -MF $out.d -c $in -o $out",
            "  depfile = $out.d",
            "  deps = gcc",
            "rule link",
            f"  command = {compiler} $in -o $out",
        ]

    def object(self, source: Path, include: Path | None = None) -> str:
        """Path of the object of a source; the same for the same headers."""
        more = f"-I{include}" if include else ""
        digest = hashlib.sha256(f"{source} {more}".encode()).hexdigest()[:16]
        name = f"obj/{source.stem}.{digest}.o"
        if name not in self._objects:
            self._objects[name] = None
            self._lines += [f"build {name}: cxx {source}", f"  more = {more}"]
        return name

    def link(self, name: str, objects: list[str]) -> None:
        """Link a program."""
        self._lines.append(f"build {name}: link {' '.join(objects)}")

    def text(self) -> str:
        """All of it."""
        return "\n".join(self._lines) + "\n"


def _write_if_changed(path: Path, text: str) -> None:
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0]).parse_args()
    for program in build(libraries()).values():
        sys.stdout.write(f"{program}\n")
