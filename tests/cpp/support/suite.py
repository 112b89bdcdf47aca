"""Builds the C++ tests under sanitizers, in `build/cpp-tests`.

`all_dtypes` holds all tests; its kernels, with every dtype, are those of `native.py`.
`float_only` is a build with a single dtype; the headers that select dtypes come from
the stages that make those of a product. `compact_1` and `compact_2` have no loader and
no kernels, but compact tables with indices of one byte and of two. `proved` has some
kernels as products get them whose calls the build has proved.
"""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final

from orchestrator.catalog import LibraryText, read_catalog
from orchestrator.core.dtype import ScalarType
from orchestrator.emit.generate.tables import selected_headers
from orchestrator.selection.op_info import SelectedOperator, Selection
from orchestrator.selection.resolve import resolve
from orchestrator.shell.ninja import ninja_program
from tests.cpp.support import native
from tests.together import only_one
from tests.tools import need_file, need_tool

if TYPE_CHECKING:
    from collections.abc import Iterable

    from orchestrator.core.kernel import Kernel

ROOT: Final = Path(__file__).parents[3]
FOLDER: Final = ROOT / "build" / "cpp-tests"
TESTS: Final = ROOT / "tests" / "cpp"
_KERNELS: Final = ROOT / "kernels"
_LIBRARIES: Final = {
    "all_dtypes": tuple(_KERNELS / n for n in ("cortex_m", "portable", "prim_ops", "quantized")),
    # Kernels of quantized and of cortex_m have no single dtype.
    "float_only": tuple(_KERNELS / n for n in ("portable", "prim_ops")),
}
"""Kernel libraries of each program."""

WARNINGS: Final = ("-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Wundef", "-Werror")
_FLAGS: Final = (
    "-std=c++17",
    "-DORCH_COMPLEX_DOUBLE=1",
    "-DORCH_EXTERNAL_DATA=1",
    "-ffp-contract=off",
    "-DORCH_DELEGATES=1",
    *native.SANITIZED,
    *WARNINGS,
)
_FAST_TO_COMPILE: Final = "-O0 -fno-sanitize=fuzzer-no-link -DDOCTEST_CONFIG_SUPER_FAST_ASSERTS"
INCLUDES: Final = ("runtime/include", "runtime/src", "kernels", "tests/cpp")
# What kernels and their tests need of the runtime, and what tests of loader and
# executor need besides.
RUNTIME: Final = ("error", "math", "math_double", "random", "tensor")
_LOADER: Final = (
    *(ROOT / f"runtime/src/{n}.cpp" for n in ("executor", "find_kernel", "integrity")),
    *(ROOT / f"runtime/src/load_{n}.cpp" for n in ("delegates", "method", "values")),
    *(ROOT / f"runtime/src/{n}.cpp" for n in ("caller", "lists", "model", "program", "together")),
    *(TESTS / f"support/{n}.cpp" for n in ("method_blocks", "program_builder")),
)


GENERATED: Final = FOLDER / "gen"
"""Headers with declarations of all kernels."""
_HEAD: Final = '#pragma once\n#include "orch/kernel.h"'

_COMPACT: Final = {f"compact_{n}": n for n in (1, 2)}
"""Bytes of a value index, by program."""
_COMPACT_RUNTIME: Final = ("error", "executor", "integrity", "model", "tensor")


_PROVED: Final = (
    *(
        _KERNELS / f"portable/op_{name}.cpp"
        for name in (
            *("div", "embedding", "gather", "index", "index_put", "index_select"),
            *("masked_scatter", "masked_select", "scatter_add"),
        )
    ),
    _KERNELS / "cortex_m/op_pad.cpp",
    _KERNELS / "prim_ops/op_scalar_compare.cpp",
)
"""Kernels of `proved`: they check items, or choose by what others check."""


