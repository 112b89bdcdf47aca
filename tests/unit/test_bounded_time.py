"""`check` and `inspect` of 200 KB of hostile bytes end within seconds of CPU time."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import pytest

from orchestrator.cli.main import run
from tests.list_program import call, move, plan, program, tensor, value

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_MOST_SECONDS = 30
"""CPU time, so large that no slow machine reaches it: each takes 1 or 2 s, and took a
minute or more before it was bounded."""
_HEAD = 'schema = 1\nname = "p"\n'
_TARGET = '[target]\ncpu = "host"\ntoolchain = "zig"\n'
_MODEL = '[[models]]\nname = "m"\npath = "m.pte"\n'
_RELU = "aten::relu.out"
_X, _Y = tensor([4], 0), tensor([4], 16)


def _relu(values: list[dict[str, Any]], ports: Any, calls: Any = ()) -> bytes:
    return program(plan("forward", values, ports, [call(0, 0, 1, 1), *calls], [_RELU]))


def _given() -> dict[str, Any]:
    found = tensor([4], 0)
    found["val"]["allocation_info"] = None
    return found


def _jumps(count: int) -> bytes:
    jumps = [
        {
            "instr_args_type": "JumpFalseCall",
            "instr_args": {"cond_value_index": 2, "destination_instruction": 2 * i},
        }
        for i in range(count)
    ]
    calls = [x for jump in jumps for x in (call(0, 0, 1, 1), jump)]
    return _relu([_X, _Y, value("Bool", bool_val=False)], ([0, 2], [1]), calls)


PROGRAMS: dict[str, Callable[[], bytes]] = {
    "one output, 50,000 times": lambda: _relu([_X, _Y], ([0], [1] * 50_000)),
    "one output of the caller, 4,000 times": lambda: _relu(
        [_X, _given()], ([0], [1] * 4_000)
    ),
    "one output, 4,000 times": lambda: _relu([_X, _Y], ([0], [1] * 4_000)),
    "one input, 4,000 times": lambda: _relu([_X, _Y], ([0] * 4_000, [1])),
    "2,000 inputs": lambda: _relu(
        [_X, _Y, *[_X] * 2_000], ([0, *range(2, 2_002)], [1])
    ),
    "2,000 outputs at one place": lambda: _relu(
        [_X, _Y, *[_Y] * 2_000], ([0], range(1, 2_002))
    ),
    "one list, 4,000 times": lambda: _relu(
        [_X, _Y, value("TensorList", items=[0] * 4_000)], ([0, *[2] * 4_000], [1])
    ),
    "3,000 dead calls": lambda: _relu([_X, _Y], ([0], [1]), [call(0, 0, 1, 1)] * 3_000),
    "a chain of 2,000 moves": lambda: _relu(
        [_X, _Y, *[_given()] * 2_001],
        ([0], [1]),
        [move(i, i + 1) for i in range(2, 2_002)],
    ),
    "1,500 loops": lambda: _jumps(1_500),
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ORCHESTRATOR_CACHE", str(tmp_path / "cache"))
    (tmp_path / "p.toml").write_text(_HEAD + _TARGET + _MODEL)
    (tmp_path / "m.pte").write_bytes(_relu([_X, _Y], ([0], [1])))
    assert run(["check", "p.toml"]) == 0  # what every command reads is read
    return tmp_path


def _seconds(*arguments: str) -> float:
    begin = time.process_time()
    assert run([*arguments, "--quiet"]) in (0, 3, 4, 5)
    return time.process_time() - begin


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name: str, folder: Path) -> None:
    (folder / "m.pte").write_bytes(PROGRAMS[name]())
    assert (folder / "m.pte").stat().st_size < 250_000
    assert _seconds("check", "p.toml") < _MOST_SECONDS
    assert _seconds("inspect", "m.pte") < _MOST_SECONDS


_LONG = ".".join("a" * 100_000)
TEXTS = {
    "key": f"{_LONG} = 1\n{_TARGET}",
    "header": f"{_TARGET}[{_LONG}]\n",
    "inline": f"a = {{{_LONG} = 1}}\n{_TARGET}",
    "operators": f"{_TARGET}[operators]\ninclude = ["
    + ", ".join(f'"my::op{i}"' for i in range(9_000))
    + "]\n",
    "operator": f'{_TARGET}[operators]\ninclude = ["aten::{"relu" * 50_000}.out"]\n',
    "libraries": f"{_TARGET}[kernels]\nlibraries = ["
    + ", ".join(f'"portable{i}"' for i in range(5_000))
    + "]\n",
    "unknown": _TARGET + "".join(f"[t{i}]\na = 1\n" for i in range(4_500)),
}


@pytest.mark.parametrize("name", TEXTS)
def test_profiles(name: str, folder: Path) -> None:
    (folder / "p.toml").write_text(_HEAD + TEXTS[name])
    assert _seconds("check", "p.toml") < _MOST_SECONDS


def test_a_key_of_many_parts_is_named(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "p.toml").write_text(_HEAD + TEXTS["key"])
    capsys.readouterr()
    assert run(["check", "p.toml", "--json"]) == 3
    (problem,) = json.loads(capsys.readouterr().out)["diagnostics"]
    assert problem["code"] == "too-many-values"
    assert problem["message"] == "a key of the profile has more than 100 parts"
    assert problem["where"]["line"] == 3


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "one output, 50,000 times",
            "a method has more inputs and outputs than a C function can take",
        ),
        ("a chain of 2,000 moves", "moves pass values on through too many others"),
    ],
)
def test_programs_that_are_refused(
    name: str, message: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "m.pte").write_bytes(PROGRAMS[name]())
    capsys.readouterr()
    assert run(["check", "p.toml", "--json"]) == 4
    problems = json.loads(capsys.readouterr().out)["diagnostics"]
    assert [p["message"] for p in problems] == [message]
