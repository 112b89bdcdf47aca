"""Random programs on every target; `nox -s differential` for more of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests.differential.__main__ import batches, differences, shown
from tests.differential.draw import Drawer
from tests.differential.program import Cond, Map, Op, Put, Store, Value, blocks_of, statements_of
from tests.tools import need_emulator, need_toolchain

if TYPE_CHECKING:
    from pathlib import Path

COUNT = 300
SEED = 5000


@pytest.mark.toolchain
@pytest.mark.qemu
def test_programs_are_what_they_mean(tmp_path: Path) -> None:
    for toolchain in ("zig", "gnu"):
        need_toolchain("cortex-m4", toolchain)
        need_emulator("cortex-m55")
    found = [
        f"seed {seed}, {place.name}: {text}\n{shown(Drawer(seed).model())}"
        for seed, place, text in differences(COUNT, SEED, tmp_path)
    ]
    assert found == [], "\n".join(found)


def test_a_seed_gives_the_same_program() -> None:
    assert shown(Drawer(7).model()) == shown(Drawer(7).model())
    assert shown(Drawer(7).model()) != shown(Drawer(8).model())


def test_programs_have_what_they_are_for() -> None:
    """Each axis is there, many times among those of a run."""
    models = [Drawer(seed).model() for _, seeds in batches(COUNT, SEED) for seed in seeds]
    methods = [method for model in models for method in model.methods]
    kinds = [type(s) for m in methods for s in statements_of(m.statements)]
    assert all(kinds.count(kind) > 10 for kind in (Cond, Map, Put, Store))
    inner = [
        s
        for m in methods
        for x in m.statements
        for b in blocks_of(x)
        for s in statements_of(b.statements)
    ]
    assert {type(s) for s in inner} >= {Op, Cond, Map}
    calls = [s for m in methods for s in statements_of(m.statements) if isinstance(s, Op)]
    weights = [a for c in calls for a in c.args if isinstance(a, Value) and a.data and not a.buffer]
    assert len(weights) > len(set(weights)) + 100, "no constant is used twice"
    assert sum(model.traits["unsound"] for model in models) > 25
    assert sum(model.traits["constant"] for model in models) > 7
    assert {len(model.methods) for model in models} == {1, 2, 3, 4}
    inputs = [v for m in methods for v in m.inputs]
    assert {v.sizes[0] for v in inputs if len(v.sizes) == 4} == {1, 2, 3}
    assert len({v.dtype for v in inputs}) >= 6
    orders = {v.order for v in inputs if len(v.sizes) == 4}
    assert len(orders) > 3, orders
    assert any(set(map(id, m.outputs)) & set(map(id, m.inputs)) for m in methods)
    assert any(len(set(map(id, m.outputs))) < len(m.outputs) for m in methods)
    assert np.mean([len(m.session) for m in models]) > 3
