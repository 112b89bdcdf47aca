"""Flash of the object of each portable kernel, with a single dtype.

    python -m benchmarks.kernels

prints the tables of docs/kernel-sizes.md.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import tomllib
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from benchmarks.clock import ROOT
from benchmarks.table import Cell, Findings, NotMeasuredError, Table, short
from orchestrator.catalog import LibraryText, read_catalog
from orchestrator.core.dtype import ScalarType
from orchestrator.emit.compile import plan_compile
from orchestrator.emit.generate.tables import selected_headers
from orchestrator.errors import OrchestratorError
from orchestrator.measure.elf import LOCAL, ElfFile
from orchestrator.selection.op_info import SelectedOperator, Selection
from orchestrator.selection.resolve import resolve
from orchestrator.shell.ninja import ninja_program
from orchestrator.shell.toolchain import find_toolchain
from orchestrator.targets.cores import resolve_target

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from orchestrator.core.kernel import Kernel
    from orchestrator.selection.resolution import Resolution

_LIBRARY = "portable"
_DTYPES = (ScalarType.Float, ScalarType.Int, ScalarType.ComplexFloat)
"""Of an argument, the one that is selected is the first that it takes."""
_PLACES = (("cortex-m4", "gnu"), ("cortex-m55", "gnu"), ("cortex-m4", "zig"), ("cortex-m55", "zig"))
"""Cores and toolchains."""
_RUNTIME = ("src/math.cpp", "src/tensor.cpp")
_NETWORK = (
    *("_native_batch_norm_legit_no_training", "_softmax", "add", "addmm"),
    *("avg_pool2d", "convolution", "max_pool2d_with_indices", "mm"),
    *("permute_copy", "relu", "tanh"),
)
"""Kernels of small networks, which are also linked together."""
_GROUPS = {
    "elementwise operators of one tensor": (
        *("abs", "ceil", "cos", "exp", "floor", "neg", "relu", "sigmoid"),
        *("sin", "sqrt", "tanh"),
    ),
    "elementwise operators of two tensors": (
        *("add", "atan2", "div", "fmod", "maximum", "minimum", "mul"),
        *("remainder", "sub"),
    ),
    "comparisons": ("eq", "ge", "gt", "le", "lt", "ne"),
    "copies of parts of tensors": (
        *("expand_copy", "flip", "select_copy", "slice_copy"),
        *("split_with_sizes_copy", "squeeze_copy", "unsqueeze_copy"),
    ),
}
"""Kernels whose shared helpers are measured."""
_THEIRS = ROOT / "benchmarks" / "executorch_kernels.toml"
"""Sizes of ExecuTorch's kernels, by the same base names."""
_ALLOCATED, _NO_CONTENTS = 2, 8
"""Flag and kind of sections, as in the ELF gABI."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sizes:
    """Flash in bytes for one core and compiler.

    Args:
        place: Core and compiler, as the head of a column.
        objects: Of each source by the base name of its operator.
        network: Of the kernels of small networks, linked.
        shared: What all kernels of a group have in their objects, by group.
    """

    place: str
    objects: dict[str, int]
    network: int
    shared: dict[str, int]


def measure(repetitions: int) -> Findings:
    """Sizes; they are exact, so that one build of each is enough."""
    del repetitions
    findings = Findings()
    sizes: list[_Sizes] = []
    for cpu, toolchain in _PLACES:
        with tempfile.TemporaryDirectory() as folder:
            try:
                sizes.append(_measure(Path(folder), cpu, toolchain))
            except (NotMeasuredError, OrchestratorError) as missing:
                findings.missing.append(f"kernels, {cpu} {toolchain}: {missing}")
    if not sizes:
        return findings
    columns = ("", *(s.place for s in sizes))
    theirs = tomllib.loads(_THEIRS.read_text(encoding="utf-8"))
    each: list[tuple[Cell, ...]] = [
        (
            f"`op_{name}`",
            *(s.objects[name] for s in sizes),
            *theirs["flash"].get(name, [None] * len(theirs["cores"])),
        )
        for name in sorted(sizes[0].objects)
    ]
    several: list[tuple[Cell, ...]] = [
        ("kernels of small networks, linked", *(s.network for s in sizes))
    ]
    several += [(f"shared by {group}", *(s.shared[group] for s in sizes)) for group in _GROUPS]
    findings.tables = [
        Table(
            title="Flash of the object of each kernel (bytes)",
            columns=(*columns, *(f"{core}, ExecuTorch" for core in theirs["cores"])),
            rows=tuple(each),
        ),
        Table(title="Flash of several kernels (bytes)", columns=columns, rows=tuple(several)),
    ]
    return findings


def _measure(folder: Path, cpu: str, toolchain_name: str) -> _Sizes:
    target = resolve_target(
        cpu=cpu, isa=None, board=None, toolchain=toolchain_name, optimize="size"
    )
    toolchain = find_toolchain(target)
    kernels, resolution = resolved(_LIBRARY, first_dtypes)
    for header in selected_headers("For benchmarks.", resolution, kernels):
        path = folder / header.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(header.text, encoding="utf-8")
    (folder / "src").symlink_to(ROOT)
    plan = plan_compile(
        profile="kernels",
        target=target,
        toolchain=toolchain,
        resolution=resolution,
        runtime_sources=_RUNTIME,
        models=(),
    )
    sources = dict(resolution.sources)[_LIBRARY]
    wanted = {f"src/kernels/{_LIBRARY}/{source}" for source in sources}
    wanted |= {f"src/runtime/{source}" for source in _RUNTIME}
    objects: dict[str, str] = {}
    lines: list[str] = []
    for number, unit in enumerate(u for u in plan.units if u.source in wanted):
        objects[PurePosixPath(unit.source).stem.removeprefix("op_")] = unit.object
        command = " ".join((*toolchain.compiler, *unit.flags, "-c", unit.source))
        lines += [f"rule c{number}", f"  command = {command} -o $out"]
        lines.append(f"build {unit.object}: c{number}")
    (folder / "build.ninja").write_text("\n".join((*lines, "")), encoding="utf-8")
    run_command((ninja_program(), "-j2", "--quiet"), folder)
    read = {name: ElfFile((folder / path).read_bytes()) for name, path in objects.items()}
    # Without functions of the compiler's library, as in the objects.
    gnu = toolchain.name == "gnu"
    flags = (*target.isa.machine_flags, "-nostdlib") if gnu else ()
    options = [
        *("--gc-sections", "--unresolved-symbols=ignore-all"),
        *(f"--undefined={symbol}" for n in _NETWORK for symbol in _kernels(read[n])),
    ]
    linked = [objects[name] for name in (*_NETWORK, "math", "tensor")]
    prefixed = [f"-Wl,{option}" for option in options] if gnu else options
    run_command((*toolchain.linker, *flags, *prefixed, *linked, "-o", "network"), folder)
    names = {PurePosixPath(source).stem.removeprefix("op_") for source in sources}
    compiler = toolchain.version.partition(".")[0] if gnu else toolchain.name
    return _Sizes(
        place=f"{cpu.removeprefix('cortex-').upper()}, {compiler}",
        objects={name: _flash(read[name]) for name in names},
        network=_flash(ElfFile((folder / "network").read_bytes())),
        shared={
            group: _shared([read[name] for name in members]) for group, members in _GROUPS.items()
        },
    )


def resolved(
    library: str, dtypes_of: Callable[[Kernel], tuple[ScalarType, ...]]
) -> tuple[tuple[Kernel, ...], Resolution]:
    """All kernels of a library, and what a build selects for some dtypes of each."""
    file = ROOT / "kernels" / library / "functions.yaml"
    text = file.read_text(encoding="utf-8")
    catalog = read_catalog([LibraryText(name=library, file=str(file), text=text)])
    kernels = tuple(k for _, offered in catalog.libraries for k in offered)
    selection = Selection(
        operators=tuple(
            SelectedOperator(name=kernel.operator, dtypes=dtypes_of(kernel))
            for kernel in sorted(kernels, key=lambda k: str(k.operator))
        )
    )
    resolution = resolve(selection, catalog, every_dtype=False, span_of=lambda _: None)
    return kernels, resolution


def first_dtypes(kernel: Kernel) -> tuple[ScalarType, ...]:
    """One for each argument that decides; mostly the same."""
    taken = dict(kernel.dtypes)
    deciding = [taken[name] for name in kernel.dtype_arguments]
    if not deciding:
        return _DTYPES[:1]
    found = {next((d for d in _DTYPES if d in own), min(own)) for own in deciding}
    return tuple(sorted(found))


def _flash(file: ElfFile) -> int:
    return sum(
        s.size_bytes for s in file.sections if s.flags & _ALLOCATED and s.kind != _NO_CONTENTS
    )


def _kernels(file: ElfFile) -> Iterator[str]:
    """Symbols of the kernels in an object: functions that take `const Args&`."""
    suffix, prefix = "RKNS_4ArgsE", "_ZN4orch8portable"
    for symbol in file.symbols:
        mine = symbol.is_defined and symbol.binding != LOCAL
        if mine and symbol.name.startswith(prefix) and symbol.name.endswith(suffix):
            yield symbol.name


def _shared(files: Sequence[ElfFile]) -> int:
    """Bytes of the functions and constants that all objects have a copy of."""
    sizes = [
        {
            s.name: file.sections[s.section].size_bytes
            for s in file.symbols
            if s.is_defined and s.binding != LOCAL and s.size_bytes
        }
        for file in files
    ]
    names = set(sizes[0]).intersection(*sizes[1:])
    return max(sum(found[name] for name in names) for found in sizes)


def run_command(command: Sequence[str | Path], folder: Path) -> None:
    """Run a command. Raises NotMeasuredError if it fails."""
    done = subprocess.run(
        [str(word) for word in command],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise NotMeasuredError(short(done.stdout + done.stderr))


def _markdown(table: Table) -> str:
    cells: list[Sequence[Cell]] = [table.columns, ("---",) * len(table.columns)]
    cells += table.rows
    texts = (["-" if cell is None else str(cell) for cell in row] for row in cells)
    lines = (f"| {' | '.join(row)} |".replace("|  |", "| |") for row in texts)
    return "\n".join(lines)


def main() -> int:
    """Print the tables as Markdown; the result is the exit code."""
    argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0]).parse_args()
    findings = measure(1)
    for table in findings.tables:
        sys.stdout.write(f"{table.title}:\n\n{_markdown(table)}\n\n")
    for line in findings.missing:
        sys.stderr.write(f"not measured: {line}\n")
    return bool(findings.missing)


if __name__ == "__main__":
    sys.exit(main())
