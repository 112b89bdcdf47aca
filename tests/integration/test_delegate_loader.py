"""Damaged programs with delegates: the loader and the Python reader agree."""

from __future__ import annotations

import subprocess
from copy import deepcopy
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Final

import pytest

from orchestrator.errors import ModelError
from orchestrator.memory.product import method_state_bytes
from orchestrator.program.flatbuffer import PROGRAM
from orchestrator.program.reader import read_program
from tests.cpp.support.verdicts import NOT_READ
from tests.tools import need_tool
from tests.unit.program.newer_program import two_parts, with_newer_field
from tests.unit.program.program_writer import write_program

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from orchestrator.program.program import Program

pytestmark = pytest.mark.toolchain

ROOT: Final = Path(__file__).parents[2]
PROGRAMS: Final = (
    ROOT / "examples" / "delegate" / "model.pte",
    ROOT / "tests" / "data" / "delegate" / "inline.pte",
)
NAMED: Final = ROOT / "tests" / "data" / "delegate" / "named"
STATES: Final = {"Elementwise": 12, "Named": 16 + 24}
_RUNS: Final = 1500

_NOT_READ: Final = NOT_READ - {
    "the data of a delegate is missing",
    "the data of a delegate is at an unknown location",
    "the backend of a delegate is missing",
    "a delegate has no backend or no data",
}
"""Problems that a device with delegates need not see."""


