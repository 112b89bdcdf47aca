"""Memory of a check does not grow by the bytes of a program."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.program.large_program import linear_program

_RUN = """
import sys
from orchestrator.cli.main import run
code = run(sys.argv[1:])
with open("/proc/self/status") as status:
    peak = next(line.split()[1] for line in status if line.startswith("VmHWM"))
print("peak", peak)
sys.exit(code)
"""
_PROFILE = """\
schema = 1
name = "large"
[target]
cpu = "host"
toolchain = "zig"
[[models]]
path = "large.pte"
load = "{load}"
"""


def _peak_bytes(folder: Path, *arguments: str) -> int:
    """Most memory of a command, file pages included."""
    found = subprocess.run(
        [sys.executable, "-c", _RUN, *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    return 1024 * int(found.stdout.split()[-1])


@pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="the system does not say its peak"
)
@pytest.mark.parametrize("load", ["prelinked", "pte"])
def test_a_check_does_not_hold_constants(tmp_path: Path, load: str) -> None:
    """What a program of 32 MiB needs more than one of 128 KiB."""
    (tmp_path / "p.toml").write_text(_PROFILE.format(load=load))
    peaks = []
    for layers, width in ((2, 128), (32, 512)):
        data = linear_program(layers, width)
        (tmp_path / "large.pte").write_bytes(data)
        peaks.append(_peak_bytes(tmp_path, "check", "p.toml"))
    assert len(data) > 32 << 20
    assert peaks[1] - peaks[0] < 0.3 * len(data)


@pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="the system does not say its peak"
)
def test_inspect_does_not_hold_constants(tmp_path: Path) -> None:
    (tmp_path / "large.pte").write_bytes(linear_program(32, 512))
    peak = _peak_bytes(tmp_path, "inspect", "large.pte")
    assert peak < 60 << 20
