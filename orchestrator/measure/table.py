"""Size reports as plain text, 80 columns wide unless a name is long, and for programs.

Names are never cut: what is printed is searched for, and handed to other commands.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from textwrap import wrap
from typing import TYPE_CHECKING, Final

from orchestrator.document import picked
from orchestrator.measure.groups import TITLES, By, changed_rows, group_sizes
from orchestrator.measure.size import ContributorKind as Kind
from orchestrator.printable import printable

if TYPE_CHECKING:
    from orchestrator.measure.groups import SizeRow
    from orchestrator.measure.size import Contributor, FirmwareStack, SizeMethod, SizeReport

# Columns of text that is wrapped; a long name makes a line longer, as it is never cut.
WIDTH: Final = 80
_NAME: Final = 40
# Rows of a summary of five lines. Chosen by hand.
_LARGEST: Final = 3
_DIFF_NAME: Final = 32
_NUMBER: Final = 12
_PERCENT: Final = 8


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
        _dtype_lines(report),
        _missing_lines(report),
    ]
    return _text(blocks)


def _text(blocks: Iterable[Iterable[str]]) -> str:
    """Blocks of lines, one empty line between them; empty blocks are left out."""
    found = ("".join(f"{line}\n" for line in lines) for lines in blocks)
    return "\n".join(filter(None, found))


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
    return _text([lines, _dtype_lines(report), _missing_lines(report)])


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
    lines = [_SIZE_TITLES]
    for kind in Kind:
        if parts := [c for c in report.contributors if c.kind is kind]:
            # A group of one says nothing that its title does not say.
            shows_rows = len(parts) > 1 or kind in (Kind.MODEL, Kind.KERNEL, Kind.ARENA)
            lines += _group_lines(report, TITLES[kind], parts, shows_rows=shows_rows)
    return [*lines, *_total_lines(report)]


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


_STACK_TITLE: Final = "stack, worst use"
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
        f"{_STACK_TITLE}: {stack.stack_bytes:,} bytes"
        f" of {stack.reserve_bytes:,} reserved ({percent} %)",
        *(f"  {p.name:{_NAME - 3}} {p.stack_bytes:>{_NUMBER},}" for p in stack.parts),
        *(f"  not bounded: {name}" for name in stack.unknown),
    ]


def _group_lines(
    report: SizeReport,
    title: str,
    rows: Sequence[SizeRow | Contributor],
    *,
    shows_rows: bool = True,
) -> list[str]:
    """A group with its bytes, and its rows below."""
    both = (sum(row.flash_bytes for row in rows), sum(row.ram_bytes for row in rows))
    shown = rows if shows_rows else ()
    return [
        _size_line(report, title, *both),
        *(_size_line(report, f"  {row.name}", row.flash_bytes, row.ram_bytes) for row in shown),
    ]


def _total_lines(report: SizeReport) -> list[str]:
    totals = report.totals
    return [
        _size_line(report, "total", totals.flash_bytes, totals.ram_bytes),
        _size_line(report, "  without models", totals.flash_bytes_without_models, 0),
    ]


def _size_line(report: SizeReport, name: str, flash: int, ram: int) -> str:
    """Bytes and what part of all bytes they are."""
    cells = "".join(
        _number(count) + f"{_percent(count, whole) if count else '':>{_PERCENT}}"
        for count, whole in ((flash, report.totals.flash_bytes), (ram, report.totals.ram_bytes))
    )
    return f"{name:{_NAME - 1}} {cells}".rstrip()


def _diff_line(name: str, flash: tuple[int, int], ram: tuple[int, int]) -> str:
    """Flash and RAM as they are now, each with its change; both are (old, new)."""
    cells = "".join(_number(new) + _number(new - old, "+") for old, new in (flash, ram))
    return f"{name:{_DIFF_NAME - 1}} {cells}".rstrip()


_SIZE_TITLES: Final = " " * _NAME + "".join(
    f"{title:>{_NUMBER}}{'%':>{_PERCENT}}" for title in ("flash", "RAM")
)
_DIFF_TITLES: Final = " " * _DIFF_NAME + "".join(
    f"{title:>{_NUMBER}}{'change':>{_NUMBER}}" for title in ("flash", "RAM")
)


def _number(count: int, sign: str = "") -> str:
    """Right-aligned; nothing for nothing, so that what costs stands out."""
    return f"{count:>{sign}{_NUMBER},}" if count else " " * _NUMBER


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f}" if whole else ""


# Grouped sizes, and how they differ, as text and for programs.


def group_table(report: SizeReport, by: By) -> str:
    """All bytes of a firmware, grouped; lines are at most 80 columns wide."""
    lines = [headline(report), "", _SIZE_TITLES]
    for group in group_sizes(report, by):
        lines += _group_lines(report, group.title, group.rows)
    return _text([[*lines, *_total_lines(report)]])


def group_document(report: SizeReport, by: By) -> dict[str, object]:
    """The groups for programs to read; the rows of all groups add up to the totals."""
    names = ("title", "flash_bytes", "ram_bytes", "rows")
    return {
        "profile": report.profile,
        "by": str(by),
        **picked(report.totals, "flash_bytes", "ram_bytes"),
        "groups": [picked(group, *names) for group in group_sizes(report, by)],
    }


def diff_table(a: SizeReport, b: SizeReport, by: By = By.PART, *, what: str = "") -> str:
    """How `b` differs from `a`: rows that changed, and the totals.

    Lines end in newlines and are at most 80 columns wide.

    Args:
        a: Before.
        b: After.
        by: What rows are.
        what: The change in words; "" if there is none.
    """
    lines = [f"from  {headline(a)}", f"to    {headline(b)}"]
    lines += [f"      {what}"] if what else []
    lines += ["", _DIFF_TITLES]
    changes = changed_rows(a, b, by)
    for title, rows in changes:
        lines.append(title)
        lines += [
            _diff_line(f"  {x.name}", (x.flash_bytes, y.flash_bytes), (x.ram_bytes, y.ram_bytes))
            for x, y in rows
        ]
    if not changes:
        lines.append("nothing changed")
    x, y = a.totals, b.totals
    lines.append(_diff_line("total", (x.flash_bytes, y.flash_bytes), (x.ram_bytes, y.ram_bytes)))
    without = (x.flash_bytes_without_models, y.flash_bytes_without_models)
    lines.append(_diff_line("  without models", without, (0, 0)))
    if a.stack or b.stack:
        stacks = (a.stack_bytes or 0, b.stack_bytes or 0)
        lines.append(_diff_line(_STACK_TITLE, (0, 0), stacks))
    return _text([lines])


def diff_document(a: SizeReport, b: SizeReport, by: By = By.PART) -> dict[str, object]:
    """The differences for programs to read: rows add up to the change of the totals."""
    totals = ("flash_bytes", "flash_bytes_without_models", "ram_bytes")
    return {
        "by": str(by),
        "profiles": [a.profile, b.profile],
        **_pairs(a.totals, b.totals, *totals),
        **_pairs(a, b, "stack_bytes"),
        "groups": [
            {
                "title": title,
                "rows": [
                    {"name": x.name, **_pairs(x, y, "flash_bytes", "ram_bytes")} for x, y in rows
                ],
            }
            for title, rows in changed_rows(a, b, by)
        ],
    }


def _pairs(a: object, b: object, *names: str) -> dict[str, list[int | None]]:
    """Numbers of two results side by side."""
    return {name: [getattr(a, name), getattr(b, name)] for name in names}


def dtype_notice(report: SizeReport) -> str:
    """What got larger by selecting dtypes, and what to do; "" if nothing did.

    Lines end in newlines.
    """
    return _text([_dtype_lines(report)])


def _dtype_lines(report: SizeReport) -> Iterator[str]:
    """What `dtype_notice` says."""
    found = report.dtype_comparison
    if found is None:
        return
    products = (
        ("flash", found.selected_flash_bytes, found.every_flash_bytes),
        ("RAM", found.selected_ram_bytes, found.every_ram_bytes),
    )
    is_larger = any(selected > every for _, selected, every in products)
    if not is_larger and not found.larger:
        return
    yield "larger with the selected dtypes than with every dtype, in bytes:"
    for what, selected, every in products:
        if selected > every:
            yield f"  the firmware's {what}: {selected:,} instead of {every:,}"
    for kernel in found.larger:
        yield (f"  {kernel.operator}: {kernel.selected_bytes:,} instead of {kernel.every_bytes:,}")
    if found.larger:
        yield "to have every dtype of an operator, add it to operators.include"
    yield 'to have every dtype of all, write select = "all" in [dtypes]'
