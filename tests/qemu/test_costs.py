"""`run --profile` in QEMU: counts are exact, repeatable, and agree with each other."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from orchestrator.build.firmware import carry_out
from orchestrator.program.program import KernelCall
from orchestrator.program.reader import read_program
from orchestrator.running.counting import CountPlan, read_counts
from orchestrator.running.product import read_product
from orchestrator.running.scenario import read_scenario
from tests.conftest import CORPUS
from tests.integration.workspace import Workspace, write_product
from tests.targets import with_toolchains
from tests.tools import need_emulator, need_tool, need_toolchain

if TYPE_CHECKING:
    from collections.abc import Mapping

PRIM_OPS = Path(__file__).parents[1] / "data" / "prim_ops"
LIBRARIES = '[kernels]\nlibraries = ["portable", "prim_ops"]\n'

pytestmark = [pytest.mark.toolchain, pytest.mark.qemu]


_Calls = list[tuple[str, int, str, int]]
"""(method, instruction, operator, calls) of each instruction that ran."""

_on_host: dict[str, _Calls] = {}
"""What ran on the host, by toolchain."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """A built product with a scenario."""

    workspace: Workspace
    scenario: Path

    def profile(self) -> dict[str, Any]:
        """Costs of the scenario's calls."""
        done = self.workspace.run(
            *("run", "--json", "--profile", "--passes", "2"), *("--scenario", str(self.scenario))
        )
        assert done.code == 0, done.out + done.err
        document = json.loads(done.out)
        assert document["ok"]
        costs: dict[str, Any] = document["profile"]
        return costs

    @property
    def functions(self) -> Mapping[str, tuple[int, int]]:
        """Addresses and sizes by name."""
        report = json.loads((self.workspace.out / "report.json").read_text())
        return {
            s["name"]: (s["address"], s["size_bytes"])
            for s in report["symbols"]
            if s["is_function"]
        }


def _build(folder: Path, cpu: str, toolchain: str, capsys: pytest.CaptureFixture[str]) -> Workspace:
    need_toolchain(cpu, toolchain)
    need_emulator(cpu)
    write_product(folder, cpu=cpu, toolchain=toolchain, extra=LIBRARIES)
    return Workspace(folder=folder, capsys=capsys)


def _loops(
    folder: Path, cpu: str, toolchain: str, capsys: pytest.CaptureFixture[str], *, extra: str = ""
) -> Ready:
    """Several methods with branches and loops, called ten times."""
    workspace = _build(folder, cpu, toolchain, capsys)
    shutil.copyfile(PRIM_OPS / "model.pte", workspace.model)
    text = workspace.profile.read_text()
    workspace.profile.write_text(text.replace("[kernels]", f"{extra}[kernels]"))
    workspace.build()
    return Ready(workspace=workspace, scenario=PRIM_OPS / "scenario.json")


def _calls(costs: dict[str, Any]) -> _Calls:
    return [
        (i["method"], i["instruction"], i["operator"], i["calls"]) for i in costs["instructions"]
    ]


def _adds_up(costs: dict[str, Any]) -> bool:
    """Operators, instructions and the rest are the total; percentages are of it."""
    operators, rest = costs["operators"], costs["executor"]
    assert sum(o["total"] for o in operators) + rest["total"] == costs["total"]
    shares = sum(o["percent"] for o in operators) + rest["percent"]
    assert shares == pytest.approx(100)
    totals: Counter[str] = Counter()
    for instruction in costs["instructions"]:
        totals[instruction["operator"]] += instruction["total"]
    return totals == {o["operator"]: o["total"] for o in operators}


