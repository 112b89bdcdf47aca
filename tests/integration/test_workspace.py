"""Commands on a whole workspace: four products of the smallest model, built once."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from orchestrator.cli.main import run
from orchestrator.errors import ExitCode
from orchestrator.shell.publish import published_files
from tests.tools import heed_signals, need_emulator, need_toolchain

if TYPE_CHECKING:
    from collections.abc import Iterator

MODEL = Path(__file__).parents[1] / "data" / "corpus" / "add_mul" / "model.pte"
WORKSPACE = """\
schema = 1

[workspace]
profiles = ["products/*.toml"]

[defaults]
target.toolchain = "zig"

[matrix]
cpus = ["host", "cortex-m4"]

[budgets]
flash = "1 MiB"
"""
PROFILE = """\
schema = 1
name = "{name}"

[[models]]
name = "model"
path = "../model.pte"
"""
FITS = ["one-cortex-m4", "one-host", "two-host"]
RESULTS = {"broken": "failed", **dict.fromkeys(FITS, "fits")}


def _write(folder: Path) -> None:
    (folder / "products").mkdir(parents=True)
    shutil.copy(MODEL, folder / "model.pte")
    (folder / "orchestrator.toml").write_text(WORKSPACE)
    two = PROFILE.format(name="two-host") + '[matrix]\ncpus = ["host"]\n'
    broken = two.replace("two-host", "broken").replace("model.pte", "missing.pte")
    for name, text in (("one", PROFILE.format(name="one")), ("two", two), ("broken", broken)):
        (folder / "products" / f"{name}.toml").write_text(text)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace that was built: one of its four products lacks a model."""
    need_toolchain("host", "zig")
    folder = tmp_path_factory.mktemp("workspace") / "w"
    _write(folder)
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.chdir(folder)
        arguments = ["--junit", "j.xml", "--markdown", "s.md", "-j2"]
        assert run(["build", *arguments]) == 3
    return folder