def build() -> dict[str, Path]:
    """The programs by name; compiled again only where something changed.

    Skips or fails the test if a tool is not installed.
    """
    compiler = need_tool("clang++-14", "clang++")
    ninja = str(ninja_program())
    need_file("/usr/include/doctest/doctest.h", "doctest-dev")
    sources = {
        "all_dtypes": [*_LOADER, *sorted(TESTS.glob("*_test.cpp"))],
        "float_only": _tests("float_only"),
    }
    every = native.kernel_objects()
    with only_one(FOLDER):
        _write_declarations()
        kernels = {"float_only": _write_headers("float_only", ScalarType.Float)}
        rules = _ninja(compiler, sources, kernels, every)
        _write_if_changed(FOLDER / "build.ninja", rules)
        done = subprocess.run(
            [ninja, "-j2", "--quiet"], cwd=FOLDER, capture_output=True, text=True, check=False
        )
    assert done.returncode == 0, done.stdout + done.stderr
    return {name: FOLDER / name / "run" for name in (*sources, *_COMPACT, "proved")}


def _write_declarations() -> None:
    """`support/kernels.h` declares every kernel, `support/operators.h` lists them."""
    declared, tables = [_HEAD], [_HEAD, "#include <map>", "#include <string>", ""]
    tables += ['#include "support/kernels.h"', "", "namespace orch::test {"]
    for folder in _LIBRARIES["all_dtypes"]:
        text = (folder / "functions.yaml").read_text(encoding="utf-8")
        library = LibraryText(name=folder.name, file=folder.name, text=text)
        ((_, kernels),) = read_catalog([library]).libraries
        names = sorted({k.function.rpartition("::")[2] for k in kernels})
        declared += [f"namespace orch::{folder.name} {{"]
        declared += [f"Error {name}(const Args& args);" for name in names]
        declared += ["}"]
        tables += [f"inline std::map<std::string, KernelFn> {folder.name}_kernels() {{"]
        tables += ["  return {"]
        tables += [f'    {{"{k.operator}", {k.function}}},' for k in kernels]
        tables += ["  };", "}"]
    tables += ["inline std::map<std::string, KernelFn> all_kernels() {"]
    tables += ["  std::map<std::string, KernelFn> all;"]
    for folder in _LIBRARIES["all_dtypes"]:
        tables += [f"  all.merge({folder.name}_kernels());"]
    tables += ["  return all;", "}"]
    tables += ["}  // namespace orch::test"]
    for name, lines in (("kernels", declared), ("operators", tables)):
        text = "\n".join(lines) + "\n"
        _write_if_changed(GENERATED / "support" / f"{name}.h", text)


def _write_headers(program: str, only: ScalarType) -> list[Path]:
    """`orch_selected/*.h` with one dtype.

    Returns:
        Sources of the kernels that have the dtype and that tests of the program name.
    """
    tests = "".join(path.read_text(encoding="utf-8") for path in _tests(program))
    words = set(re.findall(r"\w+", tests))
    texts = []
    for folder in _LIBRARIES[program]:
        file = folder / "functions.yaml"
        text = file.read_text(encoding="utf-8")
        texts.append(LibraryText(name=folder.name, file=str(file), text=text))
    catalog = read_catalog(texts)
    kernels = tuple(k for _, offered in catalog.libraries for k in offered)
    dtypes = (only,)
    selection = Selection(
        operators=tuple(
            SelectedOperator(name=name, dtypes=dtypes)
            for name in sorted(
                {
                    k.operator
                    for k in kernels
                    if _takes(k, dtypes) and k.function.rpartition("::")[2] in words
                }
            )
        )
    )
    resolution = resolve(selection, catalog, every_dtype=False, span_of=lambda _: None)
    for header in selected_headers("For tests.", resolution, kernels):
        path = PurePosixPath(header.path)
        library = _selected(program) / path.parts[-3]
        _write_if_changed(library / "orch_selected" / path.name, header.text)
    return sorted(_KERNELS / library / s for library, ss in resolution.sources for s in ss)


