from __future__ import annotations

import io
import json
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from orchestrator.errors import Diagnostic, ExitCode, UsageError
from orchestrator.program.values import ValueKind
from orchestrator.running.compare import Tolerance
from orchestrator.running.npy import Array
from orchestrator.running.product import Product, read_product
from orchestrator.running.scenario import Scenario, read_scenario
from orchestrator.running.values import OtherValue
from tests.conftest import CASES, CORPUS
from tests.unit.running.corpus_products import (
    case_document,
    case_text,
    host,
    load,
    product_of,
    product_text,
)


def read_case(case: str, product: Product) -> Scenario:
    return read_scenario(
        case_text(case),
        file=str(CORPUS / case / "case.json"),
        product=product,
        read_bytes=lambda path: Path(path).read_bytes(),
    )


@pytest.mark.parametrize("case", CASES)
def test_reads_every_case(case: str) -> None:
    document = case_document(case)
    scenario = read_case(case, product_of(case))

    tolerance = document["tolerance"]
    assert scenario.tolerance == Tolerance(**tolerance)
    assert [c.method.name for c in scenario.calls] == [run["method"] for run in document["runs"]]
    assert [c.fresh for c in scenario.calls] == [r["fresh"] for r in document["runs"]]
    for call, run in zip(scenario.calls, document["runs"], strict=True):
        assert call.expected is not None
        entries = [*run["inputs"], *run["outputs"]]
        for value, entry in zip((*call.inputs, *call.expected), entries, strict=True):
            if isinstance(value, Array):
                want = load(case, entry["file"])
                assert (value.shape, value.data) == (want.shape, want.tobytes())
            else:
                assert value == entry["value"]
                kinds = {"int": int, "double": float, "string": str}
                assert type(value) is kinds[entry["kind"]]


def npy(item: Any) -> bytes:
    file = io.BytesIO()
    np.save(file, item)
    return file.getvalue()


FILES = {
    "data/a.npy": npy(np.ones((2, 2), dtype=np.float32)),
    "data/double.npy": npy(np.ones((2, 2))),
    "data/short.npy": npy(np.ones(2, dtype=np.float32)),
    "data/patterns.npy": npy(np.ones((3, 12), dtype=np.uint16)),
    "data/no.npy": b"no array",
    "/abs.npy": npy(np.ones((2, 2), dtype=np.float32)),
}


def read_bytes(path: str) -> bytes:
    if path not in FILES:
        raise FileNotFoundError(2, "No such file or directory", path)
    return FILES[path]


def product(**cases: str) -> Product:
    return read_product(product_text(cases or {"m": "add_mul"}, host()))


def tensor(file: Any = "a.npy", **more: Any) -> dict[str, Any]:
    return {"kind": "tensor", "file": file, **more}


def run(**more: Any) -> dict[str, Any]:
    inputs = [tensor() for _ in range(3)]
    return {"method": "forward", "inputs": inputs, "outputs": [tensor()], **more}


EXACT = {"atol": 0, "rtol": 0.5}


def read(document: Any, known: Product | None = None) -> Scenario:
    return read_scenario(
        document if isinstance(document, str) else json.dumps(document),
        file="data/s.json",
        product=known or product(),
        read_bytes=read_bytes,
    )


def problems(document: Any, known: Product | None = None) -> list[Diagnostic]:
    with pytest.raises(UsageError) as caught:
        read(document, known)
    assert caught.value.exit_code is ExitCode.USAGE
    return list(caught.value.diagnostics)


def at(found: list[Diagnostic]) -> list[str]:
    return [dict(d.notes)["at"] for d in found]


def test_least_scenario() -> None:
    found = read({"runs": [run(), run(fresh=True)], "tolerance": EXACT})
    array = Array(dtype="<f4", shape=(2, 2), data=np.ones(4, dtype=np.float32).tobytes())
    first, second = found.calls
    assert (first.fresh, second.fresh) == (False, True)
    assert first.inputs == (array,) * 3
    assert first.expected == (array,)
    assert found.tolerance == Tolerance(atol=0.0, rtol=0.5)


def test_absolute_paths_and_other_keys() -> None:
    entry = tensor("/abs.npy", eager=1)
    scenario = {"runs": [run(outputs=[entry], x=1)], "tolerance": EXACT, "files": 3}
    assert len(read(scenario).calls) == 1