@pytest.fixture
def w(built: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same, as the current folder; tests leave it as it is."""
    monkeypatch.chdir(built)
    return built


def _json(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    capsys.readouterr()
    run(["--json", *arguments])
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def _results(products: list[dict[str, Any]]) -> dict[str, str]:
    return {p["product"]: p["result"] for p in products}


def test_one_failing_product_stops_no_other(w: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["build"]) == 3
    said = capsys.readouterr()
    lines = [line.split() for line in said.out.splitlines()]
    assert [line[0] for line in lines[1:5]] == [*FITS, "broken"]
    assert lines[4][-2:] == ["failed", "(3)"]
    assert said.out.endswith("\n4 products: 3 up to date, 1 failed\n")
    assert said.err.count("error[missing-file]") == 1
    assert "--> products/broken.toml:6" in said.err
    assert sorted(p.name for p in (w / "products").glob("*.lock")) == [
        *("one-cortex-m4.lock", "one-host.lock", "two.lock")
    ]
    assert 'failures="1"' in (w / "j.xml").read_text()
    assert "| one-host | host |" in (w / "s.md").read_text()


def test_a_product_alone_has_the_same_bytes(w: Path, tmp_path: Path) -> None:
    """Whatever else its process built before."""
    out = tmp_path / "out"
    assert run(["build", "products/two.toml", "--locked", "--out", str(out)]) == 0
    ours, theirs = published_files(w / "build" / "two-host"), published_files(out)
    del ours["compile_commands.json"], theirs["compile_commands.json"]
    assert ours == theirs


def _reported(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict[str, Any]]:
    """Products in the document that a command prints; its JUnit XML says the same."""
    products: list[dict[str, Any]]
    products = _json(capsys, *arguments, "--junit", "other.xml")["products"]
    cases = ET.parse("other.xml").iter("testcase")  # noqa: S314  # ours
    failed = {case.get("name"): case.find("failure") is not None for case in cases}
    assert failed == {p["product"]: bool(p["diagnostics"]) for p in products}
    return products


def test_other_commands(w: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fits = _reported(capsys, "check", "-j1")
    assert _results(fits) == RESULTS
    assert all(not p["flash_bytes"] for p in fits)
    sizes = {p["product"]: p for p in _reported(capsys, "size", "-j1")}
    report = json.loads((w / "build" / "one-host" / "report.json").read_text())
    assert sizes["one-host"]["flash_bytes"] == report["totals"]["flash_bytes"]
    assert [d["code"] for d in sizes["broken"]["diagnostics"]] == ["missing-file"]
    only = ["-p", "one-*", "-j1"]
    locks = _reported(capsys, "lock", "--check", *only)
    assert _results(locks) == dict.fromkeys(FITS[:2], "lock current")
    outputs = _reported(capsys, "lock", "--check", "--outputs", *only)
    assert {r.split()[0] for r in _results(outputs).values()} == {"match"}
    twice = _reported(capsys, "verify", "-p", "one-cortex-m4")
    assert _results(twice) == {"one-cortex-m4": "same twice"}


def _copy(w: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the workspace without the product that lacks a model, as we are in."""
    shutil.copytree(w, tmp_path / "w", symlinks=True)
    monkeypatch.chdir(tmp_path / "w")
    Path("products/broken.toml").unlink()
    return tmp_path / "w"


def test_documents_and_pages_of_all_products(
    w: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _copy(w, tmp_path, monkeypatch)
    for command, key, name in (
        ("report", "report", "report.html"),
        ("sbom", "document", "sbom.cdx.json"),
        ("provenance", "document", "provenance.intoto.json"),
    ):
        found = _reported(capsys, command, "-j1")
        files = {p["product"]: p[key] for p in found}
        assert files == {n: f"build/{n}/{name}" for n in FITS}
        assert all(Path(file).is_file() for file in files.values())
        assert _results(found) == {n: f"written: {f}" for n, f in files.items()}
    assert run(["sbom", "--output", "x.json"]) == ExitCode.USAGE
    assert "--output requires PROFILE" in capsys.readouterr().err
    cleaned = _reported(capsys, "clean", "-p", "one-*", "-j1")
    assert _results(cleaned) == dict.fromkeys(FITS[:2], "removed")
    assert [path.name for path in Path("build").glob("[!.]*")] == ["two-host"]
    assert Path("products/one-host.lock").is_file()
    assert run(["clean", "-j1"]) == 0
    said = capsys.readouterr().out
    assert said.endswith("\n3 products: 2 nothing to remove, 1 removed\n")


def test_accuracy_of_all_products(
    w: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _copy(w, tmp_path, monkeypatch)
    rng = np.random.default_rng(0)
    a, b, c, zeros = rng.random((4, 3, 2, 2), np.float32)
    np.savez("data.npz", input0=a, input1=b, input2=c, labels=zeros)
    data = ["--data", "data.npz", "--metric", "mae"]
    found = _reported(capsys, "evaluate", *data, "-j2")
    for product in found:
        assert product["result"].startswith("evaluated: 3 samples, mae ")
        assert product["evaluation"]["profile"] == product["product"]
    # Kernels have the same bits everywhere.
    assert len({p["evaluation"]["metric"]["value"] for p in found}) == 1
    missed = ["evaluate", *data, "--at-most", "0", "-j1"]
    assert run(missed) == ExitCode.MISMATCH
    said = capsys.readouterr().err
    assert said.count("error[missed-accuracy]") == 1
    assert f"3 products: {', '.join(FITS)}:\nerror[missed-accuracy]" in said


def test_names_stand_for_profiles(
    w: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of the workspace that we are in; what is there is meant first."""
    _copy(w, tmp_path, monkeypatch)
    firmware = "build/two-host/firmware.elf"
    for command in (
        ["size", "one-cortex-m4", "--diff", "one-host"],
        ["report", "one-host", "--diff", "two-host"],
        ["decode", "10", "--profile", "one-host"],
        ["verify", "two-host", "--artefact", firmware],
        *([name, "one-host"] for name in ("plan", "check", "memory", "scratch")),
        ["why", "one-host", "aten::add.out"],
        ["sbom", "one-host"],
        ["compat", "one-host", "build/one-host/models/model.pte"],
        ["compat", "products/two.toml", "build/two-host/models/model.pte"],
    ):
        assert run(command) == 0, command
    capsys.readouterr()
    assert run(["size", "one-host", "--diff", "missing"]) == ExitCode.PROFILE
    assert "name a product of the workspace, or a file" in capsys.readouterr().err
    shutil.rmtree("build/one-host")
    assert run(["size", "one-host"]) == ExitCode.USAGE
    assert "hint: run `orchestrator build one-host` first" in capsys.readouterr().err


def test_a_changed_workspace_is_named_once_by_its_key(
    w: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _copy(w, tmp_path, monkeypatch)
    Path("orchestrator.toml").write_text(WORKSPACE.replace("1 MiB", "2 MiB"))
    assert run(["lock", "--check", "-j1", "-q"]) == ExitCode.LOCK
    said = capsys.readouterr().err
    assert said.count("error[stale-lock]") == 1
    assert f"3 products: {', '.join(FITS)}:\n" in said
    change = 'changed: profile: workspace budget.flash changed ("1 MiB" -> "2 MiB")'
    assert said.count("changed:") == said.count(change) == 1


def test_products_that_exceed_their_budget_are_measured(
    w: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _copy(w, tmp_path, monkeypatch)
    Path("orchestrator.toml").write_text(WORKSPACE.replace("1 MiB", "2 KiB"))
    only = ["-p", "one-*", "-j1"]
    checked = _results(_reported(capsys, "check", *only))
    assert checked == {"one-cortex-m4": "failed", "one-host": "may fit"}
    assert run(["build", *only]) == ExitCode.MEMORY
    sizes = _reported(capsys, "size", *only)
    assert _results(sizes) == dict.fromkeys(FITS[:2], "over budget")
    assert all(p["flash_bytes"] > 2048 for p in sizes)
    pages = _reported(capsys, "report", *only)
    assert all(Path(p["report"]).is_file() for p in pages)
    assert all(p["notes"][0].startswith("over budget: ") for p in pages)
    Path("orchestrator.toml").write_text(WORKSPACE)
    assert run(["build", *only]) == 0
    sizes = _reported(capsys, "size", *only)
    assert _results(sizes) == dict.fromkeys(FITS[:2], "measured")


def test_firmware_runs_scenarios(
    w: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """That of the profile for each core, but for a product with one of its own."""
    need_emulator("cortex-m4")
    shutil.copytree(w, tmp_path / "w", symlinks=True)
    monkeypatch.chdir(tmp_path / "w")
    assert run(["run", "-p", "one-*", "-j1"]) == ExitCode.USAGE
    missing = capsys.readouterr().err
    assert "2 products: one-cortex-m4, one-host:\nerror[no-scenario]: " in missing
    assert missing.count("error[no-scenario]") == 1
    assert f"expected: {Path('products/scenarios/one.json')}" in missing
    scenarios = Path("products", "scenarios")
    shutil.copytree(MODEL.parent, scenarios)
    case = (scenarios / "case.json").read_text()
    (scenarios / "one.json").write_text(case)
    found = _reported(capsys, "run", "-p", "one-*", "-j1")
    assert _results(found) == dict.fromkeys(FITS[:2], "outputs right")
    assert all(p["flash_bytes"] for p in found)
    wrong = case.replace('"out0.npy"', '"in0.npy"')
    (scenarios / "one-cortex-m4.json").write_text(wrong)
    assert run(["run", "-p", "one-*", "-j1"]) == ExitCode.MISMATCH
    said = capsys.readouterr()
    assert said.out.endswith("\n2 products: 1 outputs right, 1 failed\n")
    assert "one-cortex-m4:\nerror[run-mismatch]" in said.err
    assert run(["run", "--input", "in0.npy"]) == ExitCode.USAGE
    assert "--input requires PROFILE" in capsys.readouterr().err


@pytest.mark.usefixtures("w")
def test_shards_are_all_products(capsys: pytest.CaptureFixture[str]) -> None:
    shards = [_json(capsys, "check", "-j1", "--shard", f"{i}/3") for i in (1, 2, 3)]
    names = [name for shard in shards for name in _results(shard["products"])]
    assert sorted(names) == sorted(RESULTS)


def test_changes_against_a_revision(
    w: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = tmp_path / "w"
    shutil.copytree(w, copy, symlinks=True)
    git = ["git", "-c", "user.name=n", "-c", "user.email=e", "-c", "commit.gpgsign=no"]
    for arguments in (["init", "-q", "."], ["add", "products"], ["commit", "-qm", "m"]):
        subprocess.run([*git, *arguments], cwd=copy, check=True)
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.chdir(copy / "products")
        profile = copy / "products" / "two.toml"
        profile.write_text(f'{profile.read_text()}\n[target]\noptimize = "speed"\n')
        found = _json(capsys, "build", "-p", "two-*", "--base", "HEAD", "-p", "one-host")
        one, two = found["products"]
        assert one["flash_bytes"] == one["flash_bytes_before"]
        assert two["flash_bytes"] > two["flash_bytes_before"] > 0
        assert two["lock"] == "../products/two.lock"
        # Built below the workspace, from wherever the command runs.
        assert not (copy / "products" / "build").exists()
        assert run(["build", "--base", "nowhere"]) == 2
    assert "error[no-history]" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["build", "--out", "x"], "--out requires PROFILE"),
        (["size", "--full"], "--full requires PROFILE"),
        (["run", "--lock", "x.lock"], "--lock requires PROFILE"),
        (["test", "--lock", "x.lock"], "--lock requires PROFILE"),
        (["check", "two-host", "--shard", "1/2"], "--shard works on a workspace"),
        (["lock"], "without PROFILE, lock only checks"),
        (["check", "--shard", "3/2"], "3/2 is not a part such as 1/4"),
        (["check", "-p", "three"], 'the workspace has no product "three"'),
        (["run", "products/one.toml"], "products/one.toml gives 2 products"),
    ],
)
@pytest.mark.usefixtures("w")
def test_usage(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(arguments) == 2
    assert message in capsys.readouterr().err


def test_no_workspace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], w: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["build"]) == 2
    assert "error[no-workspace]" in capsys.readouterr().err
    found = _json(capsys, "check", "-j1", "--workspace", str(w))["products"]
    assert _results(found) == RESULTS


def _started(folder: Path) -> subprocess.Popen[str]:
    """A build of everything in two workers, one of whose products is done."""
    process = subprocess.Popen(
        [sys.executable, "-m", "orchestrator", "build", "-j2"],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        preexec_fn=heed_signals,  # noqa: PLW1509  # there are no threads
    )
    assert process.stderr is not None
    while line := process.stderr.readline():
        if ": built" in line:
            return process
    raise AssertionError(process.wait())


def _workers(process: subprocess.Popen[str]) -> Iterator[int]:
    """Those of its children that work on products."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()
    for child in map(int, children.split()):
        if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes():
            yield child


def test_nothing_is_lost_whoever_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    need_toolchain("host", "zig")
    _write(tmp_path / "w")
    monkeypatch.chdir(tmp_path / "w")
    Path("products/broken.toml").unlink()
    Path("products/three.toml").write_text(PROFILE.format(name="three"))
    # Each build begins where the one before was ended; it waits for what is left of it.
    workers: list[int] = []
    for number, code in ((signal.SIGKILL, -signal.SIGKILL), (signal.SIGINT, 130)):
        process = _started(Path())
        workers += _workers(process)
        process.send_signal(number)
        process.communicate()
        assert process.returncode == code
    assert len(workers) == 4
    process = _started(Path())
    if (worker := next(_workers(process), None)) is not None:
        os.kill(worker, signal.SIGKILL)
    _, said = process.communicate()
    assert process.returncode == 0, said
    assert len(list(Path("products").glob("*.lock"))) == 5
    assert run(["lock", "--check", "--outputs", "-j1"]) == 0
    for worker in workers:
        assert not Path(f"/proc/{worker}").exists()


DEAF = """\
import multiprocessing
import os
import time

from orchestrator.fleet import pool
from orchestrator.shell.signals import Ended


class Deaf:
    def do(self, task):
        try:
            print("begun", flush=True)
            time.sleep(60)
        except Ended:
            time.sleep(1)  # each thread of the parent that ends sends another one
            print("asked", flush=True)


def work(parent):
    pool._begin(parent)
    pool.own_worker = Deaf
    pool._do(None)
    print("waits", flush=True)
    time.sleep(60)


if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    process = context.Process(target=work, args=(os.getpid(),))
    process.start()
    process.join()
"""
"""A worker whose task loses the signal, as one that hits a destructor is lost."""


@pytest.mark.skipif(sys.platform != "linux", reason="needs PR_SET_PDEATHSIG")
def test_a_worker_that_loses_the_signal_ends_after_its_task(tmp_path: Path) -> None:
    script = tmp_path / "deaf.py"
    script.write_text(DEAF)
    process = subprocess.Popen(
        [sys.executable, str(script)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"
    process.kill()
    # The worker has the other end of the pipe.
    said, _ = process.communicate(timeout=20)
    assert said == "asked\n"