def _takes(kernel: Kernel, dtypes: tuple[ScalarType, ...]) -> bool:
    """Whether some deciding argument takes each dtype, or none decides."""
    taken = dict(kernel.dtypes)
    deciding = [taken[name] for name in kernel.dtype_arguments]
    return not deciding or all(any(d in own for own in deciding) for d in dtypes)


def _selected(program: str) -> Path:
    """Where the headers are that select the dtypes of a program, by library."""
    return FOLDER / program / "selected"


def _ninja(
    compiler: str, sources: dict[str, list[Path]], kernels: dict[str, list[Path]], every: list[Path]
) -> str:
    """Text of build.ninja."""
    includes = [f"-I{path}" for path in (GENERATED, *(ROOT / i for i in INCLUDES))]
    flags = shlex.join([*_FLAGS, *includes])
    lines = [
        "rule cxx",
        f"  command = {compiler} {flags} $level $more -MMD -MF $out.d -c $in -o $out",
        "  depfile = $out.d",
        "  deps = gcc",
        "  description = $in",
        "rule link",
        f"  command = {compiler} -fsanitize={native.SANITIZERS} $in -o $out",
        "  description = $out",
    ]
    runtime = [ROOT / "runtime" / "src" / f"{name}.cpp" for name in RUNTIME]
    main = _objects(lines, "shared", [TESTS / "support" / "doctest_main.cpp"], more="")
    objects = [*main, *_objects(lines, "shared", runtime, more="")]
    for program, tests in sources.items():
        linked = [str(path) for path in every] if program not in kernels else []
        for library in _LIBRARIES[program] if program in kernels else ():
            files = [k for k in kernels[program] if k.is_relative_to(library)]
            more = f"-I{_selected(program) / library.name}"
            linked += _objects(lines, program, files, more=more)
        own = _objects(lines, program, tests, more="")
        everything = " ".join([*objects, *linked, *own])
        lines.append(f"build {program}/run: link {everything}")
    compact = [ROOT / "runtime" / "src" / f"{name}.cpp" for name in _COMPACT_RUNTIME]
    compact += _tests("compact")
    for program, index_bytes in _COMPACT.items():
        more = f"-DORCH_INDEX_BYTES={index_bytes} -UORCH_DELEGATES"
        everything = " ".join([*main, *_objects(lines, program, compact, more=more)])
        lines.append(f"build {program}/run: link {everything}")
    runtime = [ROOT / "runtime" / "src" / f"{name}.cpp" for name in RUNTIME]
    proved = (*_PROVED, *_tests("proved"))
    selected = native.FOLDER / "gen" / "selected" / "portable"
    more = "-DORCH_DYNAMIC_SIZES=0"
    linked = _objects(lines, "proved", runtime, more=more)
    # As in products, the runtime keeps its checks.
    more += f" -DORCH_PROVED_CALLS=1 -I{selected}"
    everything = " ".join([*main, *linked, *_objects(lines, "proved", proved, more=more)])
    lines.append(f"build proved/run: link {everything}")
    return "\n".join(lines) + "\n"


def _tests(program: str) -> list[Path]:
    """Tests of a program that has a folder of its own."""
    return sorted((TESTS / program).glob("*_test.cpp"))


def _objects(lines: list[str], folder: str, sources: Iterable[Path], more: str) -> list[str]:
    """Adds the rule of each object; returns the objects."""
    found = []
    for source in sources:
        name = f"{folder}/{source.relative_to(ROOT)}.o"
        lines += [f"build {name}: cxx {source}", f"  more = {more}"]
        if not source.is_relative_to(ROOT / "runtime"):
            # To compile tests and kernels takes longer than to run them.
            lines.append(f"  level = {_FAST_TO_COMPILE}")
        found.append(name)
    return found


def _write_if_changed(path: Path, text: str) -> None:
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
