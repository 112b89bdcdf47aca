"""Operator lists: ExecuTorch's, ours, kernel libraries, and what is wrong in them."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from itertools import permutations
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.cli.render import render_diagnostics
from orchestrator.core.dtype import ScalarType
from orchestrator.core.kernel import KernelKey
from orchestrator.core.operator import OperatorName
from orchestrator.errors import Diagnostic, ExitCode, ProfileError
from orchestrator.program.reader import read_program
from orchestrator.selection.extract import aggregate, extract, union
from orchestrator.selection.op_info import Origin, SelectedOperator, Selection
from orchestrator.selection.oplist import selected_operators_yaml
from orchestrator.selection.selection_yaml import read_operator_list
from tests.conftest import CASES, CORPUS, model_bytes
from tests.unit.selection.strategies import EXTRAS, INFOS

ORIGIN = Origin("operators.include_yaml")

LIBRARY = """\
# Operators of a product's own, in the form of a kernel library.
- op: add.out
  variants: function
  kernels:
    - arg_meta: null
      kernel_name: torch::executor::add_out

- func: my_ops::fancy.out(Tensor x, float[2] s=[0, 1], *, Tensor(a!) out) -> Tensor(a!)
  kernels:
    - arg_meta: {x: [T0, D0]}
      kernel_name: my_ops::fancy_out
  type_alias: {T0: [Float]}
  tags: core

