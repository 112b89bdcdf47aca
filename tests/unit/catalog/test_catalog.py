"""Kernel libraries' `functions.yaml` to kernels."""

from __future__ import annotations

from textwrap import dedent

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.catalog import Catalog, LibraryText, read_catalog, read_library
from orchestrator.core.dtype import ALL, FLOATING, REAL, ScalarType
from orchestrator.core.kernel import Kernel, KernelKey
from orchestrator.core.operator import OperatorName, parse_schema
from orchestrator.errors import Diagnostic, ProfileError, SourceSpan

ADD = "aten::add.out(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)"
CLAMP = (
    "aten::clamp.Tensor_out(Tensor self, Tensor? min=None, Tensor? max=None, *,"
    " Tensor(a!) out) -> Tensor(a!)"
)
FALLBACK = "kernels: [{arg_meta: null, kernel_name: k::f}]"


def read(text: str) -> tuple[Kernel, ...]:
    return read_library(dedent(text), library="portable", file="p/functions.yaml")


def problems(text: str) -> tuple[Diagnostic, ...]:
    with pytest.raises(ProfileError) as caught:
        read(text)
    return caught.value.diagnostics


def entry(*lines: str) -> str:
    """An entry of aten::add.out with a fallback kernel; keys start in line 3."""
    return "\n  ".join((f"- func: {ADD}", FALLBACK, *lines)) + "\n"


def problem(*lines: str) -> tuple[str, str, int, str]:
    """Code, message, line and hint of the only problem of an entry."""
    (found,) = problems(entry(*lines))
    assert found.where is not None
    assert found.where.file == "p/functions.yaml"
    return found.code, found.message, found.where.line, found.hint


def test_an_entry_with_all_keys() -> None:
    text = f"""\
        # a comment

        - func: {ADD}
          variants: function
          kernels:
            - arg_meta: null
              kernel_name: orch::portable::add_out
          sources: [op_add.cpp, shared/sum.cpp, op_add.cpp]
          dtypes:
            self: [real, Bool]
            other: [real]
            out: [Float]
          dtype_arguments: [self, out]
          closure: [Double]
          dim_orders: same
        """
    assert read(text) == (
        Kernel(
            operator=OperatorName("aten", "add", "out"),
            schema=parse_schema(ADD),
            library="portable",
            function="orch::portable::add_out",
            sources=("op_add.cpp", "shared/sum.cpp"),
            keys=(),
            dtypes=(
                ("self", REAL | {ScalarType.Bool}),
                ("other", REAL),
                ("out", frozenset({ScalarType.Float})),
            ),
            dtype_arguments=("self", "out"),
            closure=frozenset({ScalarType.Double}),
            dim_orders="same",
            entry="p/functions.yaml:3",
        ),
    )


def test_defaults_of_an_entry_in_plain_executorch_syntax() -> None:
    (kernel,) = read(f"- func: {ADD}\n  kernels:\n    - kernel_name: k::f\n")
    assert kernel.dtypes == (("self", ALL), ("other", ALL), ("out", ALL))
    assert kernel.dtype_arguments == ("self", "other", "out")
    assert kernel.sources == ()
    assert kernel.closure == frozenset()
    assert kernel.dim_orders == "any"


def test_one_list_of_dtypes_is_for_all_tensor_arguments() -> None:
    (kernel,) = read(entry("dtypes: [floating]"))
    assert kernel.dtypes == (("self", FLOATING), ("other", FLOATING), ("out", FLOATING))


@pytest.mark.parametrize("text", ["", "# nothing\n", "[]\n"])
def test_library_without_entries(text: str) -> None:
    assert read(text) == ()


def test_specialised_kernels_beside_a_fallback() -> None:
    text = f"""\
        - func: {ADD}
          type_alias: {{T0: [Int, Float], T1: [Half]}}
          dim_order_alias: {{D0: [[0, 1], [1, 0]], D1: [0, 1, 2, 3]}}
          kernels:
            - arg_meta:
                out: [T0, D0]
                self: [T0, D0]
                other: [T1, D1]
              kernel_name: k::special
            - arg_meta: {{self: [Long, [0]], other: [T1, []], out: [Double, [1, 0]]}}
              kernel_name: k::inline
            - arg_meta: null
              kernel_name: k::fallback
          dtypes: [real]
        """
    special, inline, fallback = read(text)
    # By schema, not by text: self, other, out, and out once more as the result.
    assert [str(key) for key in special.keys] == [
        "v1/3;0,1|5;0,1,2,3|3;0,1|3;0,1",
        "v1/3;1,0|5;0,1,2,3|3;1,0|3;1,0",
        "v1/6;0,1|5;0,1,2,3|6;0,1|6;0,1",
        "v1/6;1,0|5;0,1,2,3|6;1,0|6;1,0",
    ]
    both = frozenset({ScalarType.Int, ScalarType.Float})
    half = frozenset({ScalarType.Half})
    assert special.dtypes == (("self", both), ("other", half), ("out", both))
    assert inline.keys == (KernelKey.parse("v1/4;0|5;|7;1,0|7;1,0"),)
    assert fallback.keys == ()
    assert fallback.dtypes == (("self", REAL), ("other", REAL), ("out", REAL))


