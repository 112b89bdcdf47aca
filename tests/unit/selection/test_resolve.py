"""Resolver: every call gets a kernel, or every gap is named."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.catalog import Catalog, LibraryText, read_catalog
from orchestrator.core.dtype import ALL, ScalarType
from orchestrator.core.kernel import Kernel, KernelKey, TensorMeta
from orchestrator.core.operator import OperatorName, OpSchema, parse_schema
from orchestrator.errors import Diagnostic, ExitCode, KernelError, SourceSpan
from orchestrator.selection.op_info import CallPattern, Origin, SelectedOperator, Selection
from orchestrator.selection.resolution import DelegateCode, Resolution
from orchestrator.selection.resolve import EVERY_OPERATOR, resolution_json, resolve

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from random import Random

ADD = parse_schema(
    "aten::add.out(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)"
)
CAT = parse_schema("aten::cat.out(Tensor[] tensors, int dim=0, *, Tensor(a!) out) -> Tensor(a!)")
CLAMP = parse_schema(
    "aten::clamp.Tensor_out(Tensor self, Tensor? min=None, Tensor? max=None, *,"
    " Tensor(a!) out) -> Tensor(a!)"
)
SUB = parse_schema("executorch_prim::sub.Scalar(Scalar a, Scalar b) -> Scalar")
SCHEMAS = (ADD, CAT, CLAMP, SUB)

F, H, I = ScalarType.Float, ScalarType.Half, ScalarType.Int  # noqa: E741
PLAIN, LAST = (0, 1), (1, 0)
T = TypeVar("T")


# --- by hand ---------------------------------------------------------------------


def kernel(
    schema: OpSchema,
    library: str = "portable",
    *,
    takes: frozenset[ScalarType] | None = None,
    keys: Iterable[KernelKey] = (),
    function: str = "",
    **more: object,
) -> Kernel:
    names = [a.name for a in schema.tensor_arguments if a.name]
    keys = tuple(sorted(keys))
    dtypes = frozenset(d for k in keys for d in k.dtypes) if keys else frozenset({F, I})
    fields: dict[str, object] = {
        "operator": schema.name,
        "schema": schema,
        "library": library,
        "function": function or f"{library}::{schema.name.identifier}",
        "sources": (f"op_{schema.name.base}.cpp",),
        "keys": keys,
        "dtypes": tuple((n, dtypes if takes is None else takes) for n in names),
        "dtype_arguments": tuple(names),
        "closure": frozenset(),
        "dim_orders": "any",
        "entry": f"{library}.yaml:1",
    }
    return Kernel(**{**fields, **more})  # type: ignore[arg-type]  # checked by tests


def catalog(*kernels: Kernel) -> Catalog:
    libraries: dict[str, list[Kernel]] = {}
    for k in kernels:
        libraries.setdefault(k.library, []).append(k)
    return Catalog(libraries=tuple((n, tuple(ks)) for n, ks in libraries.items()))


def add_call(*dtypes: ScalarType, order: tuple[int, ...] = PLAIN) -> CallPattern:
    a, b, out = (TensorMeta(d, order) for d in dtypes or (F, F, F))
    return CallPattern(kinds="TTITT", tensors=((0, a), (1, b), (3, out), (4, out)))


def selected(
    name: OpSchema | str,
    *calls: CallPattern,
    keys: Iterable[KernelKey] = (),
    every_dtype: bool = False,
    origins: tuple[Origin, ...] = (),
) -> SelectedOperator:
    """An operator; call number n is instruction n of method forward of model m."""
    return SelectedOperator(
        name=name.name if isinstance(name, OpSchema) else OperatorName.parse(name),
        patterns=tuple((call, (Origin("m", "forward", n),)) for n, call in enumerate(calls)),
        keys=tuple(keys),
        every_dtype=every_dtype,
        origins=origins,
    )


def span_of(origin: Origin) -> SourceSpan | None:
    lines = {"m": 14, "operators.include": 20}
    line = lines.get(origin.source)
    return SourceSpan(file="p.toml", line=line) if line else None


def run(
    operators: Iterable[SelectedOperator],
    offered: Catalog,
    *,
    every_dtype: bool = False,
    every_operator: bool = False,
    delegates: tuple[tuple[str, tuple[Origin, ...]], ...] = (),
    elsewhere: Callable[[], Catalog] | None = None,
    linked: tuple[DelegateCode, ...] = (),
) -> Resolution:
    selection = Selection(
        operators=tuple(operators), delegates=delegates, every_operator=every_operator
    )
    return resolve(
        selection,
        offered,
        every_dtype=every_dtype,
        span_of=span_of,
        elsewhere=elsewhere,
        delegates=linked,
    )


def gap(*operators: SelectedOperator, offered: Catalog) -> Diagnostic:
    with pytest.raises(KernelError) as caught:
        run(operators, offered)
    (found,) = caught.value.diagnostics
    return found


def table(resolution: Resolution) -> list[tuple[str, str | None, str]]:
    return [
        (str(e.operator), str(e.key) if e.key else None, e.function)
        for e in resolution.table_entries
    ]


def test_specialised_kernel_comes_before_the_fallback_of_its_library() -> None:
    call = add_call()
    special = kernel(ADD, keys=[call.key], function="k::special")
    offered = catalog(kernel(ADD, "first", takes=frozenset({H})), kernel(ADD), special)
    found = run([selected(ADD, call, add_call(I, I, I))], offered)
    assert table(found) == [
        ("aten::add.out", str(call.key), "k::special"),
        ("aten::add.out", None, "portable::aten_add_out"),
    ]
    (operator,) = found.operators
    assert operator.schema is ADD
    assert [b.kernel.function for b in operator.bindings] == [
        "k::special",
        "portable::aten_add_out",
    ]
    assert [b.dtypes for b in operator.bindings] == [{F}, {I}]
    assert found.table_entries[0].signature == "TTSt"
    assert found.table_entries[0].dtypes == {F}
    assert found.sources == (("portable", ("op_add.cpp",)),)


def test_fallback_of_an_earlier_library_comes_before_a_specialised_kernel() -> None:
    call = add_call()
    special = kernel(ADD, "late", keys=[call.key])
    found = run([selected(ADD, call)], catalog(kernel(ADD), special))
    assert table(found) == [("aten::add.out", None, "portable::aten_add_out")]


def test_second_fallback_is_found_by_the_keys_of_its_calls() -> None:
    """The first fallback has the same dtypes: only a key keeps the device off it."""
    plain, last = add_call(), add_call(order=LAST)
    fast = kernel(ADD, "fast", dim_orders="contiguous")
    found = run([selected(ADD, plain, last)], catalog(fast, kernel(ADD)))
    assert table(found) == [
        ("aten::add.out", str(last.key), "portable::aten_add_out"),
        ("aten::add.out", None, "fast::aten_add_out"),
    ]
    assert [b.keys for b in found.operators[0].bindings] == [(plain.key,), (last.key,)]
    assert [name for name, _ in found.sources] == ["fast", "portable"]


def test_dtypes_are_those_of_the_deciding_arguments_and_the_closure() -> None:
    k = kernel(ADD, dtype_arguments=("self",), closure=frozenset({ScalarType.Double}))
    found = run([selected(ADD, add_call(F, I, I))], catalog(k))
    (binding,) = found.operators[0].bindings
    assert binding.dtypes == {F, ScalarType.Double}
    assert binding.table_dtypes == {F, I}
    assert not binding.every_dtype
    assert found.table_entries[0].dtypes == {F, I}


def test_every_dtype_takes_all_dtypes_of_the_kernels_chosen() -> None:
    special = kernel(ADD, keys=[add_call(H, H, H).key, add_call(I, I, I).key], function="k::s")
    k = kernel(ADD, dtype_arguments=("self",))
    calls = (add_call(), add_call(H, H, H))
    found = run([selected(ADD, *calls)], catalog(k, special), every_dtype=True)
    assert table(found) == [
        ("aten::add.out", "v1/3;0,1|3;0,1|3;0,1|3;0,1", "k::s"),
        ("aten::add.out", "v1/5;0,1|5;0,1|5;0,1|5;0,1", "k::s"),
        ("aten::add.out", None, "portable::aten_add_out"),
    ]
    assert [b.dtypes for b in found.operators[0].bindings] == [{H, I}, {F, I}]
    assert found.table_entries[2].dtypes == {F, I}


def test_operator_asked_for_without_key_takes_all_its_kernels() -> None:
    include = Origin("operators.include")
    special = kernel(ADD, "fast", keys=[add_call().key])
    offered = catalog(special, kernel(ADD), kernel(ADD, "late"), kernel(CAT))
    listed = (include, Origin("m", "forward"))
    found = run([selected(ADD, every_dtype=True, origins=listed)], offered)
    assert table(found) == [
        ("aten::add.out", str(add_call().key), "fast::aten_add_out"),
        ("aten::add.out", None, "portable::aten_add_out"),
    ]
    for binding in found.operators[0].bindings:
        assert binding.every_dtype
        assert binding.origins == (include,)
    assert found.operators[0].bindings[1].dtypes == {F, I}


def test_call_keeps_its_kernel_among_all_kernels() -> None:
    """A specialised kernel of a later library must not take over the call's key."""
    call = add_call()
    late = kernel(ADD, "late", keys=[call.key, add_call(H, H, H).key])
    operator = selected(ADD, call, every_dtype=True)
    found = run([operator], catalog(kernel(ADD), late))
    assert table(found) == [
        ("aten::add.out", "v1/5;0,1|5;0,1|5;0,1|5;0,1", "late::aten_add_out"),
        ("aten::add.out", None, "portable::aten_add_out"),
    ]


