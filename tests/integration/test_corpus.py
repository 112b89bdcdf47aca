"""Every program of the corpus whose kernels exist, built and run on the host.

Which programs these are follows from the kernel libraries, so that a new kernel brings
its programs here by itself. They share one product; those that no other test builds
are products of their own as well, with nothing but their own dtypes.
"""

from __future__ import annotations

import io
import json
import re
import shutil
from contextlib import redirect_stdout
from typing import TYPE_CHECKING, Any, Final

import pytest
import yaml

from orchestrator.cli.main import run
from orchestrator.core.dtype import ScalarType, parse_dtypes
from orchestrator.shell.sources import library_file, library_names
from tests.case_counts import count_case
from tests.conftest import CASES, CORPUS
from tests.product import Product
from tests.qemu.test_cases import CASES as BUILT_ALONE
from tests.same_bits import check_same_bits
from tests.tools import need_toolchain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

KNOWN = {
    *("ad_autoencoder_fp32", "add_mul", "bfloat16_mlp", "channels_last"),
    *("dynamic_batch", "ic_resnet8_fp32", "kws_dscnn_fp32", "linear_softmax"),
    *("mlp", "small_cnn", "two_arenas", "vww_mobilenetv1_fp32"),
    *("pt2e_qdq_convnet", "quantize_dequantize"),
    *("cond_branch", "counter", "half_mlp", "item_scalar", "mul_add_broadcast"),
    *("multi_method", "passthrough", "remainder_signs"),
    *("double_net", "embedding_argmax"),
    *("cond_computed", "dynamic_sequence", "integer_types", "kv_cache"),
    *("list_arguments", "lstm_unrolled", "map_loop", "optional_arguments"),
    *("scalar_sizes", "scan_loop", "views"),
    *("bool_logic", "transformer_block"),
    *("io_not_planned", "external_constants"),
    *("ad_autoencoder_int8_m55", "cortex_m_mixed_int8_m55", "ic_resnet8_int8_m55"),
    *("kws_dscnn_int8_m0plus", "kws_dscnn_int8_m4", "kws_dscnn_int8_m55"),
    *("vww_mobilenetv1_int8_m4", "vww_mobilenetv1_int8_m55"),
}
"""Programs that are served since this test was written; more join by themselves."""

DATA = {"external_constants": "_default_external_constant.ptd"}
"""Cases that leave constants outside of the program: where these are."""

LEFT_OUT = {"xnnpack_partial": "has a delegate"}
"""Why the others of the corpus run nowhere; a test holds that there are no more."""


def _facts(case: str) -> Any:
    return json.loads((CORPUS / case / "case.json").read_text())


def _entries() -> dict[str, list[Any]]:
    """Entries of all libraries by operator."""
    found: dict[str, list[Any]] = {}
    for library in library_names():
        for entry in yaml.safe_load(library_file(library).read_text()):
            name = entry.get("op") or entry["func"].partition("(")[0]
            name = name if "::" in name else f"aten::{name}"
            found.setdefault(name, []).append(entry)
    return found


ENTRIES = _entries()


def _closure(operator: str) -> set[str]:
    """Dtypes that kernels of an operator need besides those selected."""
    names = [n for entry in ENTRIES[operator] for n in entry.get("closure", ())]
    return {dtype.name for dtype in parse_dtypes(names)}


def _served() -> tuple[str, ...]:
    """Cases all of whose operators some library has."""
    found = []
    for case in CASES:
        facts = _facts(case)
        methods = facts["program"]["methods"].values()
        needed = {name for method in methods for name in method["operators"]}
        if needed <= ENTRIES.keys() and not any(method["delegates"] for method in methods):
            found.append(case)
    return tuple(found)


def _reason(case: str) -> str:
    """Why a case does not run; "" if it does."""
    facts = _facts(case)
    methods = facts["program"]["methods"].values()
    if any(method["delegates"] for method in methods):
        return "has a delegate"
    missing = {n for m in methods for n in m["operators"]} - ENTRIES.keys()
    return "kernels are missing" if missing else ""


