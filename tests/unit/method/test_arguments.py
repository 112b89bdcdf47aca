"""Arguments of calls, asked by the schema's name."""

from __future__ import annotations

from dataclasses import replace

import pytest

from orchestrator.method.linked import LinkedCall, LinkedMethod
from orchestrator.method.passes.arguments import Arguments, UnknownCallError
from orchestrator.program.values import IntValue
from tests.unit.method.methods import Builder


def _select() -> tuple[LinkedMethod, LinkedCall]:
    b = Builder()
    x, out = b.tensor((2, 4), 0), b.tensor((2,), 16)
    dim, at = (b.value(IntValue(number)) for number in (1, 3))
    b.call("aten::select_copy.int_out", x, dim, at, out)
    method = b.method((x,), (out,))
    return method, method.call(0)


def test_names_are_those_of_the_schema() -> None:
    method, call = _select()
    arguments = Arguments(method, call)
    assert (arguments.number("dim"), arguments.number("index")) == (1, 3)
    assert arguments.places(input="self", bias=None) == (("input", 0), ("bias", None))
    assert arguments.replaced({"index": 7}) == (*call.args[:2], 7, call.args[3])


def test_another_name_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="not in tuple"):
        Arguments(*_select()).number("dimension")


def test_a_call_with_other_arguments_has_no_names() -> None:
    method, call = _select()
    packed = replace(call, args=call.args[::3], accesses=call.accesses[::3])
    with pytest.raises(UnknownCallError):
        Arguments(method, packed).tensor("out")