def test_every_operator_takes_the_first_library_per_key() -> None:
    offered = catalog(kernel(CAT, "a"), kernel(ADD, "b"), kernel(CAT, "b"), kernel(SUB))
    found = run([selected(ADD, add_call())], offered, every_operator=True)
    assert table(found) == [
        ("aten::add.out", None, "b::aten_add_out"),
        ("aten::cat.out", None, "a::aten_cat_out"),
        ("executorch_prim::sub.Scalar", None, "portable::executorch_prim_sub_Scalar"),
    ]
    assert found.operators[0].bindings[0].origins == (Origin("m", "forward", 0), EVERY_OPERATOR)
    assert found.sources == (
        ("a", ("op_cat.cpp",)),
        ("b", ("op_add.cpp",)),
        ("portable", ("op_sub.cpp",)),
    )


def test_key_asked_for_outside_models() -> None:
    include = Origin("operators.include")
    key = KernelKey.parse("v1/3;0|3;0|6;0|6;0")
    k = kernel(ADD, dtype_arguments=("self", "other"))
    found = run([selected(ADD, keys=[key], origins=(include,))], catalog(k))
    (binding,) = found.operators[0].bindings
    assert binding.keys == (key,)
    assert binding.dtypes == {I}
    assert binding.table_dtypes == {I, F}
    assert binding.origins == (include,)


