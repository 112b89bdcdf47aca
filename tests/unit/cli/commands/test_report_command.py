from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any

import pytest

from orchestrator.cli.main import run
from orchestrator.report.svg import WIDTH
from orchestrator.shell.distribution import pip_install
from orchestrator.shell.page_server import PageServer
from tests.tools import need_tool
from tests.unit.build.fake_project import write_project
from tests.unit.build.fakes import FakeShell

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Report = Callable[..., str]


@pytest.fixture
def report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Report:
    """Runs `report demo.toml ...`, and returns what it prints."""
    write_project(tmp_path)
    monkeypatch.chdir(tmp_path)
    fakes = FakeShell()

    def call(*arguments: str, code: int = 0) -> str:
        found = run(["report", "demo.toml", *arguments], shell=fakes.shell)
        out, err = capsys.readouterr()
        assert found == code, err
        return out if code == 0 else err

    return call


def _code(text: str) -> str:
    return text.partition("[")[2].partition("]")[0]


def test_a_build_that_exceeds_its_budget_is_reported(
    report: Report, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its outputs are not published; those of the build before stay, with its lock."""
    report()
    lock = (tmp_path / "demo.lock").read_bytes()
    published = (tmp_path / "build/demo/report.json").read_bytes()
    write_project(tmp_path, more='[budget]\nflash = "1 KiB"\n')

    def call(*arguments: str, code: int = 0) -> tuple[str, str]:
        capsys.readouterr()
        assert run(arguments, shell=FakeShell().shell) == code
        out, err = capsys.readouterr()
        return out, err

    note = "demo: the last build exceeds its budget; sizes are its"
    for _ in range(2):
        assert _code(call("build", "demo.toml", code=6)[1]) == "over-budget"
        out, err = call("size", "demo.toml", "--json")
        assert json.loads(out)["totals"]["flash_bytes"] > 1024
        assert err.startswith(note)
    page = "build/demo/.work/over_budget/report.html"
    for more in ((), ("--no-build",), ("--diff", "demo.lock")):
        out, err = call("report", "demo.toml", *more)
        assert out in (f"{page}\n", "build/demo/.work/report.html\n")
        assert err.startswith(note)
    # The bound is beside what is needed.
    assert "of 1,024" in (tmp_path / page).read_text()
    assert _code(call("run", "demo.toml", "--no-build", code=6)[1]) == "over-budget"
    # A what-if is how to get back below it; the budget does not bound it.
    out, _ = call("size", "demo.toml", "--optimize", "speed")
    assert "what if" in out
    assert (tmp_path / "demo.lock").read_bytes() == lock
    assert (tmp_path / "build/demo/report.json").read_bytes() == published

    write_project(tmp_path, more='[budget]\nflash = "1 MiB"\n')
    assert call("report", "demo.toml")[0] == "build/demo/report.html\n"
    assert not (tmp_path / page).exists()
    assert call("size", "demo.toml")[1] == ""
    # Back to a budget that was exceeded: nothing says that all is up to date.
    write_project(tmp_path, more='[budget]\nflash = "1 KiB"\n')
    call("build", "demo.toml", code=6)
    write_project(tmp_path)
    call("build", "demo.toml")
    assert call("size", "demo.toml")[1] == ""


def test_it_builds_first(report: Report, tmp_path: Path) -> None:
    assert _code(report("--no-build", code=2)) == "not-built"
    assert report() == "build/demo/report.html\n"
    text = (tmp_path / "build/demo/report.html").read_text()
    assert "<h1>demo</h1>" in text
    assert json.loads(report("--no-build", "--json")) == {"report": "build/demo/report.html"}


def test_the_lock_has_the_data_and_not_the_page(report: Report, tmp_path: Path) -> None:
    report()
    lock = (tmp_path / "demo.lock").read_text()
    assert '"report.json" = ' in lock
    assert "report.html" not in lock
    assert '"flash" = "22837 bytes"' in lock


def test_a_change_of_the_budget_reaches_the_page(report: Report, tmp_path: Path) -> None:
    report()
    assert "no budget" in (tmp_path / "build/demo/report.html").read_text()
    write_project(tmp_path, more='[budget]\nram = "4 MiB"\n')
    report()
    assert "of 4 MiB budget" in (tmp_path / "build/demo/report.html").read_text()


def test_changes(report: Report, tmp_path: Path) -> None:
    report()
    shutil.copyfile(tmp_path / "demo.lock", tmp_path / "old.lock")
    for other in ("build/demo", "build/demo/report.json", "demo.toml", "old.lock"):
        assert report("--diff", other) == "build/demo/.work/report.html\n"
        text = (tmp_path / "build/demo/.work/report.html").read_text()
        assert f"<h2>Changes from {other}</h2>" in text
    assert report("--diff", "old.lock", "--output", "x.html") == "x.html\n"
    assert _code(report("--diff", "missing", code=2)) == "unreadable-file"
    (tmp_path / "bad.json").write_text("{}")
    assert _code(report("--diff", "bad.json", code=2)) == "bad-report"


def _git(folder: Path, *arguments: str) -> None:
    settings = ("user.name=a", "user.email=a@b", "init.defaultBranch=x")
    options = [part for setting in settings for part in ("-c", setting)]
    subprocess.run(
        [need_tool("git"), *options, *arguments], cwd=folder, check=True, capture_output=True
    )


def _history_rows(tmp_path: Path) -> list[list[str]]:
    """Cells of the table on the page."""
    page = (tmp_path / "build/demo/.work/report.html").read_text()
    _, _, table = page[page.index('id="history"') :].partition("<tbody>")
    table, _, _ = table.partition("</table>")
    return [re.findall(r"<t[dh][^>]*>([^<]*)", row) for row in table.split("<tr>")[1:]]


def test_the_history_of_a_lock(report: Report, tmp_path: Path) -> None:
    assert _code(report("--history", code=2)) == "no-history"
    _git(tmp_path, "init")
    _git(tmp_path, "add", "demo.lock")
    _git(tmp_path, "commit", "-m", "first <b>product</b>")
    text = (tmp_path / "demo.lock").read_text()
    (tmp_path / "demo.lock").write_text(text.replace('"22837 bytes"', '"30000 bytes"'))
    _git(tmp_path, "commit", "-am", "larger")
    (tmp_path / "demo.lock").write_text("damaged")
    _git(tmp_path, "commit", "-am", "damaged")
    (tmp_path / "demo.lock").write_text(text)
    _git(tmp_path, "commit", "-am", "as before")
    table = report("--history").splitlines()
    assert re.sub(r"^\S+  \S+", "", table[2]) == "  demo.lock  30,000  2,512  larger"
    assert [line.split()[0] for line in table] == [
        "commit",
        *(row[0] for row in _history_rows(tmp_path)),
        "build/demo/.work/report.html",
    ]
    assert [row[2:4] for row in _history_rows(tmp_path)] == [
        ["as before", "22,837"],
        ["larger", "30,000"],
        ["first &lt;b&gt;product&lt;/b&gt;", "22,837"],
    ]
    page = (tmp_path / "build/demo/.work/report.html").read_text()
    assert "1 version of a lock left out, which cannot be read or names no" in page


def test_the_history_of_several_locks(report: Report, tmp_path: Path) -> None:
    report()
    text = (tmp_path / "demo.lock").read_text()
    other = tmp_path / "more" / "other.lock"
    other.parent.mkdir()
    _git(tmp_path, "init")
    _git(tmp_path, "add", "demo.lock")
    _git(tmp_path, "commit", "-m", "one")
    other.write_text(text.replace('"22837 bytes"', '"40000 bytes"'))
    _git(tmp_path, "add", "more")
    _git(tmp_path, "commit", "-m", "two")
    other.unlink()
    _git(tmp_path, "commit", "-am", "removed")
    (tmp_path / "demo.lock").write_text(text.replace("22837", "23000"))
    other.write_text(text)
    _git(tmp_path, "add", "more")
    _git(tmp_path, "commit", "-am", "both")
    (tmp_path / "demo.lock").write_text(text)
    for given in ("more", "more/other.lock"):
        found = json.loads(report("--history-of", given, "--json"))["history"]
        assert found["products"] == ["demo.lock", "more/other.lock"]
        flash = found["names"].index("flash")
        assert [
            [p["subject"], p["changed"], *(v and v[flash] for v in p["values"])]
            for p in found["points"]
        ] == [["one", [0], 22837, []], ["two", [1], 22837, 40000], ["both", [0, 1], 23000, 22837]]
        assert [row[2:5] for row in _history_rows(tmp_path)] == [
            ["both", "demo.lock", "23,000"],
            ["both", "more/other.lock", "22,837"],
            ["two", "more/other.lock", "40,000"],
            ["one", "demo.lock", "22,837"],
        ]
    (tmp_path / "empty").mkdir()
    assert "empty has no locks" in report("--history-of", "empty", code=2)


def test_costs(report: Report, tmp_path: Path) -> None:
    costs: dict[str, Any] = {"model": "net", "method": "forward", "instruction": 0}
    costs["total"] = 4321
    document: dict[str, Any] = {"profile": {"unit": "instructions", "instructions": [costs]}}
    (tmp_path / "costs.json").write_text(json.dumps(document))
    report("--costs", "costs.json")
    page = (tmp_path / "build/demo/.work/report.html").read_text()
    assert 'data-w="4.32 k instructions"' in page
    assert "est. cycles" not in page
    costs["cycles"] = 6543
    estimate = {
        "assumption": "cycles are an estimate for cortex-m4: no wait states",
        "accuracy": "devices took 1.04 times as many, with kernels of CMSIS-NN",
    }
    document["profile"]["cycle_estimate"] = estimate
    (tmp_path / "costs.json").write_text(json.dumps(document))
    report("--costs", "costs.json")
    page = (tmp_path / "build/demo/.work/report.html").read_text()
    assert "4,321 instructions measured, about 6,543 cycles" in page
    assert "Cycles are an estimate for cortex-m4: no wait states; devices took 1.04" in page
    assert " with kernels of CMSIS-NN.</p>" in " ".join(page.split())
    costs["model"] = "other"
    (tmp_path / "costs.json").write_text(json.dumps(document))
    found = report("--costs", "costs.json", code=2)
    assert _code(found) == "bad-costs"
    assert "method other.forward, which is not built" in found
    document["profile"]["cycle_estimate"] = 1
    (tmp_path / "costs.json").write_text(json.dumps(document))
    assert _code(report("--costs", "costs.json", code=2)) == "bad-costs"
    (tmp_path / "costs.json").write_text("[]")
    assert _code(report("--costs", "costs.json", code=2)) == "bad-costs"


EVALUATION: dict[str, Any] = {
    "profile": "demo",
    "model": "net",
    "method": "forward",
    "on": "host",
    "data": "data.npz",
    "samples": 4,
    "metric": {"name": "top1", "value": 0.75, "values": {"top1": 0.75}, "right": 3},
    "classes": ["cat", "<dog>"],
    "confusion": [[2, 1], [0, 1]],
    "reference": None,
    "worst": [{"sample": "1", "label": "cat", "answer": "<dog>", "error": "inf"}],
    "layers": None,
}


def test_accuracy(report: Report, tmp_path: Path) -> None:
    (tmp_path / "accuracy.json").write_text(json.dumps(EVALUATION))
    report("--accuracy", "accuracy.json")
    page = (tmp_path / "build/demo/.work/report.html").read_text()
    _, _, section = page.partition('id="accuracy"')
    section, _, _ = section.partition("</section>")
    assert "4 samples of data.npz, run on host" in section
    assert "0.75 <small>3 right" in section
    assert '<td class="num miss" style="--share:33%">1</td>' in section
    assert "&lt;dog&gt;" in section
    assert "<dog>" not in section


def test_confusions_of_many_classes(report: Report, tmp_path: Path) -> None:
    classes = [f"class {n}" for n in range(30)]
    confusion = [[int(n == m + 1) for n in range(30)] for m in range(30)]
    many = EVALUATION | {"classes": classes, "confusion": confusion}
    (tmp_path / "a.json").write_text(json.dumps(many))
    report("--accuracy", "a.json")
    page = (tmp_path / "build/demo/.work/report.html").read_text()
    assert "<caption>Confused most: 20 of 29 pairs</caption>" in page
    assert "<summary>The 1 worst of 4 samples</summary>" in page


@pytest.mark.parametrize(
    ("key", "value", "found"),
    [
        ("profile", "other", 'profile "other"'),
        ("method", "train", "method net.train"),
        ("confusion", [["many"]], "confusion.0.0: Input should be a valid integer"),
        ("samples", -1, "samples: Input should be greater than or equal to 0"),
    ],
)
def test_an_evaluation_of_something_else(
    report: Report, tmp_path: Path, key: str, value: object, found: str
) -> None:
    (tmp_path / "a.json").write_text(json.dumps(EVALUATION | {key: value}))
    text = report("--accuracy", "a.json", code=2)
    assert _code(text) == "bad-accuracy"
    assert found in text.replace('\\"', '"')


def test_pictures(report: Report, tmp_path: Path) -> None:
    assert report("--svg", "flash") == "demo-flash.svg\n"
    found = json.loads(report("--svg", "arena", "--output-dir", "p", "--json"))
    assert found == {"pictures": ["p/demo-net-forward-arena1.svg"]}
    assert "<style>" in (tmp_path / "p/demo-net-forward-arena1.svg").read_text()


def test_pictures_of_the_graph_and_in_pixels(report: Report, tmp_path: Path) -> None:
    pytest.importorskip("quickjs")
    pytest.importorskip("resvg_py")
    assert report("--svg", "graph") == "demo-net-forward-graph.svg\n"
    text = (tmp_path / "demo-net-forward-graph.svg").read_text()
    assert text.count('class="node"') == 7
    assert report("--png", "memory") == "demo-memory.png\n"
    data = (tmp_path / "demo-memory.png").read_bytes()
    assert data.startswith(b"\x89PNG")
    assert int.from_bytes(data[16:20], "big") == 2 * WIDTH


@pytest.mark.parametrize(
    ("option", "kind", "package"), [("--png", "flash", "resvg_py"), ("--svg", "graph", "quickjs")]
)
def test_pictures_without_their_extra(
    report: Report, monkeypatch: pytest.MonkeyPatch, option: str, kind: str, package: str
) -> None:
    report()
    monkeypatch.setitem(sys.modules, package, None)
    assert report(option, kind, code=7).splitlines() == [
        f"error[missing-package]: the package {package} is not installed",
        "   = needed: for PNG, and for pictures of the graph",
        f"   hint: {pip_install('pictures')}",
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--port", "80"], "--port requires --serve"),
        (["--output", "x"], "--output requires --diff, --history, --costs or --accuracy"),
        (["--output-dir", "x"], "--output-dir requires --svg or --png"),
        (["--svg", "flash", "--history"], "--svg shows the build alone"),
        (["--serve", "--diff", "x"], "--serve shows the build alone"),
        (["--png", "flash", "--history"], "--png shows the build alone"),
        (["--svg", "tree"], "argument --svg: invalid choice: 'tree'"),
        (["--port", "0", "--serve"], "argument --port: 0 is not a port"),
    ],
)
def test_options_that_contradict(report: Report, arguments: list[str], message: str) -> None:
    found = report(*arguments, code=2)
    assert found.startswith("error[usage]: ")
    assert message in found


# The server ---------------------------------------------------------------------


@pytest.fixture
def server(tmp_path: Path) -> Iterator[PageServer]:
    with PageServer(tmp_path / "report.html") as found:
        thread = threading.Thread(target=found.serve_forever, args=(0.01,))
        thread.start()
        yield found
        found.shutdown()
        thread.join()


def _get(url: str, **headers: str) -> str:
    request = urllib.request.Request(url, headers=headers)  # noqa: S310
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request, timeout=10) as answer:
        text: str = answer.read().decode()
        return text


def test_the_server_has_one_page_and_its_state(server: PageServer, tmp_path: Path) -> None:
    assert server.url.startswith("http://127.0.0.1:")
    assert "No report yet" in _get(server.url)
    before = _get(f"{server.url}state")
    (tmp_path / "report.html").write_text("<body>one</body>")
    assert _get(f"{server.url}state") != before
    page = _get(server.url)
    assert page.startswith("<body>one\n<script>")
    assert "location.reload()" in page
    with pytest.raises(urllib.error.HTTPError, match="404") as error:
        _get(f"{server.url}etc/passwd")
    error.value.close()


def test_pages_from_elsewhere_get_no_answer(server: PageServer) -> None:
    with pytest.raises(urllib.error.HTTPError, match="403") as error:
        _get(server.url, Host="example.com:80")
    error.value.close()
