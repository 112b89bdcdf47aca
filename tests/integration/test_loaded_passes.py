"""Passes of programs that the device loads: the same outputs, less memory."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from orchestrator.build.adapter import Adapter
from orchestrator.cli.main import run
from orchestrator.core.border import NO_IO
from orchestrator.memory.product import method_state_bytes
from orchestrator.method.passes import OPTIONAL, PASSES, run_passes, try_link
from orchestrator.method.replan import adapt_program
from orchestrator.planner import plan_blocks
from orchestrator.profile.choices import IO_PASSES
from orchestrator.program.encode import write_program
from orchestrator.program.reader import read_program
from orchestrator.selection.extract import extract
from tests.conftest import CORPUS
from tests.cpp.support.device import ask
from tests.cpp.support.native import build
from tests.cpp.support.running import run_method
from tests.integration.test_corpus import RUNNABLE, corpus_product
from tests.integration.test_joined import NETS
from tests.integration.workspace import without_sigmoid
from tests.unit.method.test_prelink_unlink import resolution_of_all
from tests.unit.products import program_of
from tests.unit.schemas import schemas

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from orchestrator.method.replan import Adapted
    from orchestrator.program.program import Program
    from tests.product import Product

pytestmark = pytest.mark.toolchain

AUTOENCODER = "ad_autoencoder_fp32"
ELSEWHERE = {
    # For models that the device does not load.
    *("round_weights", "pack_weights", "prepare_calls"),
    *IO_PASSES,  # do what a profile says: tests/integration/test_int8_io.py
    "order_calls",  # changes methods that are planned again: unit/method/test_order.py
    *NETS,  # programs for them are made in test_joined.py
    *OPTIONAL,
}
CHOICES: dict[str, tuple[str, ...]] = {
    **{name: (name,) for name in PASSES if name not in ELSEWHERE},
    "all": tuple(name for name in PASSES if name not in OPTIONAL),
}


SMALL = (
    *("linear_softmax", "views", "counter", "list_arguments", "multi_method"),
    *("transformer_block", "scan_loop", "dynamic_sequence", "io_not_planned"),
    *("integer_types", "cond_computed", "embedding_argmax", "add_mul"),
)


def _adapted(program: Program, names: Sequence[str]) -> Adapted:
    """A program with some passes, planned afresh."""
    info, resolution = extract(program, model="m"), resolution_of_all(program)
    linkage = try_link(program, info, resolution)
    assert linkage.problems == ()
    methods = tuple(run_passes(m, names, planned=False, replans=True) for m in linkage.methods)
    adapter = Adapter(passes=names, schemas=schemas(), planner=plan_blocks, isa="")
    linkage = replace(linkage, methods=methods)
    return adapter.loaded("m", program, program, linkage, NO_IO)


def _with_unread(program: Program) -> Program:
    """The program without its last output."""
    method = program.methods[0]
    less = replace(method, outputs=method.outputs[:-1])
    data = write_program(replace(program, methods=(less, *program.methods[1:])))
    return read_program(data, file="less")


@pytest.mark.parametrize("choice", CHOICES)
def test_no_pass_changes_a_bit(choice: str, tmp_path: Path) -> None:
    """In the loader on the host, under sanitizers, which checks all of the new file."""
    names, tool = CHOICES[choice], build("load_file")
    tested = 0
    for case in SMALL:
        program = program_of(case)
        if names == ("drop_unused_calls",) and len(program.methods[0].outputs) > 1:
            program = _with_unread(program)
        adapted = _adapted(program, names)
        if adapted.passed is None:
            continue
        tested += 1
        (call, *_) = json.loads((CORPUS / case / "case.json").read_text())["runs"]
        method = program.method(call["method"])
        outputs = []
        for data in (program.data, adapted.program.data):
            path = tmp_path / f"{case}.pte"
            path.write_bytes(bytes(data))
            outputs.append(run_method(tool, path, method, call, case=case, folder=tmp_path))
        assert outputs[0] == outputs[1], case
    assert tested


def test_memory_is_what_the_device_needs_to_the_byte(tmp_path: Path) -> None:
    paths = [tmp_path / f"{case}.pte" for case in SMALL]
    for case, path in zip(SMALL, paths, strict=True):
        adapted = _adapted(program_of(case), CHOICES["all"])
        path.write_bytes(bytes(adapted.program.data))
    answers = ask(build("load_file"), paths, stand_ins=True)
    for path, answer in zip(paths, answers, strict=True):
        assert answer.error == "Ok"
        program = read_program(path.read_bytes(), file=path.name)
        for found, method in zip(answer.methods, program.methods, strict=True):
            assert found.error == "Ok", path.stem
            assert found.state_bytes == method_state_bytes(method, pointer_bytes=8)
            assert found.less_arena == tuple(
                "ArenaTooSmall" if size else "-" for size in method.arena_bytes[1:]
            )
            assert found.run == "Ok"


def test_without_a_change_only_places_and_sizes_change() -> None:
    unchanged = 0
    for case in RUNNABLE:
        program = program_of(case)
        adapted = _adapted(program, ("fold_permutes",))
        if adapted.passed is None:
            edited = adapt_program(program, program, schemas(), plan=plan_blocks)
            assert adapted.program.data == edited.program.data
            unchanged += 1
    assert 0 < unchanged < len(RUNNABLE)


def _plan(product: Product, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    capsys.readouterr()
    assert run(["plan", str(product.profile), "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


@pytest.mark.parametrize(
    ("load", "extra", "arena", "permutes"),
    [
        ("pte", "", 3072, False),
        ("pte", '[passes]\nskip = ["fold_permutes"]\n', 330_752, True),
        ("pte", f"[passes]\nskip = {json.dumps([*PASSES])}\n", 330_752, True),
        ("pte", '[operators]\ninclude = ["aten::permute_copy.out"]\n', 3072, True),
        ("prelinked", "", 3072, True),
    ],
)
def test_the_autoencoder_has_its_weights_in_order(
    *,
    load: str,
    extra: str,
    arena: int,
    permutes: bool,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The kernel leaves the table with its last call, unless the profile asks for it.

    Of a prelinked model the linker drops it.
    """
    product = corpus_product(tmp_path, "p", [AUTOENCODER], load=load, extra=extra)
    plan = _plan(product, capsys)
    assert plan["arena_bytes"] == arena
    operators = {kernel["operator"] for kernel in plan["kernels"]}
    assert ("aten::permute_copy.out" in operators) == permutes
    assert len(operators) == 2 + permutes