def test_key_that_leaves_out_an_optional_tensor() -> None:
    key = KernelKey.parse("v1/6;0|5;0|6;0|6;0")
    k = kernel(CLAMP)
    only_max = tuple((n, d | {H} if n == "max" else d) for n, d in k.dtypes)
    offered = catalog(kernel(CLAMP, dtypes=only_max))
    found = run([selected(CLAMP, keys=[key])], offered)
    assert found.operators[0].bindings[0].dtypes == {F, H}


def test_operator_that_is_listed_but_never_called_needs_no_kernel() -> None:
    listed = selected("aten::gone.out", origins=(Origin("m", "forward"),))
    assert run([listed], catalog(kernel(ADD))) == Resolution()
    everything = run([listed], catalog(kernel(ADD)), every_operator=True)
    assert table(everything) == [("aten::add.out", None, "portable::aten_add_out")]


def test_names_are_sorted_as_text() -> None:
    """The device compares bytes: `aten2::` comes before `aten::`."""
    schemas = [parse_schema(f"{n}() -> ()") for n in ("aten::b", "aten2::a", "aten::a.x")]
    offered = catalog(*map(kernel, schemas))
    found = run([selected(s, every_dtype=True) for s in schemas], offered)
    names = [str(e.operator) for e in found.table_entries]
    assert names == ["aten2::a", "aten::a.x", "aten::b"]


# --- gaps ------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["aten::exp2.out", "aten::fmax.out", "torchao::dequantize_affine"])
def test_the_hint_names_the_way_that_works(name: str) -> None:
    with pytest.raises(KernelError) as caught:
        run([selected(name, add_call())], catalog(kernel(CAT)))
    (found,) = caught.value.diagnostics
    assert 'source = "FILE.py:CALLABLE"' in found.hint


def test_calls_without_out_arguments_are_one_gap() -> None:
    names = ("aten::add.Tensor", "aten::cat", "aten::relu.out")
    with pytest.raises(KernelError) as caught:
        run([selected(n, add_call()) for n in names], catalog(kernel(ADD), kernel(CAT)))
    assert "aten::add.Tensor, aten::cat: " in caught.value.diagnostics[1].message


def test_unknown_operator() -> None:
    others = catalog(kernel(parse_schema("q::f.out() -> ()"), "quantized"))
    offered = catalog(kernel(ADD, "fast"), kernel(CAT))
    call = add_call()
    with pytest.raises(KernelError) as caught:
        run(
            [
                selected("aten::add.Scalar_out", call),
                selected("q::f.out", call),
                selected(
                    "aten::cta.out",
                    every_dtype=True,
                    origins=(Origin("operators.include"), Origin("m", "forward")),
                ),
                selected("my::own.out", call),
            ],
            offered,
            elsewhere=lambda: others,
        )
    assert caught.value.exit_code is ExitCode.KERNEL
    place = SourceSpan(file="p.toml", line=14)
    asked = ("needed by", 'model "m", method "forward", instruction 0')
    key = ("key", "v1/6;0,1|6;0,1|6;0,1|6;0,1")
    known = ("known", "no kernel in fast, portable")
    assert caught.value.diagnostics == (
        Diagnostic(
            code="no-kernel",
            message="no kernel for aten::add.Scalar_out",
            where=place,
            notes=(asked, key, known, ("nearest", "aten::add.out")),
            hint="compute it with operators that docs/operators.md lists, or add its kernel as"
            " docs/kernels.md shows; where you export yourself, exported.run_decompositions() or"
            " another lowering may do without it",
        ),
        Diagnostic(
            code="no-kernel",
            message="no kernel for aten::cta.out",
            where=SourceSpan(file="p.toml", line=20),
            notes=(("needed by", "operators.include"), known, ("nearest", "aten::cat.out")),
            hint='did you mean "aten::cat.out"?',
        ),
        Diagnostic(
            code="no-kernel",
            message="no kernel for my::own.out",
            where=place,
            notes=(asked, key, known),
            hint="add its kernel with [[kernels.custom]]; docs/kernels.md shows how",
        ),
        Diagnostic(
            code="no-kernel",
            message="no kernel for q::f.out",
            where=place,
            notes=(asked, key, known),
            hint='add "quantized" to kernels.libraries, it has a kernel for it',
        ),
    )