- op: aten::add.out
"""


def _read(text: str) -> Selection:
    return read_operator_list(text, file="ops.yaml", origin=ORIGIN)


def _problems(text: str) -> tuple[Diagnostic, ...]:
    with pytest.raises(ProfileError) as caught:
        _read(text)
    assert caught.value.exit_code is ExitCode.PROFILE
    return caught.value.diagnostics


def _selected(name: str, **wanted: Any) -> SelectedOperator:
    return SelectedOperator(name=OperatorName.parse(name), origins=(ORIGIN,), **wanted)


@pytest.mark.parametrize("case", CASES)
def test_executorchs_lists_are_read_in_full(case: str) -> None:
    text = (CORPUS / case / "oplist.yaml").read_text()
    expected = yaml.safe_load(text)
    found = _read(text)
    assert not found.every_operator
    keys = expected["et_kernel_metadata"] or {}
    assert {str(o.name) for o in found.operators} == set(expected["operators"] or {})
    for operator in found.operators:
        dtypes = {f"v1/{int(dtype)};" for dtype in operator.dtypes}
        assert dtypes | {str(key) for key in operator.keys} == set(keys.get(str(operator.name), ()))
        assert not operator.every_dtype
        assert operator.origins == (ORIGIN,)


@pytest.mark.parametrize("case", CASES)
def test_a_list_asks_for_what_its_model_calls(case: str) -> None:
    program = read_program(model_bytes(case), file=case)
    model = aggregate([extract(program, model=case)])
    listed = _read((CORPUS / case / "oplist.yaml").read_text())
    both = union(model, aggregate([], listed.operators))
    wanted = {o.name: o.all_keys for o in model.operators}
    for operator in both.operators:
        # A key of one tensor without dims has become a dtype: its call has it still.
        assert operator.all_keys == wanted[operator.name]


def test_a_kernel_library_is_wanted_with_every_dtype() -> None:
    assert _read(LIBRARY) == Selection(
        operators=(
            _selected("aten::add.out", every_dtype=True),
            _selected("my_ops::fancy.out", every_dtype=True),
        )
    )


def test_what_keys_stand_for() -> None:
    found = _read(
        "include_all_operators: True\n"
        "operators:\n"
        "  aten::add.out: {include_all_overloads: true}\n"
        "  aten::listed.out:\n"
        "et_kernel_metadata:\n"
        "  aten::add.out: [v1/6;, 'v1/3;', v1/6;, v1/6;0|6;, 'v1/6;1,0']\n"
        "  add.out: [default]\n"
        "  aten::sym_size.int: [v1]\n"
        "build_features: []\ncustom_classes: []\nkernel_metadata: {}\n"
        "include_all_non_op_selectives: false\ndebug_info: [x]\n"
    )
    assert found == Selection(
        every_operator=True,
        operators=(
            _selected(
                "aten::add.out",
                every_dtype=True,
                dtypes=(ScalarType.Int, ScalarType.Float),
                keys=(KernelKey.parse("v1/6;0|6;"), KernelKey.parse("v1/6;1,0")),
            ),
            _selected("aten::listed.out"),
            _selected("aten::sym_size.int", keys=(KernelKey(()),)),
        ),
    )


def test_without_any_kernel_keys_every_dtype_is_meant() -> None:
    found = _read("operators:\n  aten::add.out: {}\n  mul.out:\n")
    assert found.operators == (
        _selected("aten::add.out", every_dtype=True),
        _selected("aten::mul.out", every_dtype=True),
    )


@pytest.mark.parametrize("text", ["", "# nothing\n", "[]", "{}", "operators: {}\n"])
def test_a_list_may_be_empty(text: str) -> None:
    assert _read(text) == Selection()


@given(infos=st.lists(INFOS, max_size=3), extra=st.lists(EXTRAS, max_size=3), every=st.booleans())
def test_our_own_lists_come_back(
    infos: list[Any], extra: list[SelectedOperator], *, every: bool
) -> None:
    selection = replace(aggregate(infos, extra), every_operator=every)
    text = selected_operators_yaml(selection, generator="a test")
    found = _read(text)

    def content(text: str) -> object:
        data = yaml.safe_load(text)
        for operator in data["operators"].values():
            del operator["debug_info"]
        return data

    assert content(selected_operators_yaml(found, generator="a test")) == content(text)
    assert found.every_operator is every


SOURCES = (
    LIBRARY,
    (CORPUS / "add_mul" / "oplist.yaml").read_text(),
    "operators: {aten::add.out: }\net_kernel_metadata: {aten::add.out: [v1/3;]}\n",
)


@given(st.lists(INFOS, max_size=2), st.lists(EXTRAS, max_size=2))
def test_the_order_of_sources_does_not_matter(
    infos: list[Any], extra: list[SelectedOperator]
) -> None:
    lists = [_read(text).operators for text in SOURCES]
    expected = aggregate(infos, [*extra, *(o for ops in lists for o in ops)])
    for order in permutations(lists):
        listed = [o for ops in order for o in ops]
        assert aggregate(infos[::-1], [*listed, *extra[::-1]]) == expected
        assert aggregate(infos, [*listed, *listed, *extra]) == expected
        assert union(expected, aggregate([], listed)) == expected


@pytest.mark.parametrize(
    ("text", "line", "code", "message"),
    [
        ("- op: a\n  b: [\n", 3, "bad-yaml", "ops.yaml is not YAML: did not find"),
        ("- op: a.b\n---\n- op: c.d\n", 2, "bad-yaml", "ops.yaml is not YAML: "),
        ("[" * 9999, 1, "bad-yaml", "ops.yaml is nested too deeply"),
        ("\n" + "- " * 9999, 2, "bad-yaml", "ops.yaml is nested too deeply"),
        ("aten::add.out", 1, "wrong-type", "ops.yaml is not an operator list"),
        ("op: add.out", 1, "unknown-key", '"op" is not a key of an operator list'),
        ("- add.out", 1, "wrong-type", "an entry of a kernel library must be a"),
        ("- ops: a.b", 1, "bad-entry", "an entry needs either `op` or `func`"),
        ("- op: a\n  func: a()", 1, "bad-entry", "an entry needs either `op` or"),
        ("\n- op: aten:add", 2, "bad-operator", '"aten:add" is not an operator name'),
        ("- op:", 1, "wrong-type", "`op` must be a string"),
        ("- op: a\n  op: b", 2, "duplicate-key", '"op" occurs twice in an entry'),
        ("- func: a.out", 1, "bad-schema", '"a.out" is not an op schema'),
        ("- func: a:b(int x) -> int", 1, "bad-operator", '"a:b" is not an operator'),
        ("operators: []", 1, "wrong-type", "operators must be a mapping"),
        ("operators:\n  a b: {}", 2, "bad-operator", '"a b" is not an operator name'),
        ("operators:\n  a: {x: 1}", 2, "unknown-key", '"x" is not a key of operator'),
        (
            "operators:\n  a:\n    include_all_overloads: true",
            3,
            "bad-oplist",
            '"a" requests all overloads of an operator',
        ),
        ("include_all_operators: 1", 1, "wrong-type", "include_all_operators must be"),
        ("et_kernel_metadata: 7", 1, "wrong-type", "et_kernel_metadata must be a"),
        ("et_kernel_metadata:\n a: v1", 2, "wrong-type", 'the kernel keys of "a" must'),
        *(
            (
                f'et_kernel_metadata:\n a:\n - "{key}"',
                3,
                "bad-kernel-key",
                f'"{key}" is not a kernel key',
            )
            for key in ("v2/6;0", "v1/99;0", "v1/6;0,2", "v1/6", "Float", "v1/6;x")
        ),
    ],
)
def test_what_is_wrong_is_said_with_its_line(text: str, line: int, code: str, message: str) -> None:
    (problem,) = _problems(text)
    assert problem.where is not None
    assert (problem.where.file, problem.where.line) == ("ops.yaml", line)
    assert problem.code == code
    assert problem.message.startswith(message)
    assert problem.hint


def test_all_problems_come_at_once() -> None:
    problems = _problems("- op: 'a b'\n- op: fine\n- x: 1\n- func: y\n")
    assert [(p.code, p.where and p.where.line) for p in problems] == [
        ("bad-operator", 1),
        ("bad-entry", 3),
        ("bad-schema", 4),
    ]
    assert problems[0].where is not None
    assert problems[0].where.text == "- op: 'a b'"


# Lists that keep who asked, as `orchestrator plumbing oplist` reads them


def keys_of(selection: Selection) -> dict[str, list[str]]:
    """Kernel keys by operator, as the written list has them."""
    text = selected_operators_yaml(union(selection, Selection()), generator="test")
    data = yaml.safe_load(text)
    return {n: data["et_kernel_metadata"].get(n, []) for n in data["operators"]}


def codes(error: pytest.ExceptionInfo[ProfileError]) -> list[tuple[str, int]]:
    return [(d.code, d.where.line if d.where else 0) for d in error.value.diagnostics]


def listed(text: str) -> Selection:
    return read_operator_list(text, file="some.yaml", origin=Origin("some.yaml"), keep_sources=True)


def test_functions_yaml() -> None:
    text = """
