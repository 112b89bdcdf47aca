"""`plumbing oplist` and `headers`, against what ExecuTorch's tools wrote."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest
import yaml

from orchestrator.cli.main import run
from orchestrator.program.prim_ops import PRIM_OPS
from tests.conftest import CASES, CORPUS
from tests.unit.emit.test_executorch_headers import conditions, frame, without_comment

if TYPE_CHECKING:
    from pathlib import Path

    from orchestrator.core.operator import OperatorName

PRIM_OP = re.compile(r"executorch_prim::|aten::(_local_scalar_dense|sym_)")


def headers(oplist: Path, out: Path, *more: str) -> dict[str, str]:
    assert run(["plumbing", "headers", "--oplist", str(oplist), f"--output-dir={out}", *more]) == 0
    return {path.name: path.read_text() for path in out.iterdir()}


def kernel_num(text: str) -> int | None:
    found = re.search(r"^#define EXECUTORCH_SELECTED_MAX_KERNEL_NUM (\d+)$", text, re.MULTILINE)
    return int(found[1]) if found else None


@pytest.mark.parametrize("case", CASES)
def test_a_models_list_is_executorchs(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(CORPUS / case)
    output = tmp_path / "ops.yaml"
    assert run(["plumbing", "oplist", "--model", "model.pte", "--output", str(output)]) == 0
    first, _, body = output.read_text().partition("\n")
    assert first.startswith("# Orchestrator ")
    assert body == (CORPUS / case / "oplist.yaml").read_text()


@pytest.mark.parametrize("case", CASES)
def test_a_lists_headers_are_executorchs(case: str, tmp_path: Path) -> None:
    folder = CORPUS / case
    ours = headers(folder / "oplist.yaml", tmp_path)
    theirs = {name: (folder / name).read_text() for name in ours}
    assert len(ours) == 3
    name = "selected_op_variants.h"
    assert conditions(ours[name]) == conditions(theirs[name])
    assert frame(ours[name]) == frame(theirs[name])
    name = "selected_prim_ops.h"
    assert without_comment(ours[name]) == without_comment(theirs[name])
    data = yaml.safe_load((folder / "oplist.yaml").read_text())
    keys = data["et_kernel_metadata"]
    # What their tool counts twice or for nothing; see docs/executorch-compatibility.md.
    twice = sum(len(k) for n, k in keys.items() if PRIM_OP.match(n))
    nothing = len(data["operators"].keys() - keys.keys())
    name = "selected_max_kernel_num.h"
    found = kernel_num(theirs[name])
    assert found is not None
    assert kernel_num(ours[name]) == found - twice - nothing
    # Where only the prim ops that the other header names are registered.
    defines = set(theirs["selected_prim_ops.h"].splitlines())
    registered = {_macro(op) for op in PRIM_OPS} & defines
    ours = headers(folder / "oplist.yaml", tmp_path, "--prim-ops", "listed")
    assert kernel_num(ours[name]) == found - 28 - twice - nothing + len(registered)


def _macro(op: OperatorName) -> str:
    """The line that ExecuTorch's register_prim_ops.cpp looks for."""
    name = re.sub("_+", "_", str(op).replace("::", "_").replace(".", "_"))
    return f"#define INCLUDE_{name.upper()}"