def test_catalog_without_libraries() -> None:
    found = gap(selected(ADD, add_call()), offered=Catalog())
    assert found.notes[2] == ("known", "no kernel in any library: none is named")


def test_unknown_dtype_names_argument_and_nearest_kernel() -> None:
    narrow = kernel(ADD, "narrow", takes=frozenset({I}))
    found = gap(selected(ADD, add_call(F, H, H)), offered=catalog(narrow, kernel(ADD)))
    assert found == Diagnostic(
        code="no-kernel-for-dtype",
        message="no kernel for aten::add.out with dtype Half",
        where=SourceSpan(file="p.toml", line=14),
        notes=(
            ("needed by", 'model "m", method "forward", instruction 0'),
            ("key", "v1/6;0,1|5;0,1|5;0,1|5;0,1"),
            ("found", "other Half, out Half"),
            ("known", "narrow takes Int for other and out"),
            ("known", "portable takes Int, Float for other and out"),
        ),
        hint="export the model without Half there, or add it to"
        " portable::aten_add_out, portable.yaml:1",
    )


def test_unknown_dtypes_of_several_arguments() -> None:
    uneven = kernel(
        ADD, dtypes=(("self", frozenset({F})), ("other", frozenset({I})), ("out", frozenset({F})))
    )
    found = gap(selected(ADD, add_call(H, F, F)), offered=catalog(uneven))
    assert found.message == "no kernel for aten::add.out with dtype Half and Float"
    assert found.notes[1:] == (
        ("key", "v1/5;0,1|6;0,1|6;0,1|6;0,1"),
        ("found", "self Half, other Float"),
        ("known", "portable takes Float for self; Int for other"),
    )
    assert found.hint == (
        "export the model without Half and Float there, or add them to"
        " portable::aten_add_out, portable.yaml:1"
    )


def test_dtype_of_a_further_list_item_counts() -> None:
    metas = TensorMeta(F, PLAIN), TensorMeta(H, PLAIN)
    call = CallPattern(
        kinds="LITT",
        tensors=((0, metas[0]), (2, metas[0]), (3, metas[0])),
        list_items=((0, metas[1]),),
    )
    found = gap(selected(CAT, call), offered=catalog(kernel(CAT)))
    assert found.notes[2] == ("found", "tensors Half")


def test_unknown_dim_order() -> None:
    call = CallPattern(
        kinds="TTITT",
        tensors=(
            (0, TensorMeta(F, PLAIN)),
            (1, TensorMeta(F, ())),
            (3, TensorMeta(F, LAST)),
            (4, TensorMeta(F, LAST)),
        ),
    )
    half = kernel(ADD, "half", takes=frozenset({H}))
    flat = kernel(ADD, "flat", dim_orders="contiguous")
    found = gap(selected(ADD, call), offered=catalog(half, flat, kernel(ADD, dim_orders="same")))
    assert found == Diagnostic(
        code="no-kernel-for-dim-order",
        message="no kernel for aten::add.out with dim order 0,1 and 1,0",
        where=SourceSpan(file="p.toml", line=14),
        notes=(
            ("needed by", 'model "m", method "forward", instruction 0'),
            ("key", "v1/6;0,1|6;|6;1,0|6;1,0"),
            ("found", "self 0,1; other 0-d; out 1,0"),
            ("known", "flat takes tensors in order 0, 1, 2, ..."),
            ("known", "portable takes tensors of equal rank in one dim order"),
        ),
        hint="export the model in contiguous memory format, or let flat::aten_add_out"
        " take other dim orders, flat.yaml:1",
    )