SERVED = _served()
RUNNABLE = SERVED
INT8 = tuple(case for case in RUNNABLE if "cortex_m" in _facts(case)["tags"])
"""Those whose models are int8 throughout."""
ALONE = tuple(case for case in RUNNABLE if case not in BUILT_ALONE)


def corpus_product(
    folder: Path,
    name: str,
    cases: Iterable[str],
    *,
    load: str = "pte",
    cpu: str = "host",
    toolchain: str = "zig",
    extra: str = "",
    file: str = "model.pte",
) -> Product:
    """A profile in which every case is a model of its own name; `file`: of a case."""
    for case in cases:
        shutil.copyfile(CORPUS / case / file, folder / f"{case}.pte")
        if case in DATA:
            shutil.copyfile(CORPUS / case / DATA[case], folder / f"{case}.ptd")
    profile = folder / f"{name}.toml"
    profile.write_text(
        f'schema = 1\nname = "{name}"\n'
        f'[target]\ncpu = "{cpu}"\ntoolchain = "{toolchain}"\n{extra}'
        f"[kernels]\nlibraries = {json.dumps(library_names()[::-1])}\n"
        + "".join(
            f'[[models]]\nname = "{c}"\npath = "{c}.pte"\nload = "{load}"\n'
            + (f'data = ["{c}.ptd"]\n' if c in DATA else "")
            for c in cases
        )
    )
    return Product(profile=profile, out=folder / "out")


@pytest.fixture(scope="module")
def together(tmp_path_factory: pytest.TempPathFactory) -> Product:
    """One product with all of them."""
    need_toolchain("host", "zig")
    product = corpus_product(tmp_path_factory.mktemp("corpus"), "corpus", RUNNABLE)
    assert product.run("build") == 0
    return product


def calls_of(case: str) -> list[Any]:
    """Calls of a case in a scenario of a product whose models are cases."""
    facts = _facts(case)
    for call in facts["runs"]:
        call["model"] = case
        if "differs-from-eager" in facts["tags"]:
            # Kernels compute what PyTorch does.
            call["outputs"] = [
                own if eager == "same as output" else eager
                for own, eager in zip(call["outputs"], call["eager"], strict=True)
            ]
        for value in (*call["inputs"], *call["outputs"]):
            if "file" in value:
                value["file"] = str(CORPUS / case / value["file"])
    calls: list[Any] = facts["runs"]
    return calls


