"""`orchestrator scratch`: memory that calls need, and tables of CMSIS-NN's sizes."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest

from orchestrator.cli.main import run
from tests.conftest import CORPUS
from tests.unit.cortex_m_schemas import SCHEMAS

if TYPE_CHECKING:
    from pathlib import Path

TABLE = CORPUS / "cmsis_nn_scratch.csv"
SIZES = {
    "quantized_conv2d": "scratch: weight.sizes[0] * 4 if isa == 'mve' else 0",
    "quantized_depthwise_conv2d": "scratch: 0",
    "quantized_avg_pool2d": "scratch: 300",
}
OTHERS = """
[operators]
allow_missing = ["cortex_m::quantize_per_tensor.out", "cortex_m::pad.out",
  "cortex_m::dequantize_per_tensor.out", "cortex_m::quantized_linear.out"]
"""


def write(folder: Path, *, isa: str = "dsp", sizes: dict[str, str] | None = None) -> str:
    """A product of keyword spotting in int8, with kernels that need what SIZES says."""
    folder.mkdir(exist_ok=True)
    shutil.copy(CORPUS / "kws_dscnn_int8_m4" / "model.pte", folder / "kws.pte")
    library = folder / "vendor"
    library.mkdir(exist_ok=True)
    (library / "kernels.cpp").write_text("")
    entries = [
        f"- func: {SCHEMAS[base]}\n  sources: [kernels.cpp]\n"
        f"  kernels: [{{arg_meta: null, kernel_name: vendor::{base}}}]\n"
        + (f"  scratch:\n    {size}\n" if size else "")
        for base, size in (SIZES | (sizes or {})).items()
    ]
    (library / "functions.yaml").write_text("".join(entries))
    cpu = "cortex-m55" if isa == "mve" else "cortex-m4"
    profile = folder / "kws.toml"
    profile.write_text(
        f'schema = 1\nname = "kws"\n[target]\ncpu = "{cpu}"\nisa = "{isa}"\n'
        '[[models]]\nname = "kws"\npath = "kws.pte"\n'
        '[[kernels.custom]]\nname = "vendor"\nfunctions = "vendor/functions.yaml"\n'
        f"{OTHERS}"
    )
    return str(profile)


def test_a_table_of_all_calls(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["scratch", write(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    title = "operator" + " " * 34 + "argument  program  CMSIS-NN  needed  library"
    assert lines[:5] == [
        "cortex-m4 (dsp), sizes in bytes",
        "",
        "kws, method forward",
        f"      {title}",
        "   1  cortex_m::quantized_depthwise_conv2d.out  scratch         0         0"
        "       0  vendor",
    ]
    assert len(lines) == 14
    assert lines[-1] == (
        "  11  cortex_m::quantized_avg_pool2d.out        scratch       256       256"
        "     300  vendor  (the program has too little)"
    )


def test_another_core_needs_other_sizes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["scratch", "--json", write(tmp_path, isa="mve")]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["profile"] == "kws"
    assert document["cpu"] == "cortex-m55"
    assert document["isa"] == "mve"
    reserved = [c["reserved_bytes"] for c in document["calls"]]
    wanted = [c["cmsis_nn_bytes"] for c in document["calls"]]
    needed = [c["needed_bytes"] for c in document["calls"]]
    assert reserved == [0] * 9 + [256]
    other = json.loads((CORPUS / "kws_dscnn_int8_m55" / "case.json").read_text())
    m55 = other["program"]["methods"]["forward"]["scratch"]
    assert wanted == [s["bytes"] for s in m55]
    assert needed == [0, 0, *[256, 0] * 3, 256, 300]


def test_a_product_without_scratch(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copy(CORPUS / "add_mul" / "model.pte", tmp_path / "m.pte")
    profile = tmp_path / "p.toml"
    profile.write_text(
        'schema = 1\nname = "p"\n[target]\ncpu = "cortex-m4"\n'
        '[[models]]\nname = "m"\npath = "m.pte"\n'
    )
    assert run(["scratch", str(profile)]) == 0
    out = capsys.readouterr().out
    assert out == "p: no kernel needs scratch memory\n"


def test_a_kernel_without_a_size_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    profile = write(tmp_path, sizes={"quantized_conv2d": ""})
    for command in ("scratch", "check"):
        assert run([command, profile]) == 5
        functions = tmp_path / "vendor" / "functions.yaml"
        assert capsys.readouterr().err == (
            "error[missing-scratch-size]: no scratch size is given for"
            " cortex_m::quantized_conv2d.out\n"
            f"  --> {functions}:1\n"
            f"   = found: scratch in {SCHEMAS['quantized_conv2d']}\n"
            "   hint: add `scratch` to this entry, see docs/scratch.md\n"
        )


def test_a_wrong_expression_is_an_error_of_the_profile(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    profile = write(tmp_path, sizes={"quantized_avg_pool2d": "scratch: inputs.numel"})
    assert run(["check", profile]) == 3
    err = capsys.readouterr().err
    assert err.startswith(
        "error[bad-scratch-size]: `scratch` of scratch: the operator has no argument"
        ' inputs, did you mean "input"?\n'
        f"  --> {tmp_path / 'vendor' / 'functions.yaml'}:15\n"
    )


def test_tables_that_agree(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["scratch", "--check", str(TABLE)]) == 0
    assert capsys.readouterr().out == f"{TABLE}: 600 rows agree\n"
    assert run(["scratch", "--json", "--check", str(TABLE)]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document == {"tables": [{"file": str(TABLE), "rows": 600}]}


def test_a_table_that_differs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = TABLE.read_text().splitlines()
    lines[6] += "1"
    other = tmp_path / "ours.csv"
    other.write_text("\n".join(lines))
    assert run(["scratch", "--check", str(TABLE), str(other)]) == 6
    written = capsys.readouterr()
    assert written.out == ""
    assert written.err == (
        "error[scratch-difference]: convolve_wrapper_buffer_size of MVE, A8W4 differs\n"
        f"  --> {other}:7\n"
        "   |\n"
        f" 7 | {lines[6]}\n"
        "   = found: 0 bytes, which is what Orchestrator computes\n"
        "   = expected: 1 bytes, as the table says\n"
        "   hint: a CMSIS-NN of this table needs sizes of its own: write expressions in"
        " its functions.yaml, see docs/scratch.md\n"
    )


@pytest.mark.parametrize(
    ("content", "code", "found"),
    [
        (None, "unreadable-file", "No such file or directory"),
        (b"\xff\xfe", "not-utf8", "not text in UTF-8: byte 0xff at 0"),
    ],
)
def test_a_table_that_cannot_be_read(
    content: bytes | None, code: str, found: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "t.csv"
    if content is not None:
        table.write_bytes(content)
    assert run(["scratch", "--check", str(table)]) == 2
    err = capsys.readouterr().err
    assert err.startswith(
        f"error[{code}]: {table} cannot be read\n  --> {table}\n   = found: {found}"
    )
    assert err.endswith("hint: name a table of scratch sizes (CSV)\n")


@pytest.mark.parametrize("words", [[], ["p.toml", "--check", str(TABLE)]])
def test_either_a_profile_or_tables(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["scratch", *words]) == 2
    assert capsys.readouterr().err == (
        "error[usage]: scratch needs either a profile or --check with tables\n"
        "   hint: run `orchestrator scratch --help` to see its options\n"
    )
