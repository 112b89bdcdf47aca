"""Size reports as plain text, 80 columns wide unless a name is long.

Names are never cut: what is printed is searched for, and handed to other commands.
"""

from __future__ import annotations

from textwrap import wrap
from typing import TYPE_CHECKING, Final

from orchestrator.measure.size import ContributorKind as Kind
from orchestrator.measure.users import dtype_lines
from orchestrator.printable import printable

if TYPE_CHECKING:
    from orchestrator.measure.size import FirmwareStack, SizeMethod, SizeReport

WIDTH: Final = 80
_NAME: Final = 40
_LARGEST: Final = 3
_DIFF_NAME: Final = 32
_NUMBER: Final = 12
_PERCENT: Final = 8
TITLES: Final = {
    Kind.MODEL: "models",
    Kind.KERNEL: "kernels",
    Kind.KERNEL_TABLE: "kernel table",
    Kind.DELEGATE: "delegates",
    Kind.RUNTIME: "runtime",
    Kind.API: "generated API",
    Kind.APPLICATION: "application",
    Kind.PLATFORM: "platform",
    Kind.MEMORY_FUNCTIONS: "memory functions",
    Kind.TOOLCHAIN: "toolchain's libraries",
    Kind.CONSTANTS: "merged constants",
    Kind.ARENA: "arenas",
    Kind.METHOD_STATE: "method states",
    Kind.STACK: "reserved stack",
    Kind.OTHER: "other",
    Kind.PADDING: "padding",
}


def size_table(report: SizeReport) -> str:
    """What `orchestrator size` prints.

    Contributors, totals, memories, sections, methods, stack, what selecting dtypes made
    larger, and what is missing. Lines end in newlines.
    """
    blocks = [
        [headline(report)],
        _contributor_lines(report),
        _region_lines(report),
        _section_lines(report),
        _method_lines(report.methods),
        [
            f"named data of {model}: {printable(key)}, {size_bytes:,} bytes"
            for model, key, size_bytes in report.named_data
        ],
        _stack_lines(report.stack),
        list(dtype_lines(report)),
        _missing_lines(report),
    ]
    return "\n".join("".join(f"{x}\n" for x in lines) for lines in blocks if lines)


def size_summary(report: SizeReport) -> str:
    """Five lines: the firmware, its flash and RAM, its stack, its largest parts."""
    totals, stack = report.totals, report.stack
    parts = sorted(report.contributors, key=lambda c: (-c.flash_bytes, c.name))
    largest = [f"{c.name} {c.flash_bytes:,}" for c in parts[:_LARGEST] if c.flash_bytes]
    data = sum(size_bytes for _, _, size_bytes in report.named_data)
    named = f" ({data:,} named data)" if data else ""
    used = "not bounded: see --full"
    if stack is not None and not stack.unknown:
        used = f"{stack.stack_bytes:,} bytes of {stack.reserve_bytes:,} reserved"
    elif stack is None:
        used = "the operating system's"
    lines = [
        headline(report),
        f"flash    {totals.flash_bytes:>11,} bytes{_of(report, 'flash')}:"
        f" models {totals.model_bytes:,}{named},"
        f" everything else {totals.flash_bytes_without_models:,}",
        f"RAM      {totals.ram_bytes:>11,} bytes{_of(report, 'ram')}:"
        f" arenas {totals.arena_bytes:,}, states {totals.state_bytes:,},"
        f" stack {totals.stack_bytes:,}",
        f"stack    {used}",
        f"largest  {', '.join(largest)}",
    ]
    blocks = [lines, list(dtype_lines(report)), _missing_lines(report)]
    return "\n".join("".join(f"{x}\n" for x in block) for block in blocks if block)


def _of(report: SizeReport, kind: str) -> str:
    """How full the memories of a kind are that hold anything."""
    regions = [r for r in report.regions if r.kind == kind and r.used_bytes]
    if not regions:
        return ""
    size = sum(r.size_bytes for r in regions)
    percent = _percent(sum(r.used_bytes for r in regions), size)
    return f", {percent} % of {' + '.join(r.name for r in regions)}"


def _missing_lines(report: SizeReport) -> list[str]:
    if not report.missing:
        return []
    lines = ["missing, as the profile allows"]
    for text in report.missing:
        lines += wrap(text, WIDTH, initial_indent="  ", subsequent_indent="    ")
    return lines


def headline(report: SizeReport) -> str:
    """Name and target of a firmware."""
    target = report.target
    parts = (target.cpu, target.isa, target.board, target.toolchain, target.optimize)
    return f"{report.profile} ({', '.join(p for p in parts if p)})"


