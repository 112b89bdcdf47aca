"""Why something is in: who asks, what serves, what it costs."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from orchestrator.core.kernel import KernelKey
from orchestrator.errors import Diagnostic, ExitCode, UsageError
from orchestrator.explain import (
    why,
    why_document,
    why_not,
    why_not_document,
    why_not_text,
    why_text,
)
from orchestrator.explain.why import REASONS, RUNTIME_REASONS, Requester
from orchestrator.measure.size import Contributor, ContributorKind
from orchestrator.selection.op_info import Origin
from orchestrator.selection.resolution import DelegateCode, ResolvedDelegate
from orchestrator.shell.sources import native_root
from tests.unit.explain.products import ADD, F, H, I, L, asks, call, facts, report
from tests.unit.golden import check_golden

if TYPE_CHECKING:
    from orchestrator.core.dtype import ScalarType
    from orchestrator.explain import Facts, Why
    from orchestrator.explain.why import KernelUse

SCALAR = asks("aten::add.Scalar_out", (call(F, F, F, kinds="TDTT"), (7,)))
MUL = asks("aten::mul.out", every_dtype=True, origins=(Origin("operators.include"),))
KEY = str(call(F, F, F, F).key)


def operators(answer: Why) -> list[str]:
    return [str(use.operator) for use in answer.kernels]


def dtypes(use: KernelUse) -> tuple[set[ScalarType], set[ScalarType]]:
    """What is instantiated, and what of it only for the kernel itself."""
    return set(use.binding.dtypes), set(use.closure_dtypes)


def refusal(name: str, of: Facts) -> Diagnostic:
    with pytest.raises(UsageError) as caught:
        why(name, of)
    assert caught.value.exit_code is ExitCode.USAGE
    (found,) = caught.value.diagnostics
    return found


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("aten::add.out", ["aten::add.out"]),
        ("add.out", ["aten::add.out"]),
        ("aten::add", ["aten::add.Scalar_out", "aten::add.out"]),
        ("add", ["aten::add.Scalar_out", "aten::add.out"]),
        ("k::portable::add_out", ["aten::add.out"]),
        ("portable::add_out", ["aten::add.out"]),
        ("add_out", ["aten::add.out"]),
        ("op_add", ["aten::add.Scalar_out", "aten::add.out"]),
        ("op_add.cpp", ["aten::add.Scalar_out", "aten::add.out"]),
        ("portable/op_add", ["aten::add.Scalar_out", "aten::add.out"]),
        ("kernels/portable/op_add.cpp", ["aten::add.Scalar_out", "aten::add.out"]),
        ("obj/kernels/portable/op_add.cpp.o", ["aten::add.Scalar_out", "aten::add.out"]),
        ("mul", ["aten::mul.out"]),
    ],
)
def test_names_of_operators_and_kernels(name: str, found: list[str]) -> None:
    answer = why(name, facts(ADD, SCALAR, MUL))
    assert operators(answer) == found
    assert answer.parts == ()
    assert not answer.built


def test_who_asks_and_what_serves() -> None:
    (use,) = why("add.out", facts(ADD)).kernels
    assert use.requesters == (Requester(source="person", method="forward", instructions=(1, 3, 5)),)
    assert use.binding.kernel.function == "k::portable::add_out"
    assert [str(key) for key in use.binding.keys] == [KEY]
    assert use.table_keys == (None,)
    assert use.binding.dtypes == {F, L}
    assert use.closure_dtypes == {L}
    assert use.shared_with == ()
    assert use.parts is None


def test_dtypes_of_every_source_are_no_closure() -> None:
    asked = asks("aten::add.out", (call(F, F, F, F), (0,)), dtypes=(H,))
    (use,) = why("add.out", facts(asked)).kernels
    assert dtypes(use) == ({F, H, L}, {L})
    every = asks("aten::add.out", every_dtype=True)
    (use,) = why("add.out", facts(every)).kernels
    assert dtypes(use) == ({F, H, I, L}, {L})


def test_dtypes_of_keys_are_no_closure() -> None:
    asked = replace(asks("aten::add.out"), keys=(KernelKey.parse("v1/3;0|3;0|3;0|3;0"),))
    (use,) = why("add.out", facts(asked)).kernels
    assert dtypes(use) == ({I, L}, {L})


def test_each_kernel_of_an_operator_has_its_own_askers() -> None:
    asked = asks("aten::add.out", (call(F, F, F, F), (0,)), (call(H, H, H, H), (4, 2)))
    uses = why("add.out", facts(asked, libraries=("fast", "portable"))).kernels
    assert [
        (u.binding.kernel.function, u.requesters[0].instructions, dtypes(u)[1]) for u in uses
    ] == [("k::fast::add_half", (2, 4), set()), ("k::portable::add_out", (0,), {L})]
    assert [u.table_keys for u in uses] == [(call(H, H, H, H).key,), (None,)]
    (only,) = why("add_half", facts(asked, libraries=("fast", "portable"))).kernels
    assert only == uses[0]


def test_costs_are_those_of_the_report() -> None:
    known = facts(ADD, SCALAR, MUL, report=report())
    scalar, add = why("add", known).kernels
    for use, other in ((scalar, "aten::add.out"), (add, "aten::add.Scalar_out")):
        assert [str(o) for o in use.shared_with] == [other]
        assert use.parts is not None
        assert [(p.name, p.flash_bytes, p.ram_bytes) for p in use.parts] == [
            ("portable/op_add", 300, 8)
        ]


def test_a_kernel_that_the_last_build_did_not_have() -> None:
    sub = asks("aten::sub.out", (call(F, F, F, F), (0,)))
    answer = why("sub", facts(sub, report=report()))
    assert answer.kernels[0].parts == ()
    assert "  cost       none in the last build\n" in why_text(answer)


@pytest.mark.parametrize(
    ("name", "parts", "symbols"),
    [
        ("orch::load_method", ["load_method"], ["orch::load_method"]),
        ("_Zload", ["load_method"], ["orch::load_method"]),
        ("load_method", ["load_method"], ["orch::load_method"]),
        ("load_method.cpp", ["load_method"], []),
        ("runtime/src/load_method.cpp", ["load_method"], []),
        ("memcpy", ["compiler_rt"], ["__aeabi_memcpy"]),
        ("compiler_rt", ["compiler_rt"], []),
        ("person", ["person"], []),
        ("novel", ["novel"], []),
        (
            "rows",
            ["portable/op_add", "portable/op_mul"],
            ["k::rows<float, std::pair<int, int>>", "k::rows<int>"],
        ),
        ("k::rows<int>", ["portable/op_mul"], ["k::rows<int>"]),
    ],
)
def test_names_of_parts_and_symbols(name: str, parts: list[str], symbols: list[str]) -> None:
    answer = why(name, facts(ADD, MUL, report=report()))
    assert [use.part.name for use in answer.parts] == parts
    assert [s.name for use in answer.parts for s in use.symbols] == symbols
    assert all(use.reason for use in answer.parts)


def test_a_symbol_of_a_kernel_leads_to_who_asks() -> None:
    answer = why("rows", facts(ADD, MUL, report=report()))
    assert [list(map(str, use.operators)) for use in answer.parts] == [
        ["aten::add.out"],
        ["aten::mul.out"],
    ]
    assert operators(answer) == ["aten::add.out", "aten::mul.out"]


def test_reasons_are_known_for_all_parts() -> None:
    assert set(REASONS) == set(ContributorKind)
    sources = {p.stem for p in (native_root() / "runtime" / "src").glob("*.cpp")}
    assert set(RUNTIME_REASONS) <= sources
    novel = why("novel", facts(ADD, report=report())).parts[0]
    assert novel.reason == REASONS[ContributorKind.RUNTIME]


def test_what_is_not_in() -> None:
    assert refusal("sub", facts(ADD)) == Diagnostic(
        code="not-in-product",
        message="sub is not in doorbell",
        hint="run `orchestrator why --not doorbell.toml sub`",
    )


def test_names_nobody_has() -> None:
    assert refusal("aten::ad.out", facts(ADD)) == Diagnostic(
        code="unknown-name",
        message='nothing is named "aten::ad.out"',
        notes=(("searched", "operators, kernels, sources"),),
        hint='did you mean "aten::add.out"?',
    )
    assert refusal("op_ad", facts(ADD)).hint == 'did you mean "op_add"?'
    assert refusal("zzzz", facts(ADD)).hint == (
        "`orchestrator build doorbell.toml` makes symbols known"
    )
    built = facts(ADD, report=report())
    assert refusal("lod_method", built).hint == 'did you mean "load_method"?'
    found = refusal("!", built)
    assert found.notes == (
        ("searched", "operators, kernels, sources and symbols of the last build"),
    )
    assert found.hint == "name an operator like aten::add.out, a kernel or a symbol"


def test_texts(request: pytest.FixtureRequest) -> None:
    many = asks(
        "aten::add.out",
        (call(F, F, F, F), range(20)),
        (call(H, H, H, H), (30,)),
        (call(F, I, F, F), (31,)),
    )
    known = facts(many, SCALAR, MUL, libraries=("fast", "portable"), report=report())
    answers = [
        why(name, known) for name in ("add", "mul", "rows", "load_method", "person", "memcpy")
    ]
    answers.append(why("add", facts(ADD)))
    check_golden(request, "why.txt", "\n".join(map(why_text, answers)))


def test_document() -> None:
    document = why_document(why("rows", facts(ADD, report=report())))
    assert json.loads(json.dumps(document)) == document
    assert document == {
        "profile": "doorbell",
        "name": "rows",
        "built": True,
        "kernels": [
            {
                "operator": "aten::add.out",
                "asked_by": [
                    {"source": "person", "method": "forward", "calls": 3, "instructions": [1, 3, 5]}
                ],
                "library": "portable",
                "function": "k::portable::add_out",
                "entry": "kernels/portable/functions.yaml:2",
                "sources": ["kernels/portable/op_add.cpp"],
                "keys": [KEY],
                "table_keys": [None],
                "dtypes": ["Long", "Float"],
                "closure_dtypes": ["Long"],
                "every_dtype": False,
                "shared_with": [],
                "flash_bytes": 300,
                "ram_bytes": 8,
            }
        ],
        "delegates": [],
        "parts": [
            {
                "kind": "kernel",
                "name": "portable/op_add",
                "reason": "serves requested operators",
                "flash_bytes": 300,
                "ram_bytes": 8,
                "operators": ["aten::add.out"],
                "symbols": [
                    {
                        "name": "k::rows<float, std::pair<int, int>>",
                        "symbol": "_Zr1",
                        "size_bytes": 90,
                        "section": ".text",
                        "object": "runtime/src/op_add.cpp",
                    }
                ],
            },
            {
                "kind": "kernel",
                "name": "portable/op_mul",
                "reason": "serves requested operators",
                "flash_bytes": 200,
                "ram_bytes": 0,
                "operators": [],
                "symbols": [
                    {
                        "name": "k::rows<int>",
                        "symbol": "_Zr2",
                        "size_bytes": 80,
                        "section": ".text",
                        "object": "runtime/src/op_mul.cpp",
                    }
                ],
            },
        ],
    }
    unbuilt = why_document(why("add", facts(MUL, SCALAR)))["kernels"][0]
    assert unbuilt["flash_bytes"] is unbuilt["ram_bytes"] is None


CODE = DelegateCode(backend="Mine", namespace="mine", state_bytes=12, sources=("run.cpp",))
CALLS = (Origin("person", "forward", 2), Origin("person", "forward", 7))


def with_delegate(*, is_linked: bool, of: Facts) -> Facts:
    linked = ResolvedDelegate(code=CODE, origins=CALLS)
    return replace(
        of,
        selection=replace(of.selection, delegates=(("Mine", CALLS),)),
        resolution=replace(of.resolution, delegates=(linked,) if is_linked else ()),
    )


def test_a_delegate_and_who_asks_for_it() -> None:
    of = with_delegate(is_linked=True, of=facts(ADD))
    answer = why("Mine", of)
    assert answer.kernels == ()
    assert why_text(answer) == (
        "Mine\n"
        '  needed by  model "person", method "forward": 2 calls, instructions 2, 7\n'
        "  delegate   mine, 12 bytes of state each\n"
        "  source     delegates/Mine/run.cpp\n"
        "  cost       not built: run `orchestrator build doorbell.toml`\n"
    )
    named = (("person", "w", 1200), ("other", "w", 8))
    taking = replace(of.resolution.delegates[0], code=replace(CODE, named_data=True))
    with_data = replace(
        of, named_data=named, resolution=replace(of.resolution, delegates=(taking,))
    )
    answer = why("Mine", with_data)
    assert "  named data person: w, 1,200 bytes\n  cost" in why_text(answer)
    (document,) = why_document(answer)["delegates"]
    assert document["named_data"] == named[:1]
    assert "named data" not in why_text(why("Mine", replace(of, named_data=named)))
    part = Contributor(kind=ContributorKind.DELEGATE, name="Mine/run", flash_bytes=676, ram_bytes=4)
    other = replace(part, name="Mines/run")
    costly = replace(report(), contributors=(part, other))
    assert why_document(why("Mine", replace(of, report=costly)))["delegates"] == [
        {
            "backend": "Mine",
            "asked_by": [
                {"source": "person", "method": "forward", "calls": 2, "instructions": [2, 7]}
            ],
            "namespace": "mine",
            "state_bytes": 12,
            "sources": ["delegates/Mine/run.cpp"],
            "flash_bytes": 676,
            "ram_bytes": 4,
        }
    ]
    with pytest.raises(UsageError) as caught:
        why_not("Mine", of)
    assert caught.value.diagnostics[0].code == "in-product"


def test_a_backend_without_a_delegate() -> None:
    of = with_delegate(is_linked=False, of=facts(ADD))
    assert refusal("Mine", of).code == "not-in-product"
    assert refusal("Mines", of).hint == 'did you mean "Mine"?'
    answer = why_not("Mine", of)
    assert why_not_text(answer) == (
        "Mine is requested and has no delegate: [[delegates]] does not name one\n"
        '  listed by  model "person", method "forward": 2 calls, instructions 2, 7\n'
        "  remedy     link one with [[delegates]], or export without its partitioner\n"
    )
    (absence,) = why_not_document(answer)["absences"]
    assert absence["operator"] == "Mine"


def test_a_part_leads_only_to_its_own_kernels() -> None:
    asked = asks("aten::add.out", (call(F, F, F, F), (0,)), (call(H, H, H, H), (1,)))
    known = facts(asked, libraries=("fast", "portable"), report=report())
    (use,) = why("_Zr1", known).kernels
    assert use.binding.kernel.function == "k::portable::add_out"


def test_many_symbols_are_cut_short() -> None:
    (use,) = why("load_method", facts(ADD, report=report())).parts
    answer = why("load_method", facts(ADD, report=report()))
    many = replace(answer, parts=(replace(use, symbols=use.symbols * 8),))
    assert why_text(many).count("orch::load_method, 72 bytes") == 6
    assert why_text(many).endswith("             and 2 more\n")


def test_dtypes_of_calls_that_another_kernel_takes_do_not_count() -> None:
    """Two calls with one key may differ in what the key does not show."""
    asked = asks("aten::add.out", (call(F, F, F, F), (0,)))
    key = KernelKey.parse("v1/6;0|6;0|11;0|6;0")
    known = facts(asked)
    (operator,) = known.resolution.operators
    (binding,) = operator.bindings
    odd = replace(
        known,
        selection=replace(known.selection, operators=(replace(asked, keys=(key,)),)),
        resolution=replace(
            known.resolution,
            operators=(replace(operator, bindings=(replace(binding, keys=(key,)),)),),
        ),
    )
    (use,) = why("add.out", odd).kernels
    assert use.closure_dtypes == {F, L}


def test_dtypes_of_arguments_that_do_not_decide_are_closure() -> None:
    calls = asks("aten::max.out", (call(F, L, L, kinds="TTT"), (0,)))
    (use,) = why("max.out", facts(calls)).kernels
    assert dtypes(use) == ({F, L}, {L})
    every = asks("aten::max.out", every_dtype=True)
    (use,) = why("max.out", facts(every)).kernels
    assert dtypes(use) == ({F, H, L}, {L})


MAXIMA = (
    asks("aten::max.out", (call(F, L, L, kinds="TTT"), (0,))),
    asks("fast::max", (call(F, F, F, kinds="TTT"), (1,))),
    asks("fast::max.exact", (call(F, F, F, kinds="TTT"), (2,))),
)


def test_an_operator_without_overload_is_not_every_overload() -> None:
    known = facts(*MAXIMA, libraries=("portable", "fast"))
    assert operators(why("fast::max", known)) == ["fast::max"]
    assert len(operators(why("max", known))) == 3


def test_sources_of_one_name_in_two_libraries() -> None:
    built = report()
    both = replace(built.contributors[1], name="op_max", flash_bytes=70)
    built = replace(built, contributors=(*built.contributors, both))
    known = facts(*MAXIMA, libraries=("portable", "fast"), report=built)
    assert [
        [str(operator) for operator in use.shared_with] for use in why("max", known).kernels
    ] == [[], ["fast::max.exact"], ["fast::max"]]
    # The archive's member names do not say which library they are of.
    assert [use.parts for use in why("max", known).kernels] == [(both,)] * 3
    assert len(why("op_max", known).kernels) == 3
    assert operators(why("portable/op_max", known)) == ["aten::max.out"]
