"""Selection sources besides models, from the profile to what is linked."""

from __future__ import annotations

import json
import re
import shutil
from typing import TYPE_CHECKING

import pytest

from orchestrator.build import lockfile
from orchestrator.cli.fastpath import unchanged_build
from orchestrator.cli.main import run
from tests.conftest import CORPUS
from tests.integration.workspace import Workspace, write_product
from tests.tools import need_toolchain

if TYPE_CHECKING:
    from pathlib import Path

TABLE = "gen/src/registered_kernels.cpp"
MAX_KERNELS = "gen/include/selected_max_kernel_num.h"
LIBRARY = "- op: tanh.out\n  kernels:\n  - arg_meta: null\n    kernel_name: x::y\n"
LIST = (
    "include_all_operators: false\n"
    "operators:\n  aten::relu.out: {}\n"
    "et_kernel_metadata:\n  aten::relu.out:\n  - v1/6;\n"
)


@pytest.fixture
def p(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Workspace:
    """A profile for the host with one model and two operator lists."""
    write_product(
        tmp_path, case="add_mul", extra='[operators]\ninclude_yaml = [\n"lib.yaml",\n"list.yaml"]\n'
    )
    (tmp_path / "lib.yaml").write_text(LIBRARY)
    (tmp_path / "list.yaml").write_text(LIST)
    return Workspace(folder=tmp_path, capsys=capsys)


def _table(outputs: dict[str, bytes]) -> list[str]:
    return re.findall(r'\{"(\w+::[\w.]+)", ', outputs[TABLE].decode())


def _defined(outputs: dict[str, bytes]) -> list[bytes]:
    return re.findall(rb"^#define \w+ (\d+)$", outputs[MAX_KERNELS], re.MULTILINE)


@pytest.mark.toolchain
def test_kernels_of_operator_lists_are_linked(p: Workspace) -> None:
    need_toolchain("host", "zig")
    p.build()
    outputs = p.outputs()
    models = ["aten::add.out", "aten::mm.out"]
    assert _table(outputs) == [*models, "aten::relu.out", "aten::tanh.out"]
    symbols = {s["name"] for s in json.loads(outputs["report.json"])["symbols"]}
    assert {"orch::portable::relu_out", "orch::portable::tanh_out"} <= symbols
    selected = outputs["selected_operators.yaml"].decode()
    assert "  aten::relu.out:\n  - v1/6;\n" in selected
    assert "  aten::tanh.out:\n  - default\n" in selected
    lock = lockfile.parse_lock(p.lock.read_text(), file="lock")
    assert {"file lib.yaml", "file list.yaml"} <= dict(lock.profile).keys()

    # A list is an input like any other: of the stamp, the stages and the lock.
    arguments = [str(p.profile), "--out", str(p.out)]
    assert unchanged_build(arguments)
    p.edit("lib.yaml", "# a comment\n")
    assert not unchanged_build(arguments)
    assert p.run("build", "--frozen").code == 8
    stages = p.build().stages
    assert stages["aggregate"] == "file lib.yaml changed"
    # Its operators are the same, so nothing is compiled again.
    (p.folder / "lib.yaml").write_text("[]\n")
    assert "kernels/portable/op_relu.cpp" not in str(p.build().compiled)
    assert _table(p.outputs()) == [*models, "aten::relu.out"]


@pytest.mark.toolchain
def test_a_runtime_without_kernels_is_built(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    need_toolchain("cortex-m4", "zig")
    w = Workspace(folder=tmp_path, capsys=capsys)
    w.profile.write_text(
        'schema = 1\nname = "product"\ntarget = {cpu = "cortex-m4"}\n[operators]\ninclude = []\n'
    )
    w.build()
    outputs = w.outputs()
    assert _table(outputs) == []
    assert b"KernelTable kRegisteredKernels{};" in outputs[TABLE]
    report = json.loads(outputs["report.json"])
    assert not [c for c in report["contributors"] if c["kind"] == "kernel"]
    assert outputs["firmware.elf"].startswith(b"\x7fELF")
    assert outputs["libproduct.a"].startswith(b"!<arch>")


def test_a_list_without_a_kernel_points_to_the_profile(p: Workspace) -> None:
    (p.folder / "lib.yaml").write_text("- op: my_ops::fancy.out\n")
    done = p.run("check", "--json")
    assert done.code == 5
    (problem,) = json.loads(done.out)["diagnostics"]
    assert problem["code"] == "no-kernel"
    assert problem["message"] == "no kernel for my_ops::fancy.out"
    assert problem["where"]["text"] == "include_yaml = ["


def test_problems_of_all_lists_come_at_once_with_both_places(p: Workspace) -> None:
    (p.folder / "lib.yaml").write_text("- op: aten:add\n")
    (p.folder / "list.yaml").write_bytes(b"- op: a\n\xff")
    done = p.run("check", "--json")
    assert done.code == 3
    first, second = json.loads(done.out)["diagnostics"]
    assert (first["code"], first["where"]["line"]) == ("bad-operator", 1)
    assert first["where"]["file"] == str(p.folder / "lib.yaml")
    assert first["notes"][-1] == {"label": "named by", "text": f"{p.profile}:13"}
    assert (second["code"], second["where"]["line"]) == ("not-utf8", 2)
    assert second["notes"][-1] == {"label": "named by", "text": f"{p.profile}:14"}


def test_a_list_may_select_every_operator(p: Workspace) -> None:
    (p.folder / "list.yaml").write_text("include_all_operators: true\n")
    done = p.run("plan", "--json")
    assert done.code == 0, done.err
    listed = {k["operator"] for k in json.loads(done.out)["kernels"]}
    p.profile.write_text(p.profile.read_text().replace("[operators]", "[operators]\nall = true"))
    (p.folder / "list.yaml").write_text("[]\n")
    done = p.run("plan", "--json")
    assert {k["operator"] for k in json.loads(done.out)["kernels"]} == listed
    assert "aten::convolution.out" in listed


@pytest.mark.parametrize("overlap", ["allow", "error"])
def test_models_may_be_refused_to_share_operators(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], overlap: str
) -> None:
    write_product(
        tmp_path,
        case="add_mul",
        extra=f'[[models]]\nname = "twin"\npath = "twin.pte"\n[operators]\noverlap = "{overlap}"\n',
    )
    shutil.copyfile(CORPUS / "add_mul" / "model.pte", tmp_path / "twin.pte")
    code = run(["check", str(tmp_path / "product.toml"), "--json"])
    document = json.loads(capsys.readouterr().out)
    if overlap == "allow":
        assert code == 0
        return
    assert code == document["exit_code"] == 5
    assert [d["message"] for d in document["diagnostics"]] == [
        "2 models use aten::add.out",
        "2 models use aten::mm.out",
    ]
    for problem in document["diagnostics"]:
        assert problem["code"] == "overlap"
        assert problem["where"]["text"] == 'overlap = "error"'
        assert problem["notes"][0] == {"label": "found", "text": "model, twin"}


@pytest.mark.toolchain
def test_the_size_of_executorchs_registry(p: Workspace) -> None:
    need_toolchain("host", "zig")
    text = p.profile.read_text()
    p.build()
    assert _defined(p.outputs()) == [b"4"]
    p.profile.write_text(text + "[registry]\nmax_kernels = 9\n")
    assert p.build().compiled == set()  # only a header that nothing of ours includes
    assert _defined(p.outputs()) == [b"9"]
    before = p.state()
    p.profile.write_text(text + "[registry]\nmax_kernels = 3\n")
    done = p.run("build", "--json")
    assert done.code == 3
    (problem,) = json.loads(done.out)["diagnostics"]
    assert problem["code"] == "registry-too-small"
    assert problem["where"]["text"] == "max_kernels = 3"
    assert p.state() == before
