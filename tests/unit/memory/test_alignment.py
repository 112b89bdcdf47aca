"""`memory.alignment`, and `align` of inputs and outputs: lines of a cache."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

from orchestrator.build import BuildOptions, Project, open_build, table
from orchestrator.build import load as read
from orchestrator.emit.generate.api_source import api_source
from orchestrator.emit.generate.linker import linker_script
from orchestrator.emit.generate.product import Product
from orchestrator.errors import ModelError
from orchestrator.memory.product import plan_memory
from orchestrator.profile.choices import Load
from orchestrator.program.values import TensorValue
from orchestrator.targets.boards import Concurrency
from tests.conftest import CORPUS
from tests.unit.products import program_of, target_of

if TYPE_CHECKING:
    from pathlib import Path

LINE: Final = 256
CASES = ("add_mul", "multi_method", "two_arenas", "mlp")


@pytest.mark.parametrize("concurrency", Concurrency)
@pytest.mark.parametrize("alignment", [16, 32, 256])
def test_arenas_begin_and_end_with_a_line(alignment: int, concurrency: Concurrency) -> None:
    programs = {case: program_of(case) for case in CASES}
    target = target_of("cortex-m4", "gnu")

    def planned(alignment: int) -> list[int]:
        plan = plan_memory(
            programs,
            pointer_bytes=4,
            board=target.board,
            spans={},
            concurrency=concurrency,
            alignment=alignment,
        )
        text = api_source(Product("p", "Head.", programs, plan)).text
        own = "kArenaAlignment" if alignment == 16 else alignment
        blocks = [a for m in plan.models for x in m.methods for a in x.own_arenas]
        full = [a for a in blocks if a.size_bytes]
        assert text.count(f"alignas({own})\n") == len(full) + len(plan.common)
        assert target.board is not None
        script = linker_script("Head.", target.board, plan).text
        assert script.count(f"(NOLOAD) : ALIGN({alignment}) {{ *(.bss.orch") > 0
        for model in plan.models:
            for method in model.methods:
                for arena in method.arenas:
                    assert arena.common is None or (arena.common.offset_bytes % alignment == 0)
        sizes = [a.size_bytes for m in plan.models for x in m.methods for a in x.arenas]
        return sizes + [c.size_bytes for c in plan.common]

    before, found = planned(16), planned(alignment)
    if alignment > 16:
        assert all(size % alignment == 0 for size in found)
    assert all(old <= new for old, new in zip(before, found, strict=True))


def _project(folder: Path, case: str, load: str, more: str = "") -> Project:
    (folder / "m.pte").write_bytes((CORPUS / case / "model.pte").read_bytes())
    (folder / "p.toml").write_text(f"""\
schema = 1
name = "p"
[target]
cpu = "cortex-m55"
[kernels]
libraries = ["cortex_m", "quantized", "portable"]
[[models]]
path = "m.pte"
load = "{load}"
[models.io]
input0 = {{align = {LINE}}}
output0 = {{align = {LINE}}}
{more}
""")
    return Project(read(folder / "p.toml"), BuildOptions(out=folder / "out"))


@pytest.mark.parametrize("load", Load)
@pytest.mark.parametrize("case", ["two_arenas", "mlp", "kws_dscnn_int8_m55"])
def test_inputs_and_outputs_have_lines_of_their_own(case: str, load: Load, tmp_path: Path) -> None:
    build = open_build(_project(tmp_path, case, load))
    plan = build[table.MEMORY]
    assert plan.alignment == LINE
    adapted = build[table.REPLAN].models["m"]
    (method, *_) = adapted.linked or adapted.program.methods
    for index in (method.inputs[0], method.outputs[0]):
        value = method.values[index]
        assert isinstance(value, TensorValue)
        place = value.allocation
        assert place is not None
        assert place.offset_bytes % LINE == 0
        (arena,) = (a for a in plan.models[0].methods[0].arenas if a.memory_id == place.memory_id)
        assert arena.size_bytes % LINE == 0
        assert place.offset_bytes + value.size_bytes <= arena.size_bytes


def test_what_keeps_its_plan_cannot_be_aligned(tmp_path: Path) -> None:
    keep = '[memory]\nplanner = "keep"'
    build = open_build(_project(tmp_path, "two_arenas", "pte", keep))
    with pytest.raises(ModelError) as caught:
        _ = build[table.REPLAN]
    found = {d.message: d for d in caught.value.diagnostics}
    problem = found[f"output0 of method forward cannot begin at a multiple of {LINE}"]
    assert problem.code == "bad-io"
    assert "which keeps its plan" in dict(problem.notes)["found"]