- op: add.out
  kernels:
    - arg_meta: null
      kernel_name: torch::executor::add_out
- func: p::f.out(Tensor x, Generator? g, *, Tensor(a!) out) -> Tensor(a!)
  variants: function
- op: p::g
"""
    assert keys_of(listed(text)) == {
        "aten::add.out": ["default"],
        "p::f.out": ["default"],
        "p::g": ["default"],
    }


def test_everything_wrong_with_functions_yaml() -> None:
    text = "- x: 1\n- op: a..b\n- func: p::f\n- op: a\n  func: b\n- 3\n- op: []\n"
    with pytest.raises(ProfileError) as error:
        listed(text)
    assert codes(error) == [
        ("bad-entry", 1),
        ("bad-operator", 2),
        ("bad-schema", 3),
        ("bad-entry", 4),
        ("wrong-type", 6),
        ("wrong-type", 7),
    ]


@pytest.mark.parametrize("text", ["", "# nothing\n", "~", "{}", "[]", "operators:\n"])
def test_empty_lists_select_nothing(text: str) -> None:
    assert listed(text) == Selection()


@pytest.mark.parametrize("case", CASES)
def test_executorchs_lists_stay_as_they_are(case: str) -> None:
    text = (CORPUS / case / "oplist.yaml").read_text()
    selection = union(listed(text), Selection())
    written = selected_operators_yaml(selection, generator="test")
    assert written.partition("\n")[2] == text


@given(infos=st.lists(INFOS, max_size=3), extra=st.lists(EXTRAS, max_size=3), every=st.booleans())
def test_our_lists_stay_as_they_are(
    infos: list[Any], extra: list[SelectedOperator], *, every: bool
) -> None:
    selection = replace(aggregate(infos, extra), every_operator=every)
    text = selected_operators_yaml(selection, generator="test")
    again = union(listed(text), Selection())
    assert selected_operators_yaml(again, generator="test") == text


def test_a_list_in_full() -> None:
    text = """
