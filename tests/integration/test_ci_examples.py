"""examples/ci/size_diff.sh in a repository of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.integration.workspace import ROOT, write_product
from tests.tools import need_tool, need_toolchain

if TYPE_CHECKING:
    from pathlib import Path

SCRIPT = ROOT / "examples" / "ci" / "size_diff.sh"


@pytest.mark.toolchain
def test_what_a_change_costs(tmp_path: Path) -> None:
    git = need_tool("git")
    need_toolchain("host", "zig")
    program = tmp_path / "bin" / "orchestrator"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m orchestrator "$@"\n')
    program.chmod(0o755)
    repository = tmp_path / "repository"
    write_product(repository / "firmware", case="add_mul")
    env = {
        **os.environ,
        "PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "GIT_CONFIG_GLOBAL": os.devnull,
    }

    def run(*command: str, folder: str = "") -> str:
        done = subprocess.run(
            command, cwd=repository / folder, env=env, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    run(git, "init", "-q")
    run(git, "add", ".")
    who = ("-c", "user.name=a", "-c", "user.email=a@b")
    run(git, *who, "commit", "-qm", "base")
    profile = repository / "firmware" / "product.toml"
    profile.write_text(f'{profile.read_text()}\n[operators]\ninclude = ["relu.out"]\n')
    text = profile.read_text().replace('"product"', '"new"')
    profile.with_name("new.toml").write_text(text)
    run("orchestrator", "build", "product.toml", "new.toml", folder="firmware")
    shown = run("/bin/sh", str(SCRIPT), "HEAD", "product.toml", "new.toml", folder="firmware")
    first, second = shown.split("### Size of ")[1:]
    assert first.startswith("`product.toml`\n\n```\n")
    assert "op_relu" in first
    assert first.endswith("\n```\n")
    assert "there is no such profile in `HEAD`" in second
    assert "\nflash " in second
    assert run(git, "worktree", "list").count("\n") == 1
