from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.catalog import LibraryText, read_catalog
from orchestrator.core.operator import OperatorName
from orchestrator.errors import ExitCode, KernelError, SourceSpan
from orchestrator.selection.extract import check_library_overlap, check_overlap
from orchestrator.selection.op_info import CallPattern, OpCall, OpInfo, SelectedOperator, Selection
from tests.unit.selection.strategies import INFOS

ADD, MUL = OperatorName("aten", "add", "out"), OperatorName("aten", "mul", "out")
WHERE = SourceSpan(file="p.toml", line=7, text='overlap = "error"')


def _info(model: str, *listed: OperatorName, called: OperatorName | None) -> OpInfo:
    calls = () if called is None else (called,)
    return OpInfo(
        model=model,
        operators=tuple(("forward", name) for name in listed),
        calls=tuple(
            OpCall(operator=name, pattern=CallPattern("", ()), method="forward", instruction=0)
            for name in calls
        ),
        delegates=(),
    )


def test_every_operator_and_all_of_its_models_are_named() -> None:
    infos = [
        _info("c", MUL, ADD, called=ADD),
        _info("a", called=ADD),
        _info("b", MUL, MUL, called=MUL),
        _info("d", ADD, called=None),
    ]
    with pytest.raises(KernelError) as caught:
        check_overlap(infos, where=WHERE)
    assert caught.value.exit_code is ExitCode.KERNEL
    first, second = caught.value.diagnostics
    assert first.code == second.code == "overlap"
    assert first.where == second.where == WHERE
    assert first.message == "3 models use aten::add.out"
    assert first.notes[0] == ("found", "a, c, d")
    assert second.message == "2 models use aten::mul.out"
    assert second.notes[0] == ("found", "b, c")
    assert first.hint == 'write overlap = "allow" to let models share kernels'


def test_one_model_may_use_an_operator_often() -> None:
    check_overlap([_info("a", ADD, ADD, called=ADD)] * 2, where=WHERE)
    check_overlap([_info("a", ADD, called=None), _info("b", called=MUL)], where=WHERE)


@given(st.lists(INFOS, max_size=4))
def test_refused_is_what_two_models_share(infos: list[OpInfo]) -> None:
    used = {
        model: {name for i in infos if i.model == model for _, name in i.operators}
        | {c.operator for i in infos if i.model == model for c in i.calls}
        for model in ("kws", "vww")
    }
    shared = used["kws"] & used["vww"]
    found = []
    try:
        check_overlap(infos[::-1], where=WHERE)
    except KernelError as error:
        found = [d.message for d in error.diagnostics]
    assert found == [f"2 models use {name}" for name in sorted(shared)]


def _library(name: str, *operators: str) -> LibraryText:
    text = "".join(
        f"- func: aten::{o}.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)\n"
        f"  kernels: [{{kernel_name: {name}::{o}}}]\n"
        for o in operators
    )
    return LibraryText(name=name, file=f"{name}.yaml", text=text)


def test_selected_operators_of_several_libraries_are_named() -> None:
    libraries = [_library("a", "add"), _library("b", "mul", "add"), _library("c", "mul")]
    selection = Selection(operators=(SelectedOperator(name=ADD),))
    with pytest.raises(KernelError) as caught:
        check_library_overlap(selection, read_catalog(libraries), where=WHERE)
    (found,) = caught.value.diagnostics
    assert found.message == "2 kernel libraries have aten::add.out"
    assert found.notes == (("found", "a, a.yaml:1"), ("found", "b, b.yaml:3"))
    assert '"aten::add.out" = ["a"] in [kernels.operators]' in found.hint
    every = Selection(every_operator=True)
    with pytest.raises(KernelError) as caught:
        check_library_overlap(every, read_catalog(libraries), where=WHERE)
    assert len(caught.value.diagnostics) == 2


def test_a_choice_of_one_library_is_no_overlap() -> None:
    libraries = [_library("a", "add"), _library("b", "mul", "add")]
    every = Selection(every_operator=True)
    check_library_overlap(every, read_catalog(libraries, ((ADD, ("b",)),)), where=WHERE)
    check_library_overlap(Selection(), read_catalog(libraries), where=WHERE)


def test_a_choice_decides_which_libraries_are_tried_and_when() -> None:
    libraries = [_library("a", "add"), _library("b", "mul", "add")]

    def offers(*order: str) -> list[str]:
        catalog = read_catalog(libraries, ((ADD, order),))
        assert [k[0].library for k in catalog.offers(MUL)] == ["b"]
        return [kernels[0].library for kernels in catalog.offers(ADD)]

    assert offers("b") == ["b"]
    assert offers("b", "a") == ["b", "a"]
    assert offers("a", "b") == ["a", "b"]