@pytest.mark.parametrize(
    ("call", "code"),
    [(add_call(order=LAST), "no-kernel-for-dim-order"), (add_call(H, H, H), "no-kernel-for-dtype")],
)
def test_specialised_kernels_only(call: CallPattern, code: str) -> None:
    keys = [add_call(d, d, d, order=o).key for d in (F, I) for o in (PLAIN, (0,), ())]
    found = gap(selected(ADD, call), offered=catalog(kernel(ADD, keys=keys)))
    assert found.code == code
    assert found.message == f"no kernel for aten::add.out with kernel key {call.key}"
    shown = ", ".join(map(str, sorted(keys)[:4]))
    assert found.notes[1] == ("known", f"portable has {shown} and 2 more")
    assert found.hint == (
        "add a library with a fallback kernel for it, such as portable, or write a"
        " kernel for this key, portable.yaml:1"
    )


def test_call_that_does_not_fit_the_schema() -> None:
    call = CallPattern(kinds="TCITT", tensors=add_call().tensors)
    found = gap(selected(ADD, call), offered=catalog(kernel(ADD)))
    assert found == Diagnostic(
        code="call-mismatch",
        message="a call of aten::add.out does not fit its op schema",
        where=SourceSpan(file="p.toml", line=14),
        notes=(
            ("needed by", 'model "m", method "forward", instruction 0'),
            ("found", 'argument 2 "other" is a string, not a tensor'),
            ("expected", ADD.text),
        ),
        hint="export the model again with a version that has this form of the"
        " operator, or correct the schema at portable.yaml:1",
    )


def test_key_that_does_not_fit_the_schema() -> None:
    operator = selected(
        ADD, keys=[KernelKey.parse("v1/6;")], origins=(Origin("operators.include"),)
    )
    found = gap(operator, offered=catalog(kernel(ADD)))
    assert found.code == "call-mismatch"
    assert found.where == SourceSpan(file="p.toml", line=20)
    assert found.notes[1] == ("found", "kernel key v1/6; does not have its tensors")


def test_calls_with_one_key_that_need_two_kernels() -> None:
    """min and max swap dtypes: the key is the same, so the device cannot choose."""
    meta = TensorMeta(F, PLAIN)
    out = ((3, meta), (4, meta))
    calls = [
        CallPattern(kinds=kinds, tensors=((0, meta), (position, meta), *out))
        for kinds, position in (("TTNTT", 1), ("TNTTT", 2))
    ]

    def only(library: str, argument: str) -> Kernel:
        names = ("self", argument, "out")
        return kernel(
            CLAMP,
            library,
            dtypes=tuple(
                (n, frozenset({F}) if n in names else frozenset[ScalarType]())
                for n in ("self", "min", "max", "out")
            ),
        )

    offered = catalog(only("a", "min"), only("b", "max"))
    found = gap(selected(CLAMP, *calls), offered=offered)
    assert found == Diagnostic(
        code="ambiguous-kernel",
        message=f"calls of aten::clamp.Tensor_out with kernel key {calls[0].key} need"
        " different kernels",
        where=SourceSpan(file="p.toml", line=14),
        notes=(
            ("needed by", 'model "m", method "forward", instructions 0, 1'),
            ("known", "the device selects kernels by kernel key only"),
        ),
        hint="list a library first that has one kernel for all of them",
    )
    assert run([selected(CLAMP, *calls)], catalog(only("a", "min"), kernel(CLAMP)))


def test_delegates_are_gaps() -> None:
    origins = (Origin("m", "forward", 2), Origin("x", "forward"))
    with pytest.raises(KernelError) as caught:
        run([], catalog(), delegates=(("XnnpackBackend", origins),))
    assert caught.value.diagnostics == (
        Diagnostic(
            code="no-delegate",
            message="no delegate for backend XnnpackBackend",
            where=SourceSpan(file="p.toml", line=14),
            notes=(
                ("needed by", 'model "m", method "forward", instruction 2'),
                ("needed by", 'model "x", method "forward"'),
                ("known", "no [[delegates]]"),
            ),
            hint="link one with [[delegates]], see docs/delegates.md, or export the"
            " model again without the partitioner of XnnpackBackend, so that its"
            " operators stay kernel calls",
        ),
    )


def delegate(backend: str) -> DelegateCode:
    return DelegateCode(
        backend=backend, namespace="mine::run", state_bytes=12, sources=("run.cpp",)
    )


def test_delegates_serve_their_backends_only() -> None:
    origins = (Origin("x", "forward", 1), Origin("m", "forward", 2))
    codes = (delegate("Mine"), delegate("Unused"))
    (found,) = run([], catalog(), delegates=(("Mine", origins),), linked=codes).delegates
    assert found.code == codes[0]
    assert found.code.functions == ("mine::run::init", "mine::run::execute")
    assert found.origins == (Origin("m", "forward", 2), Origin("x", "forward", 1))
    with pytest.raises(KernelError) as caught:
        run([], catalog(), delegates=(("Mines", origins[1:]),), linked=codes)
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.notes[1:] == (("known", "[[delegates]] serve Mine, Unused"),)
    assert diagnostic.hint == 'did you mean "Mine"?'


