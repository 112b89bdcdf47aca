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


def _branches(count: int, tensors: int) -> bytes:
    """Branches that each write one of many inputs."""
    flag = value("Bool", bool_val=False)
    code = []
    for at in range(count):
        jump = {"cond_value_index": tensors, "destination_instruction": 2 * at + 2}
        code.append({"instr_args_type": "JumpFalseCall", "instr_args": jump})
        index = at % tensors
        code.append(call(0, index, (index + 1) % tensors, (index + 1) % tensors))
    values = [*(_at(index) for index in range(tensors)), flag]
    return _method(values, ([*range(tensors), tensors], [0]), code)


def _at(index: int, size: int = 4) -> dict[str, Any]:
    """A tensor at a place of its own among others that are as large."""
    return tensor([size], 16 * index)


def _method(
    values: list[dict[str, Any]], ports: Any, calls: Any, operators: Any = (_RELU,)
) -> bytes:
    arenas = (1 << 20,)
    return program(plan("forward", values, ports, calls, operators, arena_bytes=arenas))


def _all_outputs(count: int, source: Callable[[int], int]) -> bytes:
    calls = [call(0, source(i), i + 1, i + 1) for i in range(count - 1)]
    return _method([*map(_at, range(count))], ([0], range(1, count)), calls)


