from __future__ import annotations

import hashlib
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest

import orchestrator.report
from orchestrator.measure.size import FirmwareStack, SizeTotals
from orchestrator.memory.plan import MemoryPlan
from orchestrator.report import svg
from orchestrator.report.facts import ReportFacts
from orchestrator.report.history import History, Point, change_of_locks, change_of_reports
from orchestrator.report.memory_map import Cell, flash_tree, memories
from orchestrator.report.page import gauges, operator_rows, page
from orchestrator.report.pictures import KINDS, MOST_DRAWN, NoFontsError, Picture, pictures, png
from orchestrator.report.svg import asset
from tests.conftest import CASES
from tests.unit.measure.measure_cases import CASES as LINKED
from tests.unit.measure.measure_cases import case as linked_case
from tests.unit.report.report_cases import NO_KERNELS, facts_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PORTABLE = [c for c in CASES if c not in NO_KERNELS]
HOSTILE = "</script></title><img src=x onerror=alert(1)>\"'&\u202e\x00"
VENDOR = Path(orchestrator.report.__file__).parent / "page" / "vendor"
VOID = {"meta", "link", "br", "img", "path", "rect"}


class _Reader(HTMLParser):
    """Elements of a page with their attributes, and whether they nest."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.text = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] not in ("script", "style"):
            self.text += data


def _read(facts: ReportFacts) -> _Reader:
    reader = _Reader(page(facts))
    assert reader.open == []
    tags = [tag for tag, _ in reader.found]
    assert (tags.count("script"), tags.count("style")) == (2, 2)
    for tag, attributes in reader.found:
        assert tag not in ("img", "iframe", "object", "base"), attributes
        assert not any(name.startswith("on") for name in attributes)
        assert "src" not in attributes
        link = attributes.get("href") or "#"
        assert link.startswith("#") or link == "data:,"
    ids = [a["id"] for _, a in reader.found if "id" in a]
    assert len(ids) == len(set(ids))
    return reader


def _empty() -> ReportFacts:
    size = replace(
        linked_case("host-zig").measure(),
        totals=SizeTotals(**dict.fromkeys(SizeTotals.__dataclass_fields__, 0)),
        contributors=(),
        sections=(),
        symbols=(),
        parts=(),
        operators=(),
        methods=(),
    )
    return ReportFacts(
        size=size,
        memory=MemoryPlan(models=()),
        methods=(),
        kernels=(),
        board=None,
        budget_flash=None,
        budget_ram=None,
    )


PRODUCTS: dict[str, Callable[[], ReportFacts]] = {
    "empty": _empty,
    "host": lambda: facts_of("mlp"),
    "board": lambda: facts_of("mlp", cpu="cortex-m55", budget=1 << 20),
    "prelinked": lambda: facts_of("kws_dscnn_fp32", cpu="cortex-m55", prelinked=True),
    "two models": lambda: facts_of("mlp", "multi_method"),
    "two arenas": lambda: facts_of("two_arenas"),
    "jumps": lambda: facts_of("cond_branch"),
    "state": lambda: facts_of("kv_cache"),
    "delegate": lambda: facts_of("xnnpack_partial"),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_a_page_is_whole_and_always_the_same(name: str) -> None:
    facts = PRODUCTS[name]()
    _read(facts)
    assert page(facts) == page(facts)


@pytest.mark.parametrize("case", PORTABLE)
def test_every_program_has_a_page(case: str) -> None:
    assert len(page(facts_of(case))) < 1_000_000


def test_what_the_page_says() -> None:
    text = " ".join(_read(facts_of("mlp", cpu="cortex-m55", budget=1 << 20)).text.split())
    assert "% of 1 MiB budget" in text
    assert "aten::addmm.out" in text
    assert "0x30000000" in text
    assert "mlp.forward arena 1" in text
    assert "serves `orchestrator run`; only in firmware.elf" in text


def test_a_delegate_is_an_instruction() -> None:
    assert "delegate XnnpackBackend" in _read(facts_of("xnnpack_partial")).text


def test_names_of_strangers_stay_text() -> None:
    facts = facts_of("mlp")
    (method,) = facts.methods
    tensors = {i: replace(t, name=HOSTILE) for i, t in method.tensors.items()}
    steps = tuple(
        replace(s, operator=HOSTILE, function=HOSTILE, source=HOSTILE) for s in method.steps
    )
    size = replace(
        facts.size,
        profile=HOSTILE,
        target=replace(facts.size.target, board=HOSTILE),
        missing=(HOSTILE,),
        symbols=tuple(replace(s, name=HOSTILE) for s in facts.size.symbols),
        sections=tuple(replace(s, name=HOSTILE) for s in facts.size.sections),
        contributors=tuple(
            replace(c, name=HOSTILE + str(n)) for n, c in enumerate(facts.size.contributors)
        ),
    )
    method = replace(
        method, model=HOSTILE, name=HOSTILE, steps=steps, tensors=tensors, removed=((1, HOSTILE),)
    )
    kernels = tuple(replace(k, function=HOSTILE) for k in facts.kernels)
    hostile = replace(facts, size=size, methods=(method,), kernels=kernels)
    reader = _read(hostile)
    assert "\x00" not in page(hostile)
    assert "\u202e" not in page(hostile)
    assert "onerror=alert(1)" in reader.text
    pytest.importorskip("quickjs")
    for kind in KINDS:
        for picture in pictures(hostile, kind):
            ET.fromstring(picture.text)  # noqa: S314  # our own


def test_pictures_need_no_browser() -> None:
    pytest.importorskip("quickjs")
    facts = facts_of("kws_dscnn_fp32")
    for kind in KINDS:
        (picture,) = pictures(facts, kind)
        _, _, styles = picture.text.partition("<style>")
        styles, _, _ = styles.partition("</style>")
        assert "var(" not in styles
        assert "root" not in styles
        light, _, dark = styles.partition("@media (prefers-color-scheme: dark)")
        assert ".c0 { fill: #8fbaf3; }" in light
        assert ".c0 { fill: #2c5c99; }" in dark


def test_a_long_graph_is_drawn() -> None:
    pytest.importorskip("quickjs")
    facts = facts_of("mlp")
    (method,) = facts.methods
    step = method.steps[0]
    steps = [replace(step, index=n, origin=n, after=(n - 1,)) for n in range(MOST_DRAWN)]
    long = replace(facts, methods=(replace(method, steps=tuple(steps)),))
    (picture,) = pictures(long, "graph")
    assert picture.text.count('class="node"') == MOST_DRAWN + 1  # the input
    steps.append(step)
    longer = replace(facts, methods=(replace(method, steps=tuple(steps)),))
    assert not list(pictures(longer, "graph"))


def test_text_without_fonts_is_not_left_out() -> None:
    pytest.importorskip("resvg_py")
    (picture,) = pictures(facts_of("mlp"), "flash")
    with pytest.raises(NoFontsError):
        png(picture, system_fonts=False)
    large = svg.picture([], width=10**5, height=10**5, label="large", kind="graph")
    data = png(Picture(name="large", text=large))
    assert int.from_bytes(data[16:20], "big") < 10**4


def test_a_picture_says_what_it_leaves_out() -> None:
    facts = facts_of("mlp")
    (method,) = facts.methods
    (arena,) = method.arenas
    many = [replace(v, begin=v.begin + n, end=v.end + n) for v in arena.lives for n in range(500)]
    assert "not drawn" not in page(facts)
    cut = replace(method, arenas=(replace(arena, lives=tuple(many)),))
    text = page(replace(facts, methods=(cut,)))
    left_out = len(many) - 800
    assert f"the {left_out:,} smallest of {len(many):,} lifetimes are not drawn" in text
    assert text.count('class="block ') == 800


def test_changes_and_history_are_text_as_well() -> None:
    facts = facts_of("mlp")
    change = change_of_locks(HOSTILE, {"flash": 7}, {"flash": 9, "ram": 1}, [HOSTILE])
    point = Point(
        commit="ab", date="2026-01-02", subject=HOSTILE, values=((5, None), ()), changed=(0,)
    )
    later = replace(point, values=((5, None), (7, 8)), changed=(1,))
    history = History(products=("x.lock", HOSTILE), names=("flash", "ram"), points=(point, later))
    text = page(facts, changes=[change], history=history)
    reader = _Reader(text)
    assert [tag for tag, _ in reader.found].count("script") == 2
    assert "+2" in reader.text
    picture = ET.fromstring(history.picture)  # noqa: S314  # our own
    lines = [e.get("class") for e in picture.iter() if "d" in e.attrib]
    assert [c for c in lines if c and c.startswith("series")] == [
        *("series s0", "series s1"),
        *("series s0", "series s1"),
    ]


# Numbers ------------------------------------------------------------------------


def _leaves(cell: Cell) -> Iterator[Cell]:
    if not cell.parts:
        yield cell
    for part in cell.parts:
        yield from _leaves(part)


@pytest.mark.parametrize("name", LINKED)
def test_the_tree_of_flash_adds_up(name: str) -> None:
    size = linked_case(name).measure()
    tree = flash_tree(replace(_empty(), size=size))
    assert tree.size_bytes == size.totals.flash_bytes
    assert sum(c.size_bytes for c in _leaves(tree)) == size.totals.flash_bytes


def test_weights_are_counted_once_by_layer() -> None:
    for prelinked in (False, True):
        facts = facts_of("kws_dscnn_fp32", prelinked=prelinked)
        tree = flash_tree(facts)
        (model,) = (c for c in tree.parts if c.kind == "model")
        assert model.size_bytes == facts.size.totals.model_bytes
        assert sum(c.size_bytes for c in _leaves(model)) == model.size_bytes
        assert sum("convolution" in c.name for c in model.parts) == 9


@pytest.mark.parametrize("name", ["m55-zig", "m4-gnu"])
def test_sections_lie_in_their_memories(name: str) -> None:
    found = linked_case(name)
    facts = replace(_empty(), size=found.measure(), board=found.target.board)
    every = memories(facts)
    assert facts.board is not None
    assert [m.name for m in every] == [r.name for r in facts.board.regions]
    assert sum(len(m.sections) for m in every) == len(facts.size.sections)
    for memory in every:
        for section in memory.sections:
            assert memory.begin <= section.begin <= section.end <= memory.end


def test_gauges_take_the_budget_before_the_board() -> None:
    facts = facts_of("mlp", cpu="cortex-m55")
    deepest = FirmwareStack(stack_bytes=70, reserve_bytes=100, parts=(), unknown=())
    facts = replace(facts, size=replace(facts.size, stack=deepest))
    flash, ram, stack = gauges(facts)
    assert (flash.what, flash.is_near) == ("of the board, no budget", False)
    assert ram.limit == sum(r.size_bytes for r in facts.size.regions if r.kind == "ram")
    assert (stack.percent, stack.what) == (70, "reserved, part of RAM")
    full = replace(facts, budget_flash=facts.size.totals.flash_bytes)
    assert (gauges(full)[0].percent, gauges(full)[0].is_near) == (100, True)
    assert [g.limit for g in gauges(facts_of("mlp"))] == [None, None]


def test_costs_of_a_run_are_added_up() -> None:
    facts = facts_of("mlp")
    (method,) = facts.methods
    costs = {("mlp", method.name, s.index): 10 + s.index for s in method.steps}
    rows = operator_rows(replace(facts, costs=costs, cost_unit="instructions"))
    assert sum(r.instructions or 0 for r in rows) == sum(costs.values())
    assert rows[0].instructions == max(r.instructions or 0 for r in rows)
    measured = replace(facts, costs=costs, cost_unit="instructions")
    assert ">instructions</th>" in page(measured)
    assert ">est. cycles</th>" not in page(measured)
    cycles = {key: 2 * total for key, total in costs.items()}
    estimated = replace(measured, cycles=cycles, cycle_assumption="about")
    assert sum(r.cycles or 0 for r in operator_rows(estimated)) == sum(cycles.values())
    assert page(estimated).count(">est. cycles</th>") == 2


def test_the_change_of_a_build_to_itself_is_none() -> None:
    size = linked_case("m55-zig").measure()
    change = change_of_reports("itself", size, size)
    assert [t.rows for t in change.tables[1:]] == [(), ()]
    assert {r.change for r in change.tables[0].rows} == {0}


def test_changes_add_up_to_those_of_the_totals() -> None:
    before, after = (linked_case(n).measure() for n in ("m55-zig", "m55-gnu"))
    totals, flash, ram = change_of_reports("gnu", before, after).tables
    assert sum(r.change for r in flash.rows) == totals.rows[0].change
    assert sum(r.change for r in ram.rows) == totals.rows[2].change


# Files of others ----------------------------------------------------------------


def test_copied_scripts_are_as_they_came() -> None:
    digest = hashlib.sha256((VENDOR / "dagre.min.js").read_bytes()).hexdigest()
    readme = (VENDOR / "README.md").read_text()
    assert re.findall(r"[0-9a-f]{64}", readme) == [digest]
    assert "MIT" in (VENDOR / "dagre.LICENSE").read_text()


@pytest.mark.parametrize(
    "name", ["page.js", "graph.js", "vendor/dagre.min.js", "page.css", "charts.css"]
)
def test_inline_files_cannot_end_their_element(name: str) -> None:
    text = asset(name)
    assert "</s" not in text
    assert "<!--" not in text
    assert not re.search(r"url\(|@import|XMLHttpRequest|\bimport\(", text.replace("url(#arrow", ""))


@pytest.mark.parametrize("case", ["kws_dscnn_int8_m55", "transformer_block"])
def test_arenas_and_graphs_have_the_same_colours(case: str) -> None:
    facts = facts_of(case, cpu="cortex-m55")
    arena, graph = (next(pictures(facts, kind)).text for kind in ("arena", "graph"))
    swatches = dict(re.findall(r'swatch (c[0-9])".*?<text[^>]*>([^<]+)<', arena))
    nodes = set(re.findall(r'class="(c[0-9])"/><text[^>]*>([^<]+)<', graph))
    operators = {name for _, name in nodes if name != "input"} & {*swatches.values()}
    assert len(operators) > 3
    for colour, name in swatches.items():
        assert name not in operators or (colour, name) in nodes