def outputs_of(
    product: Product, case: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> dict[str, bytes]:
    """Bytes of all outputs of a case; each call is compared with what is expected."""
    calls = calls_of(case)
    scenario = folder / f"{case}.json"
    scenario.write_text(json.dumps({**_facts(case), "runs": calls}))
    outputs = folder / case
    capsys.readouterr()
    code = product.run(
        *("run", "--json", "--scenario", str(scenario), "--output-dir", str(outputs))
    )
    said = capsys.readouterr()
    assert code == 0, said.err + said.out
    document = json.loads(said.out)
    assert len(document["calls"]) == len(calls) > 0
    for call, expected in zip(document["calls"], calls, strict=True):
        assert len(call["outputs"]) == len(expected["outputs"])
        assert all(output["comparison"]["ok"] for output in call["outputs"])
    return {path.name: path.read_bytes() for path in outputs.iterdir()}


def outputs_together(
    product: Product,
    cases: Iterable[str],
    folder: Path,
    *,
    times: int = 1,
    instructions: dict[str, int] | None = None,
) -> dict[str, dict[str, bytes]]:
    """What `outputs_of` gives for each of these cases, from few runs of the firmware.

    Args:
        product: Its models are cases.
        cases: Called one after the other, those of one tolerance in one run.
        folder: For scenarios and outputs.
        times: All calls of a case are made that often, one after the other. Once a
            model with state was called, its outputs are others than those of the case:
            more than once, outputs are not compared.
        instructions: Gets those of all calls of a case, unless it is None.

    Returns:
        Contents by file name, by case. Cases of a run that failed are left out, so that
        `outputs_of` says which one it was.
    """
    runs: dict[str, list[str]] = {}
    for case in cases:
        runs.setdefault(json.dumps(_facts(case)["tolerance"]), []).append(case)
    found: dict[str, dict[str, bytes]] = {}
    for number, (tolerance, those) in enumerate(runs.items()):
        calls = [
            (case, f"run{index}.".removeprefix("run0."), call)
            for case in those
            for index, call in enumerate(calls_of(case) * times)
        ]
        document = {"tolerance": json.loads(tolerance), "runs": [call for *_, call in calls]}
        scenario = folder / f"{number}.json"
        scenario.write_text(json.dumps(document))
        outputs = folder / str(number)
        arguments = ["--scenario", str(scenario), "--output-dir", str(outputs)]
        if instructions is not None:
            arguments += ["--json", "--profile"]
        printed = io.StringIO()
        with redirect_stdout(printed):
            failed = product.run("run", *arguments) != 0
        if failed and times == 1:
            continue
        if instructions is not None:
            for row in json.loads(printed.getvalue())["profile"]["instructions"]:
                total = instructions.get(row["model"], 0) + row["total"]
                instructions[row["model"]] = total
        for path in outputs.iterdir():
            prefix, name = _CALL.fullmatch(path.name).groups()  # type: ignore[union-attr]
            case, own, _ = calls[int(prefix or 0)]
            found.setdefault(case, {})[own + name] = path.read_bytes()
    return found


_CALL: Final = re.compile(r"(?:run(\d+)\.)?(.+)")
"""Name of an output: number of its call, but for the first one, and the rest."""


def test_programs_that_run_nowhere_are_known() -> None:
    reasons = {case: _reason(case) for case in CASES}
    assert {case: why for case, why in reasons.items() if why} == LEFT_OUT


def test_no_program_is_lost() -> None:
    assert set(RUNNABLE) >= KNOWN
    assert KNOWN - set(BUILT_ALONE) <= set(ALONE)


@pytest.mark.parametrize("case", DATA)
def test_what_lies_outside_must_be_named(
    case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    product = corpus_product(tmp_path, "p", [case])
    text = product.profile.read_text()
    product.profile.write_text(text.replace(f'data = ["{case}.ptd"]\n', ""))
    assert run(["check", str(product.profile), "--json"]) == 4
    problems = json.loads(capsys.readouterr().out)["diagnostics"]
    assert {problem["code"] for problem in problems} == {"external-data"}


@pytest.mark.toolchain
@pytest.mark.parametrize("case", RUNNABLE)
def test_program_runs_among_all_others(
    together: Product,
    case: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    record_property: Callable[[str, object], None],
) -> None:
    outputs = outputs_of(together, case, tmp_path, capsys)
    check_same_bits(case, outputs, "host zig")
    count_case(record_property, case, "host")


@pytest.mark.toolchain
@pytest.mark.parametrize("case", ALONE)
def test_program_runs_alone_with_its_own_dtypes(
    together: Product, case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What other programs bring along changes no bit of the outputs."""
    (tmp_path / "together").mkdir()
    product = corpus_product(tmp_path, "alone", [case])
    assert product.run("build") == 0
    assert outputs_of(product, case, tmp_path, capsys) == outputs_of(
        together, case, tmp_path / "together", capsys
    )
    # The number of the dtype is what stands before the dim order in a kernel key.
    keys = yaml.safe_load((CORPUS / case / "oplist.yaml").read_text())
    resolution = json.loads((product.out / "resolution.json").read_text())
    linked = set()
    for operator in resolution["operators"]:
        called = keys["et_kernel_metadata"][operator["operator"]]
        dtypes = {
            ScalarType(int(number)).name
            for key in called
            for number in re.findall(r"[/|](\d+);", key)
        }
        for kernel in operator["kernels"]:
            assert set(kernel["dtypes"]) <= dtypes | _closure(operator["operator"])
        linked |= {kernel["function"] for kernel in operator["kernels"]}
    assert linked == {entry["function"] for entry in resolution["table"]}