def test_delegates_in_json() -> None:
    origins = (Origin("m", "forward", 2), Origin("m", "forward", 5))
    resolution = run([], catalog(), delegates=(("Mine", origins),), linked=(delegate("Mine"),))
    assert resolution.delegate_states == {"Mine": 12}
    assert json.loads(resolution_json(resolution))["delegates"] == [
        {
            "backend": "Mine",
            "namespace": "mine::run",
            "sources": ["run.cpp"],
            "state_bytes": 12,
            "origins": [{"source": "m", "method": "forward", "instructions": [2, 5]}],
        }
    ]


def test_equal_gaps_of_many_calls_are_one_diagnostic() -> None:
    calls = tuple(
        (
            add_call(H, H, H, order=tuple(range(rank))),
            tuple(Origin(f"m{m}", "forward", 10 * rank + m) for m in range(7)),
        )
        for rank in range(6)
    )
    found = gap(SelectedOperator(name=ADD.name, patterns=calls), offered=catalog(kernel(ADD)))
    assert found.where is None
    assert found.notes[0] == (
        "needed by",
        'model "m0", method "forward", instructions 0, 10, 20, 30 and 2 more',
    )
    asked = [text for label, text in found.notes if label == "needed by"]
    assert len(asked) == 5
    assert asked[-1] == "3 more"


# --- laws ------------------------------------------------------------------------

# Weighted so that calls and kernels meet: about half of the cases resolve.
METAS = st.sampled_from([TensorMeta(d, o) for d in (F, I, H) for o in (PLAIN, LAST)])
DTYPES = st.sampled_from([frozenset(s) for s in [{F}, {F, I}, *[{F, H, I}] * 6]])
ANY = ["any"] * 3
OFTEN = st.sampled_from([True, True, True, False])
SCHEMA_SETS = [(ADD,), (CAT,), (CLAMP,), (CLAMP,), (SUB,), (ADD, CAT)]


@st.composite
def calls_of(draw: st.DrawFn, schema: OpSchema) -> CallPattern:
    kinds, tensors, items = "", [], []
    base = draw(METAS)
    metas = st.sampled_from([base, base, base]) | METAS
    for position, argument in enumerate(schema.arguments):
        kind = draw(st.sampled_from("IDB")) if argument.kind == "S" else argument.kind
        if argument.optional and draw(st.booleans()):
            kind = "N"
        kinds += kind
        if kind in "TL":
            tensors.append((position, draw(metas)))
        if kind == "L" and draw(OFTEN):
            items.append((position, draw(METAS)))
    if schema.returns[0].kind == "T":
        tensors.append((len(schema.arguments), tensors[-1][1]))
    kinds += "I" if schema.returns[0].kind == "S" else "T"
    return CallPattern(kinds=kinds, tensors=tuple(tensors), list_items=tuple(items))


@st.composite
def catalogs(draw: st.DrawFn, schemas: Iterable[OpSchema]) -> Catalog:
    libraries = []
    for name in draw(st.sampled_from([("a",), ("a", "b"), ("a", "b")])):
        kernels = []
        for schema in schemas:
            keys = draw(st.lists(calls_of(schema).map(lambda c: c.key), max_size=2))
            # Each key goes to one of two specialised kernels: none occurs twice.
            halves = sorted(set(keys))[::2], sorted(set(keys))[1::2]
            for number, half in enumerate(halves):
                if half:
                    function = f"{name}::{schema.name.identifier}_{number}"
                    kernels.append(kernel(schema, name, keys=half, takes=ALL, function=function))
            if draw(OFTEN):
                names = [a.name for a in schema.tensor_arguments if a.name]
                kernels.append(
                    kernel(
                        schema,
                        name,
                        dtypes=tuple((n, draw(DTYPES)) for n in names),
                        dim_orders=draw(st.sampled_from(["same", "contiguous", *ANY])),
                        dtype_arguments=tuple(n for n in names if draw(st.booleans())),
                    )
                )
        libraries.append((name, tuple(kernels)))
    return Catalog(libraries=tuple(libraries))


@st.composite
def cases(draw: st.DrawFn, *, everything: bool = True) -> tuple[Selection, Catalog]:
    """One or two operators, called and offered; more would not meet one another."""
    schemas = draw(st.sampled_from(SCHEMA_SETS))
    operators = []
    for schema in schemas:
        calls = set(draw(st.lists(calls_of(schema), min_size=1, max_size=3)))
        every = everything and not draw(OFTEN)
        operators.append(selected(schema, *sorted(calls), every_dtype=every))
    every = everything and not draw(OFTEN)
    selection = Selection(operators=tuple(operators), every_operator=every)
    return selection, draw(catalogs(schemas))


