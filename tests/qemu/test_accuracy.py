"""`evaluate --emulator`: a board's firmware gives the bits of the host."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from orchestrator.cli.main import run
from orchestrator.shell.toolchain import InstalledToolchains
from tests.tools import need_emulator, need_toolchain

if TYPE_CHECKING:
    from collections.abc import Callable

DIGITS = Path(__file__).resolve().parents[2] / "examples" / "digits"

pytestmark = [pytest.mark.toolchain, pytest.mark.qemu]


@pytest.fixture
def evaluate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., dict[str, Any]]:
    """Runs `evaluate` on some of the digits."""
    need_toolchain("host", InstalledToolchains().name_for_host())
    need_toolchain("cortex-m55", "zig")

    def evaluate(*arguments: str) -> dict[str, Any]:
        capsys.readouterr()
        code = run(
            [
                *("evaluate", str(DIGITS / "digits-m55.toml"), "--json", "--no-lock"),
                *("--out", str(tmp_path / "out"), "--data", str(DIGITS / "digits.npz")),
                *("--samples", "890:910", *arguments),
            ]
        )
        said = capsys.readouterr()
        assert code == 0, said.out + said.err
        found: dict[str, Any] = json.loads(said.out)
        return found

    return evaluate


def test_the_emulator_gives_what_the_host_gives(
    evaluate: Callable[..., dict[str, Any]], tmp_path: Path
) -> None:
    need_emulator("cortex-m55")
    board, host = tmp_path / "board.jsonl", tmp_path / "host.jsonl"
    found = evaluate("--emulator", "--results", str(board))
    assert found.pop("on") == "mps3-an547"
    expected = evaluate("--results", str(host))
    assert expected.pop("on") == "host"
    assert found == expected
    assert found["samples"] == 20
    lines = [path.read_text().splitlines()[1:] for path in (board, host)]
    assert lines[0] == lines[1]
    assert len(lines[0]) == 20
