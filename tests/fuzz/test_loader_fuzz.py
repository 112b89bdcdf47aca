"""Damaged programs and the device loader: nothing breaks, and it agrees with Python."""

from __future__ import annotations

import re
import subprocess
from typing import TYPE_CHECKING, Final

import pytest

from orchestrator.errors import ModelError, OrchestratorError
from orchestrator.pte.program import DelegateCall, Program
from orchestrator.pte.reader import read_program
from orchestrator.pte.values import TensorValue
from orchestrator.stages.aggregate import aggregate
from orchestrator.stages.extract import extract
from orchestrator.stages.memory import method_state_bytes
from orchestrator.stages.resolve import resolve
from orchestrator.stages.writes import check_writes
from tests.cpp.support.device import Answer, ask
from tests.cpp.support.native import build, linked_catalog
from tests.fuzz.loader_seeds import (
    corpus_seeds,
    damaged_seeds,
    prim_op_seeds,
    retyped_seeds,
)

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.toolchain

_RUNS: Final = 30_000
_COMPARED: Final = 4_000
_BUILT: Final = 1_000
_SMALL_BYTES: Final = 5_400
_ARENA_LIMIT_BYTES: Final = 1 << 26
"""`kArenaLimit` of load_file.cpp."""

NOT_READ: Final = {
    # Parts that the device has no use for: names of inputs and source lines, named
    # data, delegates and operators that are not called, arenas without a tensor.
    "a field lies outside its table",
    "a table lies outside the program",
    "a vtable lies outside the program",
    "an offset points outside the program",
    "a vector runs past the end of the program",
    "a vector is not aligned to its items",
    "an operator has an impossible name",
    "the name of an operator is missing",
    "an arena has an impossible size",
    "an arena lies on another device than the CPU",
    "a tensor lies on another device than the CPU",
    "a segment ends after the segment data of the file",
    "a table of data offsets leads to a segment that is not there",
    "the data of a delegate is missing",
    "the data of a delegate is at an unknown location",
    "the backend of a delegate is missing",
    "a delegate has no backend or no data",
    "the key of named data is missing",
    "named data leads to a segment that is not there",
    "two blocks of named data have the same name",
    # Text is compared byte by byte, and methods are found by their index.
    "a string is not UTF-8",
    "the name of a method is missing",
    "a method has an impossible name",
    # What is missing is empty.
    "the list of values is missing",
    "the list of inputs is missing",
    "the list of outputs is missing",
    "the list of operators is missing",
    "the list of instructions is missing",
    "the list of arena sizes is missing",
    "the list of sizes of a tensor is missing",
    "the dim order of a tensor is missing",
    "the text of a string is missing",
    "the list of items of an int list is missing",
    "the list of items of a double list is missing",
    "the list of items of a bool list is missing",
    "the list of items of a tensor list is missing",
    "the list of items of a list of optional tensors is missing",
    # Sizes that vtables give of themselves and their tables bound nothing here.
    "a vtable has an impossible size",
    # Time is bounded by the state that a method is given.
    "the program refers to the same bytes over and over",
}
"""What the Python reader refuses and the device may load, with no harm done."""


def _write(folder: Path, seeds: dict[str, bytes]) -> list[Path]:
    folder.mkdir()
    for name, data in seeds.items():
        (folder / name).write_bytes(data)
    return [folder / name for name in seeds]