def test_everything_at_once() -> None:
    found = problems(
        {
            "runs": [
                run(inputs=[tensor("gone.npy"), tensor("no.npy"), tensor()]),
                run(inputs=[tensor("double.npy"), tensor("short.npy"), 3]),
                run(method="forwrad"),
                run(fresh=1),
                run(inputs=[tensor()]),
            ],
            "tolerance": {"atol": -1},
        }
    )
    assert at(found) == [
        "runs[0].inputs[0]",
        "runs[0].inputs[1]",
        "runs[1].inputs[2]",
        "runs[2]",
        "runs[3].fresh",
        "runs[4].inputs",
        "tolerance.atol",
        "tolerance.rtol",
    ]
    assert {str(d.where) for d in found} == {"data/s.json", "data/no.npy"}
    assert found[0] == Diagnostic(
        code="bad-scenario",
        message="cannot read the file",
        where=found[0].where,
        notes=(
            ("at", "runs[0].inputs[0]"),
            ("found", "data/gone.npy: No such file or directory"),
            ("expected", "a .npy file with float32 [2, 2]"),
        ),
        hint="write one with numpy.save",
    )
    assert found[1].code == "bad-npy"
    assert found[2].notes[1:] == (("found", "3"), ("expected", "an object"))
    assert found[3].message == 'the product has no method "forwrad"'
    assert found[3].hint == 'did you mean "forward"?'
    assert found[5].notes[1:] == (
        ("found", "1"),
        ("expected", "3, float32 [2, 2], float32 [2, 2], float32 [2, 2]"),
    )


def test_inputs_that_do_not_fit() -> None:
    inputs = [tensor("double.npy"), tensor("short.npy"), {"kind": "int", "value": 3}]
    found = problems({"runs": [run(inputs=inputs)], "tolerance": EXACT})
    assert [(dict(d.notes)["at"], d.message) for d in found] == [
        ("runs[0].inputs[0]", "the array has the wrong dtype for this method"),
        ("runs[0].inputs[1]", "the array has the wrong shape for this method"),
        ("runs[0].inputs[2]", "the input has the wrong kind for this method"),
    ]


def test_expected_outputs_may_differ_from_the_product() -> None:
    outputs = [tensor("short.npy")]
    found = read({"runs": [run(outputs=outputs)], "tolerance": EXACT})
    assert found.calls[0].expected is not None


@pytest.mark.parametrize(
    ("document", "place", "found"),
    [
        ([], "the whole file", "a list of 0 entries"),
        ({"tolerance": EXACT}, "runs", "nothing"),
        ({"runs": [], "tolerance": EXACT}, "runs", "a list of 0 entries"),
        ({"runs": [run()]}, "tolerance", "nothing"),
        ({"runs": [run()], "tolerance": {"atol": True, "rtol": 0}}, "tolerance.atol", "true"),
        ({"runs": [run()], "tolerance": {"atol": 0, "rtol": inf}}, "tolerance.rtol", "Infinity"),
        (
            {"runs": [run()], "tolerance": {"atol": 10**400, "rtol": 0}},
            "tolerance.atol",
            "1" + 79 * "0",
        ),
        ({"runs": [3], "tolerance": EXACT}, "runs[0]", "3"),
        ({"runs": [run(method=3)], "tolerance": EXACT}, "runs[0].method", "3"),
        ({"runs": [run(method=None)], "tolerance": EXACT}, "runs[0].method", "nothing"),
        ({"runs": [run(model=3)], "tolerance": EXACT}, "runs[0].model", "3"),
        ({"runs": [run(fresh="no")], "tolerance": EXACT}, "runs[0].fresh", '"no"'),
        ({"runs": [run(outputs={})], "tolerance": EXACT}, "runs[0].outputs", "an object"),
    ],
)
def test_wrong_types(document: Any, place: str, found: str) -> None:
    (diagnostic,) = problems(document)
    assert diagnostic.code == "bad-scenario"
    assert diagnostic.message == "invalid scenario"
    assert str(diagnostic.where) == "data/s.json"
    notes = dict(diagnostic.notes)
    assert (notes["at"], notes["found"]) == (place, found)
    assert notes["expected"]


