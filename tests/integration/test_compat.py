"""`compat` says what the device then does, for every pair of corpus programs.

A firmware is the kernel table, memory and API that a build makes for one program; the
device is the loader on the host, under sanitizers, in exactly that memory.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from orchestrator.catalog import LibraryText, read_catalog
from orchestrator.cli.main import run
from orchestrator.compat.check import check_compat, firmware_of
from orchestrator.compat.firmware import Firmware, firmware_facts, read_firmware
from orchestrator.errors import ModelError, OrchestratorError
from orchestrator.memory.product import method_state_bytes, plan_memory
from orchestrator.program.caller import caller_values, own_outputs
from orchestrator.program.reader import read_program
from orchestrator.program.values import TensorValue, ValueKind, kind_name
from orchestrator.selection.extract import aggregate, extract
from orchestrator.selection.resolve import resolve
from orchestrator.shell.sources import library_file, library_names
from tests.conftest import CASES, CORPUS
from tests.cpp.support.native import build
from tests.product import Product, make_product
from tests.tools import need_tool, need_toolchain

if TYPE_CHECKING:
    from orchestrator.catalog import Catalog
    from orchestrator.errors import Diagnostic
    from orchestrator.program.program import Method, Program

pytestmark = pytest.mark.toolchain

PROGRAMS: Final = [
    *(CORPUS / case / "model.pte" for case in CASES),
    *sorted((CORPUS / "bad").glob("*.pte")),
]


DAMAGED_ELSEWHERE: Final = {"bit_flip_7"}
"""Programs that the reader refuses for the sake of methods that the device does not
load: `compat` does not let through what is damaged anywhere."""


def _read(data: bytes, name: str) -> Program | None:
    try:
        return read_program(data, file=name)
    except ModelError:
        return None


@pytest.fixture(scope="module")
def programs() -> dict[Path, Program | None]:
    return {path: _read(path.read_bytes(), path.parent.name) for path in PROGRAMS}


@cache
def _catalog() -> Catalog:
    return read_catalog(
        [
            LibraryText(name=name, file=name, text=library_file(name).read_text("utf-8"))
            for name in library_names()
        ]
    )


def _firmware(program: Program, case: str) -> Firmware | None:
    """What a build for this program alone brings; None if it cannot be built."""
    try:
        resolution = resolve(
            aggregate([extract(program, model=case)]),
            _catalog(),
            every_dtype=False,
            span_of=lambda _: None,
        )
        memory = plan_memory({case: program}, pointer_bytes=8, board=None, spans={})
    except OrchestratorError:
        return None
    firmware = firmware_of(
        resolution=resolution,
        memory=memory,
        programs={case: program},
        pointer_bytes=8,
        inline_constants=True,
    )
    # What a lock holds is all there is to judge by.
    facts = firmware_facts(firmware)
    read = read_firmware(dict(facts))
    assert firmware_facts(read) == facts
    return read


def _problems(firmware: Firmware, program: Program, case: str) -> tuple[Diagnostic, ...]:
    states = {m.name: method_state_bytes(m, pointer_bytes=8) for m in program.methods}
    info = extract(program, model=case)
    return check_compat(firmware, program, info, states, model=case, file="new.pte")


def _device_facts(firmware: Firmware, program: Program) -> str:
    """The words that `load_file replace` reads; ports from the program itself."""
    words: list[object] = []
    for entry in firmware.kernels:
        key = "-" if entry.key is None else entry.key
        words += ["kernel", entry.operator, entry.signature, key, len(entry.dtypes)]
        words += [int(dtype) for dtype in entry.dtypes]
    for place in firmware.methods:
        words += ["method", place.method, place.state_bytes, len(place.arena_bytes)]
        words += place.arena_bytes
        method = program.method(place.method)
        inputs = [index in caller_values(method) for index in method.inputs]
        for side, owned in (("input", inputs), ("output", own_outputs(method))):
            indices = getattr(method, f"{side}s")
            for index, given in zip(indices, owned, strict=True):
                words += [side, *_port(method, index, given=given)]
    return " ".join(map(str, words))


def _port(method: Method, index: int, *, given: bool) -> list[int]:
    value = method.values[index]
    if not isinstance(value, TensorValue):
        label = kind_name(type(value)).removeprefix("optional ").replace(" ", "_")
        return [ValueKind[label.upper()], 0, 0, 0]
    flags = value.is_dynamic + 8 * given
    head = [ValueKind.TENSOR, value.dtype, flags, len(value.sizes)]
    return [int(n) for n in (*head, *value.sizes, *value.dim_order)]


def test_the_verdict_is_what_the_device_does(
    programs: dict[Path, Program | None], tmp_path: Path
) -> None:
    load_file = build("load_file")
    wrong, fitting, firmwares = [], 0, 0
    for case in CASES:
        program = programs[CORPUS / case / "model.pte"]
        firmware = program and _firmware(program, case)
        if not firmware or not program:
            continue
        firmwares += 1
        facts = tmp_path / f"{case}.facts"
        facts.write_text(_device_facts(firmware, program))
        done = subprocess.run(
            [load_file, "replace", facts, *PROGRAMS],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        for path, line in zip(PROGRAMS, done.stdout.splitlines(), strict=True):
            new = programs[path]
            device = set(line.split()) <= {"Ok"}
            problems = _problems(firmware, new, case) if new else ("damaged",)
            fitting += device
            if device == bool(problems):
                wrong.append((case, str(path), line, problems))
    assert {Path(path).stem for _, path, _, _ in wrong} <= DAMAGED_ELSEWHERE
    assert all(problems for _, _, _, problems in wrong)
    # Every firmware takes at least its own program.
    assert fitting >= firmwares >= 14


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Product:
    need_toolchain("host", "zig")
    folder = tmp_path_factory.mktemp("compat")
    made = make_product(folder, "add_mul", cpu="host", toolchain="zig")
    assert made.run("build") == 0
    return made


def _run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, Any]]:
    capsys.readouterr()
    code = run(["compat", "--json", *arguments])
    return code, json.loads(capsys.readouterr().out)


def test_a_lock_and_a_build_folder_say_the_same(
    product: Product, capsys: pytest.CaptureFixture[str]
) -> None:
    same, other = product.out / "models" / "model.pte", CORPUS / "mlp" / "model.pte"
    for firmware in (product.lock, product.out):
        code, document = _run(capsys, str(firmware), str(same))
        assert (code, document["ok"], document["model"]) == (0, True, "model")
        code, document = _run(capsys, str(firmware), str(same), str(other))
        assert (code, document["ok"]) == (12, False)
        assert [p["ok"] for p in document["programs"]] == [True, False]
        problems = document["programs"][1]["problems"]
        assert {p["code"] for p in problems} == {
            *("update-memory", "operator-missing", "other-interface")
        }
        arena = next(p for p in problems if "arena 1" in p["message"])
        assert arena["message"].endswith("arena 1 is 2704 bytes short")


def test_a_damaged_program_is_incompatible(
    product: Product, capsys: pytest.CaptureFixture[str]
) -> None:
    path = CORPUS / "bad" / "identifier.pte"
    code, document = _run(capsys, str(product.lock), str(path))
    assert code == 12
    assert document["programs"][0]["problems"][0]["code"] == "bad-program"


@pytest.mark.parametrize(
    ("arguments", "exit_code", "problem"),
    [
        (("{out}/none.lock", "{same}"), 2, "no-firmware"),
        (("{folder}", "{same}"), 2, "no-firmware"),
        (("{lock}", "{folder}/none.pte"), 4, "unreadable-model"),
        (("{lock}", "{same}", "--model", "modle"), 2, "unknown-model"),
        (("{old}", "{same}"), 2, "no-firmware"),
        (("{odd}", "{same}"), 2, "no-firmware"),
        (("{empty}", "{same}"), 2, "model-needed"),
    ],
)
def test_what_cannot_be_judged(
    *,
    product: Product,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    arguments: tuple[str, ...],
    exit_code: int,
    problem: str,
) -> None:
    text = product.lock.read_text()
    facts = text.index("[firmware]")
    places = {
        "lock": product.lock,
        "out": product.out,
        "folder": tmp_path,
        "same": CORPUS / "add_mul" / "model.pte",
    }
    for name, content in (
        ("old", text[:facts]),
        ("odd", text.replace("TTSt Float", "TTSt Flaot")),
        ("empty", f'{text[:facts]}[firmware]\n"pointer" = "8 bytes"\n'),
    ):
        places[name] = tmp_path / f"{name}.lock"
        places[name].write_text(content)
    code, document = _run(capsys, *(a.format(**places) for a in arguments))
    assert (code, document["diagnostics"][0]["code"]) == (exit_code, problem)


_APPLICATION: Final = """\
#include <stdio.h>