def _mutate(command: str, first: int, last: int, seeds: list[Path], cwd: Path) -> str:
    done = subprocess.run(
        [build("mutate"), command, str(first), str(last), *seeds],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def _small(seeds: dict[str, bytes]) -> dict[str, bytes]:
    return {n: data for n, data in seeds.items() if len(data) <= _SMALL_BYTES}


def test_damaged_programs_do_no_harm(tmp_path: Path) -> None:
    """Run under sanitizers, with red zones around everything they may touch."""
    programs = _small(corpus_seeds() | retyped_seeds()) | prim_op_seeds()
    seeds = _write(tmp_path / "seeds", programs)
    found = _mutate("run", 1, _RUNS, seeds, tmp_path)
    opened, loaded, completed = map(int, re.findall(r"\d+", found))
    # Most changes must get past the first checks, or nothing is tested.
    assert opened > 0.8 * _RUNS
    assert loaded > 0.3 * _RUNS
    assert completed > 0.8 * _RUNS


def test_the_device_loads_what_the_reader_accepts(tmp_path: Path) -> None:
    """And the other way round, except for parts that the device does not read."""
    seeds = _write(tmp_path / "seeds", _small(corpus_seeds()))
    mutants = tmp_path / "mutants"
    mutants.mkdir()
    _mutate("write", 1, _COMPARED, seeds, mutants)
    paths = [mutants / f"{seed}.pte" for seed in range(1, _COMPARED + 1)]
    answers = ask(build("load_file"), paths, stand_ins=True)
    accepted = 0
    for path, answer in zip(paths, answers, strict=True):
        try:
            program = read_program(path.read_bytes(), file=path.name)
        except ModelError as error:
            if answer.error == "Ok":
                messages = {d.message for d in error.diagnostics}
                left_out = "more problems in the same file"
                messages = {m for m in messages if not m.endswith(left_out)}
                assert messages <= NOT_READ, path.name
            continue
        accepted += 1
        _check_accepted(program, answer, path.name)
    assert accepted > 0.1 * _COMPARED


def test_the_device_loads_what_a_build_accepts(tmp_path: Path) -> None:
    """With real kernels, whose results decide on the kinds of numbers."""
    seeds = _write(tmp_path / "seeds", prim_op_seeds())
    mutants = tmp_path / "mutants"
    mutants.mkdir()
    _mutate("write", 1, _BUILT, seeds, mutants)
    paths = [mutants / f"{seed}.pte" for seed in range(1, _BUILT + 1)]
    accepted = 0
    for path, answer in zip(paths, ask(build("load_file"), paths), strict=True):
        program = _accepted_by_build(path)
        if program is not None:
            accepted += 1
            _check_accepted(program, answer, path.name)
    assert accepted > 0.05 * _BUILT


def _accepted_by_build(path: Path) -> Program | None:
    """The program, if reader, resolver and the check of writes have no objection."""
    try:
        program = read_program(path.read_bytes(), file=path.name)
        selection = aggregate([extract(program, model="m")])
        resolution = resolve(
            selection, linked_catalog(), every_dtype=True, span_of=lambda _: None
        )
        check_writes({"m": program}, resolution, {})
    except OrchestratorError:
        return None
    return program


def _check_accepted(program: Program, answer: Answer, name: str) -> None:
    assert answer.opened == "Ok", name
    for method, found in zip(program.methods, answer.methods, strict=True):
        tensors = [v for v in method.values if isinstance(v, TensorValue)]
        # What the memory stage and the resolver refuse.
        if any(_has_no_memory(tensor) for tensor in tensors):
            assert found.error == "UnsupportedProgram", name
        elif any(isinstance(i, DelegateCall) for i in method.instructions):
            assert found.error == "DelegateMissing", name
        elif sum(method.arena_bytes[1:]) > _ARENA_LIMIT_BYTES:
            assert found.error in ("Ok", "ArenaTooSmall"), name
        else:
            assert found.error == "Ok", name
            assert found.state_bytes == method_state_bytes(method, pointer_bytes=8)


def _has_no_memory(tensor: TensorValue) -> bool:
    lies_nowhere = not tensor.is_planned and not tensor.is_constant
    return tensor.is_external or (lies_nowhere and tensor.numel != 0)


@pytest.mark.slow
def test_coverage_guided_fuzzing_finds_nothing(tmp_path: Path) -> None:
    """A short run of libFuzzer, the same every time."""
    seeds = tmp_path / "seeds"
    programs = corpus_seeds() | damaged_seeds() | retyped_seeds() | prim_op_seeds()
    _write(seeds, programs)
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    done = subprocess.run(
        [
            build("fuzz_loader"),
            corpus,
            seeds,
            *("-seed=1", "-runs=60000", "-max_len=12000", "-timeout=20"),
            f"-artifact_prefix={tmp_path}/",
        ],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert "Done 60000 runs" in done.stderr