@pytest.mark.parametrize(
    ("entry", "place", "found", "expected"),
    [
        ({"file": "a.npy"}, ".kind", "nothing", None),
        ({"kind": "tensro"}, ".kind", '"tensro"', None),
        ({"kind": []}, ".kind", "a list of 0 entries", None),
        ({"kind": "tensor"}, ".file", "nothing", "this key"),
        (tensor(""), ".file", '""', "a path"),
        (tensor("a\0b"), ".file", '"a\\u0000b"', "a path"),
        ({"kind": "int", "value": 3.5}, ".value", "3.5", "an integer"),
        ({"kind": "int", "value": True}, ".value", "true", "an integer"),
        ({"kind": "double", "value": "1"}, ".value", '"1"', "a number"),
        ({"kind": "bool", "value": 1}, ".value", "1", "true or false"),
        ({"kind": "string", "value": 1}, ".value", "1", "a text"),
        (tensor(shape=[2, 3]), ".shape", "data/a.npy: float32 [2, 2]", "[2, 3]"),
        (tensor(shape="x"), ".shape", '"x"', "a list"),
        (tensor(shape=[1, "x"]), ".shape[1]", '"x"', "an integer"),
        (tensor(dtype="int8"), ".dtype", "data/a.npy: float32 [2, 2]", "int8"),
        (tensor(stored_as="x"), ".stored_as", '"x"', "'uint16 bit patterns'"),
        (tensor(stored_as="uint16 bit patterns"), ".dtype", "data/a.npy: float32 [2, 2]", "uint16"),
    ],
)
def test_wrong_entries(entry: Any, place: str, found: str, expected: str | None) -> None:
    diagnostic = problems({"runs": [run(outputs=[entry])], "tolerance": EXACT})[0]
    notes = dict(diagnostic.notes)
    assert (notes["at"], notes["found"]) == (f"runs[0].outputs[0]{place}", found)
    assert expected in (None, notes["expected"])


def test_kind_has_a_hint() -> None:
    (found,) = problems({"runs": [run(outputs=[{"kind": "tensro"}])], "tolerance": EXACT})
    assert found.hint == 'did you mean "tensor"?'


def test_bfloat16_is_stored_as_bit_patterns() -> None:
    known = product(m="bfloat16_mlp")
    entry = tensor("patterns.npy", dtype="bfloat16", stored_as="uint16 bit patterns")
    scenario = {"runs": [run(inputs=[entry])], "tolerance": EXACT}
    assert len(read(scenario, known).calls) == 1

    del entry["stored_as"]
    (found,) = problems(scenario, known)
    assert at([found]) == ["runs[0].inputs[0].dtype"]
    assert found.hint == 'store bfloat16 with "stored_as": "uint16 bit patterns"'


def test_values_in_place() -> None:
    known = product(m="multi_method")
    runs = [
        {"method": "width", "inputs": [], "outputs": [{"kind": k, "value": v}]}
        for k, v in (
            ("int", 3),
            ("double", 2),
            ("double", 0.5),
            ("bool", False),
            ("string", "ä"),
            ("none", None),
        )
    ]
    found = read({"runs": runs, "tolerance": EXACT}, known)
    values = [call.expected for call in found.calls]
    assert values == [(3,), (2.0,), (0.5,), (False,), ("ä",), (OtherValue(ValueKind.NONE),)]
    assert [type(v[0]) for v in values if v] == [int, float, float, bool, str, OtherValue]


def test_models() -> None:
    known = product(a="add_mul", b="add_mul", two="multi_method")
    named = {"runs": [run(model="b")], "tolerance": EXACT}
    assert [str(c.method) for c in read(named, known).calls] == ["b.forward"]

    only = {"method": "width", "inputs": [], "outputs": [{"kind": "int", "value": 1}]}
    found = read({"runs": [only], "tolerance": EXACT}, known)
    assert [str(c.method) for c in found.calls] == ["two.width"]

    runs = [run(), run(model="c"), run(model="a", method="width")]
    several, unknown, other = problems({"runs": runs, "tolerance": EXACT}, known)
    assert several.message == 'several models have a method "forward"'
    assert dict(several.notes)["expected"] == "one of the models a, b"
    assert several.hint == 'name the model: --model, or "model" in the call of a scenario'
    assert unknown.message == 'the product has no model "c"'
    assert dict(unknown.notes)["expected"] == "a, b, two"
    assert other.message == 'the model "a" has no method "width"'
    assert dict(other.notes)["expected"] == "forward"


@pytest.mark.parametrize(("text", "line"), [("", 1), ('{\n"runs": [,]}', 2), ("[" * 100_000, 0)])
def test_no_json(text: str, line: int) -> None:
    (found,) = problems(text)
    assert found.message == "the scenario is not valid JSON"
    assert found.where is not None
    assert (found.where.file, found.where.line) == ("data/s.json", line)
    assert found.notes[0][0] == "found"


def test_number_of_too_many_digits() -> None:
    (found,) = problems('{"runs": 1' + "0" * 5000 + "}")
    assert found.message == "the scenario is not valid JSON"
