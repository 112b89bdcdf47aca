"""`plumbing memory-plan` as users call it: plans, refusals and pictures."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from orchestrator.cli.commands import memory_plan
from orchestrator.cli.main import run
from orchestrator.planner import plan_blocks
from orchestrator.planner.blocks import Block, BlockPlan
from orchestrator.planner.plan_files import plan_svg
from tests.unit.golden import check_golden

DATA = Path(__file__).resolve().parents[3] / "data" / "memory-plans"
SMALL = "id,lower,upper,size\nb1,0,3,4\nb2,3,9,4\nb3,0,9,4\nb4,9,21,4\nb5,0,21,4\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.csv").write_text(SMALL)
    return tmp_path


def test_what_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plumbing", "memory-plan", "small.csv", "--capacity", "12"]) == 0
    assert capsys.readouterr().out == (
        "bytes        12\nlower bound  12\ngap          0.00 %\nfound by     greedy-by-size\n"
    )


def test_the_document(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plumbing", "memory-plan", "small.csv", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "blocks": 5,
        "size_bytes": 12,
        "lower_bound_bytes": 12,
        "peak_live_bytes": 12,
        "gap_percent": 0.0,
        "capacity_bytes": None,
        "planner": "greedy-by-size",
        "offsets": {"b1": 8, "b2": 8, "b3": 4, "b4": 4, "b5": 0},
    }


def test_the_output_has_an_offset_for_each_line(folder: Path) -> None:
    assert run(["plumbing", "memory-plan", "small.csv", "--output", "out.csv"]) == 0
    offsets = ("offset", "8", "8", "4", "4", "0")
    expected = [f"{a},{o}" for a, o in zip(SMALL.splitlines(), offsets, strict=True)]
    assert (folder / "out.csv").read_text().splitlines() == expected
    # What was written can be read again, and gives the same.
    assert run(["plumbing", "memory-plan", "out.csv", "--output", "again.csv"]) == 0
    assert (folder / "again.csv").read_text() == (folder / "out.csv").read_text()


def test_alignment_is_kept(folder: Path) -> None:
    (folder / "a.csv").write_text("alignment,size,upper,lower,id\n8,3,2,0,x\n\n4,5,2,0,y\n")
    assert run(["plumbing", "memory-plan", "a.csv", "--output", "out.csv"]) == 0
    assert (folder / "out.csv").read_text() == (
        "id,lower,upper,size,alignment,offset\nx,0,2,3,8,8\ny,0,2,5,4,0\n"
    )


def test_the_picture(folder: Path, request: pytest.FixtureRequest) -> None:
    (folder / "small.csv").write_text(SMALL + 'odd <"name">,-2,3,3\nempty,0,4,0\nthin,20,21,1\n')
    assert run(["plumbing", "memory-plan", "small.csv", "--svg", "plan.svg"]) == 0
    check_golden(request, "memory-plan.svg", (folder / "plan.svg").read_text())


def test_a_picture_of_many_blocks(folder: Path) -> None:
    path = DATA / "A.1048576.csv"
    assert run(["plumbing", "memory-plan", str(path), "--capacity=2000000", "--svg=a.svg"]) == 0
    text = (folder / "a.svg").read_text()
    assert text.count('<rect class="block"') == 154
    # Names stand where there is room; round numbers along both axes.
    assert 0 < text.count('class="name"') < 154
    assert text.count(">200,000</text>") == text.count(">1,000,000</text>") - 1 == 1


def test_a_picture_of_nothing() -> None:
    nothing = BlockPlan(offsets=(), size_bytes=0, peak_live_bytes=0, planner="-")
    text = plan_svg((), nothing, title="none")
    assert text.startswith("<svg ")
    assert "peak of live bytes" not in text


def failure(capsys: pytest.CaptureFixture[str], code: int, *arguments: str) -> str:
    assert run(["plumbing", "memory-plan", *arguments]) == code
    captured = capsys.readouterr()
    assert captured.out == ""
    return captured.err


def test_a_capacity_below_the_peak_is_refused(
    capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    arguments = ("small.csv", "--capacity", "11", "--output", "out.csv")
    assert failure(capsys, 6, *arguments) == (
        "error[capacity-too-small]: no plan fits 11 bytes\n"
        "  --> small.csv\n"
        "   = reason: impossible: 12 bytes are live at one time\n"
        "   = smallest found: 12 bytes, greedy-by-size\n"
        "   hint: give --capacity 12, or none to get the smallest plan\n"
    )
    assert not (folder / "out.csv").exists()


def test_a_capacity_that_alignment_or_the_search_refuses(
    capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    (folder / "a.csv").write_text("id,lower,upper,size,alignment\nx,0,2,3,8\ny,0,2,3,8\n")
    assert failure(capsys, 6, "a.csv", "--capacity", "10") == (
        "error[capacity-too-small]: no plan fits 10 bytes\n"
        "  --> a.csv\n"
        "   = reason: impossible: every plan takes at least 11 bytes\n"
        "   = smallest found: 11 bytes, greedy-by-size\n"
        "   hint: give --capacity 11, or none to get the smallest plan\n"
    )


def test_a_capacity_at_which_the_search_gives_up(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        memory_plan, "plan_blocks", lambda blocks, **more: plan_blocks(blocks, **more, rounds=(1,))
    )
    path = str(DATA / "A.1048576.csv")
    assert failure(capsys, 6, path, "--capacity", "1048576") == (
        "error[capacity-too-small]: no plan fits 1048576 bytes\n"
        f"  --> {path}\n"
        "   = reason: none was found: the search ended at its limit of nodes\n"
        "   = smallest found: 1352704 bytes, greedy-by-size\n"
        "   hint: give --capacity 1352704, or none to get the smallest plan\n"
    )


def test_a_wrong_plan_is_never_written(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    wrong = BlockPlan(offsets=(0, 0, 0, 4, 8), size_bytes=12, peak_live_bytes=12, planner="bad")
    monkeypatch.setattr(memory_plan, "plan_blocks", lambda *_, **__: wrong)
    assert failure(capsys, 70, "small.csv", "--output", "out.csv") == (
        "error[internal-error]: internal error, please report it: the memory plan is"
        " wrong\n"
        "  --> small.csv\n"
        '   = found: blocks "b1" and "b3" overlap from time 0 on, at bytes 0 to 3\n'
        '   = found: blocks "b2" and "b3" overlap from time 3 on, at bytes 0 to 3\n'
        "   hint: add this file to the report\n"
    )
    assert not (folder / "out.csv").exists()


HEADER = "id,lower,upper,size"
COLUMNS = "known: id, lower, upper, size, alignment, offset"
FORM = "the first line is id,lower,upper,size and may add alignment"


@pytest.mark.parametrize(
    ("text", "line", "message", "note", "hint"),
    [
        ("id,lower,size", 1, "no column upper", COLUMNS, FORM),
        (f"{HEADER},x", 1, "unknown column x", COLUMNS, FORM),
        (f"{HEADER},id", 1, "more than one column id", COLUMNS, FORM),
        (
            f"{HEADER}\na,0,1",
            2,
            "3 cells where the first line has 4",
            f"columns: {HEADER}",
            "write one cell per column",
        ),
        (
            f"{HEADER}\na,0,1,4\na,1,2,4",
            3,
            'id "a" is used twice',
            "first: line 2",
            "give each block an id of its own",
        ),
        (
            f"{HEADER}\na,0,1,4.5",
            2,
            "size is not a whole number",
            'found: "4.5"',
            "write decimal digits only",
        ),
        (
            f"{HEADER}\n\na,0,1,-4",
            3,
            "size is out of range",
            "found: -4",
            f"write a number from 0 to {1 << 48}",
        ),
        (
            f"{HEADER}\na,3,3,4",
            2,
            "the block is never live",
            "found: from 3 to 3",
            "upper is exclusive: write at least lower + 1",
        ),
        (
            f"{HEADER},alignment\na,0,1,4,12",
            2,
            "alignment is not a power of two",
            "found: 12",
            "write 1, 2, 4, 8, 16 or a greater power of two",
        ),
    ],
)
def test_a_wrong_line_is_named(
    *,
    capsys: pytest.CaptureFixture[str],
    folder: Path,
    text: str,
    line: int,
    message: str,
    note: str,
    hint: str,
) -> None:
    (folder / "bad.csv").write_text(text + "\n")
    assert failure(capsys, 2, "bad.csv") == (
        f"error[bad-blocks]: {message}\n"
        f"  --> bad.csv:{line}\n"
        "   |\n"
        f" {line} | {text.splitlines()[line - 1]}\n"
        f"   = {note}\n"
        f"   hint: {hint}\n"
    )


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (
            b"",
            "error[bad-blocks]: the file is empty\n"
            "  --> bad.csv\n"
            "   = expected: a line of column names, then one line per block\n"
            f"   hint: {FORM}\n",
        ),
        (
            b'id,lower,upper,size\n"a,0,1,2\n',
            "error[bad-blocks]: invalid CSV\n"
            "  --> bad.csv:2\n"
            "   = found: unexpected end of data\n"
            "   hint: write one block per line\n",
        ),
        (
            b"\xff",
            "error[not-utf8]: bad.csv cannot be read\n"
            "  --> bad.csv\n"
            "   = found: not text in UTF-8: byte 0xff at 0\n"
            "   hint: name a CSV file of blocks: id,lower,upper,size\n",
        ),
        (
            None,
            "error[unreadable-file]: bad.csv cannot be read\n"
            "  --> bad.csv\n"
            "   = found: No such file or directory\n"
            "   hint: name a CSV file of blocks: id,lower,upper,size\n",
        ),
    ],
)
def test_a_file_that_is_no_table(
    capsys: pytest.CaptureFixture[str], folder: Path, data: bytes | None, expected: str
) -> None:
    if data is not None:
        (folder / "bad.csv").write_bytes(data)
    assert failure(capsys, 2, "bad.csv") == expected


def test_a_capacity_is_a_number_of_bytes(capsys: pytest.CaptureFixture[str]) -> None:
    assert failure(capsys, 2, "small.csv", "--capacity", "1k") == (
        "error[usage]: argument --capacity: 1k is not a number of bytes from 0 to"
        f" {1 << 48}\n"
        "   hint: run `orchestrator plumbing memory-plan --help` to see its options\n"
    )


def test_names_with_commas_survive(folder: Path) -> None:
    (folder / "a.csv").write_text(f'{HEADER}\n"a, b",0,1,4\n')
    assert run(["plumbing", "memory-plan", "a.csv", "--output", "out.csv"]) == 0
    assert (folder / "out.csv").read_text() == f'{HEADER},offset\n"a, b",0,1,4,0\n'


def test_blocks_have_an_alignment_of_sixteen_by_default() -> None:
    assert Block(name="a", first=0, last=0, size_bytes=1).alignment == 16
