"""Which products have calls that the build has proved."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from orchestrator.catalog import LibraryText, read_catalog
from orchestrator.core.dtype import ScalarType
from orchestrator.method.checks import are_proved
from orchestrator.program.program import MoveCall
from orchestrator.program.values import IntValue
from orchestrator.selection.resolution import Binding, Resolution, ResolvedOperator
from tests.unit.method.methods import Builder, tensor

if TYPE_CHECKING:
    from orchestrator.method.linked import LinkedMethod

FILE = Path(__file__).parents[3] / "kernels" / "portable" / "functions.yaml"
ADD = "orch::portable::add_out"
SELECT = "orch::portable::select_copy_int_out"


@cache
def _resolution() -> Resolution:
    """All kernels of the portable library, as if every one were linked."""
    text = FILE.read_text(encoding="utf-8")
    library = LibraryText(name="portable", file=str(FILE), text=text)
    ((_, kernels),) = read_catalog([library]).libraries
    return Resolution(
        operators=tuple(
            ResolvedOperator(
                name=kernel.operator,
                schema=kernel.schema,
                bindings=(
                    Binding(
                        kernel=kernel,
                        keys=(),
                        dtypes=frozenset(),
                        table_dtypes=frozenset(),
                        every_dtype=False,
                        origins=(),
                    ),
                ),
            )
            for kernel in kernels
        )
    )


def _add(sizes: tuple[int, ...], *, dynamic: bool = False, function: str = ADD) -> LinkedMethod:
    """x + y, with an output of these sizes."""
    b = Builder()
    x = b.tensor((4,), 0, dynamic=dynamic)
    y = b.tensor((4,), 4, dynamic=dynamic)
    one = b.value(IntValue(1))
    out = b.tensor(sizes, 8, dynamic=dynamic)
    b.call("aten::add.out", x, y, one, out, function=function)
    return b.method((x, y), (out,))


def _select(*, computed: bool) -> LinkedMethod:
    """x[i], with an index that is constant or an input."""
    b = Builder()
    x = b.tensor((4, 2), 0)
    dim, index = b.value(IntValue(0)), b.value(IntValue(3))
    out = b.tensor((2,), 8)
    b.call("aten::select_copy.int_out", x, dim, index, out, function=SELECT)
    return b.method((x, index) if computed else (x,), (out,))


def _embed(items: tuple[int, ...] | None) -> LinkedMethod:
    """Rows of a table of two; the indices are constant, or None: an input."""
    b = Builder()
    table = b.tensor((2, 2), 0)
    place = 8 if items is None else None
    indices = b.value(replace(tensor((2,), place), dtype=ScalarType.Long))
    if items is not None:
        b.data = [(indices, b"".join(i.to_bytes(8, "little") for i in items))]
    no = b.value(IntValue(-1))
    out = b.tensor((2, 2), 24)
    b.call(
        "aten::embedding.out",
        *(table, indices, no, no, no, out),
        function="orch::portable::embedding_out",
    )
    return b.method((table, *(() if items else (indices,))), (out,))


def test_a_call_is_proved_if_every_condition_holds() -> None:
    assert are_proved([_add((4,))], _resolution())
    assert not are_proved([_add((5,))], _resolution())
    assert are_proved([], _resolution())


def test_one_unproved_call_counts_for_all() -> None:
    methods = [_add((4,)), _select(computed=True), _add((4,))]
    assert not are_proved(methods, _resolution())


@pytest.mark.parametrize("computed", [False, True])
def test_what_a_run_decides_is_not_proved(*, computed: bool) -> None:
    assert are_proved([_select(computed=computed)], _resolution()) != computed


def test_items_are_known_of_constants_only() -> None:
    assert are_proved([_embed((0, 1))], _resolution())
    assert not are_proved([_embed((0, 2))], _resolution())
    assert not are_proved([_embed(None)], _resolution())


def test_sizes_that_change_are_not_proved() -> None:
    assert not are_proved([_add((4,), dynamic=True)], _resolution())


def test_moves_are_not_proved() -> None:
    method = _add((4,))
    move = MoveCall(source=0, target=1)
    moved = replace(method, instructions=(*method.instructions, move))
    assert not are_proved([moved], _resolution())


def test_kernels_of_users_may_check_more_than_they_declare() -> None:
    unknown = frozenset({"portable"})
    assert not are_proved([_add((4,))], _resolution(), unknown=unknown)
    assert are_proved([_add((4,))], _resolution(), unknown=frozenset({"mine"}))


def test_kernels_of_passes_have_no_conditions() -> None:
    assert are_proved([_add((5,), function="orch::packed")], _resolution())
