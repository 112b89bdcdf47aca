"""What the kernels give on this machine, compiled as plain C++ for all dtypes."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

from tests.cpp.support.suite import build
from tests.unit.method.recorded_calls import calls_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tests.unit.method.recorded_calls import Call


def recorded(calls: Sequence[Call], folder: Path) -> list[tuple[bytes, ...] | None]:
    """By call: the memory of its outputs, or the number that it returns.

    None where the kernel fails.
    """
    program = build()["all_dtypes"]
    (folder / "calls.bin").write_bytes(calls_bytes(calls))
    done = subprocess.run(
        [program, "--no-version", "--test-case=what kernels give is recorded"],
        env={"ORCH_CALLS": str(folder / "calls.bin"), "ORCH_RECORD": str(folder / "outs.bin")},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    data = (folder / "outs.bin").read_bytes()
    found: list[tuple[bytes, ...] | None] = []
    at = 0
    for call in calls:
        passed, at = data[at], at + 1
        outs = []
        for out in call.outs:
            outs.append(data[at : at + len(out.data)])
            at += len(out.data)
        if call.returned:
            outs.append(data[at : at + 8])
            at += 8
        found.append(tuple(outs) if passed else None)
    assert at == len(data)
    return found