@pytest.mark.parametrize(
    ("cpu", "toolchain"),
    [
        *with_toolchains("cortex-m4", "cortex-m55"),
        *(("cortex-m0plus", "gnu"), ("cortex-m0plus", "zig")),
        *(("cortex-m3", "gnu"), ("cortex-m7", "zig"), ("cortex-m33", "gnu")),
    ],
)
def test_counts_are_the_same_in_every_run(
    cpu: str, toolchain: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """And the host, which sees instructions by hooks, sees the same ones."""
    need_tool("gcc", "cc", "clang")
    board = _loops(tmp_path / "board", cpu, toolchain, capsys)
    before = board.workspace.state()
    costs = board.profile()
    assert board.profile() == costs
    assert board.workspace.state() == before
    assert (costs["unit"], costs["passes"], costs["runs"]) == ("instructions", 1, 10)
    assert _adds_up(costs)
    assert max(i["calls"] for i in costs["instructions"]) > 1
    # One call of each method loads it.
    assert costs["load"]["calls"] == len({i["method"] for i in costs["instructions"]})
    if toolchain not in _on_host:
        need_toolchain("host", toolchain)
        host = _loops(tmp_path / "host", "host", toolchain, capsys).profile()
        assert _adds_up(host)
        _on_host[toolchain] = _calls(host)
    assert _on_host[toolchain] == _calls(costs)


def test_prelinked_models_are_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Their instructions are constants, and may be fewer than the program's."""
    need_tool("gcc", "cc", "clang")
    need_toolchain("host", "zig")
    extra = 'load = "prelinked"\n'
    board, host = (
        _loops(tmp_path / cpu, cpu, "zig", capsys, extra=extra).profile()
        for cpu in ("cortex-m4", "host")
    )
    assert _adds_up(board)
    assert _adds_up(host)
    assert _calls(board) == _calls(host)
    assert board["load"]["calls"] == len({i["method"] for i in board["instructions"]})
    plain = _loops(tmp_path / "plain", "cortex-m4", "zig", capsys).profile()
    assert board["load"]["total"] < plain["load"]["total"] / 10


@pytest.mark.parametrize("cpu", ["cortex-m4", "cortex-m55"])
def test_an_operator_has_what_its_kernel_executes(
    cpu: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Watching kernels by the addresses of their functions gives the same counts."""
    need_tool("gcc", "cc", "clang")
    case = CORPUS / "small_cnn"
    workspace = _build(tmp_path, cpu, "zig", capsys)
    shutil.copyfile(case / "model.pte", workspace.model)
    workspace.build()
    ready = Ready(workspace=workspace, scenario=case / "case.json")
    costs = ready.profile()
    assert _adds_up(costs)

    resolution = json.loads((workspace.out / "resolution.json").read_text())
    kernels = {
        operator["operator"]: kernel["function"]
        for operator in resolution["operators"]
        for kernel in operator["kernels"]
    }
    functions = ready.functions
    names = [o["operator"] for o in costs["operators"]]
    product = read_product((workspace.out / "product.json").read_text())
    calls = read_scenario(
        ready.scenario.read_text(),
        file=str(ready.scenario),
        product=product,
        read_bytes=lambda path: Path(path).read_bytes(),
    ).calls
    plan = CountPlan(
        executor=functions["orch::execute"],
        tables=(),
        functions=tuple(functions[kernels[name]][0] for name in names),
    )
    firmware = (workspace.out / "firmware.elf").resolve()
    answer = carry_out(product, firmware, calls, timeout_s=60, plan=plan)
    counts = read_counts(answer.counts)
    assert sum(counts.runs) == costs["total"]
    assert counts.total > costs["total"] + costs["load"]["total"]
    assert {
        name: (len(counts.calls_of(at)), sum(counts.calls_of(at))) for at, name in enumerate(names)
    } == {o["operator"]: (o["calls"], o["total"]) for o in costs["operators"]}

    built = workspace.out / "models" / "model.pte"
    program = read_program(built.read_bytes(), file="model.pte")
    method = program.method("forward")
    expected = Counter(
        str(method.operators[i.operator]) for i in method.instructions if isinstance(i, KernelCall)
    )
    assert {o["operator"]: o["calls"] for o in costs["operators"]} == {
        name: count * len(calls) for name, count in expected.items()
    }


def test_hooks_of_the_product_are_not_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A product with trace hooks runs, and is measured as it is without them."""
    need_tool("gcc", "cc", "clang")
    plain = _loops(tmp_path / "plain", "cortex-m4", "zig", capsys)
    traced = _build(tmp_path / "traced", "cortex-m4", "zig", capsys)
    shutil.copyfile(PRIM_OPS / "model.pte", traced.model)
    traced.edit("product.toml", "[trace]\nenable = true\n")
    traced.build()
    ready = Ready(workspace=traced, scenario=plain.scenario)
    done = traced.run("run", "--json", "--scenario", str(plain.scenario))
    assert done.code == 0, done.out + done.err
    assert "profile" not in json.loads(done.out)
    assert ready.profile() == plain.profile()
