"""Passes are judged by what the product costs, and by what the board has."""

from __future__ import annotations

import json
from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from orchestrator.build import BuildOptions, Project, Shell, load, open_build, table
from orchestrator.build.adapter import Judge
from orchestrator.core.dtype import ScalarType
from orchestrator.errors import MemoryPlanError
from orchestrator.fleet.task import RecentResults
from orchestrator.method.passes.fold import SMALL_BYTES
from orchestrator.profile.choices import PASSES
from orchestrator.profile.tables import BudgetTable
from orchestrator.shell.input_files import CommonFiles
from tests.conftest import CASES, CORPUS
from tests.integration.joined_nets import Net, program_bytes

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

FLOAT = ScalarType.Float
LAYERS, STEPS, WIDTH = 6, 16, 16
WEIGHT = 4 * WIDTH * WIDTH
EXPANDED = STEPS * WEIGHT


@dataclass(frozen=True, kw_only=True)
class Found:
    """What `check` says of a product."""

    arena_bytes: int
    flash_bytes: int
    calls: int
    changed: frozenset[str]
    skipped: dict[str, str]
    warnings: list[str]

    def is_worse_than(self, other: Found) -> bool:
        """Whether it takes more RAM, flash that saves no RAM, or more calls."""
        arena = self.arena_bytes - other.arena_bytes
        calls = self.calls - other.calls
        flash = self.flash_bytes - other.flash_bytes + calls * SMALL_BYTES
        return arena > 0 or arena + flash > 0 or (arena == flash == 0 < calls)


def checked(  # what the profile says
    folder: Path,
    model: Path,
    *,
    load_as: str = "prelinked",
    cpu: str = "cortex-m4",
    optimize: str = "size",
    skip: Collection[str] = (),
    more: str = "",
    shell: Shell | None = None,
) -> Found:
    data = [str(path) for path in model.parent.glob("*.ptd")]
    profile = folder / "net.toml"
    profile.write_text(
        f"""schema = 1
name = "net"
[kernels]
libraries = ["cortex_m", "portable", "quantized"]
[target]
cpu = "{cpu}"
optimize = "{optimize}"
[passes]
skip = {json.dumps([*skip])}
{more}
[[models]]
name = "net"
path = "{model}"
load = "{"pte" if data else load_as}"
data = {json.dumps(data)}
"""
    )
    options = BuildOptions(out=folder / "out", write_lock=False)
    build = open_build(Project(load(profile), options), shell or Shell())
    adapted, memory = build[table.REPLAN], build[table.MEMORY]
    records = [record for method in adapted.ledger for record in method.passes]
    return Found(
        arena_bytes=memory.arena_bytes,
        flash_bytes=sum(m.passes[-1].after.constant_bytes for m in adapted.ledger),
        calls=sum(min(r.after.calls for r in m.passes) for m in adapted.ledger),
        changed=frozenset(r.name for r in records if r.changed),
        skipped={r.name: r.skipped for r in records if r.skipped},
        warnings=[*adapted.warnings],
    )


def crnn(folder: Path) -> Path:
    """Layers whose exporter repeats a weight for every step, as some CRNNs have them.

    Each takes a part of a constant as well, which is a good fold.
    """
    rng = np.random.default_rng(1)
    net = Net(name="forward")
    x = net.given((STEPS, 1, WIDTH), FLOAT)
    for _ in range(LAYERS):
        weight = net.constant(rng.standard_normal((1, WIDTH, WIDTH)), FLOAT)
        each = net.call(
            "aten::expand_copy.out",
            weight,
            (STEPS, WIDTH, WIDTH),
            False,  # noqa: FBT003
            net.tensor((STEPS, WIDTH, WIDTH), FLOAT),
        )
        both = net.constant(rng.standard_normal((2, STEPS, 1, WIDTH)), FLOAT)
        first = net.tensor((STEPS, 1, WIDTH), FLOAT)
        bias = net.call("aten::select_copy.int_out", both, 0, 1, first)
        x = net.call("aten::bmm.out", x, each, net.tensor((STEPS, 1, WIDTH), FLOAT))
        out = net.tensor((STEPS, 1, WIDTH), FLOAT)
        x = net.call("aten::add.out", x, bias, 1, out)
    path = folder / "crnn.pte"
    path.write_bytes(program_bytes([net.returns(x)]))
    return path


