"""Data that delegates find by name: linked, computed with, refused where it lacks."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest

from orchestrator.cli.main import run
from tests.conftest import CORPUS
from tests.integration.workspace import ROOT
from tests.tools import need_emulator, need_toolchain

if TYPE_CHECKING:
    from pathlib import Path

NAMED = ROOT / "tests" / "data" / "delegate" / "named"
PARTIAL = CORPUS / "xnnpack_partial" / "model.pte"
KEYS = ("first.bias", "first.weight", "second.bias", "second.weight")

pytestmark = pytest.mark.toolchain


class Product:
    """A product of one model with one delegate."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder, self.file, self._capsys = folder, folder / "p.toml", capsys
        shutil.copytree(NAMED, folder, dirs_exist_ok=True)

    def write(
        self, model: str, *data: str, cpu: str = "host", backend: str = "Named", takes: bool = True
    ) -> None:
        self.file.write_text(
            f'schema = 1\nname = "p"\ntarget.cpu = "{cpu}"\ntarget.toolchain = "zig"\n'
            f'[[models]]\nname = "net"\npath = "{model}.pte"\n'
            f"data = {json.dumps(data)}\n"
            f'[[delegates]]\nbackend = "{backend}"\nnamespace = "named"\n'
            f'sources = ["named.cpp"]\nstate = "12 B"\n'
            f"named_data = {str(takes).lower()}\n"
        )

    def run(self, *arguments: str, status: int = 0, out: bool = True) -> str:
        where = ["--out", str(self.folder / "out")] if out else []
        command, *more = arguments
        assert run([command, str(self.file), *more, *where]) == status
        streams = self._capsys.readouterr()
        return streams.err if status else streams.out

    def refused(self, code: str) -> str:
        message = self.run("check", status=4, out=False)
        assert message.count("error[") == message.count(f"error[{code}]") == 1
        return message


@pytest.fixture
def product(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Product:
    need_toolchain("host", "zig")
    return Product(tmp_path, capsys)


@pytest.mark.qemu
@pytest.mark.parametrize(
    ("cpu", "where"), [("host", "inside"), ("host", "outside"), ("cortex-m4", "outside")]
)
def test_a_delegate_computes_with_named_weights(cpu: str, where: str, product: Product) -> None:
    need_toolchain(cpu, "zig")
    need_emulator(cpu)
    data = ["weights.ptd"] if where == "outside" else []
    product.write(where, *data, cpu=cpu)
    product.run("build")
    product.run("run", "--scenario", str(product.folder / "case.json"))
    size = product.run("size")
    assert " (212 named data), everything else" in size
    assert "named data of net: first.weight, 120 bytes\n" in product.run("size", "--full")
    why = product.run("why", "Named")
    assert all(f"net: {key}," in why for key in KEYS)
    report = json.loads((product.folder / "out" / "report.json").read_text())
    plan = json.loads((product.folder / "out" / "memory_plan.json").read_text())
    assert sorted(key for _, key, _ in report["named_data"]) == [*KEYS]
    padding = plan["models"][0]["program_bytes"] - report["totals"]["model_bytes"]
    assert 0 <= padding < 16 * len(KEYS)
    (method,) = plan["models"][0]["methods"]
    assert [part["state_bytes"] for part in method["delegates"]] == [40, 40]


def test_a_data_file_that_changes_is_built(product: Product) -> None:
    product.write("outside", "weights.ptd")
    product.run("build")
    path = product.folder / "weights.ptd"
    data = bytearray(path.read_bytes())
    data[-8] ^= 0x40
    path.write_bytes(bytes(data))
    product.run("build")
    scenario = str(product.folder / "case.json")
    product.run("run", "--scenario", scenario, status=10)


def test_data_that_no_delegate_takes_is_refused(product: Product) -> None:
    product.write("inside", takes=False)
    message = product.refused("delegate-data")
    assert '"first.bias": is not taken by Named' in message
    assert "set `named_data = true`" in message
    product.write("outside", "weights.ptd", takes=False)
    assert 'nothing of the data file "weights.ptd"' in product.refused("unused-data")
    shutil.copyfile(PARTIAL, product.folder / "partial.pte")
    product.write("partial", backend="XnnpackBackend", takes=False)
    assert "is not taken by XnnpackBackend" in product.refused("delegate-data")


def test_data_that_is_not_there_or_there_twice_is_refused(product: Product) -> None:
    product.write("xnnpack", "xnnpack.ptd", backend="XnnpackBackend")
    product.run("check", out=False)
    product.write("xnnpack", backend="XnnpackBackend")
    assert product.refused("delegate-data").count(": is not there") == 4
    product.write("xnnpack", "weights.ptd", backend="XnnpackBackend")
    assert product.refused("delegate-data").count(": is not there") == 4
    product.write("inside", "weights.ptd")
    message = product.refused("delegate-data")
    assert message.count("in the program and beside it") == 4
    assert "hint: leave the file out" in message
    shutil.copyfile(NAMED / "weights.ptd", product.folder / "again.ptd")
    product.write("outside", "weights.ptd", "again.ptd")
    message = product.refused("external-data")
    assert message.count("is there twice: in weights.ptd and in again.ptd") == 4


def test_a_data_file_of_which_nothing_is_used_is_refused(product: Product) -> None:
    constants = CORPUS / "external_constants"
    shutil.copyfile(constants / "model.pte", product.folder / "plain.pte")
    ptd = constants / "_default_external_constant.ptd"
    shutil.copyfile(ptd, product.folder / "plain.ptd")
    product.write("plain", "plain.ptd")
    product.run("check", out=False)
    product.write("plain", "plain.ptd", "weights.ptd")
    assert '"weights.ptd"' in product.refused("unused-data")


def test_updates_need_a_delegate_that_takes_their_data(
    product: Product, capsys: pytest.CaptureFixture[str]
) -> None:
    product.write("inside")
    product.run("build")
    built = str(product.folder / "out" / "models" / "net.pte")
    lock = product.folder / "out" / "firmware.json"
    facts = lock.read_text()
    assert '"delegate Named": "40 bytes, takes named data"' in facts
    assert run(["compat", str(lock.parent), built]) == 0
    lock.write_text(facts.replace("40 bytes, takes named data", "12 bytes"))
    capsys.readouterr()
    assert run(["compat", str(lock.parent), built]) == 12
    message = capsys.readouterr().err
    assert message.count("error[") == message.count("error[delegate-data]") == 1
    assert '"first.bias": is not taken by Named' in message


def test_inspect_lists_data_files(capsys: pytest.CaptureFixture[str]) -> None:
    constants = CORPUS / "external_constants" / "_default_external_constant.ptd"
    assert run(["inspect", str(constants)]) == 0
    assert "  tensor 0.weight   Float [16, 8], 512 bytes\n" in capsys.readouterr().out
    assert run(["inspect", str(NAMED / "weights.ptd"), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["tensors"] == []
    assert sorted(document["named_data_bytes"].items()) == [
        *zip(KEYS, (20, 120, 12, 60), strict=True)
    ]
    assert run(["inspect", str(PARTIAL)]) == 0
    assert capsys.readouterr().out.count("\n  named data ") == 4
