"""ExecuTorch's own tools take our files, and give what they give for their own.

Runs where $EXECUTORCH_PYTHON names an interpreter with the package `executorch`
(`nox -s interop` makes one); everywhere else it is left out, also where a missing tool
is a failure: the package brings PyTorch, which nothing else here needs.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from orchestrator.cli.main import run
from tests.conftest import CASES, CORPUS
from tests.unit.emit.test_executorch_headers import conditions, frame

if TYPE_CHECKING:
    from collections.abc import Callable

PYTHON = os.environ.get("EXECUTORCH_PYTHON", "")
TOOLS = Path(__file__).with_name("executorch_tools.py")

pytestmark = [
    pytest.mark.executorch,
    pytest.mark.skipif(not PYTHON, reason="EXECUTORCH_PYTHON is not set; see `nox -s interop`"),
]


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Callable[[list[Any]], list[Any]]:
    """Runs steps in one process: importing ExecuTorch's tools takes seconds."""
    folder = tmp_path_factory.mktemp("tools")

    def call(steps: list[Any]) -> list[Any]:
        (folder / "steps.json").write_text(json.dumps(steps))
        done = subprocess.run(
            [PYTHON, str(TOOLS), str(folder)],
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )
        assert done.returncode == 0, done.stderr[-4000:]
        answers = json.loads((folder / "answers.json").read_text())
        assert len(answers) == len(steps)
        return list(answers)

    return call


def ours(output: Path, *arguments: str) -> Path:
    assert run(["plumbing", "oplist", "--output", str(output), *arguments]) == 0
    return output


def data_of(path: Path) -> dict[str, Any]:
    """What a list says, without who asked for it."""
    data: dict[str, Any] = yaml.safe_load(path.read_text())
    for operator in data["operators"].values():
        operator.pop("debug_info", None)
    return data


GENERATED = (
    *("add_mul", "op_zoo_unary", "pt2e_qdq_convnet", "quantize_dequantize"),
    *("scan_loop", "transformer_block"),
)
"""Cases for which kernels are registered; it takes ExecuTorch's tool half a second."""

LIBRARIES = ("kernels/portable/functions.yaml", "kernels/quantized/quantized.yaml")


def test_our_lists_and_the_kernels_registered_for_them_are_theirs(
    tools: Callable[[list[Any]], list[Any]], tmp_path: Path
) -> None:
    steps: list[dict[str, Any]] = []
    for case in CASES:
        model = str(CORPUS / case / "model.pte")
        own = ours(tmp_path / f"{case}.yaml", "--model", model)
        theirs = tmp_path / f"{case}.theirs.yaml"
        args = [f"--output_path={theirs}", f"--model_file_path={model}"]
        steps.append({"tool": "gen_oplist", "args": args})
    for case in GENERATED:
        own, theirs = tmp_path / f"{case}.yaml", tmp_path / f"{case}.theirs.yaml"
        steps += [
            {"tool": "registered", "list": str(path), "functions": library}
            for library in LIBRARIES
            for path in (own, theirs)
        ]
    answers = tools(steps)
    seen: set[tuple[str, str]] = set()
    for case in CASES:
        theirs = tmp_path / f"{case}.theirs.yaml"
        assert data_of(tmp_path / f"{case}.yaml") == data_of(theirs), case
    for index, case in enumerate(GENERATED):
        start = len(CASES) + 4 * index
        found = answers[start : start + 4]
        assert found[0::2] == found[1::2], case
        seen.update((name, key) for kernels in found for name, key in kernels)
    # Of each library there is something, so that something was compared.
    names = {name for name, key in seen if key == ""}
    assert {"aten::add.out", "quantized_decomposed::quantize_per_tensor.out"} <= names


def test_a_specialised_kernel_is_found_by_the_keys_we_write(
    tools: Callable[[list[Any]], list[Any]], tmp_path: Path
) -> None:
    library = tmp_path / "functions.yaml"
    library.write_text(
        "- func: aten::add.out(Tensor self, Tensor other, *, Scalar alpha=1,"
        " Tensor(a!) out) -> Tensor(a!)\n"
        "  type_alias:\n"
        "    T0: [Float]\n"
        "  dim_order_alias:\n"
        "    D0: [0, 1]\n"
        "  kernels:\n"
        "    - arg_meta:\n"
        "        self: [T0, D0]\n"
        "        other: [T0, D0]\n"
        "        out: [T0, D0]\n"
        "      kernel_name: my::add_2d\n"
    )
    key = "v1/6;0,1|6;0,1|6;0,1"
    text = json.dumps({"aten::add.out": [key]})
    own = ours(tmp_path / "ours.yaml", "--ops-dict", text)
    step = {"tool": "registered", "list": str(own), "functions": str(library)}
    assert tools([step]) == [[["aten::add.out", key]]]