include_all_operators: Yes
include_all_non_op_selectives: False
debug_info: [everybody]
build_features: []
custom_classes:
kernel_metadata: {}
operators:
  aten::add.out:
    debug_info: [b, a, null]
    include_all_overloads: No
  p::called: {debug_info: [null]}
  p::listed:
et_kernel_metadata:
  p::called: []
  aten::add.out: [v1/6;0, default, v1/6;0]
  p::unlisted: [v1]
"""
    selection = listed(text)
    assert selection.every_operator
    assert keys_of(selection) == {
        "aten::add.out": ["default", "v1/6;0"],
        "p::called": ["default"],
        "p::listed": [],
        "p::unlisted": ["v1"],
    }
    origins = {str(s.name): [str(o) for o in s.origins] for s in selection.operators}
    assert origins == {
        "aten::add.out": ["a", "b"],
        "p::called": ["some.yaml"],
        "p::listed": ["some.yaml"],
        "p::unlisted": ["some.yaml"],
    }


def test_everything_wrong_with_a_list() -> None:
    text = """\
include_all_operators: perhaps
include_all_non_op_selectives: true
build_features: [x]
custom_classes: 3
kernel_metadata: {"aten::add": [Float]}
operatrs: {}
operators:
  a..b: {}
  p::f: {include_all_overloads: true, debug_infos: []}
  p::g: {debug_info: [[]]}
  p::h: {debug_info: x}
et_kernel_metadata:
  p::f: [v1/6, Float]
  p::g: default
  c..d: []
"""
    with pytest.raises(ProfileError) as error:
        listed(text)
    assert sorted(codes(error), key=lambda c: c[1]) == [
        ("wrong-type", 1),
        ("bad-oplist", 2),
        ("bad-oplist", 3),
        ("bad-oplist", 4),
        ("bad-oplist", 5),
        ("unknown-key", 6),
        ("bad-operator", 8),
        ("unknown-key", 9),
        ("bad-oplist", 9),
        ("wrong-type", 10),
        ("wrong-type", 11),
        ("bad-kernel-key", 13),
        ("bad-kernel-key", 13),
        ("wrong-type", 14),
        ("bad-operator", 15),
    ]
    assert 'did you mean "operators"?' in render_diagnostics(error.value.diagnostics)


@pytest.mark.parametrize(
    ("text", "code"), [("a: [", "bad-yaml"), ("operators: []", "wrong-type"), ("abc", "wrong-type")]
)
def test_no_list(text: str, code: str) -> None:
    with pytest.raises(ProfileError) as error:
        listed(text)
    assert [c for c, _ in codes(error)] == [code]


def test_merging_lists_is_the_union() -> None:
    texts = [(CORPUS / case / "oplist.yaml").read_text() for case in CASES]
    selections = [listed(text) for text in texts]
    expected: dict[str, set[str]] = {}
    for text in texts:
        data = yaml.safe_load(text)
        for name in data["operators"]:
            keys = data["et_kernel_metadata"].get(name, [])
            expected.setdefault(name, set()).update(keys)
    merged = reduce(union, selections)
    assert keys_of(merged) == {n: sorted(k) for n, k in expected.items()}
    assert reduce(union, reversed(selections)) == merged
