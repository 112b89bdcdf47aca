"""examples/cmsis_nn: kernels that call a CMSIS-NN of the user's.

Nothing of CMSIS-NN is here: what needs it is skipped unless the environment variable
CMSIS_NN names a checkout.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from orchestrator.cli.main import run
from orchestrator.shell.sources import library_file
from tests.conftest import CORPUS
from tests.integration.workspace import ROOT
from tests.tools import need_emulator, need_tool, need_toolchain

EXAMPLE = ROOT / "examples" / "cmsis_nn"
CHECKOUT = "../../../CMSIS-NN"
"""Where the templates look for CMSIS-NN."""
TEMPLATES = ("m4", "m55")
ENTRIES: list[dict[str, Any]] = yaml.safe_load((EXAMPLE / "functions.yaml").read_text())
EXPORTED = [
    *(("kws_dscnn_int8_m4", "cortex-m4"), ("kws_dscnn_int8_m55", "cortex-m55")),
    *(("kws_dscnn_int8_m0plus", "cortex-m0plus"), ("ic_resnet8_int8_m55", "cortex-m55")),
    *(("vww_mobilenetv1_int8_m4", "cortex-m4"),),
    *(("vww_mobilenetv1_int8_m55", "cortex-m55"),),
    *(("cortex_m_mixed_int8_m55", "cortex-m55"),),
]
"""Cases with scratch memory, and the cores they were exported for."""
RUNS = [
    *((case, "model.pte", cpu) for case, cpu in EXPORTED if cpu != "cortex-m0plus"),
    # Linear layers, with bias and with sums, on cores that want the other one.
    *(
        ("ad_autoencoder_int8_m55", program, cpu)
        for program in ("model.pte", "plain_c.pte")
        for cpu in ("cortex-m4", "cortex-m55")
    ),
]


def _copy(folder: Path) -> Path:
    """The example in a checkout of its own."""
    home = folder / "project" / "examples" / "cmsis_nn"
    shutil.copytree(EXAMPLE, home)
    return home


def _profile(folder: Path, program: Path, cpu: str, *, checkout: Path | None = None) -> Path:
    """A product of one program; without a checkout it can be looked at only."""
    home = _copy(folder)
    shutil.copyfile(program, home / "model.pte")
    text = (home / "kws-m4.toml").read_text()
    text = text.replace('"cortex-m4"', f'"{cpu}"')
    text = re.sub(r'(?m)^path = ".*"$', 'path = "model.pte"', text)
    if checkout is None:
        text = re.sub(r"(?ms)^include = .*", "", text)
    else:
        text = text.replace(CHECKOUT, Path(os.path.relpath(checkout, home)).as_posix())
    profile = home / "product.toml"
    profile.write_text(text)
    return profile


def _checkout() -> Path:
    """The user's CMSIS-NN; else skip."""
    path = os.environ.get("CMSIS_NN")
    if not path:
        pytest.skip("needs CMSIS-NN: set CMSIS_NN to the folder of a checkout")
    return Path(path).resolve()


def test_schemas_are_those_of_our_kernels() -> None:
    ours = yaml.safe_load(library_file("cortex_m").read_text())
    assert ENTRIES
    assert {e["func"] for e in ENTRIES} <= {e["func"] for e in ours}


def test_every_kernel_is_in_the_source_that_its_entry_names() -> None:
    for entry in ENTRIES:
        (kernel,) = entry["kernels"]
        (source,) = entry["sources"]
        namespace, _, name = kernel["kernel_name"].rpartition("::")
        text = (EXAMPLE / source).read_text()
        assert f"namespace {namespace} {{" in text
        assert f"\nError {name}(const Args& args) {{\n" in text
        assert f"\n// {entry['func'].partition('(')[0]}" in text
    assert {s for e in ENTRIES for s in e["sources"]} == {
        path.name for path in EXAMPLE.glob("*.cpp")
    }


