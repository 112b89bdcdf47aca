"""Programs exported for one Cortex-M core run on every other with the same outputs.

Exporters bake in what a core's instructions need: for MVE, sums of weights that hold
the bias of linear layers, and scratch memory of one size or another. The outputs of the
corpus are those of a program lowered for plain C, and kernels must give just these
whatever a program was lowered for and wherever it runs, to the bit.
"""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest

from orchestrator.targets.cores import CPUS
from tests.case_counts import count_case
from tests.conftest import CASES, CORPUS
from tests.product import Product
from tests.same_bits import check_same_bits
from tests.targets import EMULATED, EVERY_PAIR, RUN_ALWAYS
from tests.tools import need_emulator, need_toolchain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

LIBRARIES = ("cortex_m", "portable")


def _facts(case: str) -> Any:
    return json.loads((CORPUS / case / "case.json").read_text())


INT8 = tuple(case for case in CASES if "cortex_m" in _facts(case)["kernel_libs"])
"""Programs lowered for a Cortex-M core."""


def _targets() -> Iterator[tuple[str, str, str]]:
    """(core, ISA, toolchain): toolchains take turns, but for MVE, which has both."""
    for index, name in enumerate(EMULATED):
        cpu = CPUS[name]
        for isa in cpu.isas:
            if not EVERY_PAIR and name not in RUN_ALWAYS and isa != cpu.default_isa:
                continue
            toolchains = sorted(cpu.toolchains)
            whole = EVERY_PAIR or isa == "mve"
            for toolchain in toolchains if whole else [toolchains[index % 2]]:
                yield name, isa, toolchain


pytestmark = [pytest.mark.toolchain, pytest.mark.qemu]


@pytest.fixture(scope="module", params=_targets(), ids="-".join)
def firmware(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, str, Product]:
    """A core, a target's name, and the product of all these programs for it."""
    cpu, isa, toolchain = request.param
    need_toolchain(cpu, toolchain)
    need_emulator(cpu)
    folder = tmp_path_factory.mktemp("one-file")
    models = ""
    for case in INT8:
        shutil.copyfile(CORPUS / case / "model.pte", folder / f"{case}.pte")
        models += f'[[models]]\nname = "{case}"\npath = "{case}.pte"\n'
    profile = folder / "every-core.toml"
    profile.write_text(
        f'schema = 1\nname = "every-core"\n[target]\ncpu = "{cpu}"\nisa = "{isa}"\n'
        f'toolchain = "{toolchain}"\n'
        f"[kernels]\nlibraries = {json.dumps(LIBRARIES)}\n{models}"
    )
    product = Product(profile=profile, out=folder / "out")
    assert product.run("build") == 0
    return cpu, f"{cpu} {isa} {toolchain}", product


def test_programs_of_several_cores_are_tried() -> None:
    exported_for = {_facts(case)["target"] for case in INT8}
    assert len(exported_for) > 2, exported_for
    assert {isa for _, isa, _ in _targets()} == {"scalar", "dsp", "mve"}


@pytest.mark.parametrize("case", INT8)
def test_outputs_are_those_of_the_plain_program(
    firmware: tuple[str, str, Product],
    case: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    record_property: Callable[[str, object], None],
) -> None:
    cpu, target, product = firmware
    facts = _facts(case)
    facts["tolerance"] = {"atol": 0, "rtol": 0}
    for call in facts["runs"]:
        call["model"] = case
        for value in (*call["inputs"], *call["outputs"]):
            value["file"] = str(CORPUS / case / value["file"])
    scenario = tmp_path / "case.json"
    scenario.write_text(json.dumps(facts))
    outputs = tmp_path / "outputs"
    capsys.readouterr()
    code = product.run(
        *("run", "--json", "--scenario", str(scenario), "--output-dir", str(outputs))
    )
    said = capsys.readouterr()
    assert code == 0, said.err + said.out
    document = json.loads(said.out)
    assert len(document["calls"]) == len(facts["runs"]) > 0
    for call, expected in zip(document["calls"], facts["runs"], strict=True):
        assert len(call["outputs"]) == len(expected["outputs"]) > 0
        assert all(output["comparison"]["ok"] for output in call["outputs"])
    found = {path.name: path.read_bytes() for path in outputs.iterdir()}
    check_same_bits(case, found, target)
    count_case(record_property, case, cpu)
