"""Workers of a Dask scheduler: who is used, and what is said where none can be."""

from __future__ import annotations

import json
import shutil
import sys
from typing import TYPE_CHECKING

import pytest
from distributed import LocalCluster

from orchestrator.cli.main import run
from orchestrator.errors import ExitCode
from orchestrator.fleet import scheduler
from tests.conftest import CORPUS
from tests.tools import need_emulator

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a workspace of two products, where commands run."""
    (tmp_path / "orchestrator.toml").write_text(
        'schema = 1\n[workspace]\nprofiles = ["p-*.toml"]\n'
        '[defaults.target]\ncpu = "cortex-m4"\ntoolchain = "gnu"\n'
        '[cache]\npath = "cache"\n'
    )
    shutil.copy(CORPUS / "add_mul" / "model.pte", tmp_path / "model.pte")
    for name, model in (("right", "model.pte"), ("wrong", "gone.pte")):
        (tmp_path / f"p-{name}.toml").write_text(
            f'schema = 1\nname = "{name}"\n[[models]]\nname = "m"\npath = "{model}"\n'
        )
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ORCHESTRATOR_CACHE", raising=False)
    return tmp_path


def _cluster(workers: int) -> LocalCluster:
    """A scheduler with some workers, which are threads of this process."""
    return LocalCluster(  # type: ignore[no-untyped-call]
        n_workers=workers,
        threads_per_worker=1,
        processes=False,
        protocol="tcp",
        dashboard_address=":0",
    )


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    """A scheduler with one worker."""
    with _cluster(1) as found:
        yield found


@pytest.fixture
def refused(workspace: Path, capsys: pytest.CaptureFixture[str]) -> Callable[[str], str]:
    """Checks the workspace with a scheduler that cannot be used; says what it says."""
    assert workspace.is_dir()

    def check(address: str) -> str:
        capsys.readouterr()
        assert run(["check", "--scheduler", address]) == ExitCode.TOOLCHAIN
        said = capsys.readouterr()
        assert "Traceback" not in said.err
        return said.out + said.err

    return check


def test_outcomes_are_those_of_commands_without_one(
    workspace: Path, cluster: LocalCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    found = []
    for options in ([], ["--scheduler", cluster.scheduler_address]):
        code = run(["check", "--json", *options])
        document = json.loads(capsys.readouterr().out)
        for product in document["products"]:
            del product["seconds"]
        found.append((code, document))
    assert found[0] == found[1]
    assert found[0][0] == ExitCode.PROFILE
    assert [*workspace.glob("build/.probe-*")] == []


def test_workers_run_firmware(
    workspace: Path, cluster: LocalCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    need_emulator("cortex-m4")
    shutil.copytree(CORPUS / "add_mul", workspace / "scenarios")
    (workspace / "scenarios" / "case.json").rename(workspace / "scenarios/right.json")
    options = ["--scheduler", cluster.scheduler_address, "-p", "right"]
    assert run(["run", "--json", *options]) == 0
    (product,) = json.loads(capsys.readouterr().out)["products"]
    assert product["result"] == "outputs right"


def test_a_worker_with_another_program_is_not_used(
    refused: Callable[[str], str], cluster: LocalCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = scheduler.own_facts()
    facts = iter(({**own, "digest": "ours"}, {**own, "digest": "theirs"}))
    # The worker is asked first.
    monkeypatch.setattr(scheduler, "own_facts", lambda: next(facts))
    said = refused(cluster.scheduler_address)
    assert "error[no-scheduler]" in said
    assert "digest ours, here theirs" in said


def test_a_worker_without_the_workspace_is_not_used(
    refused: Callable[[str], str], cluster: LocalCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scheduler, "write_atomic", lambda path, _: path.symlink_to("-"))
    said = refused(cluster.scheduler_address)
    assert "workspace not there, here there" in said


def test_a_scheduler_that_is_not_there(
    refused: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scheduler, "_CONNECT_S", 0.1)
    said = refused("tcp://127.0.0.1:1")
    assert "the scheduler at tcp://127.0.0.1:1 cannot be used" in said


def test_a_scheduler_without_workers(refused: Callable[[str], str]) -> None:
    with _cluster(0) as empty:
        assert "found: it has no worker" in refused(empty.scheduler_address)


def test_dask_is_an_extra(refused: Callable[[str], str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    said = refused("tcp://127.0.0.1:1")
    assert "error[missing-package]: the package distributed is not installed" in said