#include "update.h"

static const float ones[4] = {1, 1, 1, 1};
static _Alignas(16) unsigned char program[65536];

static void call(const char* what, orch_status status) {
  float found[4] = {0, 0, 0, 0};
  orch_status run = update_model_forward(ones, ones, ones, found);
  printf("%s %s %s %g\\n", what, orch_status_text(status), orch_status_text(run),
         (double)found[0]);
}

int main(int count, char** names) {
  call("linked", ORCH_OK);
  for (int i = 1; i < count; ++i) {
    FILE* file = fopen(names[i], "rb");
    size_t size = fread(program, 1, sizeof program, file);
    fclose(file);
    call("other", update_model_forward_load(program, (uint32_t)size));
  }
  call("misplaced", update_model_forward_load(program + 1, 4096));
  call("again", update_model_forward_load(0, 0));
  return 0;
}
"""


def test_an_application_takes_what_compat_lets_through(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    need_toolchain("host", "gnu")
    shutil.copyfile(CORPUS / "add_mul" / "model.pte", tmp_path / "model.pte")
    profile = tmp_path / "update.toml"
    profile.write_text(
        'schema = 1\nname = "update"\n[target]\ncpu = "host"\ntoolchain = "gnu"\n'
        '[[models]]\nname = "model"\npath = "model.pte"\n'
    )
    out = tmp_path / "out"
    assert run(["build", str(profile), "--out", str(out)]) == 0
    same, other = out / "models" / "model.pte", CORPUS / "mlp" / "model.pte"
    new = [same, other, same, CORPUS / "bad" / "identifier.pte"]
    verdicts = [_run(capsys, str(out), str(path))[0] for path in new]
    assert verdicts == [0, 12, 0, 12]
    (tmp_path / "app.c").write_text(_APPLICATION)
    subprocess.run(
        [
            *(need_tool("cc", "gcc", "clang"), "-std=c11", "-no-pie"),
            *("-I", out / "include", tmp_path / "app.c", out / "libupdate.a"),
            *("-o", tmp_path / "app"),
        ],
        check=True,
    )
    done = subprocess.run([tmp_path / "app", *new], capture_output=True, text=True, check=True)
    # x @ y + z with ones: the linked program runs again when another is refused.
    assert done.stdout.splitlines() == [
        "linked Ok Ok 3",
        "other Ok Ok 3",
        "other StateTooSmall Ok 3",
        "other Ok Ok 3",
        "other UnsupportedProgram Ok 3",
        "misplaced Misaligned Ok 3",
        "again Ok Ok 3",
    ]


def test_kernels_alone_decide_where_memory_and_interface_fit(
    programs: dict[Path, Program | None], tmp_path: Path
) -> None:
    """Kernels of one firmware, everything else of another: more programs fit."""
    load_file = build("load_file")
    firmwares = {
        case: (program, firmware)
        for case in CASES
        if (program := programs[CORPUS / case / "model.pte"])
        and (firmware := _firmware(program, case))
    }
    taken = set()
    for kernels, (_, brings) in firmwares.items():
        words: list[str | Path] = []
        for case, (program, place) in firmwares.items():
            facts = tmp_path / case
            mixed = replace(place, kernels=brings.kernels)
            facts.write_text(_device_facts(mixed, program))
            words += ["--", facts, CORPUS / case / "model.pte"]
        done = subprocess.run(
            [load_file, "replace", *words[1:]], capture_output=True, text=True, check=True
        )
        lines = done.stdout.splitlines()
        for line, (case, (program, place)) in zip(lines, firmwares.items(), strict=True):
            device = set(line.split()) <= {"Ok"}
            mixed = replace(place, kernels=brings.kernels)
            assert device is not bool(_problems(mixed, program, case))
            taken |= {(kernels, case)} if device else set()
    assert len(taken) > len(firmwares)
