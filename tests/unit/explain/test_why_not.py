"""Why something is not in, and how it gets there."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from orchestrator.errors import Diagnostic, ExitCode, UsageError
from orchestrator.explain import why_not, why_not_document, why_not_text
from orchestrator.explain.why_not import Absence, Reason
from orchestrator.selection.op_info import Origin
from tests.unit.explain.products import ADD, F, H, I, L, asks, call, facts, report
from tests.unit.golden import check_golden

if TYPE_CHECKING:
    from orchestrator.explain import Facts

HALF = asks("aten::add.out", (call(H, H, H, H), (0,)))
MUL = asks("aten::mul.out", (call(F, F, F, F), (2,)))


def only(name: str, of: Facts, dtype: str | None = None) -> Absence:
    (absence,) = why_not(name, of, dtype=dtype).absences
    return absence


def refusal(name: str, of: Facts, dtype: str | None = None) -> Diagnostic:
    with pytest.raises(UsageError) as caught:
        why_not(name, of, dtype=dtype)
    assert caught.value.exit_code is ExitCode.USAGE
    (found,) = caught.value.diagnostics
    return found


@pytest.mark.parametrize("name", ["aten::sub.out", "sub", "sub_out", "op_sub.cpp"])
def test_what_nobody_asks_for(name: str) -> None:
    absence = only(name, facts(ADD))
    assert absence.reason is Reason.NOT_ASKED
    assert absence.message == (
        "aten::sub.out is not in doorbell: no model uses it and the profile does not request it"
    )
    (brought,) = absence.adds
    assert brought.kernel.function == "k::portable::sub_out"
    assert brought.dtypes == {F}
    assert absence.remedy == 'to have it, add "aten::sub.out" to operators.include'
    assert absence.nearest_known is None


def test_only_overloads_that_are_not_in() -> None:
    absence = only("add", facts(ADD))
    assert str(absence.operator) == "aten::add.Scalar_out"
    assert str(absence.nearest_used) == "aten::add.out"
    assert only("op_sub", facts(ADD)).nearest_used is None


def test_what_including_it_brings_is_what_a_build_links() -> None:
    """All dtypes of all kernels of the libraries, with their closures."""
    known = facts(MUL, libraries=("fast", "portable"))
    adds = only("add.out", known).adds
    assert [(b.kernel.function, set(b.dtypes)) for b in adds] == [
        ("k::fast::add_half", {H}),
        ("k::portable::add_out", {F, H, I, L}),
    ]


def test_what_a_program_lists_without_calling_it() -> None:
    absence = only("sub", facts(ADD, asks("aten::sub.out")))
    assert absence.reason is Reason.NEVER_CALLED
    assert [(a.source, a.method) for a in absence.listed_by] == [("person", "forward")]
    assert absence.adds


def test_what_another_library_has() -> None:
    absence = only("rope", facts(ADD))
    assert absence.reason is Reason.OTHER_LIBRARY
    assert absence.message.endswith("; no library of the profile has it")
    assert absence.remedy == (
        'to have it, add "fast" to kernels.libraries and "fast::rope.out" to operators.include'
    )
    assert [b.kernel.function for b in absence.adds] == ["k::fast::rope_out"]


def test_what_no_library_has() -> None:
    absence = only("aten::ad.Tensor_out", facts(ADD))
    assert absence.reason is Reason.NO_KERNEL
    assert absence.message.endswith("; no kernel library has it")
    assert str(absence.nearest_used) == "aten::add.out"
    assert str(absence.nearest_known).startswith("aten::add.")
    assert absence.adds == ()
    listed = asks("my::gone.out")
    assert only("gone", facts(listed)).reason is Reason.NO_KERNEL


def test_what_is_asked_for_and_has_no_kernel() -> None:
    wanted = asks("aten::sub.out", (call(H, H, H, H), (4,)))
    absence = only("sub", facts(ADD, wanted))
    assert absence.reason is Reason.GAP
    assert [gap.code for gap in absence.gaps] == ["no-kernel-for-dtype"]
    assert only("sub", facts(wanted), "Half").reason is Reason.GAP
    unknown = asks("my::own.out", (call(F, F, kinds="TT"), (0,)))
    assert only("own", facts(unknown)).gaps[0].code == "no-kernel"


@pytest.mark.parametrize(
    ("name", "libraries", "remedy"),
    [
        ("k::fast::mul_out", ("portable",), 'name "fast" first in kernels.libraries'),
        ("k::fast::mul_out", ("portable", "fast"), 'move "fast" to the front of kernels.libraries'),
    ],
)
def test_what_another_library_serves(name: str, libraries: tuple[str, ...], remedy: str) -> None:
    absence = only(name, facts(MUL, libraries=libraries))
    assert absence.reason is Reason.OTHER_KERNEL
    assert absence.message == (
        "k::fast::mul_out is not in doorbell: aten::mul.out is served by k::portable::mul_out"
    )
    assert absence.remedy == f"to have it, {remedy}"


def test_a_specialised_kernel_without_calls() -> None:
    absence = only("op_fast_add", facts(ADD, libraries=("fast", "portable")))
    assert absence.reason is Reason.OTHER_KERNEL
    assert absence.remedy == (
        "it takes calls with kernel key v1/5;0,1|5;0,1|5;0,1|5;0,1: no call has one"
    )


def test_a_specialised_kernel_behind_another_library() -> None:
    known = facts(HALF, libraries=("portable", "fast"))
    assert only("add_half", known).remedy.startswith('to have it, move "fast"')


def test_a_fallback_that_no_call_needs() -> None:
    gelu = asks("fast::gelu.out", (call(H, H, H, kinds="TTT"), (0,)))
    absence = only("gelu_out", facts(gelu, libraries=("fast",)))
    assert absence.reason is Reason.OTHER_KERNEL
    assert absence.remedy == "every call has a kernel specialised for its kernel key"


def test_two_kernels_of_one_operator_have_one_answer() -> None:
    absence = only("op_gelu", facts(ADD, libraries=("fast", "portable")))
    assert [b.kernel.function for b in absence.adds] == ["k::fast::gelu_half", "k::fast::gelu_out"]


def test_a_source_of_operators_that_are_all_absent() -> None:
    answer = why_not("op_add", facts(MUL))
    assert [str(a.operator) for a in answer.absences] == ["aten::add.out", "aten::add.Scalar_out"]


def test_a_dtype_that_nothing_asks_for() -> None:
    absence = only("aten::add.out", facts(ADD), "Half")
    assert absence.reason is Reason.NOT_INSTANTIATED
    assert [b.dtypes for b in absence.serving] == [{F, L}]
    assert [b.dtypes for b in absence.adds] == [{F, H, L}]
    assert absence.remedy == (
        'to have it, add "Half" to the list "aten::add.out" in [dtypes.operators]'
    )
    for name in ("add_out", "op_add.cpp"):
        assert only(name, facts(ADD), "Half") == absence


def test_a_dtype_joins_those_that_were_asked_for() -> None:
    asked = asks("aten::add.out", (call(F, F, F, F), (3,)), dtypes=(I,))
    assert [b.dtypes for b in only("add.out", facts(asked), "Half").adds] == [{F, H, I, L}]


def test_the_remedy_for_a_dtype_works() -> None:
    asked = asks("aten::add.out", (call(F, F, F, F), (3,)), dtypes=(H,))
    assert refusal("add.out", facts(asked), "Half").code == "in-product"


def test_a_dtype_the_kernel_cannot_take() -> None:
    absence = only("add.out", facts(ADD), "Bool")
    assert absence.reason is Reason.DTYPE_REFUSED
    assert absence.gaps[0].code == "no-kernel-for-dtype"
    assert "k::portable::add_out" in absence.remedy
    assert absence.adds == ()


def test_a_dtype_of_what_is_not_in() -> None:
    assert only("sub", facts(ADD), "Half").reason is Reason.NOT_ASKED


def test_what_is_in() -> None:
    built = facts(ADD, report=report())
    expected = Diagnostic(
        code="in-product",
        message="add.out is in doorbell",
        hint="run `orchestrator why doorbell.toml add.out`",
    )
    assert refusal("add.out", built) == expected
    found = refusal("add.out", built, "Float")
    assert found.message == "add.out with Float is in doorbell"
    for name in ("op_add", "k::portable::add_out"):
        assert refusal(name, built).code == "in-product"
        assert refusal(name, built, "Long").code == "in-product"
    for dtype in (None, "Float"):
        found = refusal("load_method", built, dtype)
        assert found.message == "load_method is in doorbell"


def test_names_nobody_has() -> None:
    assert refusal("ad", facts(ADD)).code == "unknown-name"
    assert refusal("::", facts(ADD)).code == "unknown-name"
    found = refusal("add", facts(ADD), "half")
    assert (found.code, found.hint) == ("unknown-name", 'did you mean "Half"?')
    assert refusal("add", facts(ADD), "?").hint == "write it like Float"


def test_texts(request: pytest.FixtureRequest) -> None:
    listed = asks("aten::mul.out")
    gap = asks("aten::sub.out", (call(H, H, H, H), (4,)))
    known = facts(ADD, listed, gap, asks("my::gone.out", origins=(Origin("p", "m"),)))
    questions = (
        *(("add", None), ("mul", None), ("sub", None), ("rope", None)),
        *(("aten::ad.out", None), ("gone", None), ("add.out", "Half")),
        ("add.out", "Bool"),
    )
    answers = [why_not(name, known, dtype=dtype) for name, dtype in questions]
    answers.append(why_not("k::fast::mul_out", facts(MUL)))
    check_golden(request, "why-not.txt", "\n".join(map(why_not_text, answers)))


def test_document() -> None:
    document = why_not_document(why_not("add.out", facts(ADD), dtype="Bool"))
    assert json.loads(json.dumps(document)) == document
    assert set(document) == {"profile", "name", "dtype", "absences"}
    assert document["dtype"] == "Bool"
    (absence,) = document["absences"]
    assert set(absence) == {
        *("operator", "reason", "message", "listed_by", "has", "links", "problems"),
        *("nearest_used", "nearest_known", "remedy"),
    }
    assert absence["reason"] == "dtype-refused"
    assert absence["has"] == [
        {
            "library": "portable",
            "function": "k::portable::add_out",
            "entry": "kernels/portable/functions.yaml:2",
            "sources": ["kernels/portable/op_add.cpp"],
            "dtypes": ["Long", "Float"],
        }
    ]
    assert set(absence["problems"][0]) == {"code", "message", "notes", "hint"}
    near = why_not_document(why_not("aten::ad.out", facts(ADD)))["absences"][0]
    assert near["nearest_used"] == near["nearest_known"] == "aten::add.out"
    assert near["listed_by"] == near["links"] == near["problems"] == []