def test_key_of_a_call_without_an_optional_tensor() -> None:
    text = f"""\
        - func: {CLAMP}
          kernels:
            - arg_meta: {{self: [Float, [0]], max: [Float, [0]], out: [Float, [0]]}}
              kernel_name: k::f
        """
    (kernel,) = read(text)
    assert kernel.keys == (KernelKey.parse("v1/6;0|6;0|6;0|6;0"),)
    assert dict(kernel.dtypes)["min"] == frozenset()


def test_key_of_an_operator_without_result() -> None:
    text = """\
        - func: p::put(Tensor(a!) a, int i) -> ()
          kernels: [{arg_meta: {a: [Float, [0]]}, kernel_name: k::f}]
        """
    assert read(text)[0].keys == (KernelKey.parse("v1/6;0"),)


def test_operator_takes_its_schema_from_any_library() -> None:
    short = f"- op: add.out\n  {FALLBACK}\n"
    catalog = read_catalog(
        [
            LibraryText(name="mine", file="m.yaml", text=short),
            LibraryText(name="portable", file="p.yaml", text=entry()),
        ]
    )
    (mine,), (portable,) = catalog.offers(OperatorName.parse("add.out"))
    assert (mine.library, mine.entry) == ("mine", "m.yaml:1")
    assert mine.schema == portable.schema == parse_schema(ADD)
    schemas = {mine.operator: mine.schema}
    assert read_library(short, library="x", file="x", schemas=schemas)[0].schema == (mine.schema)


def test_catalog_keeps_the_order_of_libraries() -> None:
    clamp = f"- func: {CLAMP}\n  {FALLBACK}\n"
    catalog = read_catalog(
        [
            LibraryText(name="b", file="b.yaml", text=entry() + clamp),
            LibraryText(name="c", file="c.yaml", text=clamp),
            LibraryText(name="a", file="a.yaml", text=entry()),
        ]
    )
    add = OperatorName.parse("add.out")
    assert [k.library for of in catalog.offers(add) for k in of] == ["b", "a"]
    assert [str(o) for o in catalog.operators] == ["aten::add.out", "aten::clamp.Tensor_out"]
    assert catalog.offers(OperatorName.parse("mul.out")) == ()
    assert Catalog() == read_catalog([])


def test_every_problem_of_every_library_is_reported() -> None:
    with pytest.raises(ProfileError) as caught:
        read_catalog(
            [
                LibraryText(name="a", file="a.yaml", text=entry("dtype: [Float]")),
                LibraryText(name="b", file="b.yaml", text="[\n"),
                LibraryText(name="c", file="c.yaml", text=entry("dtypes: [Flaot]")),
            ]
        )
    found = [(d.code, str(d.where)) for d in caught.value.diagnostics]
    assert found == [
        ("unknown-key", "a.yaml:3"),
        ("bad-yaml", "b.yaml:2"),
        ("unknown-dtype", "c.yaml:3"),
    ]


def test_problem_in_full() -> None:
    (found,) = problems(entry("dim_order: any"))
    assert found == Diagnostic(
        code="unknown-key",
        message='"dim_order" is not a key of a kernel entry',
        where=SourceSpan(file="p/functions.yaml", line=3, text="  dim_order: any"),
        notes=(
            (
                "known",
                (
                    "op, func, kernels, type_alias, dim_order_alias, variants, tags,"
                    " dispatch, cpp_no_default_args, sources, dtypes, dtype_arguments,"
                    " argument_sets, closure, dim_orders, scratch, in_place, requires,"
                    " isas, error"
                ),
            ),
        ),
        hint='did you mean "dim_orders"?',
    )