def board(flash: int, ram: int) -> str:
    """Memories of a board: flash for code, flash for constants, and one RAM."""
    parts = [("code", 0, 48 * 1024, "flash"), ("flash", 0x100000, flash, "flash")]
    return '[memory]\nweights = "flash"\n' + "".join(
        f'[[memory.regions]]\nname = "{name}"\norigin = {origin}\nsize = "{size} B"\n'
        f'kind = "{kind}"\n'
        for name, origin, size, kind in [*parts, ("sram", 0x20000000, ram, "ram")]
    )


@pytest.mark.parametrize("load_as", ["pte", "prelinked"])
def test_expanded_constants_that_do_not_pay_stay_calls(tmp_path: Path, load_as: str) -> None:
    model = crnn(tmp_path)
    found = checked(tmp_path, model, load_as=load_as)
    without = checked(tmp_path, model, load_as=load_as, skip=["fold_constants"])
    assert without.flash_bytes == LAYERS * 3 * WEIGHT
    assert not found.is_worse_than(without)
    assert found.flash_bytes == LAYERS * 2 * WEIGHT
    # What is no larger than its source is still folded: half of these calls.
    assert found.calls == without.calls - LAYERS
    assert (found.skipped.get("fold_constants"), found.warnings) == (None, [])


def test_for_speed_they_are_folded_where_there_is_room(tmp_path: Path) -> None:
    model = crnn(tmp_path)
    grown = LAYERS * (EXPANDED + WEIGHT)
    fast = checked(tmp_path, model, optimize="speed")
    assert (fast.flash_bytes, fast.calls, fast.warnings) == (grown, 2 * LAYERS, [])
    # Their bytes are 102 KiB; the code of two kernels takes less than 18 KiB.
    for budget, is_grown in [("120 KiB", True), ("104 KiB", False)]:
        more = f'[budget]\nflash = "{budget}"'
        found = checked(tmp_path, model, optimize="speed", more=more)
        assert (found.flash_bytes == grown) is is_grown
        assert found.warnings == []


def test_a_product_that_does_not_fit_is_tried_without(tmp_path: Path) -> None:
    model = crnn(tmp_path)
    small = board(64 * 1024, 64 * 1024)
    found = checked(tmp_path, model, optimize="speed", more=small)
    assert found.flash_bytes == LAYERS * 2 * WEIGHT
    assert found.warnings == [
        "warning[pass-left-out]: model net: fold_constants does less, else the product"
        " does not fit the board"
    ]
    large = board(256 * 1024, 64 * 1024)
    assert checked(tmp_path, model, optimize="speed", more=large).warnings == []
    with pytest.raises(MemoryPlanError) as error:
        checked(tmp_path, model, more=board(8 * 1024, 64 * 1024))
    (problem,) = error.value.diagnostics
    assert problem.code == "memory-too-small"
    assert ("needs", f"{LAYERS * 2 * WEIGHT} bytes") in problem.notes


def judged(
    saves: dict[str, int], room: int, budget: BudgetTable | None
) -> tuple[dict[str, str], list[str]]:
    """The reasons of passes that are left out of a model, and those that are warned of.

    The model takes 300 bytes of an arena, and less without passes.
    """

    def restrained(_: str, restraints: dict[str, str]) -> Any:
        return SimpleNamespace(restraints=restraints, linked=None)

    def plan(models: Any, board: Any) -> Any:
        size = 300 - sum(saves[one] for one in models["net"].restraints)
        if board is not None and size > room:
            raise MemoryPlanError.of("memory-too-small", "no room")
        model = SimpleNamespace(program_bytes=0)
        return SimpleNamespace(
            models=[model], arena_bytes=size, state_bytes=0, caller_bytes=0, needs=None
        )

    costs = [SimpleNamespace(constant_bytes=size) for size in (0, 1)]
    records = [
        SimpleNamespace(name=name, changed=True, before=costs[0], after=costs[1]) for name in saves
    ]
    method = SimpleNamespace(passes=records)
    linkages: Any = {"net": SimpleNamespace(methods=[method], before=(method,))}
    board: Any = SimpleNamespace(stack_bytes=0, copies_code=False)
    judge = Judge(restrained=restrained, plan=plan, board=board, budget=budget)
    found, warnings = judge.judged({"net": restrained("net", {})}, linkages)
    start = "warning[pass-left-out]: model net: "
    end = " does nothing, else the product does not fit the board"
    assert all(text.startswith(start) and text.endswith(end) for text in warnings)
    names = [text.removeprefix(start).removesuffix(end) for text in warnings]
    reasons: Any = found["net"]
    return reasons.restraints, names


