"""The order in which a profile names things, and hash seeds, do not show in the bytes.

What is generated per model stands in the order of the profile: people read the API in
the order they wrote, and models lie in flash in that order. Everything else does not
know it.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests.conftest import CORPUS
from tests.integration.workspace import ROOT

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

MODELS = ("add_mul", "two_arenas", "bfloat16_mlp")
LISTS = ("one.yaml", "two.yaml", "three.yaml")
LIBRARIES = ("zeta", "alpha", "mid")
INCLUDE = ("aten::tanh.out", "alpha::f.out", "zeta::f.out")
DTYPES = (
    '"aten::relu.out" = ["Int", "Half"]',
    '"aten::add.out" = ["Long"]',
    '"aten::mm.out" = ["v1/7;0,1|7;0,1|7;0,1|7;0,1", "v1/6;0,1|6;0,1|6;0,1|6;0,1"]',
)
PER_MODEL = {
    *("gen/firmware.ld", "gen/include/p.h", "gen/src/api.cpp", "gen/src/models.S"),
    *("memory_plan.json", "product.json"),
}

# Everything that is made before a compiler is needed.
_SCRIPT = """
import json, sys
from pathlib import Path
from orchestrator.build import BuildOptions, Project, load, open_build
from orchestrator.build.table import GENERATE
profile = Path(sys.argv[1])
project = Project(load(profile), BuildOptions(out=profile.with_suffix("")))
files = open_build(project)[GENERATE]
json.dump({file.path: file.text for file in files}, sys.stdout)
"""


def _write_inputs(folder: Path) -> None:
    for model in MODELS:
        shutil.copyfile(CORPUS / model / "model.pte", folder / f"{model}.pte")
    (folder / "one.yaml").write_text("- op: relu.out\n- op: add.out\n")
    (folder / "two.yaml").write_text("- op: addmm.out\n- op: relu.out\n")
    shutil.copyfile(CORPUS / "mlp" / "oplist.yaml", folder / "three.yaml")
    for library in LIBRARIES:
        (folder / library).mkdir()
        (folder / library / "f.cpp").write_text("// compiled by nobody here\n")
        (folder / library / "functions.yaml").write_text(
            f"- func: {library}::f.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)\n"
            f"  kernels: [{{arg_meta: null, kernel_name: {library}::f}}]\n"
            "  sources: [f.cpp]\n"
        )


def _profile(order: Sequence[int]) -> str:
    """A profile with three of everything, in this order.

    No two of its libraries have an operator in common.
    """
    libraries = "".join(
        f'[[kernels.custom]]\nname = "{LIBRARIES[i]}"\n'
        f'functions = "{LIBRARIES[i]}/functions.yaml"\n'
        for i in order
    )
    models = "".join(f'[[models]]\nname = "{MODELS[i]}"\npath = "{MODELS[i]}.pte"\n' for i in order)
    return (
        'schema = 1\nname = "p"\n'
        '[target]\ncpu = "cortex-m55"\ntoolchain = "zig"\n'
        f"{models}{libraries}"
        f"[operators]\ninclude = {json.dumps([INCLUDE[i] for i in order])}\n"
        f"include_yaml = {json.dumps([LISTS[i] for i in order])}\n"
        "[dtypes.operators]\n" + "".join(f"{DTYPES[i]}\n" for i in order)
    )


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, str]]:
    """Texts by path: seeds 0 and 1 in one order, 2 and 3 in another."""
    folder = tmp_path_factory.mktemp("orders")
    _write_inputs(folder)
    orders = ((0, 1, 2), (0, 1, 2), (1, 2, 0), (1, 2, 0))
    running = []
    for seed, order in enumerate(orders):
        profile = folder / f"{seed}.toml"
        profile.write_text(_profile(order))
        environment = {"PYTHONPATH": str(ROOT), "PYTHONHASHSEED": str(seed)}
        running.append(
            subprocess.Popen(
                [sys.executable, "-c", _SCRIPT, str(profile)],
                env={**os.environ, **environment},
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        )
    found = []
    for process in running:
        out, err = process.communicate()
        assert process.returncode == 0, err
        found.append(json.loads(out))
    return found


def test_hash_seeds_do_not_show(generated: list[dict[str, str]]) -> None:
    assert generated[0] == generated[1]
    assert generated[2] == generated[3]


def test_what_is_not_per_model_does_not_know_the_order(generated: list[dict[str, str]]) -> None:
    one, _, two, _ = generated
    assert one.keys() == two.keys()
    assert {path for path in one if one[path] != two[path]} == PER_MODEL
    free = one.keys() - PER_MODEL
    assert {
        *("selected_operators.yaml", "resolution.json"),
        *("gen/src/registered_kernels.cpp", "gen/include/selected_op_variants.h"),
        *("gen/include/selected_prim_ops.h", "gen/include/selected_max_kernel_num.h"),
        *(f"gen/selected/portable/orch_selected/op_{n}.h" for n in ("add", "mm", "tanh")),
        *("gen/selected/alpha/orch_selected/f.h", "gen/selected/zeta/orch_selected/f.h"),
    } <= free


@pytest.mark.parametrize("path", ["gen/firmware.ld", "gen/include/p.h", "gen/src/models.S"])
def test_texts_per_model_have_the_same_lines(generated: list[dict[str, str]], path: str) -> None:
    one, _, two, _ = generated
    assert sorted(one[path].splitlines()) == sorted(two[path].splitlines())


def test_the_source_of_the_api_differs_in_the_order_of_methods(
    generated: list[dict[str, str]],
) -> None:
    def lines(found: dict[str, str]) -> list[str]:
        source, (table,) = (
            found["gen/src/api.cpp"],
            re.findall(r"kMethodTable\[\d\] = \{(.*)\};", found["gen/src/api.cpp"]),
        )
        assert len(table.split(", ")) > 1
        return sorted(source.replace(table, "").splitlines()) + sorted(table.split(", "))

    one, _, two, _ = generated
    assert one["gen/src/api.cpp"] != two["gen/src/api.cpp"]
    assert lines(one) == lines(two)


def test_json_has_the_same_facts_of_each_model(generated: list[dict[str, str]]) -> None:
    def plan(found: dict[str, str]) -> Any:
        document = json.loads(found["memory_plan.json"])
        document["models"].sort(key=lambda model: model["model"])
        document["placements"].sort(key=str)
        return document

    def product(found: dict[str, str]) -> Any:
        document = json.loads(found["product.json"])
        indices = [method.pop("index") for method in document["methods"]]
        assert indices == list(range(len(indices)))
        document["methods"].sort(key=lambda m: (m["model"], m["method"]))
        return document

    one, _, two, _ = generated
    assert plan(one) == plan(two)
    assert product(one) == product(two)