def _contributor_lines(report: SizeReport) -> list[str]:
    flash, ram = report.totals.flash_bytes, report.totals.ram_bytes
    lines = [size_titles()]
    for kind in Kind:
        parts = [c for c in report.contributors if c.kind is kind]
        if not parts:
            continue
        both = (sum(c.flash_bytes for c in parts), sum(c.ram_bytes for c in parts))
        lines.append(size_line(TITLES[kind], *both, flash, ram))
        # A group of one says nothing that its title does not say.
        if len(parts) > 1 or kind in (Kind.MODEL, Kind.KERNEL, Kind.ARENA):
            lines += [
                size_line(f"  {c.name}", c.flash_bytes, c.ram_bytes, flash, ram) for c in parts
            ]
    lines.append(size_line("total", flash, ram, flash, ram))
    without = report.totals.flash_bytes_without_models
    lines.append(size_line("  without models", without, 0, flash, ram))
    return lines


def _region_lines(report: SizeReport) -> list[str]:
    if not report.regions:
        return []
    head = f"{'memory':24}{'kind':8}{'used':>14}{'of':>14}{'%':>8}"
    return [head] + [
        f"{r.name:23} {r.kind:8}{r.used_bytes:>14,}{r.size_bytes:>14,}"
        f"{_percent(r.used_bytes, r.size_bytes):>8}"
        for r in report.regions
    ]


def _section_lines(report: SizeReport) -> list[str]:
    lines = [f"{'section':36}{'address':>12}{'bytes':>12}  memory"]
    for section in report.sections:
        where = section.region or ("RAM" if section.in_ram else "file")
        if section.load_region:
            where += f", from {section.load_region}"
        elif not section.region and section.in_ram and section.in_flash:
            where += ", from file"
        address = f"{section.address:#x}"
        lines.append(f"{section.name:35} {address:>12}{section.size_bytes:>12,}  {where}")
    return lines


STACK_TITLE: Final = "stack, worst use"
_METHOD_NAME: Final = 20
_METHOD_NUMBER: Final = 10
_METHOD_COLUMNS: Final = ("arena", "state", "temporary", "in, out", "load", "run")


def _method_lines(methods: tuple[SizeMethod, ...]) -> list[str]:
    """Memory of each method; loading and running it take that much of the stack."""
    if not methods:
        return []
    titles = "".join(f"{title:>{_METHOD_NUMBER}}" for title in _METHOD_COLUMNS)
    lines = [f"{'methods':{_METHOD_NAME}}{titles}"]
    for method in methods:
        stack = method.stack
        cells = (
            sum(method.arena_bytes),
            method.state_bytes,
            method.temporary_bytes,
            sum(method.input_bytes) + sum(method.output_bytes),
            *((stack.load_bytes, stack.run_bytes) if stack else ()),
        )
        name = f"  {method.model}.{method.method}"
        numbers = "".join(f"{cell:>{_METHOD_NUMBER},}" for cell in cells)
        lines.append(f"{name:{_METHOD_NAME - 1}} {numbers}")
    return lines


def _stack_lines(stack: FirmwareStack | None) -> list[str]:
    if stack is None:
        return []
    percent = _percent(stack.stack_bytes, stack.reserve_bytes)
    return [
        f"{STACK_TITLE}: {stack.stack_bytes:,} bytes"
        f" of {stack.reserve_bytes:,} reserved ({percent} %)",
        *(f"  {p.name:{_NAME - 3}} {p.stack_bytes:>{_NUMBER},}" for p in stack.parts),
        *(f"  not bounded: {name}" for name in stack.unknown),
    ]


def size_titles() -> str:
    """Heads of the columns of `size_line`."""
    return _titles(_NAME, ("flash", "%", "RAM", "%"), (_NUMBER, _PERCENT) * 2)


def size_line(name: str, flash: int, ram: int, all_flash: int, all_ram: int) -> str:
    """Bytes and what part of all bytes they are."""
    columns = (
        _number(flash),
        f"{_percent(flash, all_flash) if flash else '':>{_PERCENT}}",
        _number(ram),
        f"{_percent(ram, all_ram) if ram else '':>{_PERCENT}}",
    )
    return f"{name:{_NAME - 1}} {''.join(columns)}".rstrip()


def diff_titles() -> str:
    """Heads of the columns of `diff_line`."""
    return _titles(_DIFF_NAME, ("flash", "change", "RAM", "change"), (_NUMBER,) * 4)


def diff_line(name: str, old: tuple[int, int], new: tuple[int, int]) -> str:
    """Flash and RAM as they are now, each with its change."""
    cells = "".join(
        _number(after) + _change(after - before) for before, after in zip(old, new, strict=True)
    )
    return f"{name:{_DIFF_NAME - 1}} {cells}".rstrip()


def _titles(name: int, _titles: tuple[str, ...], widths: tuple[int, ...]) -> str:
    columns = (f"{t:>{w}}" for t, w in zip(_titles, widths, strict=True))
    return " " * name + "".join(columns)


def _number(count: int) -> str:
    """Right-aligned; nothing for nothing, so that what costs stands out."""
    return f"{count:>{_NUMBER},}" if count else " " * _NUMBER


def _change(count: int) -> str:
    return f"{count:>+{_NUMBER},}" if count else " " * _NUMBER


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f}" if whole else ""
