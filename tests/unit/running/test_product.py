from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from orchestrator.core.dtype import ScalarType
from orchestrator.errors import ExitCode, UsageError
from orchestrator.program.values import ValueKind
from orchestrator.running.product import Port, read_product
from orchestrator.targets.cores import resolve_target
from tests.conftest import CASES
from tests.unit.running.corpus_products import case_document, host, product_text

INCLUDE = Path(__file__).parents[3] / "runtime" / "include" / "orch"


def test_kinds_are_the_tags_of_the_runtime() -> None:
    text = (INCLUDE / "tensor.h").read_text()
    body = re.search(r"enum class Tag : uint8_t \{(.*?)\};", text, re.DOTALL)
    assert body is not None
    names = re.findall(r"^  (\w+),", body[1], re.MULTILINE)
    assert [kind.label.replace("_", "") for kind in ValueKind] == [name.lower() for name in names]
    assert [int(kind) for kind in ValueKind] == list(range(len(names)))


@pytest.mark.parametrize("case", CASES)
def test_ports_are_those_of_the_case(case: str) -> None:
    product = read_product(product_text({"m": case}, host()))
    methods = case_document(case)["program"]["methods"]
    assert {m.name for m in product.methods} == set(methods)
    assert [m.index for m in product.methods] == list(range(len(methods)))
    for method in product.methods:
        for ports, side in ((method.inputs, "inputs"), (method.outputs, "outputs")):
            wanted = methods[method.name][side]
            assert [p.kind.label for p in ports] == [w["kind"].lower() for w in wanted]
            for port, want in zip(ports, wanted, strict=True):
                if port.dtype is None:
                    assert (port.sizes, port.dim_order) == ((), ())
                    # Nothing in the method reads it.
                    assert port.is_fixed == (case == "scalar_sizes" and side == "inputs")
                else:
                    assert int(port.dtype) == want["scalar_type"]
                    assert list(port.sizes) == want["sizes"]
                    assert list(port.dim_order) == want["dim_order"]
                    assert port.is_dynamic == (want["dynamism"] != 0)


def test_several_models_and_a_board() -> None:
    target = resolve_target(cpu="cortex-m55", isa=None, board=None, toolchain=None, optimize="size")
    text = product_text({"two": "multi_method", "one": "add_mul"}, target)
    product = read_product(text)

    assert product.profile == "test"
    assert product.emulator[0] == "qemu-system-arm"
    assert product.emulator[-1] == "mps3-an547"
    assert product.firmware == "firmware.elf"
    assert product.models == ("two", "one")
    assert [str(m) for m in product.methods][-2:] == ["two.scale", "one.forward"]
    assert [m.index for m in product.methods] == list(range(len(product.methods)))
    assert all(m.state_bytes > 0 for m in product.methods)
    assert str(product.methods[-1].inputs[0]) == "Float [2, 2]"
    assert text == product_text({"two": "multi_method", "one": "add_mul"}, target)


def test_host_needs_no_emulator() -> None:
    assert read_product(product_text({"m": "add_mul"}, host())).emulator == ()


def test_texts_of_ports() -> None:
    port = Port(
        kind=ValueKind.TENSOR,
        dtype=ScalarType.Half,
        sizes=(8, 6),
        dim_order=(0, 1),
        is_dynamic=True,
    )
    assert str(port) == "Half at most [8, 6]"
    assert str(Port(kind=ValueKind.INT_LIST)) == "int_list"


def _set(document: Any, path: tuple[Any, ...], value: Any) -> None:
    for key in path[:-1]:
        document = document[key]
    if value is None:
        del document[path[-1]]
    else:
        document[path[-1]] = value


INPUT = ("methods", 0, "inputs", 0)
AT = "methods[0].inputs[0]"


@pytest.mark.parametrize(
    ("path", "value", "found"),
    [
        (("version",), 2, "version: expected 1, found 2"),
        (("profile",), None, "profile: expected this key, found nothing"),
        (("profile",), 3, "profile: expected a text, found 3"),
        (("emulator",), [1], "emulator[0]: expected a text, found 1"),
        (("methods",), {}, "methods: expected a list, found an object"),
        (("methods", 0), [], "methods[0]: expected an object, found a list of 0 entries"),
        (("methods", 0, "index"), 1, "method 0 is out of order"),
        ((*INPUT, "kind"), "x", f"{AT}.kind: unknown kind 'x'"),
        ((*INPUT, "dtype"), "float", f"{AT}.dtype: unknown dtype 'float'"),
        ((*INPUT, "sizes"), [3], f"{AT}: sizes [3] with dim order [0, 1]"),
        ((*INPUT, "sizes"), [3, -4], f"{AT}.sizes[1]: expected 0 or more, found -4"),
        ((*INPUT, "dim_order"), [0, 0], f"{AT}: sizes [2, 2] with dim order [0, 0]"),
        ((*INPUT, "dynamic"), 0, f"{AT}.dynamic: expected true or false, found 0"),
    ],
)
def test_damage_is_reported(path: tuple[Any, ...], value: Any, found: str) -> None:
    document = json.loads(product_text({"m": "add_mul"}, host()))
    _set(document, path, value)
    with pytest.raises(UsageError) as caught:
        read_product(json.dumps(document), file="build/x/product.json")
    (diagnostic,) = caught.value.diagnostics
    assert caught.value.exit_code is ExitCode.USAGE
    assert diagnostic.code == "bad-product"
    assert str(diagnostic.where) == "build/x/product.json"
    assert diagnostic.hint
    assert diagnostic.notes == (("found", found),)


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, "[]"])
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="cannot read"):
        read_product(text)