@pytest.mark.parametrize(
    ("line", "code", "message", "hint"),
    [
        ("zzz: 1", "unknown-key", '"zzz" is not a key of a kernel entry', "remove it"),
        ("? [a]\n  : 1", "wrong-type", "a key of a kernel entry must be a string", ""),
        ("dtypes: Float", "wrong-type", "`dtypes` must be a mapping", ""),
        ("dtypes: [[Float]]", "wrong-type", "an item of `dtypes` must be a string", ""),
        ("dtypes: [~]", "wrong-type", "an item of `dtypes` must be a string", ""),
        ("dtypes: ['null']", "unknown-dtype", 'unknown dtype "null"', ""),
        (
            "dtypes: [flaoting]",
            "unknown-dtype",
            'unknown dtype "flaoting"',
            'did you mean "floating"?',
        ),
        (
            "closure: [f32]",
            "unknown-dtype",
            'unknown dtype "f32"',
            "use a dtype name like Float, or integral, floating or real",
        ),
        (
            "dtypes: {self: [Float], other: [Float], uot: [Float], out: [Float]}",
            "unknown-argument",
            '"uot" is not a tensor argument of this operator',
            'did you mean "out"?',
        ),
        (
            "dtypes: {self: [Float], out: [Float]}",
            "missing-argument",
            '`dtypes` lacks the argument "other"',
            "list every tensor argument, or write one list for all",
        ),
        (
            "dtype_arguments: [alpha]",
            "unknown-argument",
            '"alpha" is not a tensor argument of this operator',
            "use a name of the schema",
        ),
        ("dtype_arguments: self", "wrong-type", "`dtype_arguments` must be a list", ""),
        (
            "dim_orders: sane",
            "bad-dim-orders",
            '`dim_orders` cannot be "sane"',
            'did you mean "same"?',
        ),
        ("dim_orders: nhwc", "bad-dim-orders", '`dim_orders` cannot be "nhwc"', "use one of these"),
        ("dim_orders: []", "wrong-type", "`dim_orders` must be a string", ""),
        ("sources: op.cpp", "wrong-type", "`sources` must be a list", ""),
        ("op: add.out", "bad-entry", "a kernel entry needs either `op` or `func`", ""),
        ("sources: []\n  sources: []", "duplicate-key", "", "keep one of them"),
    ],
)
def test_problem_of_a_key(line: str, code: str, message: str, hint: str) -> None:
    found = problem(line)
    assert found[0] == code
    assert found[1] == (message or '"sources" occurs twice in a kernel entry')
    if code == "bad-entry":
        assert found[2] == 1
    else:
        assert found[2] == (4 if code == "duplicate-key" else 3)
    if hint:
        assert found[3] == hint
    assert found[3]


@pytest.mark.parametrize(
    ("line", "message", "hint"),
    [
        (
            "error: 2 ulps",
            'cannot read the error "2 ulps"',
            'write "2 ulp", "4 ulp of the terms" or "undefined"',
        ),
        ("isas: [neon]", 'unknown instruction set "neon"', "name dsp, mve or both"),
    ],
)
def test_problem_of_what_a_kernel_says_of_itself(line: str, message: str, hint: str) -> None:
    assert problem(line) == ("bad-entry", message, 3, hint)


@pytest.mark.parametrize(
    "source", ["/op.cpp", "../op.cpp", "a/../op.cpp", "a\\op.cpp", "c:op.cpp", "a//b"]
)
def test_source_outside_the_library(source: str) -> None:
    code, message, _, _ = problem(f"sources: ['{source}']")
    assert code == "bad-source"
    assert message == f'"{source}" is not a file in the folder of the library'


@pytest.mark.parametrize(
    ("text", "code", "message", "line"),
    [
        ("a: b", "wrong-type", "a kernel library must be a list", 1),
        ("- a", "wrong-type", "a kernel entry must be a mapping", 1),
        (f"- {FALLBACK}", "bad-entry", "a kernel entry needs either `op` or `func`", 1),
        (f"- func: [a]\n  {FALLBACK}", "wrong-type", "`func` must be a string", 1),
        (
            f"- func: add.out\n  {FALLBACK}",
            "bad-schema",
            '"add.out" is not an op schema "name(arguments) -> returns"',
            1,
        ),
        (
            f"- op: a b\n  {FALLBACK}",
            "bad-schema",
            '"a b" is not an operator name like aten::add.out',
            1,
        ),
        (
            f"- op: add.out\n  {FALLBACK}",
            "missing-schema",
            "no kernel library has the schema of aten::add.out",
            1,
        ),
        (f"- func: {ADD}", "bad-entry", "the entry of aten::add.out has no kernels", 1),
        (f"- func: {ADD}\n  kernels: 1", "wrong-type", "`kernels` must be a list", 2),
        (f"- func: {ADD}\n  kernels:\n  - a", "wrong-type", "a kernel must be a mapping", 3),
        (
            f"- func: {ADD}\n  kernels:\n  - arg_meta: null",
            "bad-kernel-name",
            "a kernel needs a `kernel_name`",
            3,
        ),
    ],
)
def test_problem_of_an_entry(text: str, code: str, message: str, line: int) -> None:
    (found,) = problems(text + "\n")
    assert (found.code, found.message) == (code, message)
    assert found.where == SourceSpan(
        file="p/functions.yaml", line=line, text=text.split("\n")[line - 1]
    )
    assert found.hint


