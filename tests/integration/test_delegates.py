"""Delegates of a profile's own, from the profile to what is linked and runs."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest

from orchestrator.cli.main import run
from orchestrator.memory.product import method_state_bytes
from orchestrator.program.reader import read_program
from tests.integration.workspace import ROOT
from tests.tools import need_emulator, need_toolchain

if TYPE_CHECKING:
    from pathlib import Path

EXAMPLE = ROOT / "examples" / "delegate"
INLINE = ROOT / "tests" / "data" / "delegate" / "inline.pte"

pytestmark = pytest.mark.toolchain


class Product:
    """A copy of the example, with `text` of its profile changed."""

    def __init__(
        self, folder: Path, capsys: pytest.CaptureFixture[str], profile: str = "host"
    ) -> None:
        shutil.copytree(EXAMPLE, folder / "example")
        self.folder = folder / "example"
        self.profile = self.folder / f"{profile}.toml"
        self.out = folder / "out"
        self._capsys = capsys

    def change(self, old: str, new: str, file: str = "") -> None:
        path = self.folder / file if file else self.profile
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))

    def run(self, *arguments: str, status: int = 0) -> str:
        """Output of a command on the profile; its messages if it fails."""
        command, *more = arguments
        found = run([command, str(self.profile), "--out", str(self.out), *more])
        streams = self._capsys.readouterr()
        assert found == status, streams
        return streams.err if status else streams.out

    def build(self, status: int = 0) -> str:
        return self.run("build", status=status)

    def compare(self) -> None:
        self.run("run", "--scenario", str(self.folder / "case.json"))

    def json(self, name: str) -> Any:
        return json.loads((self.out / name).read_text())


@pytest.fixture
def product(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Product:
    need_toolchain("host", "zig")
    return Product(tmp_path, capsys)


@pytest.mark.qemu
@pytest.mark.parametrize("data", ["segments", "inline"])
@pytest.mark.parametrize(
    ("profile", "cpu"), [("host", "host"), ("m4", "cortex-m4"), ("m55", "cortex-m55")]
)
def test_example_gives_the_outputs_of_pytorch(
    profile: str, cpu: str, data: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    need_toolchain(cpu, "zig")
    need_emulator(cpu)
    product = Product(tmp_path, capsys, profile)
    if data == "inline":
        shutil.copyfile(INLINE, product.folder / "model.pte")
    product.build()
    product.compare()
    costs = product.run("run", "--scenario", str(product.folder / "case.json"), "--profile")
    assert "Elementwise" in costs
    assert "aten::mm.out" in costs


def test_what_a_product_with_a_delegate_says(product: Product) -> None:
    product.build()
    program = read_program((product.folder / "model.pte").read_bytes(), file="")
    (method,) = program.methods
    expected = method_state_bytes(method, pointer_bytes=8, delegates={"Elementwise": 12})
    (plan,) = product.json("memory_plan.json")["models"][0]["methods"]
    assert plan["state_bytes"] == expected
    assert [d["state_bytes"] for d in plan["delegates"]] == [12, 12]
    (resolved,) = product.json("resolution.json")["delegates"]
    assert resolved["backend"] == "Elementwise"
    assert resolved["origins"][0]["instructions"] == [0, 2]
    lock = product.profile.with_suffix(".lock").read_text()
    assert '"delegates/Elementwise/elementwise.cpp" = ' in lock
    assert '"delegate Elementwise" = "12 bytes"' in lock
    why = product.run("why", "Elementwise")
    assert '  needed by  model "net", method "forward": 2 calls, instructions 0, 2' in (
        why.splitlines()
    )
    (use,) = json.loads(product.run("why", "Elementwise", "--json"))["delegates"]
    assert use["flash_bytes"] > 0
    kinds = {c["kind"] for c in product.json("report.json")["contributors"]}
    assert "delegate" in kinds


def test_the_profile_and_the_code_agree_about_the_state(product: Product) -> None:
    product.change('state = "12 B"', 'state = "16 B"')
    assert "`state` of the profile's [[delegates]] is not sizeof(T)" in product.build(9)
    product.change("  float slope;\n};", "  float slope;\n  float more;\n};", CODE)
    product.build()
    product.compare()


CODE = "elementwise.cpp"


def test_an_edit_of_the_code_is_compiled(product: Product) -> None:
    product.build()
    product.change("a > 0 ? a : a * slope", "a", CODE)
    product.build()
    product.run("run", "--scenario", str(product.folder / "case.json"), status=10)


@pytest.mark.parametrize(
    ("old", "new", "status"),
    [
        # What init and execute say is the status of load and run.
        ('memcmp(code, "ELW1", 4) == 0', "false", "InvalidProgram"),
        ('"negative_slope"', '"slope"', "NotFound"),
        ("args.count() == counts", "args.count() + 1 == counts", "InvalidArgument"),
    ],
)
def test_errors_of_a_delegate_are_reported(
    product: Product, old: str, new: str, status: str
) -> None:
    product.change(old, new, CODE)
    product.build()
    scenario = str(product.folder / "case.json")
    assert status in product.run("run", "--scenario", scenario, status=10)


def test_a_model_that_needs_another_delegate_stops_the_build(product: Product) -> None:
    product.change('backend = "Elementwise"', 'backend = "Elementwize"')
    message = product.build(5)
    assert "error[no-delegate]: no delegate for backend Elementwise\n" in message
    assert "= known: [[delegates]] serve Elementwize" in message
    assert 'hint: did you mean "Elementwize"?' in message


def test_a_delegate_that_no_model_needs_is_not_linked(
    product: Product, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copyfile(ROOT / "examples" / "models" / "add_mul.pte", product.folder / "model.pte")
    assert run(["build", str(product.profile), "--out", str(product.out)]) == 0
    assert capsys.readouterr().err.count("warning[unused-delegate]") == 1
    with_entry = (product.out / "firmware.elf").read_bytes()
    assert product.json("resolution.json")["delegates"] == []
    text = product.profile.read_text()
    product.profile.write_text(text[: text.index("[[delegates]]")])
    product.build()
    assert (product.out / "firmware.elf").read_bytes() == with_entry


def test_prelinked_models_cannot_have_delegates(product: Product) -> None:
    product.change('path = "model.pte"', 'path = "model.pte"\nload = "prelinked"')
    message = product.build(4)
    assert "error[cannot-prelink]" in message
    assert "calls a delegate" in message


def test_updates_may_use_the_delegate(product: Product, tmp_path: Path) -> None:
    product.build()
    lock = str(product.profile.with_suffix(".lock"))
    assert run(["compat", lock, str(INLINE)]) == 0
    needs_more = tmp_path / "other.pte"
    needs_more.write_bytes(INLINE.read_bytes().replace(b"Elementwise", b"Elementwize"))
    assert run(["compat", lock, str(needs_more)]) == 12
