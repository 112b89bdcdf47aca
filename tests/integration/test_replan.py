"""Programs planned for their target: what the device makes of them, and the profile."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest

from orchestrator.cli.main import run
from orchestrator.memory.product import method_state_bytes
from orchestrator.method.replan import adapt_program
from orchestrator.planner import plan_blocks
from orchestrator.program.reader import read_program
from orchestrator.shell.sources import library_names
from tests.conftest import CASES, CORPUS
from tests.cpp.support.device import ask
from tests.cpp.support.native import build
from tests.cpp.support.running import run_method
from tests.integration.test_corpus import RUNNABLE
from tests.unit.products import DATA, program_of
from tests.unit.schemas import schemas

if TYPE_CHECKING:
    from pathlib import Path

PLANNED = tuple(case for case in CASES if case not in DATA)
DELEGATED = "xnnpack_partial"


@pytest.fixture(scope="module")
def planned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the planned programs of all cases."""
    folder = tmp_path_factory.mktemp("planned")
    for case in PLANNED:
        program = program_of(case)
        found = adapt_program(program, program, schemas(), plan=plan_blocks)
        (folder / f"{case}.pte").write_bytes(bytes(found.program.data))
    return folder


@pytest.mark.toolchain
def test_planned_programs_need_their_arenas_to_the_byte(planned: Path) -> None:
    cases = [case for case in PLANNED if case != DELEGATED]
    paths = [planned / f"{case}.pte" for case in cases]
    answers = ask(build("load_file"), paths, stand_ins=True)
    for path, answer in zip(paths, answers, strict=True):
        assert answer.error == "Ok"
        program = read_program(path.read_bytes(), file=path.name)
        for found, method in zip(answer.methods, program.methods, strict=True):
            assert found.error == "Ok"
            assert found.state_bytes == method_state_bytes(method, pointer_bytes=8)
            assert found.less_arena == tuple(
                "ArenaTooSmall" if size else "-" for size in method.arena_bytes[1:]
            )
            assert found.run == "Ok"


@pytest.mark.toolchain
@pytest.mark.parametrize("case", [c for c in PLANNED if c in RUNNABLE])
def test_planned_programs_give_the_same_bits(case: str, planned: Path, tmp_path: Path) -> None:
    (call, *_) = json.loads((CORPUS / case / "case.json").read_text())["runs"]
    method = program_of(case).method(call["method"])
    tool = build("load_file")
    outputs = []
    for name, path in (("file", CORPUS / case / "model.pte"), ("planned", planned / f"{case}.pte")):
        folder = tmp_path / name
        folder.mkdir()
        outputs.append(run_method(tool, path, method, call, case=case, folder=folder))
    assert outputs[0] == outputs[1]


def profile_of(folder: Path, case: str, text: str = "", *, load: str = "pte") -> Path:
    """A profile for the host with one model of the corpus."""
    shutil.copyfile(CORPUS / case / "model.pte", folder / "model.pte")
    path = folder / "product.toml"
    path.write_text(
        'schema = 1\nname = "product"\n[target]\ncpu = "host"\ntoolchain = "zig"\n'
        f"[kernels]\nlibraries = {json.dumps(library_names()[::-1])}\n"
        f'[[models]]\npath = "model.pte"\nload = "{load}"\n{text}'
    )
    return path


def checked(profile: Path, capsys: pytest.CaptureFixture[str], *, code: int = 0) -> dict[str, Any]:
    """What `check` says."""
    capsys.readouterr()
    assert run(["check", str(profile), "--json"]) == code
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


@pytest.mark.parametrize(
    ("load", "planner", "sizes"),
    [
        ("pte", "best", (512, 704)),  # without what passes left out
        ("pte", "keep", (704, None)),
        ("prelinked", "greedy", (512, 704)),
        ("prelinked", "keep", (704, None)),
    ],
)
def test_the_profile_names_the_planner(
    load: str,
    planner: str,
    sizes: tuple[int, int | None],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = f'[memory]\nplanner = "{planner}"\n'
    profile = profile_of(tmp_path, "dynamic_batch", text, load=load)
    (arena,) = checked(profile, capsys)["arenas"]
    assert (arena["size_bytes"], arena["file_bytes"]) == sizes


def test_check_says_what_planning_saves(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    profile = profile_of(tmp_path, "dynamic_batch")
    capsys.readouterr()
    assert run(["check", str(profile)]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[1] == "  model forward arena 1: 704 -> 512 bytes, gap 0.0 %"


def test_policies_of_scratch_memory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    case = "kws_dscnn_int8_m55"
    before = program_of(case).methods[0].arena_bytes[1]

    def arena(policy: str) -> int:
        text = f'[scratch]\npolicy = "{policy}"\n'
        (found,) = checked(profile_of(tmp_path, case, text), capsys)["arenas"]
        return int(found["size_bytes"])

    # A file for Cortex-M55 has scratch memory that nothing needs on a host.
    assert arena("plan") < before
    assert arena("keep") == before
    text = '[scratch]\npolicy = "verify"\n'
    found = checked(profile_of(tmp_path, case, text), capsys, code=6)
    assert {d["code"] for d in found["diagnostics"]} == {"scratch-mismatch"}


@pytest.mark.toolchain
def test_the_build_has_the_program_it_links(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    profile = profile_of(tmp_path, "dynamic_batch")
    out = tmp_path / "out"
    assert run(["build", str(profile), "--out", str(out)]) == 0
    capsys.readouterr()
    data = (out / "models" / "model.pte").read_bytes()
    program = read_program(data, file="model.pte")
    assert [m.arena_bytes for m in program.methods] == [(0, 512)]
    assert data in (out / "firmware.elf").read_bytes()
    lock = profile.with_suffix(".lock").read_text()
    assert ('"model forward arena 1" = "512 bytes, lower bound 512, gap 0.00 %, file 704"') in lock