@pytest.mark.parametrize(
    "name", ["add_out", "k::", "::f", "k::f()", "k::1f", "k::f<int>", "k:f", "k::é"]
)
def test_name_that_is_no_qualified_function(name: str) -> None:
    (found,) = problems(f"- func: {ADD}\n  kernels: [{{kernel_name: '{name}'}}]\n")
    assert found.code == "bad-kernel-name"
    assert found.message == f'"{name}" is not a qualified C++ function name'
    assert found.hint == "write it with its namespaces, like my_kernels::add_out"


@pytest.mark.parametrize(
    ("meta", "code", "message"),
    [
        ("1", "wrong-type", "`arg_meta` must be a mapping"),
        ("{self: [T, D], other: [T, D]}", "bad-arg-meta", '`arg_meta` lacks "out"'),
        (
            "{self: [T], other: [T, D], out: [T, D]}",
            "bad-arg-meta",
            "an argument of `arg_meta` has a dtype and a dim order",
        ),
        (
            "{self: T, other: [T, D], out: [T, D]}",
            "wrong-type",
            "`arg_meta` of self must be a list",
        ),
        (
            "{alpha: [T, D], self: [T, D], other: [T, D], out: [T, D]}",
            "unknown-argument",
            '"alpha" is not a tensor argument of this operator',
        ),
        ("{self: [T9, D], other: [T, D], out: [T, D]}", "unknown-dtype", 'unknown dtype "T9"'),
        (
            "{self: [T, DD], other: [T, D], out: [T, D]}",
            "unknown-alias",
            '"DD" is not a dim order alias of this entry',
        ),
        (
            "{self: [T, ~], other: [T, D], out: [T, D]}",
            "wrong-type",
            "the dim order of an argument must be a string",
        ),
        (
            "{self: [[T], D], other: [T, D], out: [T, D]}",
            "wrong-type",
            "the dtype of an argument must be a string",
        ),
        (
            "{self: [T, [0, 0]], other: [T, D], out: [T, D]}",
            "bad-dim-order",
            "a dim order has every dimension once, from outermost to innermost",
        ),
        (
            "{self: [E, D], other: [T, D], out: [T, D]}",
            "bad-arg-meta",
            "`arg_meta` stands for 0 kernel keys",
        ),
        (
            "{self: [A, D], other: [B, D], out: [C, D]}",
            "bad-arg-meta",
            "`arg_meta` stands for 12167 kernel keys",
        ),
    ],
)
def test_problem_of_arg_meta(meta: str, code: str, message: str) -> None:
    many = ", ".join([d.name for d in ScalarType][:23])
    text = f"""\
        - func: {ADD}
          type_alias: {{T: [Float], E: [], A: [{many}], B: [{many}], C: [{many}]}}
          dim_order_alias: {{D: [0, 1]}}
          kernels:
            - arg_meta: {meta}
              kernel_name: k::special
            - kernel_name: k::fallback
        """
    (found,) = problems(text)
    assert (found.code, found.message) == (code, message)
    assert found.where is not None
    assert found.where.line == 5
    assert found.hint


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("type_alias: [T]", "`type_alias` must be a mapping"),
        ("type_alias: {T: Float}", "`type_alias` T must be a list"),
        ("dim_order_alias: {D: 0}", "`dim_order_alias` D must be a list"),
    ],
)
def test_problem_of_an_alias(line: str, message: str) -> None:
    assert problem(line)[:3] == ("wrong-type", message, 3)


@pytest.mark.parametrize("order", ["[0, 2]", "[a]", "[[0], 1]", "[[1]]", "[-1]", "['²']"])
def test_dim_order_that_is_no_permutation(order: str) -> None:
    found = problems(entry(f"dim_order_alias: {{D: {order}}}"))
    assert {d.code for d in found} == {"bad-dim-order"}