@pytest.mark.toolchain
def test_it_compiles() -> None:
    """Against a stand-in for CMSIS-NN, which takes any arguments."""
    folders = ("tests/data/cmsis_nn", "runtime/include", "runtime/src", "kernels")
    done = subprocess.run(
        [
            *(need_tool("g++"), "-fsyntax-only", "-std=c++17", "-Werror"),
            *("-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Wundef"),
            *(f"-I{ROOT / folder}" for folder in folders),
            *sorted(EXAMPLE.glob("*.cpp")),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(("case", "cpu"), EXPORTED)
def test_scratch_is_what_the_exporter_reserved(
    case: str, cpu: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    profile = _profile(tmp_path, CORPUS / case / "model.pte", cpu)
    assert run(["scratch", "--json", str(profile)]) == 0
    calls = json.loads(capsys.readouterr().out)["calls"]
    facts = json.loads((CORPUS / case / "case.json").read_text())
    reserved = facts["program"]["methods"]["forward"]["scratch"]
    assert {call["library"] for call in calls} == {"cmsis_nn"}
    assert [call["needed_bytes"] for call in calls] == [s["bytes"] for s in reserved]


def test_scratch_follows_the_core(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    needed = {}
    for cpu in ("cortex-m3", "cortex-m4", "cortex-m55"):
        program = CORPUS / "kws_dscnn_int8_m55" / "model.pte"
        assert run(["scratch", "--json", str(_profile(tmp_path / cpu, program, cpu))]) == 0
        calls = json.loads(capsys.readouterr().out)["calls"]
        needed[cpu] = [call["needed_bytes"] for call in calls]
        assert needed[cpu] == [call["cmsis_nn_bytes"] for call in calls]
    assert len({tuple(sizes) for sizes in needed.values()}) == len(needed)


@pytest.mark.parametrize("template", TEMPLATES)
def test_without_a_checkout_the_error_names_the_path(
    template: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home = _copy(tmp_path)
    profile = home / f"kws-{template}.toml"
    case = f"kws_dscnn_int8_{template}"
    text = profile.read_text().replace("../../tests/data/corpus", CORPUS.name)
    profile.write_text(text)
    (home / CORPUS.name / case).mkdir(parents=True)
    shutil.copyfile(CORPUS / case / "model.pte", home / CORPUS.name / case / "model.pte")
    assert run(["check", str(profile)]) == 3
    file = f"{CHECKOUT}/Source/NNSupportFunctions/arm_q7_to_q15_with_offset.c"
    line = text[: text.index(file)].count("\n") + 1
    assert capsys.readouterr().err == (
        f'error[missing-file]: there is no source "{file}"\n'
        f"  --> {profile}:{line}\n"
        "   |\n"
        f'{line} |   "{file}",\n'
        f"   = found: nothing to read at {home}/{file}\n"
        "   = expected: a source of the kernel library\n"
        "   hint: check the path: it is relative to the file that names it\n"
    )


@pytest.mark.toolchain
@pytest.mark.qemu
@pytest.mark.slow
@pytest.mark.parametrize(("case", "program", "cpu"), RUNS)
def test_outputs_are_those_of_the_corpus(
    case: str, program: str, cpu: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    checkout = _checkout()
    need_toolchain(cpu, "gnu")
    need_emulator(cpu)
    profile = str(_profile(tmp_path, CORPUS / case / program, cpu, checkout=checkout))
    out = ("--out", str(tmp_path / "out"))
    assert run(["build", profile, *out]) == 0, capsys.readouterr().err
    facts = json.loads((CORPUS / case / "case.json").read_text())
    facts["tolerance"] = {"atol": 0, "rtol": 0}
    for call in facts["runs"]:
        for value in (*call["inputs"], *call["outputs"]):
            value["file"] = str(CORPUS / case / value["file"])
    scenario = tmp_path / "case.json"
    scenario.write_text(json.dumps(facts))
    code = run(["run", profile, *out, "--scenario", str(scenario)])
    assert code == 0, capsys.readouterr()