def test_commands_know_what_was_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    product = corpus_product(tmp_path, "p", [AUTOENCODER])
    profile = str(product.profile)
    capsys.readouterr()
    assert run(["why", "--not", profile, "aten::permute_copy.out", "--json"]) == 0
    (absence,) = json.loads(capsys.readouterr().out)["absences"]
    assert absence["reason"] == "left-out"
    assert run(["decode", "10", "--instruction", "2", "--profile", profile]) == 0
    said = capsys.readouterr().out
    assert "instruction 2 (4 of the program), which calls aten::addmm.out" in said
    (ledger,) = _plan(product, capsys)["prelink"]
    changed = {p["name"] for p in ledger["passes"] if p["changed"]}
    assert changed == {"fold_permutes", "drop_values", "share_values"}


def test_what_cannot_be_linked_stays_as_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    extra = '[operators]\nallow_missing = ["aten::sigmoid.out"]\n'
    product = corpus_product(
        tmp_path, "p", ["multi_method"], extra=without_sigmoid(tmp_path) + extra
    )
    ledgers = _plan(product, capsys)["prelink"]
    passes = [p for ledger in ledgers for p in ledger["passes"]]
    (reason,) = {p["skipped"] for p in passes if p["name"] not in OPTIONAL}
    assert "calls aten::sigmoid.out, which has no kernel" in reason
