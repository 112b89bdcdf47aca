"""Flash of every kernel function, for the estimate of a firmware's code.

    python -m benchmarks.code_sizes

writes orchestrator/memory/code_sizes.json. All kernels and the runtime are compiled
three times: with the first dtype that each kernel takes, with a second one, and with
all of them; what a function needs follows from the relocations of its sections, as for
a linker that drops what nothing refers to. For each function the table has the first
dtypes, the second one, how many others there are, and the power of their number that
its code grows with. For each group of sections it has the bytes with first, second and
all dtypes, and the users: numbers of functions, plus the count of functions if they
need the group from the second dtype on, and plus twice the count if with further ones.

    python -m benchmarks.code_sizes --sources op_hypot.cpp op_polar.cpp

adds what these sources have and the table has not, in a minute for each column. What such
functions share with others may count twice, so that only the first `together` functions say
what a firmware takes at least. Some functions are only in products with `optimize = "speed"`:

    python -m benchmarks.code_sizes --optimize speed --sources op_packed_pixels.cpp \
        op_int4_packed_pixels.cpp packed_loops_mve.cpp --only "cortex-m55 gnu"
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from math import log
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from benchmarks.clock import ROOT
from benchmarks.kernels import first_dtypes, resolved, run_command
from orchestrator.core.dtype import ScalarType
from orchestrator.emit.compile import plan_compile
from orchestrator.emit.generate.tables import selected_headers
from orchestrator.measure.elf import LOCAL, ElfFile
from orchestrator.memory.estimate import CODE_SIZES
from orchestrator.selection.resolution import Resolution
from orchestrator.shell.ninja import ninja_program
from orchestrator.shell.settings import LAUNCHER
from orchestrator.shell.sources import library_names
from orchestrator.shell.toolchain import find_toolchain, with_builtins
from orchestrator.targets.cores import resolve_target

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from orchestrator.core.kernel import Kernel
    from orchestrator.measure.elf import Symbol
    from orchestrator.targets.cores import Target, Toolchain

PLACES: Final = (
    ("cortex-m0plus", "gnu"),
    ("cortex-m0plus", "zig"),
    ("cortex-m4", "gnu"),
    ("cortex-m4", "zig"),
    ("cortex-m55", "gnu"),
    ("cortex-m55", "zig"),
    ("rv32imac", "zig"),
)
"""Cores and toolchains; the estimate takes the nearest for others."""
_ROOTS: Final = {
    "base": ("orch_reset", "orch_application"),
    "loaded": ("_ZN4orch11load_linkedERKNS_11ModelMethodE",),
    "prelinked": ("_ZN4orch15start_prelinkedERKNS_11ModelMethodE",),
}
"""What the generated tables of a product refer to, besides kernels."""
_SOURCES: Final = ("integrity", "load_delegates", "update")
"""Sources of the runtime of which all functions count, if a product has their part."""
_KERNEL: Final = re.compile(r"_ZN([0-9]\w*?)ERKNS_(?:4Args|12PreparedCall)E")
_ALLOCATED, _GROUP, _NO_CONTENTS, _WEAK = 2, 0x200, 8, 2
_SUMS: Final = ("-DORCH_SUMS_ADDED=1", "-DORCH_SUMS_LIMITED=1")
"""Macros without which some kernels for MVE have no code."""
_LEFT_OUT: Final = frozenset({ScalarType.ComplexDouble})
"""Dtypes that are not measured: this one makes every item of memory larger."""
_DROPPED: Final = (".ARM.exidx", ".ARM.extab", ".eh_frame", ".note")

_Column = dict[str, Any]
"""Of the table, as JSON."""
_Node = tuple[str, str]
"""Object ("" if any object has the section; with a number if it has several of the
name) and name of a section: equal in all programs."""


class _Program:
    """Sections of objects, and what they refer to."""

    def __init__(self, objects: Mapping[str, bytes]) -> None:
        self.size: dict[_Node, int] = {}
        self.defined: dict[str, _Node] = {}
        self.kernels: dict[str, list[str]] = defaultdict(list)
        self.sources: dict[str, list[str]] = defaultdict(list)
        self._calls: dict[_Node, set[_Node | str]] = defaultdict(set)
        for name, data in objects.items():
            self._add(name, ElfFile(data))

    def _add(self, name: str, file: ElfFile) -> None:
        weak = {s.section for s in file.symbols if s.binding == _WEAK}
        nodes: dict[int, _Node] = {}
        names = Counter[str]()
        for index, section in enumerate(file.sections):
            if not section.flags & _ALLOCATED or section.kind == _NO_CONTENTS:
                continue
            if section.name.startswith(_DROPPED):
                continue
            shared = index in weak and section.flags & _GROUP
            own = "" if shared else f"{name}#{names[section.name]}"
            names[section.name] += 1
            node = nodes[index] = (own, section.name)
            align = max(section.align_bytes, 1)
            size = -(-section.size_bytes // align) * align
            self.size[node] = max(self.size.get(node, 0), size)
        for symbol in file.symbols:
            if symbol.section in nodes and symbol.binding != LOCAL and symbol.name:
                self.defined.setdefault(symbol.name, nodes[symbol.section])
                self.sources[Path(name).name].append(symbol.name)
                match = _KERNEL.fullmatch(symbol.name)
                if match and name.startswith(("obj/kernels", "obj/runtime/src")):
                    self.kernels[_qualified(match[1])].append(symbol.name)
        for place in file.relocations():
            if place.section in nodes:
                to = self._target(place.symbol, nodes)
                if to is not None:
                    self._calls[nodes[place.section]].add(to)

    @staticmethod
    def _target(symbol: Symbol, nodes: Mapping[int, _Node]) -> _Node | str | None:
        if symbol.binding == LOCAL or not symbol.name:
            return nodes.get(symbol.section)
        return symbol.name

    def reached(self, symbols: Iterable[str]) -> set[_Node]:
        """All sections that a linker keeps for some symbols."""
        todo: list[_Node | str] = [*symbols]
        found: set[_Node] = set()
        while todo:
            node = todo.pop()
            if isinstance(node, str):
                if node not in self.defined:
                    continue
                node = self.defined[node]
            if node not in found:
                found.add(node)
                todo += self._calls[node]
        return found


def _qualified(mangled: str) -> str:
    """`orch::portable::add_out` of `4orch8portable7add_out`."""
    parts = []
    while match := re.match(r"\d+", mangled):
        end = match.end() + int(match[0])
        parts.append(mangled[match.end() : end])
        mangled = mangled[end:]
    return "::".join(parts)


def _compiled(
    folder: Path,
    target: Target,
    toolchain: Toolchain,
    dtypes: Callable[[Kernel], tuple[ScalarType, ...]],
    chosen: Collection[str],
) -> _Program:
    found = [resolved(library, dtypes) for library in library_names()]
    for kernels, resolution in found:
        for header in selected_headers("For benchmarks.", resolution, kernels):
            path = folder / header.path
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(header.text, encoding="utf-8")
    (folder / "src").symlink_to(ROOT)
    tops = ("src", "app", *(f"platform/{name}" for name in target.platforms))
    tops += ("freestanding",) if target.freestanding else ()
    tops = ("src",) if chosen else tops
    runtime = ROOT / "runtime"
    plan = plan_compile(
        profile="kernels",
        target=target,
        toolchain=toolchain,
        resolution=Resolution(
            sources=tuple(
                (library, tuple(s for s in sources if not chosen or s in chosen))
                for _, r in found
                for library, sources in r.sources
            ),
            table_entries=tuple(
                entry for _, r in found for entry in r.table_entries if not _LEFT_OUT & entry.dtypes
            ),
        ),
        runtime_sources=tuple(
            sorted(
                str(path.relative_to(runtime))
                for top in tops
                for path in (runtime / top).rglob("*.cpp")
            )
        ),
        models=(),
        updates=True,
        caller_bytes=16,
        external=True,
        inline_constants=True,
        sums=_SUMS if target.isa.name == "mve" else (),
    )
    units = [u for u in plan.units if not u.source.startswith("gen/")]
    launcher = os.environ.get(LAUNCHER, "").split()
    lines: list[str] = []
    for number, unit in enumerate(units):
        command = " ".join((*launcher, *toolchain.compiler, *unit.flags, "-c", unit.source))
        lines += [f"rule c{number}", f"  command = {command} -o $out"]
        lines.append(f"build {unit.object}: c{number}")
    (folder / "build.ninja").write_text("\n".join((*lines, "")), encoding="utf-8")
    run_command((ninja_program(), "-j2", "--quiet"), folder)
    objects = {unit.object: (folder / unit.object).read_bytes() for unit in units}
    objects |= _builtins(toolchain, target, units[0].flags, folder)
    return _Program(objects)


def _builtins(
    toolchain: Toolchain, target: Target, flags: tuple[str, ...], folder: Path
) -> dict[str, bytes]:
    """The compiler's support functions, by name of their objects."""
    if toolchain.needs_builtins:
        built = with_builtins(toolchain, target).builtins
        return {"builtins": Path(built).read_bytes()}
    members = folder / "libgcc"
    members.mkdir(exist_ok=True)
    asked = (*toolchain.compiler, *flags, "-print-libgcc-file-name")
    archive = subprocess.run(asked, check=True, capture_output=True, text=True).stdout
    run_command((toolchain.archiver[0], "x", archive.strip()), members)
    return {path.name: path.read_bytes() for path in members.iterdir()}


