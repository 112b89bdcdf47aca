"""Damaged programs and the device loader: nothing breaks, and it agrees with Python."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from typing import TYPE_CHECKING, Final

import pytest

from orchestrator.memory.product import method_state_bytes
from orchestrator.program.program import DelegateCall, Program
from orchestrator.program.reader import read_program
from tests.cpp.support.device import Answer, ask
from tests.cpp.support.native import build
from tests.cpp.support.verdicts import (
    NOT_READ,
    allowed_errors,
    build_verdict,
    lacks_memory,
    messages_of,
    reader_verdict,
)
from tests.fuzz.loader_seeds import corpus_seeds, damaged_seeds, prim_op_seeds, retyped_seeds

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.toolchain

_RUNS: Final = 15_000
_COMPARED: Final = 6_000
_AT_ONCE: Final = 2_000
_BUILT: Final = 1_000
_SMALL_BYTES: Final = 5_400
_ARENA_LIMIT_BYTES: Final = 1 << 26
"""`kArenaLimit` of load_file.cpp."""
_NEVER_LOADED: Final = ("external_constants",)
"""Programs without their data: the device says nothing else of them."""
_BESIDES: Final = frozenset({"ArenaTooSmall", "DelegateMissing"})
"""What the device may come to first: an arena that is too large for the test, and a
delegate."""


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


def test_reader_and_device_agree(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    """On what is refused, and why; apart from what the device does not read.

    The programs of the corpus with a few changes each; `--mutants COUNT` asks for more
    of them than the suite takes time for.
    """
    count = pytestconfig.getoption("--mutants") or _COMPARED
    seeds = _write(tmp_path / "seeds", _small(corpus_seeds() | retyped_seeds()))
    seeds = [path for path in seeds if not path.name.startswith(_NEVER_LOADED)]
    mutants = tmp_path / "mutants"
    mutants.mkdir()
    kinds = Counter[str]()
    for first in range(1, count + 1, _AT_ONCE):
        last = min(first + _AT_ONCE - 1, count)
        _mutate("write", first, last, seeds, mutants)
        paths = [mutants / f"{seed}.pte" for seed in range(first, last + 1)]
        answers = ask(build("load_file"), paths, stand_ins=True)
        for path, answer in zip(paths, answers, strict=True):
            kinds[_check_agreement(path.read_bytes(), answer, path.name)] += 1
            path.unlink()
    # Most changes must get past the first checks, or nothing is tested.
    assert kinds["both accept"] > 0.1 * count
    assert kinds["both refuse"] > 0.5 * count
    assert kinds["the device does not read it"] < 0.1 * count


def _check_agreement(data: bytes, answer: Answer, name: str) -> str:
    """What the two say, in a word; fails unless they say the same."""
    diagnostics = reader_verdict(data)
    if not diagnostics:
        _check_accepted(read_program(data, file=name), answer, name)
        return "both accept"
    if answer.error == "Ok":
        assert messages_of(diagnostics) <= NOT_READ, name
        return "the device does not read it"
    assert answer.error in allowed_errors(data, diagnostics) | _BESIDES, name
    return "both refuse"


def test_the_device_loads_what_a_build_accepts(tmp_path: Path) -> None:
    """With real kernels, whose results decide on the kinds of numbers."""
    seeds = _write(tmp_path / "seeds", prim_op_seeds())
    mutants = tmp_path / "mutants"
    mutants.mkdir()
    _mutate("write", 1, _BUILT, seeds, mutants)
    paths = [mutants / f"{seed}.pte" for seed in range(1, _BUILT + 1)]
    accepted = 0
    for path, answer in zip(paths, ask(build("load_file"), paths), strict=True):
        data = path.read_bytes()
        if not build_verdict(data):
            accepted += 1
            _check_accepted(read_program(data, file=path.name), answer, path.name)
    assert accepted > 0.05 * _BUILT


def _check_accepted(program: Program, answer: Answer, name: str) -> None:
    assert answer.opened == "Ok", name
    for method, found in zip(program.methods, answer.methods, strict=True):
        # What the memory stage and the resolver refuse.
        if lacks_memory(method):
            assert found.error == "UnsupportedProgram", name
        elif any(isinstance(i, DelegateCall) for i in method.instructions):
            assert found.error == "DelegateMissing", name
        elif sum(method.arena_bytes[1:]) > _ARENA_LIMIT_BYTES:
            assert found.error in ("Ok", "ArenaTooSmall"), name
        else:
            assert found.error == "Ok", name
            assert found.state_bytes == method_state_bytes(method, pointer_bytes=8)


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
            *("-seed=1", "-runs=30000", "-max_len=12000", "-timeout=60"),
            f"-artifact_prefix={tmp_path}/",
        ],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert "Done 30000 runs" in done.stderr
