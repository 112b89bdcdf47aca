"""Programs that another machine exported: taken where they would be the same."""

from __future__ import annotations

import os
import shutil
from importlib import metadata
from typing import TYPE_CHECKING

import pytest

from orchestrator.build.published import LIST
from orchestrator.cli.main import run
from orchestrator.shell.settings import LAUNCHER
from orchestrator.shell.settings import OBJECTS as VARIABLE
from orchestrator.shell.settings import PUBLISHED as URL
from orchestrator.shell.settings import PUBLISHED_KEY as KEY
from tests.conftest import CORPUS
from tests.integration.test_export import MODEL, PROFILE, STUB
from tests.integration.test_published import write_keys
from tests.integration.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


class Machine(Workspace):
    """A checkout, a cache, and a folder where distributions are installed."""

    @property
    def installed(self) -> Path:
        """Where PyTorch is, or is not."""
        return self.folder.parent / "site-packages"

    def install(self) -> None:
        """Install the stub of PyTorch."""
        shutil.copytree(STUB, self.installed, dirs_exist_ok=True)

    def exported(self) -> bool:
        """Whether a check exports the model here."""
        done = self.run("check")
        assert done.code == 0, done.err
        return "exporting model" in done.err


@pytest.fixture
def machine(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[[str], Machine]:
    """From here on, commands run on a new machine, which has the place's key."""
    if {"torch", "executorch"} & {d.name for d in metadata.distributions()}:
        pytest.skip("this Python has PyTorch: no machine without it")
    write_keys(tmp_path)
    for name in (VARIABLE, LAUNCHER, "ORCHESTRATOR_EXPORT_PYTHON"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(KEY, str(tmp_path / "ci.pub"))

    def start(name: str) -> Machine:
        folder = tmp_path / name / "checkout"
        code = folder / "code"
        (code / "calibration").mkdir(parents=True)
        (code / "calibration" / "one.npy").write_bytes(b"1")
        (code / "net.py").write_text(MODEL)
        (code / "shapes.py").write_text("sizes = (2, 3)\n")
        shutil.copyfile(CORPUS / "add_mul" / "model.pte", code / "weights.bin")
        (folder / "product.toml").write_text(PROFILE)
        for path in folder.rglob("*"):
            os.utime(path, (1, 1))
        found = Machine(folder=folder, capsys=capsys)
        found.installed.mkdir()
        monkeypatch.setenv("PYTHONPATH", str(found.installed))
        monkeypatch.setenv("ORCHESTRATOR_CACHE", str(folder.parent / "cache"))
        monkeypatch.setenv(URL, str(tmp_path / "place"))
        return found

    return start


def _publish(place: Path, key: str = "ci.key", *options: str) -> int:
    return run(["cache", "publish", str(place), "--key", key, *options])


@pytest.fixture
def place(
    machine: Callable[[str], Machine], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """A folder with what one machine exported."""
    theirs = machine("theirs")
    theirs.install()
    monkeypatch.delenv(URL)
    assert theirs.exported()
    place = tmp_path / "place"
    assert _publish(place, str(tmp_path / "ci.key"), "--exports") == 0
    theirs.capsys.readouterr()
    return place


def test_a_machine_without_pytorch_takes_the_program(
    place: Path, machine: Callable[[str], Machine], monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = machine("deeper/ours")
    assert not ours.exported()
    done = ours.run("export")
    assert "model: exported by another machine, " in done.out
    monkeypatch.delenv(URL)
    assert not ours.exported()
    # From here on it could export, and with what, decides.
    ours.install()
    monkeypatch.setenv(URL, str(place))
    assert not ours.exported()
    monkeypatch.delenv(URL)
    (ours.installed / "torch-1.0.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: torch\nVersion: 1.1\n"
    )
    assert ours.exported()


def _append(name: str) -> Callable[[Machine], None]:
    def edit(machine: Machine) -> None:
        machine.edit(name, "# more\n")

    return edit


def _other_weights(machine: Machine) -> None:
    shutil.copyfile(CORPUS / "mlp" / "model.pte", machine.folder / "code" / "weights.bin")


def _other_sample(machine: Machine) -> None:
    (machine.folder / "code" / "calibration" / "two.npy").write_bytes(b"2")


def _other_quantization(machine: Machine) -> None:
    text = PROFILE.replace("quantize = {}", "quantize = { weights = 'per-tensor' }")
    machine.profile.write_text(text)


def _other_version(machine: Machine) -> None:
    old = machine.installed / "executorch-1.0.dist-info"
    new = old.rename(old.with_name("executorch-1.1.dist-info"))
    text = (new / "METADATA").read_text()
    (new / "METADATA").write_text(text.replace("1.0", "1.1"))


@pytest.mark.parametrize(
    "change",
    [
        *(_append("code/net.py"), _append("code/shapes.py")),
        *(_other_weights, _other_sample, _other_quantization, _other_version),
    ],
    ids=["code", "import", "weights", "folder", "quantization", "version"],
)
def test_what_differs_is_exported_here(
    change: Callable[[Machine], None], place: Path, machine: Callable[[str], Machine]
) -> None:
    assert place.is_dir()
    ours = machine("ours")
    ours.install()
    change(ours)
    assert ours.exported()


def _damage(place: Path) -> None:
    for file in (place / "cas").glob("*/*"):
        file.write_bytes(file.read_bytes() + b" ")


def _swap(place: Path) -> None:
    """Another program, with all that is true of the first."""
    other = (CORPUS / "mlp" / "model.pte").read_bytes()
    for file in (place / "cas").glob("*/*"):
        if file.read_bytes()[4:6] == b"ET":
            file.write_bytes(other)


def _remove_list(place: Path) -> None:
    (place / LIST).unlink()


def _another_key(place: Path) -> None:
    _remove_list(place)
    key = str(place.with_name("other.key"))
    assert _publish(place, key, "--exports") == 0


@pytest.mark.parametrize("change", [_damage, _swap, _remove_list, _another_key])
def test_what_is_not_theirs_is_exported_here(
    change: Callable[[Path], None], place: Path, machine: Callable[[str], Machine]
) -> None:
    change(place)
    ours = machine("ours")
    ours.install()
    assert ours.exported()
    (program,) = (ours.folder.parent / "cache").rglob("model.pte")
    assert program.read_bytes() == (ours.folder / "code" / "weights.bin").read_bytes()


def test_exports_are_published_on_request_only_and_once(
    place: Path, tmp_path: Path, machine: Callable[[str], Machine]
) -> None:
    again = machine("again")
    again.install()
    again.edit("code/shapes.py", "# more\n")
    assert again.exported()
    key = str(tmp_path / "ci.key")

    def published(*options: str) -> str:
        again.capsys.readouterr()
        assert _publish(place, key, *options) == 0
        return again.capsys.readouterr().out.partition("new; ")[2]

    assert published() == "1 exports, 0 of them new\n"
    assert published("--exports") == "2 exports, 1 of them new\n"
    # An export that was fetched is not this machine's.
    third = machine("third")
    assert not third.exported()
    assert published("--exports") == "2 exports, 0 of them new\n"


@pytest.mark.nightly
@pytest.mark.toolchain
def test_a_lock_holds_where_the_program_was_exported_elsewhere(
    place: Path, machine: Callable[[str], Machine]
) -> None:
    assert place.is_dir()
    with_torch = machine("with")
    with_torch.install()
    with_torch.build()
    without = machine("without")
    shutil.copyfile(with_torch.lock, without.lock)
    without.build("--locked")
    assert without.outputs() == with_torch.outputs()
    # These take nothing from anywhere.
    for words in (("build", "--frozen"), ("verify",)):
        done = without.run(*words)
        assert done.code == 7
        assert "error[missing-extra]" in done.err