def test_specialised_kernel_needs_an_out_argument() -> None:
    (found,) = problems(
        """\
        - func: p::f(Tensor a) -> Tensor
          kernels: [{arg_meta: {a: [Float, [0]]}, kernel_name: k::f}]
        """
    )
    assert found.message == "a specialised kernel needs an out argument"


def test_one_key_offered_twice_names_both_entries() -> None:
    text = f"""\
        - func: {ADD}
          kernels: [{{kernel_name: k::one}}]
        - op: add.out
          type_alias: {{T: [Float]}}
          kernels:
            - kernel_name: k::two
            - arg_meta: {{self: [T, [0]], other: [T, [0]], out: [T, [0]]}}
              kernel_name: k::three
            - arg_meta: {{self: [Float, [0]], other: [T, [0]], out: [T, [0]]}}
              kernel_name: k::four
        """
    first, second = problems(text)
    assert first == Diagnostic(
        code="duplicate-kernel",
        message="portable offers a fallback kernel of aten::add.out twice",
        where=SourceSpan(file="p/functions.yaml", line=3, text="- op: add.out"),
        notes=(("first", "k::one, p/functions.yaml:1"), ("again", "k::two, p/functions.yaml:3")),
        hint="remove one of the entries, or put it in a library of its own",
    )
    assert second.message == (
        "portable offers kernel key v1/6;0|6;0|6;0|6;0 of aten::add.out twice"
    )
    assert second.notes == (
        ("first", "k::three, p/functions.yaml:3"),
        ("again", "k::four, p/functions.yaml:3"),
    )


@pytest.mark.parametrize(
    ("other", "clash"),
    [
        (ADD.replace("other", "b").replace("alpha=1", "alpha"), False),
        (ADD.replace("Scalar alpha", "int alpha"), True),
        (ADD.replace("-> Tensor(a!)", "-> ()"), True),
        (ADD.replace("-> Tensor(a!)", "-> (Tensor(a!), Tensor)"), True),
    ],
)
def test_libraries_agree_on_the_form_of_an_operator(other: str, clash: bool) -> None:  # noqa: FBT001
    libraries = [
        LibraryText(name="a", file="a.yaml", text=entry()),
        LibraryText(name="b", file="b.yaml", text=f"- func: {other}\n  {FALLBACK}\n"),
    ]
    if not clash:
        assert len(read_catalog(libraries).libraries) == 2
        return
    with pytest.raises(ProfileError) as caught:
        read_catalog(libraries)
    (found,) = caught.value.diagnostics
    assert found == Diagnostic(
        code="schema-conflict",
        message="two schemas for aten::add.out",
        where=SourceSpan(file="b.yaml", line=1, text=f"- func: {other}"),
        notes=(("found", other), ("expected", ADD)),
        hint="give every library the schema the operator really has",
    )


def test_yaml_syntax_error_has_a_line() -> None:
    (found,) = problems("- func: a\n  kernels: ]\n")
    assert found.code == "bad-yaml"
    assert found.message.startswith("p/functions.yaml is not YAML: ")
    assert found.where == SourceSpan(file="p/functions.yaml", line=2, text="  kernels: ]")


@pytest.mark.parametrize("text", ["- a: \x00\n", "[" * 5000, "- a\n---\n- b\n"])
def test_text_that_yaml_refuses_otherwise(text: str) -> None:
    (found,) = problems(text)
    assert found.code == "bad-yaml"


PIECES = st.sampled_from(
    [
        *("- func: ", ADD, "\n", "  ", "- op: add.out", "kernels:", "[", "]", "{", "}"),
        *("arg_meta: ", "kernel_name: k::f", "dtypes: ", "Float", "real", "self", ": "),
        *("sources: ", "~", "&a ", "*a", "!!set ", "0", ", ", "dim_order_alias: ", "|"),
        *("type_alias: ", "closure: ", "dim_orders: ", "same", "dtype_arguments: "),
    ]
)


@given(st.lists(PIECES, max_size=40).map("".join))
def test_any_text_gives_kernels_or_problems(text: str) -> None:
    """Nothing but a ProfileError whose every problem has all of its parts."""
    found: tuple[Diagnostic, ...] = ()
    kernels: tuple[Kernel, ...] = ()
    try:
        kernels = read_library(text, library="x", file="x.yaml")
    except ProfileError as error:
        found = error.diagnostics
    assert all("::" in kernel.function for kernel in kernels)
    for one in found:
        assert one.message
        assert one.hint
        assert one.where is not None
        assert one.where.file == "x.yaml"
