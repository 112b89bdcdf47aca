"""The ledger of passes, and what passes leave as it was."""

from __future__ import annotations

import pytest

from orchestrator.method.ledger import MethodPasses, PassCounts, PassRecord
from orchestrator.method.linked import LinkedCall
from orchestrator.method.passes import PASSES, ledger_lines, ledger_of, run_passes
from orchestrator.method.passes.context import Context
from orchestrator.method.passes.ledger_lines import NO_OPERATOR, NOT_WANTED
from tests.unit.method.methods import Builder
from tests.unit.method.test_prelink import _linked

CLONE = "dim_order_ops::_clone_dim_order.out"
PERMUTE = "aten::permute_copy.out"


def test_every_pass_is_in_the_ledger_with_what_it_did() -> None:
    b = Builder()
    x, y = b.tensor((4,), 0), b.tensor((4,), 4)
    b.call("aten::relu.out", x, y)
    b.tensor((4,), None)
    method = run_passes(b.method((x,), (y,)), [*PASSES][1:])
    found = {r.name: r for r in method.passes}
    assert [*found] == [*PASSES]
    assert found["fold_permutes"].skipped == NOT_WANTED
    for name in ("fold_constants", "alias_copies", "drop_unused_calls"):
        assert found[name].skipped == NO_OPERATOR
        assert not found[name].changed
    before = PassCounts(calls=1, values=3, constant_bytes=0)
    after = PassCounts(calls=1, values=2, constant_bytes=0)
    assert found["drop_values"] == PassRecord(
        name="drop_values", skipped="", changed=True, before=before, after=after
    )
    share = found["share_values"]
    assert (share.skipped, share.changed) == ("", False)


@pytest.mark.parametrize("name", PASSES)
def test_a_pass_with_nothing_to_do_gives_the_same_object(name: str) -> None:
    b = Builder()
    x, y = b.tensor((2, 4), 0), b.tensor((4, 2), 8)
    b.call(PERMUTE, x, b.numbers(1, 0), y)
    method = run_passes(b.method((x,), (y,)), PASSES)
    assert PASSES[name].change(method, Context()) is method


def test_calls_that_a_pass_does_not_touch_are_the_same_objects() -> None:
    before = _linked("views")
    after = run_passes(before, ["alias_copies"])
    assert len(after.instructions) < len(before.instructions)
    kept = [before.instructions[before.origins.index(o)] for o in after.origins]
    assert all(a is b for a, b in zip(after.instructions, kept, strict=True))
    places = {*before.places.items()} ^ {*after.places.items()}
    moved = {index for index, _ in places}
    values = [*zip(after.values, before.values, strict=True)]
    assert 0 < len(moved) < len(values)
    assert sum(a is b for a, b in values) >= len(values) - len(moved) - 1
    folded = run_passes(before, ["share_values"])
    for old, new in zip(before.instructions, folded.instructions, strict=True):
        assert isinstance(old, LinkedCall)
        assert (old is new) == (old == new)


@pytest.mark.parametrize("name", PASSES)
def test_a_pass_that_does_not_look_at_a_method_would_not_change_it(name: str) -> None:
    b = Builder()
    x, y = b.tensor((4,), 0), b.tensor((4,), 4)
    b.call("aten::relu.out", x, y)
    method = b.method((x,), (y,))
    if not PASSES[name].concerns(method):
        assert PASSES[name].change(method, Context()) is method


def test_a_table_tells_what_happened() -> None:
    def counts(calls: int, values: int, size: int) -> PassCounts:
        return PassCounts(calls=calls, values=values, constant_bytes=size)

    one, other = counts(12, 1340, 5), counts(9, 1200, 1234)
    records = [
        PassRecord(name="fold_permutes", skipped="", changed=True, before=one, after=other),
        PassRecord(
            name="alias_copies", skipped=NO_OPERATOR, changed=False, before=other, after=other
        ),
        PassRecord(name="drop_values", skipped="", changed=False, before=other, after=other),
    ]
    ledger = MethodPasses(model="m", method="forward", passes=tuple(records))
    assert "\n".join(ledger_lines([ledger])) == (
        "m.forward                        calls          values"
        "          constant bytes\n"
        "  fold_permutes                12 -> 9  1,340 -> 1,200"
        "              5 -> 1,234\n"
        "  alias_copies           skipped: no call of its operators\n"
        "  drop_values            changed nothing"
    )


def test_the_ledger_says_nothing_of_what_a_method_computes() -> None:
    method = _linked("views")
    noted = run_passes(method, [])
    assert noted == method
    assert [r.name for r in noted.passes] == [*PASSES]
    (of,) = ledger_of([noted])
    assert (of.model, of.method, of.passes) == ("views", "forward", noted.passes)