def every_dtypes(kernel: Kernel) -> tuple[ScalarType, ...]:
    """All that some argument that decides takes, but those that are left out."""
    taken = dict(kernel.dtypes)
    found = {d for name in kernel.dtype_arguments for d in taken[name]} - _LEFT_OUT
    return tuple(sorted(found)) or first_dtypes(kernel)


def second_dtypes(kernel: Kernel) -> tuple[ScalarType, ...]:
    """The first ones, and one whose code is large: Long, else Double."""
    first, every = first_dtypes(kernel), every_dtypes(kernel)
    wanted = (ScalarType.Long, ScalarType.Double, *every)
    others = [d for d in wanted if d in every and d not in first]
    return tuple(sorted({*first, *others[:1]}))


def _dtypes() -> dict[str, tuple[list[int], list[int], int]]:
    """By function: the first dtypes, the second one, and how many others there are."""
    found = {}
    for library in library_names():
        for kernel in resolved(library, first_dtypes)[0]:
            first = {*first_dtypes(kernel)}
            second, every = {*second_dtypes(kernel)}, {*every_dtypes(kernel)}
            found[kernel.function] = (
                sorted(int(d) for d in first),
                [int(d) for d in second - first],
                len(every - first),
            )
    return found


def measure(
    cpu: str, toolchain_name: str, chosen: Collection[str] = (), optimize: str = "size"
) -> list[_Program]:
    """The programs of one column of the table, of some sources or of all."""
    target = resolve_target(
        cpu=cpu, isa=None, board=None, toolchain=toolchain_name, optimize=optimize
    )
    toolchain = find_toolchain(target)
    programs = []
    for dtypes in (first_dtypes, second_dtypes, every_dtypes):
        with tempfile.TemporaryDirectory() as folder:
            programs.append(_compiled(Path(folder), target, toolchain, dtypes, chosen))
    return programs