def accepts(k: Kernel, call: CallPattern) -> bool:
    """Oracle: by the words of the Kernel docstring, argument by argument."""
    tensors = [(p, m) for p, m in call.tensors if p < len(k.schema.arguments)]
    everything = tensors + list(call.list_items)
    for position, meta in everything:
        (taken,) = [d for n, d in k.dtypes if n == k.schema.arguments[position].name]
        if meta.dtype not in taken:
            return False
    if k.keys:
        text = "|".join(
            f"{m.dtype.value};{','.join(str(d) for d in m.dim_order)}" for _, m in call.tensors
        )
        return ("v1/" + text if text else "v1") in [str(key) for key in k.keys]
    for _, meta in everything:
        if k.dim_orders == "contiguous" and meta.dim_order == LAST:
            return False
        for _, other in everything:
            ranks = len(meta.dim_order), len(other.dim_order)
            differ = ranks[0] == ranks[1] and meta.dim_order != other.dim_order
            if k.dim_orders == "same" and differ:
                return False
    return True


def expected_kernels(
    operator: SelectedOperator, offered: Catalog
) -> dict[CallPattern, Kernel | None]:
    """Oracle: the kernel each call must get; None if calls of its key get none."""
    calls = [call for call, _ in operator.patterns]
    result: dict[CallPattern, Kernel | None] = {}
    for call in calls:
        same_key = [c for c in calls if c.key == call.key]
        result[call] = None
        for _, kernels in reversed(offered.libraries):
            mine = [k for k in kernels if k.operator == operator.name]
            for k in sorted(mine, key=lambda k: bool(k.keys)):
                if all(accepts(k, c) for c in same_key):
                    result[call] = k
    return result


def device_finds(found: Resolution, name: OperatorName, call: CallPattern) -> str:
    """The device loader's search: the first entry that fits."""
    for entry in found.table_entries:
        letters = entry.signature.replace(">", "").replace("?", "").upper()
        if entry.operator != name:
            continue
        for letter, kind in zip(letters, call.kinds, strict=False):
            assert kind in (letter, "N") or (letter == "S" and kind in "IDB")
        metas = [m for _, m in (*call.tensors, *call.list_items)]
        if any(m.dtype not in entry.dtypes for m in metas):
            continue
        if entry.key is None or str(entry.key) == str(call.key):
            return entry.function
    return ""


@given(cases(), st.booleans())
def test_no_gap_gets_through(
    case: tuple[Selection, Catalog],
    every_dtype: bool,  # noqa: FBT001
) -> None:
    selection, offered = case
    expected = {o.name: expected_kernels(o, offered) for o in selection.operators}
    missing = {name for name, kernels in expected.items() if None in kernels.values()} | {
        o.name for o in selection.operators if o.every_dtype and not offered.offers(o.name)
    }
    try:
        found = resolve(selection, offered, every_dtype=every_dtype, span_of=lambda _: None)
    except KernelError as error:
        messages = [d.message for d in error.diagnostics]
        assert missing
        for name in missing:
            assert any(str(name) in message for message in messages)
        assert all(any(str(n) in m for n in missing) for m in messages)
        return
    assert not missing
    for name, kernels in expected.items():
        for call, k in kernels.items():
            assert k is not None
            assert device_finds(found, name, call) == k.function
            (binding,) = [
                b for o in found.operators if o.name == name for b in o.bindings if b.kernel == k
            ]
            assert call.key in binding.keys
            arguments = k.schema.arguments
            for position, meta in (*call.tensors, *call.list_items):
                assert meta.dtype in binding.table_dtypes
                if position < len(arguments):
                    deciding = arguments[position].name in k.dtype_arguments
                    assert meta.dtype in binding.dtypes or not deciding
    slots = [(e.operator, e.key) for e in found.table_entries]
    assert len(slots) == len(set(slots))


@given(cases(everything=False))
def test_nothing_is_linked_that_nobody_asked_for(case: tuple[Selection, Catalog]) -> None:
    selection, offered = case
    try:
        found = resolve(selection, offered, every_dtype=False, span_of=lambda _: None)
    except KernelError:
        return
    used = {k for o in selection.operators for k in expected_kernels(o, offered).values()}
    assert {b.kernel for o in found.operators for b in o.bindings} == used
    assert {e.function for e in found.table_entries} == {k.function for k in used if k}


@given(cases(), st.data())
def test_adding_a_kernel_never_unresolves(
    case: tuple[Selection, Catalog], data: st.DataObject
) -> None:
    selection, offered = case
    fewer = Catalog(
        libraries=tuple(
            (name, tuple(k for k in kernels if data.draw(st.booleans())))
            for name, kernels in offered.libraries
        )
    )
    try:
        resolve(selection, fewer, every_dtype=False, span_of=lambda _: None)
    except KernelError:
        return
    assert resolve(selection, offered, every_dtype=False, span_of=lambda _: None)