def test_all_sources_together(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    functions = tmp_path / "functions.yaml"
    functions.write_text("- op: relu.out\n")
    arguments = [
        *("plumbing", "oplist", "--json", "--output", str(tmp_path)),
        *("--model", str(CORPUS / "add_mul" / "model.pte")),
        *("--model", str(CORPUS / "mul_add_broadcast" / "model.pte")),
        *("--ops", "add.out", "--ops", "p::f"),
        *("--ops-dict", '{"aten::mm.out": ["Int"]}'),
        *("--yaml", str(functions)),
        *("--yaml", str(CORPUS / "passthrough" / "oplist.yaml")),
    ]
    assert run(arguments) == 0
    output = tmp_path / "selected_operators.yaml"
    assert json.loads(capsys.readouterr().out) == {
        "output": str(output),
        "operators": 6,
        "kernel_keys": 10,
        "include_all_operators": False,
    }
    text = output.read_text()
    data = yaml.safe_load(text)
    assert data["et_kernel_metadata"] == {
        "aten::add.out": [
            "default",
            "v1/6;0,1|6;0,1,2|6;0,1,2|6;0,1,2",
            "v1/6;0,1|6;0,1|6;0,1|6;0,1",
            "v1/6;0|6;|6;0|6;0",
        ],
        "aten::mm.out": ["v1/3;", "v1/6;0,1|6;0,1|6;0,1|6;0,1"],
        "aten::mul.out": ["v1/6;0,1|6;0|6;0,1|6;0,1"],
        "aten::relu.out": ["default"],
        "dim_order_ops::_to_dim_order_copy.out": ["v1/4;|6;|6;"],
        "p::f": ["default"],
    }
    # Of an absolute path only the name is written; a list's own sources are kept.
    info = {name: operator["debug_info"] for name, operator in data["operators"].items()}
    assert info["aten::add.out"] == ["--ops", "model.pte"]
    assert info["aten::mm.out"] == ["--ops-dict", "model.pte"]
    assert info["aten::relu.out"] == ["functions.yaml"]
    assert not data["include_all_operators"]


def test_every_operator(tmp_path: Path) -> None:
    output = tmp_path / "ops.yaml"
    arguments = ["plumbing", "oplist", "--all", "--ops", "add.out", "--output", str(output)]
    assert run(arguments) == 0
    assert yaml.safe_load(output.read_text())["include_all_operators"] is True
    found = headers(output, tmp_path / "gen")
    assert kernel_num(found["selected_max_kernel_num.h"]) is None
    assert "return true;" in found["selected_op_variants.h"]
    macros = {_macro(op) for op in PRIM_OPS} | {"#define INCLUDE_ATEN_ADD_OUT"}
    assert set(found["selected_prim_ops.h"].splitlines()) >= macros
    assert found["selected_prim_ops.h"].count("#define") == len(macros)


def test_nothing_selected(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "ops.yaml"
    assert run(["plumbing", "oplist", "--output", str(output)]) == 0
    assert capsys.readouterr().err == f"{output}: nothing is selected\n"
    found = headers(output, tmp_path / "gen", "--prim-ops", "0")
    assert kernel_num(found["selected_max_kernel_num.h"]) == 0
    assert "return false;" in found["selected_op_variants.h"]
    assert "#define" not in found["selected_prim_ops.h"]


def test_headers_of_a_list(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lists = [tmp_path / "a.yaml", tmp_path / "b.yaml"]
    lists[0].write_text(
        "et_kernel_metadata:\n"
        "  p::f.out: [v1/29;0|6;0]\n"
        "  p::g: [v1/6;0, default]\n"
        "  aten::sym_size.int: [v1]\n"
        "operators: {'p::listed': {}}\n"
    )
    lists[1].write_text("et_kernel_metadata: {'p::f.out': [v1/29;0|6;0, v1/3;]}\n")
    out = tmp_path / "gen"
    arguments = ["plumbing", "headers", "--output-dir", str(out), "--prim-ops", "5", "--json"]
    for path in lists:
        arguments += ["--oplist", str(path)]
    assert run(arguments) == 0
    names = ("max_kernel_num", "op_variants", "prim_ops")
    paths = [out / f"selected_{name}.h" for name in names]
    assert json.loads(capsys.readouterr().out) == {"files": [str(p) for p in paths]}
    assert kernel_num(paths[0].read_text()) == 2 + 2 + 5
    assert conditions(paths[1].read_text()) == {
        "p::f.out": {
            f"scalar_type == executorch::aten::ScalarType::{d}" for d in ("Float", "Int", "UInt64")
        },
        "p::g": {"true"},
        "sym_size.int": {"true"},
    }
    defines = re.findall(r"^#define (\w+)$", paths[2].read_text(), re.MULTILINE)
    assert defines == [
        "INCLUDE_ATEN_SYM_SIZE_INT",
        "INCLUDE_P_F_OUT",
        "INCLUDE_P_G",
        "INCLUDE_P_LISTED",
    ]


def test_files_that_stay_the_same_keep_their_time(tmp_path: Path) -> None:
    oplist = tmp_path / "ops.yaml"
    write = ["plumbing", "oplist", "--ops", "add.out", "--output", str(oplist)]
    assert run(write) == 0
    headers(oplist, tmp_path / "gen")
    files = [oplist, *(tmp_path / "gen").iterdir()]
    before = [path.stat().st_mtime_ns for path in files]
    assert run(write) == 0
    headers(oplist, tmp_path / "gen")
    assert [path.stat().st_mtime_ns for path in files] == before


def test_all_problems_come_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "bad.yaml").write_text("operators: [")
    (tmp_path / "latin.yaml").write_bytes(b"\xff")
    output = tmp_path / "ops.yaml"
    arguments = [
        *("plumbing", "oplist", "--json", "--output", str(output)),
        *("--model", str(tmp_path / "none.pte")),
        *("--model", str(CORPUS / "README.md")),
        *("--ops", "a..b", "--ops-dict", '{"p::f": ["Flaot"]}'),
        *("--yaml", str(tmp_path / "none.yaml")),
        *("--yaml", str(tmp_path / "bad.yaml")),
        *("--yaml", str(tmp_path / "latin.yaml")),
    ]
    assert run(arguments) == 2
    document = json.loads(capsys.readouterr().out)
    assert [d["code"] for d in document["diagnostics"]] == [
        "unreadable-model",
        "bad-program",
        "bad-operator",
        "bad-dtype",
        "unreadable-file",
        "bad-yaml",
        "not-utf8",
    ]
    assert not output.exists()


def test_bad_models_alone_have_their_own_exit_code(tmp_path: Path) -> None:
    arguments = ["plumbing", "oplist", "--model", str(tmp_path / "none.pte"), "--output", "x"]
    assert run(arguments) == 4


def test_headers_of_files_that_are_none(tmp_path: Path) -> None:
    arguments = ["plumbing", "headers", "--output-dir", str(tmp_path), "--oplist"]
    assert run([*arguments, str(tmp_path / "none.yaml")]) == 2
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("number", ["-1", "x", "1000001", "1.5"])
def test_numbers_of_prim_ops_that_are_none(number: str, tmp_path: Path) -> None:
    oplist = str(CORPUS / "add_mul" / "oplist.yaml")
    arguments = ["plumbing", "headers", "--oplist", oplist, "--output-dir", str(tmp_path)]
    assert run([*arguments, f"--prim-ops={number}"]) == 2
