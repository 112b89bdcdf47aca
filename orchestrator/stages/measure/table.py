"""Size reports as plain text, at most 80 columns wide."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from orchestrator.core.size import ContributorKind as Kind

if TYPE_CHECKING:
    from orchestrator.core.size import Contributor, SizeReport, StackEstimate

WIDTH: Final = 80
_NAME: Final = 40
_DIFF_NAME: Final = 32
_NUMBER: Final = 12
_PERCENT: Final = 8
_TITLES: Final = {
    Kind.MODEL: "models",
    Kind.KERNEL: "kernels",
    Kind.KERNEL_TABLE: "kernel table",
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
    """What `orchestrator size` prints: contributors, totals, memories, sections, stack.

    Lines end in newlines and are at most 80 columns wide.
    """
    blocks = [
        [_headline(report)],
        _contributor_lines(report),
        _region_lines(report),
        _section_lines(report),
        _stack_lines(report.stack),
    ]
    return "\n".join("".join(f"{x}\n" for x in lines) for lines in blocks if lines)


def diff_table(a: SizeReport, b: SizeReport) -> str:
    """How `b` differs from `a`: contributors that changed, and the totals.

    Lines end in newlines and are at most 80 columns wide.
    """
    lines = [f"from  {_headline(a)}", f"to    {_headline(b)}", ""]
    lines.append(
        _titles(_DIFF_NAME, ("flash", "change", "RAM", "change"), (_NUMBER,) * 4)
    )
    before = {(c.kind, c.name): c for c in a.contributors}
    after = {(c.kind, c.name): c for c in b.contributors}
    for kind in Kind:
        rows = []
        for key in sorted({**before, **after}):
            old, new = _costs(before.get(key)), _costs(after.get(key))
            if key[0] is kind and old != new:
                rows.append((abs(sum(new) - sum(old)), key[1], old, new))
        rows.sort(key=lambda row: (-row[0], row[1]))
        if rows:
            lines.append(_TITLES[kind])
        lines += [_diff_line(f"  {name}", old, new) for _, name, old, new in rows]
    if a.contributors == b.contributors:
        lines.append("nothing changed")
    x, y = a.totals, b.totals
    lines.append(
        _diff_line("total", (x.flash_bytes, x.ram_bytes), (y.flash_bytes, y.ram_bytes))
    )
    without = (x.flash_bytes_without_models, y.flash_bytes_without_models)
    lines.append(_diff_line("  without models", (without[0], 0), (without[1], 0)))
    stacks = ((0, a.stack.stack_bytes), (0, b.stack.stack_bytes))
    lines.append(_diff_line("stack, estimated worst use", *stacks))
    return "".join(f"{line.rstrip()}\n" for line in lines)


def _headline(report: SizeReport) -> str:
    target = report.target
    parts = (target.cpu, target.isa, target.board, target.toolchain, target.optimize)
    return _cut(f"{report.profile} ({', '.join(p for p in parts if p)})", WIDTH - 6)


def _contributor_lines(report: SizeReport) -> list[str]:
    flash, ram = report.totals.flash_bytes, report.totals.ram_bytes
    lines = [_titles(_NAME, ("flash", "%", "RAM", "%"), (_NUMBER, _PERCENT) * 2)]
    for kind in Kind:
        parts = [c for c in report.contributors if c.kind is kind]
        if not parts:
            continue
        both = (sum(c.flash_bytes for c in parts), sum(c.ram_bytes for c in parts))
        lines.append(_line(_TITLES[kind], *both, flash, ram))
        # A group of one says nothing that its title does not say.
        if len(parts) > 1 or kind in (Kind.MODEL, Kind.KERNEL, Kind.ARENA):
            lines += [
                _line(f"  {c.name}", c.flash_bytes, c.ram_bytes, flash, ram)
                for c in parts
            ]
    lines.append(_line("total", flash, ram, flash, ram))
    without = report.totals.flash_bytes_without_models
    lines.append(_line("  without models", without, 0, flash, ram))
    return lines


def _region_lines(report: SizeReport) -> list[str]:
    if not report.regions:
        return []
    head = f"{'memory':24}{'kind':8}{'used':>14}{'of':>14}{'%':>8}"
    return [head] + [
        f"{_cut(r.name, 23):24}{r.kind:8}{r.used_bytes:>14,}{r.size_bytes:>14,}"
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
        lines.append(
            f"{_cut(section.name, 35):36}{address:>12}{section.size_bytes:>12,}"
            f"  {_cut(where, 18)}"
        )
    return lines


def _stack_lines(stack: StackEstimate) -> list[str]:
    reserve = (
        f" of {stack.reserve_bytes:,} reserved ({_percent_of(stack)})"
        if stack.reserve_bytes
        else ""
    )
    lines = [f"stack, estimated worst use: {stack.stack_bytes:,} bytes{reserve}"]
    lines += [
        f"  {_cut(p.name, _NAME - 3):{_NAME - 2}}{p.stack_bytes:>{_NUMBER},}"
        for p in stack.parts
    ]
    if stack.unknown:
        lines.append(f"  not counted: {len(stack.unknown)} functions of the toolchain")
    lines += [_cut(f"  unbounded: {name}", WIDTH) for name in stack.dynamic]
    return lines


def _line(name: str, flash: int, ram: int, all_flash: int, all_ram: int) -> str:
    columns = (
        _number(flash),
        f"{_percent(flash, all_flash) if flash else '':>{_PERCENT}}",
        _number(ram),
        f"{_percent(ram, all_ram) if ram else '':>{_PERCENT}}",
    )
    return (f"{_cut(name, _NAME - 1):{_NAME}}" + "".join(columns)).rstrip()


def _diff_line(name: str, old: tuple[int, int], new: tuple[int, int]) -> str:
    cells = "".join(
        _number(after) + _change(after - before)
        for before, after in zip(old, new, strict=True)
    )
    return f"{_cut(name, _DIFF_NAME - 1):{_DIFF_NAME}}{cells}"


def _costs(contributor: Contributor | None) -> tuple[int, int]:
    if contributor is None:
        return (0, 0)
    return (contributor.flash_bytes, contributor.ram_bytes)


def _titles(name: int, titles: tuple[str, ...], widths: tuple[int, ...]) -> str:
    columns = (f"{t:>{w}}" for t, w in zip(titles, widths, strict=True))
    return " " * name + "".join(columns)


def _number(count: int) -> str:
    """Right-aligned; nothing for nothing, so that what costs stands out."""
    return f"{count:>{_NUMBER},}" if count else " " * _NUMBER


def _change(count: int) -> str:
    return f"{count:>+{_NUMBER},}" if count else " " * _NUMBER


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f}" if whole else ""


def _percent_of(stack: StackEstimate) -> str:
    return f"{_percent(stack.stack_bytes, stack.reserve_bytes)} %"


def _cut(text: str, width: int) -> str:
    """The text, shortened in the middle: both ends of names tell them apart."""
    if len(text) <= width:
        return text
    left = (width - 1) // 2
    return f"{text[:left]}…{text[len(text) - (width - 1 - left) :]}"
