"""`report.html` in Chromium: what a reader sees, points at, presses and zooms."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal
from xml.etree import ElementTree as ET

import pytest

from orchestrator.report.page import page
from orchestrator.report.pictures import pictures
from tests.tools import need_tool
from tests.unit.report.report_cases import facts_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from playwright.sync_api import Browser, Locator, Page

    from orchestrator.report import ReportFacts

pytestmark = pytest.mark.toolchain

_FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update"),
    *("--disable-sync", "--force-prefers-reduced-motion"),
)
WIDE, NARROW = 1280, 390
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
BACKGROUND = "getComputedStyle(document.body).backgroundColor"
PRODUCTS: dict[str, Callable[[], ReportFacts]] = {
    "host": lambda: facts_of("kws_dscnn_fp32"),
    "board": lambda: facts_of("kws_dscnn_int8_m55", cpu="cortex-m55", prelinked=True),
    "two models": lambda: facts_of("mlp", "multi_method"),
}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    chromium = need_tool("chromium", "chromium-browser", "google-chrome")
    from playwright.sync_api import sync_playwright  # noqa: PLC0415

    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=chromium, args=_FLAGS)
        yield found
        found.close()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pages")
    for name, facts in PRODUCTS.items():
        (folder / f"{name}.html").write_text(page(facts()))
    return folder


class _Opened:
    """A page, and everything that it complained about or asked for."""

    def __init__(self, found: Page, file: Path) -> None:
        self.page = found
        self.complaints: list[str] = []
        self.requests: list[str] = []
        found.on("console", lambda m: self.complaints.append(m.text))
        found.on("pageerror", lambda e: self.complaints.append(str(e)))
        found.on("request", lambda r: self.requests.append(r.url))
        found.goto(file.as_uri())

    def texts(self, selector: str) -> list[str]:
        """Texts of the elements that are seen."""
        found = self.page.locator(selector)
        return [t for t in found.all_inner_texts() if t]

    def check(self, file: Path) -> None:
        assert self.complaints == []
        assert {u for u in self.requests if not u.startswith("data:")} == {file.as_uri()}


@pytest.mark.parametrize("name", PRODUCTS)
def test_pages_fit_and_complain_about_nothing(browser: Browser, folder: Path, name: str) -> None:
    file = folder / f"{name}.html"
    for width in (WIDE, NARROW):
        with browser.new_page(viewport={"width": width, "height": 900}) as tab:
            opened = _Opened(tab, file)
            places = tab.locator(".graph")
            for n in range(places.count()):
                places.nth(n).scroll_into_view_if_needed()
                places.nth(n).locator(".node").first.wait_for()
            # Nothing makes the page wider than the window: tables and pictures scroll.
            assert tab.evaluate("document.documentElement.scrollWidth") == width
            for scheme in SCHEMES:
                tab.emulate_media(color_scheme=scheme)
                background = tab.evaluate(BACKGROUND)
                (red,) = re.findall(r"rgb\((\d+),", background)
                assert (int(red) < 64) is (scheme == "dark")
            opened.check(file)


def _names(tab: Page) -> set[str]:
    """Labels of the treemap that are seen."""
    shown = tab.locator("svg.treemap .cell:visible text")
    return {t for t in shown.all_text_contents() if t}


def test_the_treemap_zooms_by_mouse_and_by_keyboard(browser: Browser, folder: Path) -> None:
    file = folder / "board.html"
    with browser.new_page(viewport={"width": WIDE, "height": 900}) as tab:
        opened = _Opened(tab, file)
        assert {"Kernels", "Runtime"} <= _names(tab)
        kernels = tab.locator('svg.treemap .l1[data-n="Kernels"]')
        before = kernels.bounding_box()
        kernels.locator("rect").click(position={"x": 5, "y": 5})
        crumbs = tab.locator("#crumbs button")
        assert crumbs.all_inner_texts() == ["All flash", "Kernels"]
        assert "Runtime" not in _names(tab)
        part = tab.locator("svg.treemap .l2:visible").first
        after = part.bounding_box()
        assert before
        assert after
        assert after["width"] * after["height"] > before["width"] * before["height"]
        part.focus()
        tab.keyboard.press("Enter")
        assert crumbs.count() == 3
        crumbs.first.click()
        assert {"Kernels", "Runtime"} <= _names(tab)
        # The keyboard alone: one stop, arrows go on, Enter opens, Escape closes.
        tab.locator('svg.treemap [tabindex="0"]').focus()
        tab.keyboard.press("Enter")
        assert crumbs.count() == 2
        tab.locator("svg.treemap .cell:visible").first.focus()
        tab.keyboard.press("ArrowRight")
        tab.keyboard.press("Escape")
        assert crumbs.count() == 1
        opened.check(file)


def _point_at(part: Locator) -> None:
    """Scroll there, which hides the tip, and then point."""
    part.scroll_into_view_if_needed()
    part.page.evaluate("new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")
    part.hover()


def test_pointing_says_what_it_is(browser: Browser, folder: Path) -> None:
    file = folder / "board.html"
    with browser.new_page(viewport={"width": WIDE, "height": 900}) as tab:
        opened = _Opened(tab, file)
        tip = tab.locator("#tip")
        assert tip.is_hidden()
        _point_at(tab.locator("svg.arena .item").nth(1))
        tip.wait_for()
        text = tip.inner_text()
        assert re.search(r"Char \[1, .*\], [\d,]+ bytes at [\d,]+, written by #\d+ ", text)
        assert "live from #" in text
        box = tip.bounding_box()
        assert box
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= WIDE
        _point_at(tab.locator("svg.memory .item").first)
        tip.wait_for()
        assert "bytes from 0x" in tip.inner_text()
        tab.locator("h1").hover()
        assert tip.is_hidden()
        graph = tab.locator(".graph").first
        graph.scroll_into_view_if_needed()
        _point_at(graph.locator(".node").nth(2))
        tip.wait_for()
        assert "MACs" in tip.inner_text()
        # Arrows go from part to part, which says itself, for readers of screens too.
        first = tab.locator("svg.arena [tabindex='0']").first
        first.focus()
        tab.keyboard.press("ArrowRight")
        focused = tab.evaluate("document.activeElement.getAttribute('aria-label')")
        assert focused == tip.inner_text()
        opened.check(file)


def test_the_graph_zooms_and_moves(browser: Browser, folder: Path) -> None:
    file = folder / "host.html"
    with browser.new_page(viewport={"width": WIDE, "height": 900}) as tab:
        opened = _Opened(tab, file)
        graph = tab.locator(".graph").first
        graph.scroll_into_view_if_needed()
        svg = graph.locator("svg")
        svg.wait_for()
        rows = tab.locator("#steps0 tbody tr").count()
        assert graph.locator(".node").count() == rows + 2
        start = svg.get_attribute("viewBox")
        tab.get_by_role("button", name="Zoom in").click()
        closer = svg.get_attribute("viewBox")
        assert closer != start
        box = svg.bounding_box()
        assert box
        tab.mouse.move(box["x"] + 40, box["y"] + 300)
        tab.mouse.down()
        tab.mouse.move(box["x"] + 140, box["y"] + 200)
        tab.mouse.up()
        assert svg.get_attribute("viewBox") != closer
        with tab.expect_download() as download:
            tab.get_by_role("button", name="Save the graph as SVG").click()
        assert download.value.suggested_filename == "kws_dscnn_fp32.forward.svg"
        saved = download.value.path().read_text()
        assert "var(" not in saved
        # `--svg graph` draws the same, without a browser.
        pytest.importorskip("quickjs")
        (picture,) = pictures(PRODUCTS["host"](), "graph")
        assert _drawn(saved) == _drawn(picture.text)
        opened.check(file)


def _drawn(text: str) -> list[str]:
    """Elements of an SVG with their attributes, but for its styles."""
    root = ET.fromstring(text)  # noqa: S314  # our own
    return [
        ET.canonicalize(ET.tostring(child, encoding="unicode"), strip_text=True)
        for child in root
        if not child.tag.endswith("style")
    ]


def test_light_and_dark_by_hand_and_sorted_tables(browser: Browser, folder: Path) -> None:
    file = folder / "host.html"
    with browser.new_page(color_scheme="light") as tab:
        opened = _Opened(tab, file)
        light = tab.evaluate(BACKGROUND)
        tab.get_by_role("button", name="Switch between light and dark").click()
        assert tab.evaluate(BACKGROUND) != light
        column = "#operators tbody td:nth-child(2)"
        tab.locator("#operators").get_by_role("button", name="calls").click()
        down = [int(t) for t in opened.texts(column)]
        assert down == sorted(down, reverse=True)
        tab.locator("#operators").get_by_role("button", name="calls").click()
        assert [int(t) for t in opened.texts(column)] == sorted(down)
        opened.check(file)


def test_without_scripts_the_tables_are_there(browser: Browser, folder: Path) -> None:
    file = folder / "board.html"
    context = browser.new_context(java_script_enabled=False)
    with context.new_page() as tab:
        opened = _Opened(tab, file)
        for section in ("summary", "flash", "memory", "arenas", "operators", "why"):
            assert tab.locator(f"#{section}").is_visible()
        assert "cortex_m::quantized_conv2d.out" in tab.locator("#operators").inner_text()
        for picture in ("treemap", "memory", "arena"):
            assert tab.locator(f"svg.{picture}").first.is_visible()
        assert {"Kernels", "Runtime"} <= _names(tab)
        details = tab.locator("#graph details").first
        details.locator("summary").click()
        assert details.locator("tbody tr").first.is_visible()
        # What needs a script is not offered.
        assert tab.locator("#theme").is_hidden()
        assert tab.locator(".graph").first.is_hidden()
        opened.check(file)
    context.close()