@pytest.fixture(scope="module")
def load_parts() -> Path:
    compiler = need_tool("g++", "clang++")
    folder = ROOT / "build" / "delegate-tests"
    folder.mkdir(parents=True, exist_ok=True)
    support = ROOT / "tests" / "cpp" / "support"
    sources = [
        *(support / f"{name}.cpp" for name in ("load_parts", "stand_ins")),
        support / "method_blocks.cpp",
        ROOT / "examples" / "delegate" / "elementwise.cpp",
        NAMED / "named.cpp",
        *sorted((ROOT / "runtime" / "src").glob("*.cpp")),
    ]
    program = folder / "load_parts"
    done = subprocess.run(
        [
            compiler,
            *("-std=c++17", "-O1", "-g1", "-fno-exceptions", "-fno-rtti"),
            *("-fsanitize=address,undefined", "-fno-sanitize-recover=all"),
            *("-DORCH_DELEGATES=1", "-DORCH_DELEGATE_STATE_BYTES=12"),
            *(f"-I{ROOT / i}" for i in ("runtime/include", "runtime/src", "tests/cpp")),
            *sources,
            *("-o", program),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return program


def _ask(program: Path, mode: str, files: Sequence[Path]) -> list[list[str]]:
    """Of each file the words of its first method, or the error of opening it."""
    done = subprocess.run([program, mode, *files], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    found: list[list[str]] = []
    for line in done.stdout.splitlines():
        kind, *words = line.split()
        if kind == "open":
            found.append(words)
        elif found[-1] == ["Ok"]:
            found[-1] = words
    assert len(found) == len(files)
    return found


def _write(folder: Path, programs: Sequence[bytes]) -> list[Path]:
    paths = [folder / f"{i}.pte" for i in range(len(programs))]
    for path, data in zip(paths, programs, strict=True):
        path.write_bytes(data)
    return paths


def _read(data: bytes) -> Program | set[str]:
    """The program, or the messages about it."""
    try:
        return read_program(data, file="m.pte")
    except ModelError as error:
        return {d.message for d in error.diagnostics}


def test_whole_programs_are_loaded_in_the_memory_of_the_plan(load_parts: Path) -> None:
    for path, answer in zip(PROGRAMS, _ask(load_parts, "example", PROGRAMS), strict=True):
        (method,) = read_program(path.read_bytes(), file="m.pte").methods
        size = method_state_bytes(method, pointer_bytes=8, delegates=STATES)
        assert answer == ["Ok", str(size), "Ok"]


def _flipped(seed: int) -> bytes:
    random = Random(seed)  # noqa: S311  # the same every time
    data = bytearray(PROGRAMS[seed % 2].read_bytes())
    for _ in range(random.randint(1, 3)):
        at = random.randrange(len(data))
        data[at] = random.choice((0, 1, 2, 255, data[at] ^ 1 << random.randrange(8)))
    return bytes(data)


def test_what_the_reader_accepts_is_loaded(load_parts: Path, tmp_path: Path) -> None:
    programs = [_flipped(seed) for seed in range(_RUNS)]
    answers = _ask(load_parts, "any", _write(tmp_path, programs))
    accepted = refused = 0
    for seed, (data, answer) in enumerate(zip(programs, answers, strict=True)):
        program = _read(data)
        if isinstance(program, set):
            refused += answer[0] != "Ok"
            left_out = {m for m in program if m.endswith("problems in the same file")}
            assert answer[0] != "Ok" or program - left_out <= _NOT_READ, seed
            continue
        (method,) = program.methods
        if any(d.backend != "Elementwise" for d in method.delegates):
            assert answer[0] == "DelegateMissing", seed
        elif answer[0] != "Ok":
            # Memory is the build's to check: tensors without a place.
            assert answer[0] in ("UnsupportedProgram", "ArenaTooSmall"), (seed, answer)
        else:
            accepted += 1
            size = method_state_bytes(method, pointer_bytes=8, delegates=STATES)
            assert answer[1] == str(size), seed
    assert accepted > 0.2 * _RUNS
    assert refused > 0.1 * _RUNS


def test_the_example_survives_damaged_bytes(load_parts: Path, tmp_path: Path) -> None:
    """Only the bytes for the delegates are damaged: it has to notice itself."""
    programs = []
    for seed in range(_RUNS):
        random = Random(seed)  # noqa: S311  # the same every time
        data = bytearray(PROGRAMS[seed % 2].read_bytes())
        start = random.choice([at for at in range(len(data)) if data[at : at + 4] == b"ELW1"])
        for _ in range(random.randint(1, 2)):
            data[start + random.randrange(28)] = random.randrange(256)
        programs.append(bytes(data))
    answers = _ask(load_parts, "example", _write(tmp_path, programs))
    found = {answer[0] for answer in answers}
    assert found == {"Ok", "InvalidProgram"}
    assert sum(a[0] == "InvalidProgram" for a in answers) > 0.5 * _RUNS
    assert "InvalidArgument" in {a[2] for a in answers if a[0] == "Ok"}


_NEVER_READ: Final = {
    "ContainerMetadata",
    "Frame",
    "FrameList",
    "NamedData",
    "NonConstBufferDevice",
}
"""Tables that the device has no use for: docs/executorch-compatibility.md."""


def test_fields_that_the_device_does_not_know(load_parts: Path, tmp_path: Path) -> None:
    """As the reader answers for every table; see tests/unit/program/test_newer.py."""
    paths = _write(tmp_path, [with_newer_field(table) for table in PROGRAM])
    answers = dict(zip(PROGRAM, _ask(load_parts, "any", paths), strict=True))
    for table, answer in answers.items():
        expected = "Ok" if table in _NEVER_READ else "UnsupportedProgram"
        assert answer[0] == expected, table


def test_scratch_memory_that_a_program_plans(load_parts: Path, tmp_path: Path) -> None:
    """The file is newer than the device; what is built of it has what is needed."""
    program = read_program(two_parts(), file="m.pte")
    paths = _write(tmp_path, [two_parts(), bytes(program.data)])
    newer, built = _ask(load_parts, "any", paths)
    assert newer[0] == "UnsupportedProgram"
    assert (built[0], built[2]) == ("Ok", "Ok")


_BASE: Final[dict[str, Any]] = {
    "version": 0,
    "execution_plan": [
        {
            "name": "forward",
            "values": [{"val_type": "Int", "val": {"int_val": 7}}],
            "inputs": [],
            "outputs": [],
            "chains": [
                {
                    "inputs": [],
                    "outputs": [],
                    "instructions": [
                        {
                            "instr_args_type": "DelegateCall",
                            "instr_args": {"delegate_index": 0, "args": [0]},
                        }
                    ],
                }
            ],
            "operators": [],
            "delegates": [
                {
                    "id": "Elementwise",
                    "processed": {"location": 0, "index": 0},
                    "compile_specs": [{"key": "k", "value": [1]}],
                }
            ],
            "non_const_buffer_sizes": [0],
        }
    ],
    "constant_buffer": [],
    "backend_delegate_data": [{"data": [1, 2, 3]}],
    "segments": [],
}


def _method(program: dict[str, Any]) -> Any:
    return program["execution_plan"][0]


def _call(program: dict[str, Any]) -> Any:
    return _method(program)["chains"][0]["instructions"][0]["instr_args"]


def _part(program: dict[str, Any]) -> Any:
    return _method(program)["delegates"][0]


@pytest.mark.parametrize(
    ("change", "device"),
    [
        (lambda _: None, "Ok"),
        (lambda p: _call(p).update(delegate_index=1), "InvalidProgram"),
        (lambda p: _call(p).update(delegate_index=-1), "InvalidProgram"),
        (lambda p: _call(p).update(args=[1]), "InvalidProgram"),
        (lambda p: _call(p).update(args=[-1]), "InvalidProgram"),
        (lambda p: _call(p).update(args=[]), "InvalidProgram"),
        (lambda p: _part(p).update(id=""), "InvalidProgram"),
        (lambda p: _part(p)["processed"].update(index=1), "InvalidProgram"),
        (lambda p: _part(p)["processed"].update(location=1), "InvalidProgram"),
        (lambda p: _part(p)["processed"].update(location=7), "InvalidProgram"),
        (lambda p: _part(p).pop("processed"), "InvalidProgram"),
        (lambda p: _part(p).pop("id"), "InvalidProgram"),
        (lambda p: _part(p)["compile_specs"][0].pop("key"), "InvalidProgram"),
        (lambda p: _method(p)["delegates"].clear(), "InvalidProgram"),
    ],
)
def test_device_and_reader_refuse_the_same(
    change: Callable[[dict[str, Any]], object], device: str, load_parts: Path, tmp_path: Path
) -> None:
    program = deepcopy(_BASE)
    change(program)
    data = write_program(program, None)
    (answer,) = _ask(load_parts, "any", _write(tmp_path, [data]))
    assert answer[0] == device
    assert isinstance(_read(data), set) == (device != "Ok")


_NAMED: Final[dict[str, Any]] = {
    **deepcopy(_BASE),
    "backend_delegate_data": [{"data": [*b"NMD1\2\0\1\0\1\4wbias"]}],
    "segments": [{"offset": 0, "size": 8}, {"offset": 16, "size": 4}],
    "named_data": [{"key": "w", "segment_index": 0}, {"key": "bias", "segment_index": 1}],
}
_NAMED["execution_plan"][0]["delegates"][0]["id"] = "Named"


def _blocks(program: dict[str, Any]) -> Any:
    return program["named_data"]


@pytest.mark.parametrize(
    ("change", "device", "reads"),
    [
        (lambda _: None, "Ok", True),
        # What nobody asks for, and what shares bytes, does no harm.
        (lambda p: _blocks(p).append({"key": "x", "segment_index": 1}), "Ok", True),
        (lambda p: p["segments"][1].update(offset=6), "Ok", True),
        (lambda p: p["segments"].append({"offset": 20, "size": 0}), "Ok", True),
        # Empty, too small, or under another key.
        (lambda p: p["segments"][1].update(size=0), "InvalidProgram", True),
        (lambda p: p["segments"][0].update(size=7), "InvalidProgram", True),
        (lambda p: _blocks(p)[0].update(key="W"), "NotFound", True),
        (lambda p: _blocks(p)[0].update(key="w\0"), "NotFound", True),
        (lambda p: _blocks(p)[1].update(key="bia"), "NotFound", True),
        (lambda p: _blocks(p)[1].update(key="biass"), "NotFound", True),
        (lambda p: _blocks(p).pop(), "NotFound", True),
        (lambda p: p.pop("named_data"), "NotFound", True),
        # Twice, without a key, in no segment, or outside of the file.
        (lambda p: _blocks(p).append(_blocks(p)[0]), "InvalidProgram", False),
        (lambda p: _blocks(p)[0].pop("key"), "InvalidProgram", False),
        (lambda p: _blocks(p)[0].update(segment_index=2), "InvalidProgram", False),
        (
            lambda p: _blocks(p).append({"key": "x", "segment_index": 2**32 - 1}),
            "InvalidProgram",
            False,
        ),
        (lambda p: p["segments"][1].update(offset=17), "InvalidProgram", False),
        (lambda p: p["segments"][0].update(size=2**64 - 1), "InvalidProgram", False),
        (lambda p: p["segments"][0].update(offset=2**63), "InvalidProgram", False),
        (lambda p: p["segments"].clear(), "InvalidProgram", False),
    ],
)
def test_named_data_lies_inside_the_program(
    change: Callable[[dict[str, Any]], object],
    device: str,
    reads: bool,  # noqa: FBT001  # a parameter of the test
    load_parts: Path,
    tmp_path: Path,
) -> None:
    program = deepcopy(_NAMED)
    change(program)
    data = write_program(program, bytes(20))
    (answer,) = _ask(load_parts, "any", _write(tmp_path, [data]))
    assert answer[0] == device
    assert isinstance(_read(data), set) != reads


def test_named_data_that_is_newer(load_parts: Path, tmp_path: Path) -> None:
    """Only a delegate that may ask for it makes the device look at it."""
    program = with_newer_field("NamedData")
    taken = program.replace(b"Elementwise", b"Named\0\0\0\0\0\0", 1)
    assert taken != program
    length = taken.index(b"Named\0") - 4
    taken = taken[:length] + (5).to_bytes(4, "little") + taken[length + 4 :]
    answers = _ask(load_parts, "any", _write(tmp_path, [program, taken]))
    assert [a[0] for a in answers] == ["Ok", "UnsupportedProgram"]


def test_a_delegate_computes_with_named_data(load_parts: Path, tmp_path: Path) -> None:
    inside = NAMED / "inside.pte"
    (method,) = read_program(inside.read_bytes(), file="m.pte").methods
    size = method_state_bytes(method, pointer_bytes=8, delegates=STATES)
    answers = _ask(load_parts, "any", [inside, NAMED / "outside.pte"])
    # Stand-ins for kernels, and no data files.
    assert answers == [["Ok", str(size), "Ok"], ["NotFound", str(size)]]
    programs = []
    for seed in range(_RUNS):
        random = Random(seed)  # noqa: S311  # the same every time
        data = bytearray(inside.read_bytes())
        for _ in range(random.randint(1, 3)):
            data[random.randrange(len(data))] = random.choice((0, 1, 2, 127, 255))
        programs.append(bytes(data))
    answers = _ask(load_parts, "any", _write(tmp_path, programs))
    assert sum(a[0] == "Ok" for a in answers) > 0.2 * _RUNS
    for damaged, answer in zip(programs, answers, strict=True):
        problems = _read(damaged)
        if isinstance(problems, set):
            more = {m for m in problems if m.endswith("problems in the same file")}
            assert answer[0] != "Ok" or problems - more <= _NOT_READ