def _adds(count: int) -> bytes:
    values = [*map(_at, range(60)), value("Int", int_val=1)]
    pairs = [(i % 60, i // 60) for i in range(count)]
    calls = [call(0, a, b, 60, (7 * a + b) % 60, (7 * a + b) % 60) for a, b in pairs]
    return _method(values, (range(4), range(60)), calls, ["aten::add.out"])


def _joins(count: int, lists: int, calls: int) -> bytes:
    """Calls that join all tensors; each has a list of its own, or all have one."""
    number, out = count + lists, count + lists + 1
    place = 16 * count
    values = [
        *map(_at, range(count)),
        *[value("TensorList", items=[*range(count)])] * lists,
        value("Int", int_val=0),
        *(tensor([4 * count], place + 16 * count * i) for i in range(lists)),
    ]
    joins = [
        call(0, count + i % lists, number, out + i % lists, out + i % lists) for i in range(calls)
    ]
    ports = (range(count), range(out, out + lists))
    return _method(values, ports, joins, ["aten::cat.out"])


def _slices(count: int) -> bytes:
    """Every item of a tensor, and all of them joined again."""
    zero = count + 1
    values = [
        _at(0, count),
        *(_at(count + i, 1) for i in range(count)),
        *(value("Int", int_val=i) for i in range(count + 1)),
        value("TensorList", items=[*range(1, count + 1)]),
        _at(3 * count, count),
    ]
    last = len(values) - 1
    calls = [call(0, 0, zero, zero + i, zero + i + 1, zero + 1, i + 1, i + 1) for i in range(count)]
    calls.append(call(1, last - 1, zero, last, last))
    slices = ["aten::slice_copy.Tensor_out", "aten::cat.out"]
    return _method(values, ([0], [last]), calls, slices)


def _permutes(count: int) -> bytes:
    """A chain, each of which undoes the one before."""
    values = [
        *(tensor([4, 4], 64 * i) for i in range(count + 1)),
        value("IntList", items=[count + 2, count + 3]),
        *(value("Int", int_val=i) for i in (1, 0)),
    ]
    calls = [call(0, i, count + 1, i + 1, i + 1) for i in range(count)]
    return _method(values, ([0], [count]), calls, ["aten::permute_copy.out"])


def _overlapping(count: int) -> bytes:
    """Values that all overlap, and are all returned."""
    values = [tensor([4 * count], 16 * i) for i in range(count + 1)]
    calls = [call(0, i, i + 1, i + 1) for i in range(count)]
    return _method(values, ([0], range(1, count)), calls)


def _methods(count: int) -> bytes:
    return program(
        *(plan(f"m{i}", [_X, _Y], ([0], [1]), [call(0, 0, 1, 1)], [_RELU]) for i in range(count))
    )


def _arenas(count: int) -> bytes:
    calls = [call(0, 0, 1, 1)]
    sizes = [512] * count
    found = plan("forward", [_X, _Y], ([0], [1]), calls, [_RELU], arena_bytes=sizes)
    return program(found)


PROGRAMS: dict[str, Callable[[], bytes]] = {
    "one output, 50,000 times": lambda: _relu([_X, _Y], ([0], [1] * 50_000)),
    "one output of the caller, 4,000 times": lambda: _relu([_X, _given()], ([0], [1] * 4_000)),
    "one output, 4,000 times": lambda: _relu([_X, _Y], ([0], [1] * 4_000)),
    "one input, 4,000 times": lambda: _relu([_X, _Y], ([0] * 4_000, [1])),
    "2,000 inputs": lambda: _relu([_X, _Y, *[_X] * 2_000], ([0, *range(2, 2_002)], [1])),
    "2,000 outputs at one place": lambda: _relu([_X, _Y, *[_Y] * 2_000], ([0], range(1, 2_002))),
    "one list, 4,000 times": lambda: _relu(
        [_X, _Y, value("TensorList", items=[0] * 4_000)], ([0, *[2] * 4_000], [1])
    ),
    "3,000 dead calls": lambda: _relu([_X, _Y], ([0], [1]), [call(0, 0, 1, 1)] * 3_000),
    "a chain of 2,000 moves": lambda: _relu(
        [_X, _Y, *[_given()] * 2_001], ([0], [1]), [move(i, i + 1) for i in range(2, 2_002)]
    ),
    "1,500 loops": lambda: _jumps(1_500),
    "64 loops": lambda: _jumps(64),
    "1,000 branches over 700 tensors": lambda: _branches(1_000, 700),
    "700 branches over 700 tensors": lambda: _branches(700, 700),
    "a chain of 1,300 outputs": lambda: _all_outputs(1_300, lambda i: i),
    "1,300 outputs of one value": lambda: _all_outputs(1_300, lambda _: 0),
    "3,400 adds of 60 values": lambda: _adds(3_400),
    "2,700 equal operators": lambda: _method(
        [_X, _Y],
        ([0], [1]),
        [call(i, i % 2, 1 - i % 2, 1 - i % 2) for i in range(2_700)],
        [_RELU] * 2_700,
    ),
    "one list, 2,500 joins": lambda: _joins(40, 1, 2_500),
    "one list, 400 joins": lambda: _joins(40, 1, 400),
    "100 lists of 190, 100 joins": lambda: _joins(190, 100, 100),
    "1,000 permutes": lambda: _permutes(1_000),
    "1,200 values that overlap": lambda: _overlapping(1_200),
    "700 slices": lambda: _slices(700),
    "500 methods": lambda: _methods(500),
    "20,000 arenas": lambda: _arenas(20_000),
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
    "models": _TARGET + "".join(f'[[models]]\nname = "m{i}"\npath = "m.pte"\n' for i in range(300)),
    "3,000 models": _TARGET
    + "".join(f'[[models]]\nname = "m{i}"\npath = "m.pte"\n' for i in range(3_000)),
    "one model": _TARGET + _MODEL * 3_000,
    "long name": f'{_TARGET}[[models]]\nname = "{"a" * 190_000}"\npath = "m.pte"\n',
    "unknown": _TARGET + "".join(f"[t{i}]\na = 1\n" for i in range(4_500)),
}


@pytest.mark.parametrize("name", TEXTS)
def test_profiles(name: str, folder: Path) -> None:
    (folder / "p.toml").write_text(_HEAD + TEXTS[name])
    assert _seconds("check", "p.toml") < _MOST_SECONDS


@pytest.mark.parametrize("text", ["- &a x\n" + "- *a\n" * 33_000, "a: 1\n" * 30_000])
def test_yaml(text: str, folder: Path) -> None:
    (folder / "k.yaml").write_text(text)
    lists = '[operators]\ninclude_yaml = ["k.yaml"]\n'
    (folder / "p.toml").write_text(_HEAD + _TARGET + lists)
    assert _seconds("check", "p.toml") < _MOST_SECONDS


@pytest.mark.parametrize("pattern", ["**/" * 60_000, "*" * 180_000, "*a" * 60_000])
def test_workspaces(pattern: str, folder: Path) -> None:
    workspace = f'schema = 1\n[workspace]\nprofiles = ["{pattern}"]\n'
    (folder / "orchestrator.toml").write_text(workspace)
    assert _seconds("check") < _MOST_SECONDS


def test_a_key_of_many_parts_is_named(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "p.toml").write_text(_HEAD + TEXTS["key"])
    capsys.readouterr()
    assert run(["check", "p.toml", "--json"]) == 3
    (problem,) = json.loads(capsys.readouterr().out)["diagnostics"]
    assert problem["code"] == "too-many-values"
    assert problem["message"] == "a key of the profile has more than 100 parts"
    assert problem["where"]["line"] == 3


def test_the_first_model_too_many_is_named(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    models = _MODEL + "instances = 64\n" + _MODEL.replace('"m"', '"other"') * 437
    (folder / "p.toml").write_text(_HEAD + _TARGET + models)
    capsys.readouterr()
    assert run(["check", "p.toml", "--json"]) == 3
    *_, problem = json.loads(capsys.readouterr().out)["diagnostics"]
    message = "the profile has more than 500 models, instances included"
    assert (problem["code"], problem["message"]) == ("too-many-values", message)
    assert problem["where"]["line"] == 3 + 3 + 4 + 3 * 436


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "one output, 50,000 times",
            "a method has more inputs and outputs than a C function can take",
        ),
        ("1,500 loops", "a method has too many loops"),
        ("20,000 arenas", "a method has too many arenas"),
        (
            "1,000 branches over 700 tensors",
            "a method has too many jumps for its tensors, or tensors for its jumps",
        ),
        ("one list, 2,500 joins", "calls of a method join too many tensors"),
        ("a chain of 2,000 moves", "moves pass values on through too many others"),
    ],
)
def test_programs_that_are_refused(
    name: str, message: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "m.pte").write_bytes(PROGRAMS[name]())
    capsys.readouterr()
    assert run(["check", "p.toml", "--json"]) == 4
    (problem,) = json.loads(capsys.readouterr().out)["diagnostics"]
    assert problem["message"] == message
    assert problem["code"] == "unsupported-program"
