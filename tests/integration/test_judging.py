"""`orchestrator test`: a product beside its own program."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from orchestrator.cli.main import run
from orchestrator.core.dtype import ScalarType
from orchestrator.method.passes import passes
from tests.conftest import CORPUS
from tests.differential.exported import exported
from tests.differential.program import Method, Model, Op, Value
from tests.integration.memory_programs import memory_product
from tests.product import Product, make_product
from tests.tools import need_emulator, need_toolchain

if TYPE_CHECKING:
    from pathlib import Path

    from orchestrator.method.linked import LinkedMethod
    from orchestrator.method.passes.context import Context

pytestmark = pytest.mark.toolchain


def _judged(
    product: Product, capsys: pytest.CaptureFixture[str], *options: str
) -> tuple[int, dict[str, Any]]:
    """The exit code, and the document."""
    capsys.readouterr()
    code = product.run("test", "--json", *options)
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    return code, document


def _mlp(folder: Path) -> Product:
    folder.mkdir()
    shutil.copyfile(CORPUS / "mlp" / "model.pte", folder / "model.pte")
    (folder / "p.toml").write_text(
        'schema = 1\nname = "p"\n[target]\ncpu = "host"\ntoolchain = "zig"\n'
        '[[models]]\nname = "net"\npath = "model.pte"\nload = "prelinked"\n'
    )
    return Product(profile=folder / "p.toml", out=folder / "out")


def test_state_and_methods_are_tried_in_turns(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    need_toolchain("host", "zig")
    product = memory_product(tmp_path, ["state_rows", "state_constant"])
    code, found = _judged(product, capsys, "--runs", "3")
    assert code == 0, found
    assert found["equal"]
    names = [(m["model"], m["method"], m["runs"]) for m in found["methods"]]
    assert ("state_rows_p", "forward", 3) in names
    assert ("state_constant", "get_size", 3) in names
    assert len(names) == 8
    assert all(method["difference"] is None for method in found["methods"])
    capsys.readouterr()
    assert product.run("test", "--runs", "1", "--seed", "7") == 0
    assert capsys.readouterr().out.splitlines()[0].split() == [
        *("method", "runs", "outputs", "result")
    ]


def test_nan_has_no_sign(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Infinity less infinity has its sign bit set on x86, and not on Arm."""
    need_toolchain("cortex-m4", "zig")
    need_emulator("cortex-m4")
    kind = Value((2, 2), ScalarType.Float, (0, 1))
    large = replace(kind, data=np.full(4, 3e38, "<f4").tobytes())
    x, y, z, out = (replace(kind) for _ in range(4))
    steps = (
        Op("aten::mul.out", (x, large, y), (y,)),
        Op("aten::mul.out", (y, large, z), (z,)),
        Op("aten::sub.out", (z, z, 1, out), (out,)),
    )
    product = _mlp(tmp_path / "p")
    method = Method("forward", (x,), steps, (z, out))
    model = product.profile.parent / "model.pte"
    model.write_bytes(exported(Model(methods=(method,), session=())))
    text = product.profile.read_text().replace('"host"', '"cortex-m4"')
    product.profile.write_text(text)
    code, found = _judged(product, capsys)
    assert code == 0, found


def test_random_calls_that_the_program_refuses_are_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As half the columns; calls after them are compared."""
    need_toolchain("host", "zig")
    extra = "[test]\nruns = 9"
    product = make_product(
        tmp_path / "p", "dynamic_batch", cpu="host", toolchain="zig", extra=extra
    )
    code, found = _judged(product, capsys)
    assert code == 0, found
    assert (found["methods"][0]["runs"], found["refused"]) == (7, 2)
    assert product.run("test", "--runs", "4") == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == "random calls that the program refuses: 1"


def test_a_call_of_a_scenario_that_the_program_refuses_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    need_toolchain("host", "zig")
    product = make_product(tmp_path / "p", "embedding_argmax", cpu="host", toolchain="zig")
    runs = []
    for name, index in (("near", 1), ("far", 9999)):
        np.save(tmp_path / f"{name}.npy", np.full((2, 7), index))
        value = {"kind": "tensor", "file": f"{name}.npy", "dtype": "int64"}
        runs.append({"method": "forward", "inputs": [{**value, "shape": [2, 7]}]})
    document = {"tolerance": {"atol": 0, "rtol": 0}, "description": ""}
    scenario = tmp_path / "calls.json"
    scenario.write_text(json.dumps({**document, "runs": runs}))
    code, found = _judged(product, capsys, "--scenario", str(scenario))
    assert code == 2
    (problem,) = found["diagnostics"]
    assert problem["code"] == "bad-scenario"
    assert "refuses call 1 of the scenario" in problem["message"]


def _other_bias(method: LinkedMethod, _: Context) -> LinkedMethod:
    """A fault: one bit of each constant is another one."""
    found = ((i, bytes(d[:])) for i, d in method.data)
    data = tuple((i, bytes([*d[:3], d[3] ^ 16, *d[4:]])) for i, d in found)
    return replace(method, data=data)


def test_a_fault_of_a_pass_is_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    need_toolchain("host", "zig")
    faulty = replace(passes.PASSES["fold_pads"], calls=None, change=_other_bias)
    monkeypatch.setattr(passes, "PASSES", {**passes.PASSES, "fold_pads": faulty})
    product = _mlp(tmp_path / "p")
    code, found = _judged(product, capsys, "--bisect")
    assert code == 10
    assert not found["equal"]
    assert found["cause"].startswith("the pass fold_pads")
    assert "instruction" in found["cause"]
    difference = found["methods"][0]["difference"]
    assert (difference["call"], difference["output"]) == (0, 0)
    assert difference["got"] != difference["want"]
    assert product.run("test") == 10
    said = capsys.readouterr()
    assert "error[differs-from-program]: net.forward differs from its" in said.err
    assert "call 0, output 0 [0, " in said.out


def test_each_model_has_a_cause_of_its_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    need_toolchain("host", "zig")

    def fault(model: str) -> Any:
        def change(method: LinkedMethod, context: Context) -> LinkedMethod:
            return _other_bias(method, context) if method.model == model else method

        return change

    faulty = {
        name: replace(passes.PASSES[name], calls=None, change=fault(model))
        for name, model in (("fold_pads", "net"), ("fold_transposes", "other"))
    }
    monkeypatch.setattr(passes, "PASSES", {**passes.PASSES, **faulty})
    product = _mlp(tmp_path / "p")
    text = product.profile.read_text()
    model = text[text.index("[[models]]") :].replace('"net"', '"other"')
    product.profile.write_text(text + model)
    code, found = _judged(product, capsys, "--bisect")
    assert code == 10
    causes = [method["cause"].partition(",")[0] for method in found["methods"]]
    assert causes == ["the pass fold_pads", "the pass fold_transposes"]


def test_a_workspace_is_tested(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    need_toolchain("host", "zig")
    _mlp(tmp_path / "one")
    (tmp_path / "orchestrator.toml").write_text(
        'schema = 1\n[workspace]\nprofiles = ["one/*.toml"]\n'
    )
    monkeypatch.chdir(tmp_path)
    assert run(["test", "--junit", "report.xml"]) == 0
    output = capsys.readouterr().out
    assert "equal in 4 runs" in output
    assert "1 product: 1 equal\n" in output
    assert 'tests="1"' in (tmp_path / "report.xml").read_text()