@given(st.lists(st.sampled_from(SCHEMAS), unique=True, min_size=1), st.data())
def test_removing_a_used_kernel_raises(schemas: list[OpSchema], data: st.DataObject) -> None:
    offered = [kernel(s, takes=ALL) for s in SCHEMAS]
    operators = [selected(s, data.draw(calls_of(s))) for s in schemas]
    run(operators, catalog(*offered))
    for schema in schemas:
        rest = [k for k in offered if k.schema is not schema]
        with pytest.raises(KernelError) as caught:
            run(operators, catalog(*rest))
        (found,) = caught.value.diagnostics
        assert found.code == "no-kernel"
        assert str(schema.name) in found.message


@given(cases(), st.booleans(), st.randoms(use_true_random=False))
def test_order_does_not_matter(
    case: tuple[Selection, Catalog],
    every_dtype: bool,  # noqa: FBT001
    random: Random,
) -> None:
    selection, offered = case

    def shuffled(items: tuple[T, ...]) -> tuple[T, ...]:
        return tuple(random.sample(items, len(items)))

    def outcome(selection: Selection, offered: Catalog) -> object:
        try:
            found = resolve(selection, offered, every_dtype=every_dtype, span_of=lambda _: None)
        except KernelError as error:
            return error.diagnostics
        return found, resolution_json(found)

    other = Selection(
        operators=tuple(
            SelectedOperator(name=o.name, patterns=shuffled(o.patterns), every_dtype=o.every_dtype)
            for o in shuffled(selection.operators)
        ),
        every_operator=selection.every_operator,
    )
    mixed = Catalog(libraries=tuple((n, shuffled(ks)) for n, ks in offered.libraries))
    assert outcome(selection, offered) == outcome(other, mixed)


# --- resolution.json -------------------------------------------------------------


def test_json_in_full() -> None:
    call = add_call()
    include = Origin("operators.include")
    special = kernel(ADD, "fast", keys=[call.key], closure=frozenset({I}))
    operator = SelectedOperator(
        name=ADD.name,
        patterns=(
            (call, (Origin("m", "forward", 1), Origin("m", "forward", 4))),
            (add_call(I, I, I), (Origin("m", "step", 0),)),
        ),
        every_dtype=True,
        origins=(include,),
    )
    found = run([operator], catalog(special, kernel(ADD)))
    text = resolution_json(found)
    assert text.endswith("}\n")
    ints = "v1/3;0,1|3;0,1|3;0,1|3;0,1"
    assert json.loads(text) == {
        "schema": 1,
        "operators": [
            {
                "operator": "aten::add.out",
                "schema": ADD.text,
                "kernels": [
                    {
                        "library": "fast",
                        "function": "fast::aten_add_out",
                        "sources": ["op_add.cpp"],
                        "keys": [str(call.key)],
                        "dtypes": ["Int", "Float"],
                        "argument_dtypes": {},
                        "every_dtype": True,
                        "origins": [{"source": "m", "method": "forward", "instructions": [1, 4]}],
                    },
                    {
                        "library": "portable",
                        "function": "portable::aten_add_out",
                        "sources": ["op_add.cpp"],
                        "keys": [ints],
                        "dtypes": ["Int", "Float"],
                        "argument_dtypes": {},
                        "every_dtype": True,
                        "origins": [
                            {"source": "m", "method": "step", "instructions": [0]},
                            {"source": "operators.include"},
                        ],
                    },
                ],
            }
        ],
        "sources": [
            {"library": "fast", "files": ["op_add.cpp"]},
            {"library": "portable", "files": ["op_add.cpp"]},
        ],
        "delegates": [],
        "missing": [],
        "table": [
            {
                "operator": "aten::add.out",
                "key": str(call.key),
                "function": "fast::aten_add_out",
                "signature": "TTSt",
                "dtypes": ["Float"],
            },
            {
                "operator": "aten::add.out",
                "key": None,
                "function": "portable::aten_add_out",
                "signature": "TTSt",
                "dtypes": ["Int", "Float"],
            },
        ],
    }


def test_order_of_yaml_entries_does_not_matter() -> None:
    entries = [
        f"- func: {schema.text}\n  kernels: [{{kernel_name: k::f{n}}}]\n  sources: [b.cpp, a.cpp]\n"
        for n, schema in enumerate(SCHEMAS)
    ]
    texts = set()
    for order in (entries, entries[::-1], entries[2:] + entries[:2]):
        library = LibraryText(name="x", file="x.yaml", text="".join(order))
        found = run([], read_catalog([library]), every_operator=True)
        texts.add(resolution_json(found))
        assert found.sources == (("x", ("a.cpp", "b.cpp")),)
    assert len(texts) == 1