def _roots(programs: Sequence[_Program]) -> dict[str, list[str]]:
    """What the table has: symbols by name."""
    one, *_ = programs
    roots = {name: [*symbols] for name, symbols in _ROOTS.items()}
    roots |= {name: one.sources[f"{name}.cpp.o"] for name in _SOURCES}
    return roots | _kernels(programs)


def _kernels(programs: Sequence[_Program]) -> dict[str, list[str]]:
    one, *_, every = programs
    return {n: s for n, s in every.kernels.items() if n in one.kernels}


def joined(column: _Column, more: _Column) -> _Column:
    """A column with functions that were measured later."""
    count, added = len(column["functions"]), len(more["functions"])

    def numbered(groups: list[list[int]], known: int, first: int) -> list[list[int]]:
        levels = count + added
        return [
            [*group[:3], *sorted(first + u % known + u // known * levels for u in group[3:])]
            for group in groups
        ]

    return {
        "together": column.get("together", count),
        "functions": column["functions"] + more["functions"],
        "groups": numbered(column["groups"], count, 0) + numbered(more["groups"], added, count),
    }


def _column(programs: Sequence[_Program], roots: Mapping[str, Sequence[str]]) -> _Column:
    names = sorted(roots)
    known = _dtypes()
    users: dict[_Node, set[int]] = defaultdict(set)
    functions = []
    for number, name in enumerate(names):
        sizes = []
        before = set[_Node]()
        for level, program in enumerate(programs):
            nodes = program.reached(roots[name])
            sizes.append(sum(program.size[n] for n in nodes if _is_own(n)))
            for node in nodes - before:
                users[node].add(number + level * len(names))
            before |= nodes
        first, second, others = known.get(name, ([], [], 0))
        functions.append([name, first, second, others, _power(sizes, others)])
    groups: dict[tuple[int, ...], list[int]] = defaultdict(lambda: [0] * len(programs))
    for node, found in users.items():
        sizes = groups[tuple(sorted(found))]
        for level, program in enumerate(programs):
            sizes[level] += program.size.get(node, 0)
    return {
        "functions": functions,
        "groups": [[*sizes, *users] for users, sizes in sorted(groups.items())],
    }


def _is_own(node: _Node) -> bool:
    """Code of kernels, not of the runtime and the compiler."""
    return not node[0] or node[0].startswith("obj/kernels")


def _power(sizes: Sequence[int], others: int) -> float:
    """Of the number of other dtypes: code grows with it from one to all of them."""
    first, second, every = sizes
    if others < 2 or not first < second < every:  # noqa: PLR2004
        return 1.0
    growth = log((every - first) / (second - first)) / log(others)
    return max(0.1, round(growth, 1))


def main() -> int:
    """Write the table; the result is the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", help="a column, such as `cortex-m4 zig`")
    parser.add_argument("--sources", nargs="+", default=[], help="add what these have")
    parser.add_argument("--optimize", default="size", help="speed: what only such products have")
    args = parser.parse_args()
    table = json.loads(CODE_SIZES.read_text()) if CODE_SIZES.exists() else {}
    for cpu, toolchain in PLACES:
        column = f"{cpu} {toolchain}"
        if args.only in (None, column):
            programs = measure(cpu, toolchain, args.sources, args.optimize)
            if not args.sources:
                table[column] = _column(programs, _roots(programs))
                continue
            known = {name for name, *_ in table[column]["functions"]}
            roots = {n: s for n, s in _kernels(programs).items() if n not in known}
            if roots:
                table[column] = joined(table[column], _column(programs, roots))
    lines = ",\n".join(
        f' "{column}": {json.dumps(table[column], separators=(",", ":"))}'
        for column in sorted(table)
    )
    CODE_SIZES.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
