"""Builds the host programs that load and run `.pte` files under sanitizers.

All of them share one set of objects: runtime, every kernel of the libraries for all
targets with every dtype, and the kernel table, made by the stages that make those of a
product. They are kept in `build/native-tests`, so that only what changed is compiled
again.

    python -m tests.cpp.support.native PROGRAM...

builds by hand and prints the paths.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from functools import cache
from pathlib import Path
from platform import machine
from typing import TYPE_CHECKING, Final

from orchestrator.catalog import LibraryText, read_catalog
from orchestrator.core.operator import OperatorName
from orchestrator.emit.generate.tables import registered_kernels, selected_headers
from orchestrator.selection.op_info import SelectedOperator, Selection
from orchestrator.selection.resolve import resolve
from orchestrator.shell.ninja import ninja_program
from tests.together import only_one
from tests.tools import need_file, need_tool

if TYPE_CHECKING:
    from orchestrator.catalog import Catalog
    from orchestrator.emit.artifact import GeneratedFile

ROOT: Final = Path(__file__).parents[3]
FOLDER: Final = ROOT / "build" / "native-tests"
LIBRARIES: Final = tuple(
    ROOT / "kernels" / n for n in ("cortex_m", "portable", "quantized", "prim_ops")
)
SUPPORT: Final = ROOT / "tests" / "cpp" / "support"

PROGRAMS: Final = {
    "load_file": SUPPORT / "load_file.cpp",
    "mutate": SUPPORT / "mutate.cpp",
    "call_numbers": SUPPORT / "call_numbers.cpp",
    "fuzz_loader": ROOT / "tests" / "fuzz" / "fuzz_loader.cpp",
}
"""Source with the `main` of each program; libFuzzer brings that of the last."""

_SHARED: Final = tuple(
    SUPPORT / f"{name}.cpp" for name in ("method_blocks", "stand_ins", "hostile_run", "mutations")
)
SANITIZERS: Final = "address,undefined,float-cast-overflow"
_FLAGS: Final = (
    "-std=c++17",
    "-DORCH_COMPLEX_DOUBLE=1",
    "-DORCH_EXTERNAL_DATA=1",
    "-fno-exceptions",
    "-fno-rtti",
    "-ffp-contract=off",
    "-Wall",
    "-Wextra",
    "-Wconversion",
    "-Wshadow",
    "-Wundef",
    "-Werror",
)
SANITIZED: Final = (
    "-O1",
    "-gline-tables-only",
    "-fno-omit-frame-pointer",
    f"-fsanitize={SANITIZERS},fuzzer-no-link",
    "-fno-sanitize-recover=all",
    # Kernels read Bool tensors as bool. Bytes that are neither 0 nor 1, which only
    # a program made for it has there, give other truth values and do no more harm.
    "-fno-sanitize=bool",
)


@cache
def linked_catalog() -> Catalog:
    """The kernels that the programs link; read once, as that takes a while."""
    files = [library / "functions.yaml" for library in LIBRARIES]
    return read_catalog(
        [
            LibraryText(
                name=file.parent.name, file=str(file), text=file.read_text(encoding="utf-8")
            )
            for file in files
        ]
    )


def build(
    program: str, *, folder: Path = FOLDER, operators: tuple[str, ...] = (), sanitize: bool = True
) -> Path:
    """Path of a program of `PROGRAMS`, built if anything it is made of changed.

    Skips or fails the test if the compiler or its sanitizers are not installed.

    Args:
        program: Its name.
        folder: For objects and programs.
        operators: Those that it links; all if there are none.
        sanitize: Whether the sanitizers watch; if not, it is optimized.
    """
    compiler = need_tool("clang++-14", "clang++")
    if sanitize:
        need_file(_fuzzer_library(compiler), "libclang-rt-14-dev")
    with only_one(folder):
        rules = _ninja(compiler, _generate(folder, operators), folder, sanitize=sanitize)
        _write_if_changed(folder / "build.ninja", rules)
        done = subprocess.run(
            [str(ninja_program()), "-j2", "--quiet", program],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / program


def kernel_objects() -> list[Path]:
    """Objects of every kernel with every dtype, built if anything changed."""
    build("kernels")
    return [
        FOLDER / f"obj/kernels/{library.name}/{source}.o"
        for library in LIBRARIES
        for source in sorted(_sources(library.name))
    ]


def _sources(library: str) -> set[str]:
    """Files of a kernel library."""
    catalog = linked_catalog()
    ((_, kernels),) = (pair for pair in catalog.libraries if pair[0] == library)
    return {source for kernel in kernels for source in kernel.sources}


def _fuzzer_library(compiler: str) -> str:
    """The library that shows that the sanitizers are installed."""
    found = subprocess.run(
        [compiler, f"-print-file-name=libclang_rt.fuzzer-{machine()}.a"],
        capture_output=True,
        text=True,
        check=True,
    )
    return found.stdout.strip()


def _generate(folder: Path, operators: tuple[str, ...]) -> list[Path]:
    """Write kernel table and dtype headers; returns the sources to compile."""
    catalog = linked_catalog()
    chosen = tuple(
        SelectedOperator(name=OperatorName.parse(name), every_dtype=True)
        for name in sorted(operators)
    )
    resolution = resolve(
        Selection(operators=chosen, every_operator=not operators),
        catalog,
        every_dtype=True,
        span_of=lambda _: None,
    )
    kernels = tuple(k for _, offered in catalog.libraries for k in offered)
    head = "Every kernel, for tests."
    table = registered_kernels(head, resolution)
    files: list[GeneratedFile] = [table, *selected_headers(head, resolution, kernels)]
    for file in files:
        _write_if_changed(folder / file.path, file.text)
    return [
        folder / table.path,
        *_SHARED,
        *sorted((ROOT / "runtime" / "src").glob("*.cpp")),
        *(ROOT / "kernels" / n / s for n, files in resolution.sources for s in files),
    ]


def _write_if_changed(path: Path, text: str) -> None:
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def _ninja(compiler: str, shared: list[Path], folder: Path, *, sanitize: bool) -> str:
    includes = [*(ROOT / i for i in _INCLUDES)]
    kind = SANITIZED if sanitize else ("-O2",)
    flags = " ".join([*_FLAGS, *kind, *(f"-I{include}" for include in includes)])
    link = f" -fsanitize={SANITIZERS}$more" if sanitize else ""
    lines = [
        "rule cxx",
        # Two libraries may have a source of one name, and so a header of dtypes.
        f"  command = {compiler} -I$selected {flags} $level -MMD -MF $out.d -c $in -o $out",
        "  depfile = $out.d",
        "  deps = gcc",
        "rule link",
        f"  command = {compiler}{link} $in -o $out",
    ]
    every = {source: _object(lines, source, folder) for source in shared}
    if sanitize:
        # To compile kernels takes longer than all calls of them, and what the fuzzer
        # looks for is ways through the loader.
        lines.insert(0, "level = -O0 -fno-sanitize=fuzzer-no-link")
    objects = " ".join(every.values())
    kernels = " ".join(name for source, name in every.items() if _is_kernel(source))
    lines.append(f"build kernels: phony {kernels}")
    for program, source in PROGRAMS.items():
        lines += [
            f"build {program}: link {_object(lines, source, folder)} {objects}",
            f"  more = {',fuzzer' if program.startswith('fuzz') else ''}",
        ]
    return "\n".join(lines) + "\n"


_INCLUDES: Final = ("runtime/include", "runtime/src", "kernels", "tests/cpp")


def _object(lines: list[str], source: Path, folder: Path) -> str:
    place = folder if source.is_relative_to(folder) else ROOT
    name = f"obj/{source.relative_to(place)}.o"
    library = source.relative_to(ROOT / "kernels").parts[0] if _is_kernel(source) else ""
    lines += [
        f"build {name}: cxx {source}",
        f"  selected = {folder / 'gen' / 'selected' / library}",
    ]
    if not library:
        lines.append("  level =")
    return name


def _is_kernel(source: Path) -> bool:
    return source.is_relative_to(ROOT / "kernels")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("programs", nargs="*", help="; ".join(PROGRAMS))
    for name in parser.parse_args().programs or PROGRAMS:
        sys.stdout.write(f"{build(name)}\n")
