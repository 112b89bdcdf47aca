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

if TYPE_CHECKING:
    from collections.abc import Iterator
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


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    """A scheduler with one worker, which is a thread of this process."""
    with LocalCluster(  # type: ignore[no-untyped-call]
        n_workers=1,
        threads_per_worker=1,
        processes=False,
        protocol="tcp",
        dashboard_address=":0",
    ) as found:
        yield found


def _check(address: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    capsys.readouterr()
    code = run(["check", "--scheduler", address])
    said = capsys.readouterr()
    return code, said.out + said.err


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


def test_a_worker_with_another_program_is_not_used(
    workspace: Path,
    cluster: LocalCluster,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    del workspace
    own = scheduler.own_facts()
    facts = iter(({**own, "digest": "ours"}, {**own, "digest": "theirs"}))
    # The worker is asked first.
    monkeypatch.setattr(scheduler, "own_facts", lambda: next(facts))
    code, said = _check(cluster.scheduler_address, capsys)
    assert code == ExitCode.TOOLCHAIN
    assert "error[no-scheduler]" in said
    assert "digest ours, here theirs" in said


def test_a_worker_without_the_workspace_is_not_used(
    workspace: Path,
    cluster: LocalCluster,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    del workspace
    monkeypatch.setattr(scheduler, "write_atomic", lambda path, _: path.symlink_to("-"))
    code, said = _check(cluster.scheduler_address, capsys)
    assert code == ExitCode.TOOLCHAIN
    assert "workspace not there, here there" in said


def test_a_scheduler_that_is_not_there(
    workspace: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    del workspace
    monkeypatch.setattr(scheduler, "_CONNECT_S", 0.1)
    code, said = _check("tcp://127.0.0.1:1", capsys)
    assert code == ExitCode.TOOLCHAIN
    assert "the scheduler at tcp://127.0.0.1:1 cannot be used" in said
    assert "Traceback" not in said


def test_a_scheduler_without_workers(
    workspace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    del workspace
    with LocalCluster(  # type: ignore[no-untyped-call]
        n_workers=0, processes=False, protocol="tcp", dashboard_address=":0"
    ) as empty:
        code, said = _check(empty.scheduler_address, capsys)
    assert code == ExitCode.TOOLCHAIN
    assert "found: it has no worker" in said


def test_dask_is_an_extra(
    workspace: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    del workspace
    monkeypatch.setitem(sys.modules, "distributed", None)
    code, said = _check("tcp://127.0.0.1:1", capsys)
    assert code == ExitCode.TOOLCHAIN
    assert "error[missing-package]" in said