NO_ROOM, COSTS = "there is no room", "costs more memory than it saves"


@pytest.mark.parametrize(
    ("room", "budget", "reasons", "warned"),
    [
        (300, None, {"fold_permutes": COSTS, "alias_copies": COSTS}, []),
        (
            210,  # enough without the copies alone, but the other pass does not pay
            None,
            {"fold_permutes": COSTS, "alias_copies": COSTS},
            ["alias_copies"],
        ),
        (
            190,
            None,
            {"fold_permutes": COSTS, "alias_copies": COSTS},
            ["fold_permutes", "alias_copies"],
        ),
        (
            180,
            None,
            {"fold_permutes": COSTS, "alias_copies": COSTS, "pack_weights": NO_ROOM},
            ["fold_permutes", "alias_copies", "pack_weights"],
        ),
        (300, BudgetTable(), {}, []),
        (210, BudgetTable(), {"alias_copies": NO_ROOM}, ["alias_copies"]),
    ],
)
def test_what_there_is_room_for_is_neither_left_out_nor_warned_of(
    room: int, budget: BudgetTable | None, reasons: dict[str, str], warned: list[str]
) -> None:
    saves = {"fold_permutes": 10, "alias_copies": 100, "pack_weights": 10}
    assert judged(saves, room, budget) == (reasons, warned)


def test_packed_weights_are_left_out_only_where_there_is_no_room(tmp_path: Path) -> None:
    model = CORPUS / "kws_dscnn_int8_m4" / "model.pte"
    found = checked(tmp_path, model)
    without = checked(tmp_path, model, skip=["pack_weights"])
    assert without.flash_bytes < found.flash_bytes
    assert "pack_weights" in found.changed
    room = without.flash_bytes + 512  # constants begin at multiples of 16
    small = checked(tmp_path, model, more=board(room, 64 * 1024))
    assert small.flash_bytes == without.flash_bytes
    assert small.skipped["pack_weights"] == "there is no room"
    assert small.warnings == [
        "warning[pass-left-out]: model net: pack_weights does nothing, else the product"
        " does not fit the board"
    ]


def test_a_copy_stays_where_the_arena_is_smaller_with_it(tmp_path: Path) -> None:
    model = CORPUS / "transformer_block" / "model.pte"
    found = checked(tmp_path, model)
    assert found.arena_bytes == 10752
    assert found.skipped["alias_copies"] == "costs more memory than it saves"
    fast = checked(tmp_path, model, optimize="speed")
    assert (fast.arena_bytes, fast.calls) == (11520, found.calls - 6)


@pytest.mark.parametrize("load_as", ["pte", "prelinked"])
@pytest.mark.parametrize("part", range(4))
def test_no_pass_makes_a_program_of_the_corpus_worse(
    tmp_path: Path, part: int, load_as: str
) -> None:
    """Each pass alone: with it, a product takes no more than without it.

    Packed weights and prepared calls are for speed: they may take a little, and where
    there is no room for packed weights they are left out.
    """
    shell = Shell(common=CommonFiles(), results=RecentResults())
    worse = []
    for case in CASES[part::4]:
        if case == "xnnpack_partial":  # has a delegate
            continue
        model = CORPUS / case / "model.pte"
        found = checked(tmp_path, model, load_as=load_as, shell=shell)
        for name in sorted(found.changed & {*PASSES} - {"prepare_calls"}):
            without = checked(tmp_path, model, load_as=load_as, skip=[name], shell=shell)
            if name == "pack_weights":
                assert found.arena_bytes <= 1.04 * without.arena_bytes, case
                assert found.flash_bytes <= 1.1 * without.flash_bytes + 512, case
            elif found.is_worse_than(without):
                worse.append((case, name, found, without))
    assert worse == []