SOURCES: dict[str, tuple[list[str], list[str]]] = {
    "names": (["--ops", "aten::add.out,p::f.out"], ["--root_ops=aten::add.out,p::f.out"]),
    "names between blanks": (
        ["--ops", "aten::add.out p::f.out"],
        ["--root_ops=aten::add.out p::f.out"],
    ),
    "dictionary": (
        ["--ops-dict", '{"aten::add.out": ["Float", "Int"], "p::f": [], "p::g": ["v1/6;0,1|3;0"]}'],
        ['--ops_dict={"aten::add.out": ["Float", "Int"], "p::f": [], "p::g": ["v1/6;0,1|3;0"]}'],
    ),
    "everything": (["--all"], ["--include-all-operators"]),
    "nothing": ([], []),
    "names and model": (
        ["--ops", "aten::add.out", "--model", str(CORPUS / "mlp" / "model.pte")],
        ["--root_ops=aten::add.out", f"--model_file_path={CORPUS / 'mlp' / 'model.pte'}"],
    ),
}


def test_every_source_gives_the_same_list(
    tools: Callable[[list[Any]], list[Any]], tmp_path: Path
) -> None:
    steps: list[dict[str, Any]] = [
        {"tool": "gen_oplist", "args": [f"--output_path={tmp_path / f'{i}.t.yaml'}", *t]}
        for i, (_, t) in enumerate(SOURCES.values())
    ]
    for library in LIBRARIES:
        output = tmp_path / f"{Path(library).stem}.t.yaml"
        args = [f"--output_path={output}"]
        steps.append({"tool": "library", "name": library})
        steps.append({"tool": "gen_oplist", "args": args, "library": library})
    answers = tools(steps)
    for index, (name, (arguments, _)) in enumerate(SOURCES.items()):
        own = ours(tmp_path / f"{index}.yaml", *arguments)
        assert data_of(own) == data_of(tmp_path / f"{index}.t.yaml"), name
    for index, library in ((len(SOURCES), "functions"), (len(SOURCES) + 2, "quantized")):
        own = ours(tmp_path / f"{library}.yaml", "--yaml", answers[index])
        found = data_of(own)
        assert found == data_of(tmp_path / f"{library}.t.yaml")
        assert len(found["operators"]) > 15


def test_merging_lists_gives_the_same_list(
    tools: Callable[[list[Any]], list[Any]], tmp_path: Path
) -> None:
    lists = [CORPUS / case / "oplist.yaml" for case in CASES]
    lists.append(ours(tmp_path / "named.yaml", "--ops", "aten::add.out p::f"))
    listed = tmp_path / "lists.txt"
    listed.write_text("\n".join(map(str, lists)))
    (tmp_path / "merged").mkdir()
    args = [f"--output-dir={tmp_path / 'merged'}", f"--model-file-list-path=@{listed}"]
    tools([{"tool": "gen_all_oplist", "args": args}])
    theirs = tmp_path / "merged" / "selected_operators.yaml"
    own = ours(tmp_path / "own.yaml", *(f"--yaml={path}" for path in lists))
    assert data_of(own) == data_of(theirs)
    # And what they merged reads as what it is.
    again = ours(tmp_path / "again.yaml", "--yaml", str(theirs))
    assert data_of(again) == data_of(own)


def test_their_header_tools_take_our_lists(
    tools: Callable[[list[Any]], list[Any]], tmp_path: Path
) -> None:
    steps = []
    for case in CASES:
        own = ours(tmp_path / f"{case}.yaml", f"--model={CORPUS / case / 'model.pte'}")
        out = tmp_path / case
        out.mkdir()
        steps += [
            {
                "tool": "gen_selected_op_variants",
                "args": [f"--yaml-file-path={own}", f"--output-dir={out}"],
            },
            {
                "tool": "gen_selected_prim_ops",
                "args": [f"--op-selection-yaml-path={own}", f"--output-dir={out}"],
            },
            {
                "tool": "gen_max_kernel_num",
                "args": [
                    f"--oplist-yaml={own}",
                    f"--output-path={out / 'selected_max_kernel_num.h'}",
                ],
            },
        ]
    tools(steps)
    for case in CASES:
        out = tmp_path / case
        for name in ("op_variants", "prim_ops", "max_kernel_num"):
            file = f"selected_{name}.h"
            assert (out / file).read_text() == (CORPUS / case / file).read_text(), case


def test_a_dtype_whose_name_they_misspell(
    tools: Callable[[list[Any]], list[Any]], tmp_path: Path
) -> None:
    keys = json.dumps({"p::f.out": ["v1/29;0|6;0"]})
    own = ours(tmp_path / "ours.yaml", "--ops-dict", keys)
    (tmp_path / "theirs").mkdir()
    args = [f"--yaml-file-path={own}", f"--output-dir={tmp_path / 'theirs'}"]
    tools([{"tool": "gen_selected_op_variants", "args": args}])
    name = "selected_op_variants.h"
    theirs = (tmp_path / "theirs" / name).read_text()
    assert re.search(r"ScalarType::Uint64\b", theirs)
    out = tmp_path / "headers"
    assert run(["plumbing", "headers", "--oplist", str(own), "--output-dir", str(out)]) == 0
    text = (out / name).read_text()
    assert re.search(r"ScalarType::UInt64\b", text)
    assert conditions(text) == conditions(theirs)
    assert frame(text) == frame(theirs)


def test_the_interpreter_is_another_one() -> None:
    assert Path(PYTHON).absolute() != Path(sys.executable).absolute()
