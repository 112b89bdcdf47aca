"""Names and paths that are meant by others."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.errors import did_you_mean, nearest, nearest_path


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("cortex-m5", "cortex-m55"),  # as near as cortex-m85, which it does not begin
        ("m4", ""),
        ("m85", "cortex-m85"),
        ("CORTEX-M85", "cortex-m85"),
        ("cortx-m4", "cortex-m4"),
        ("an547", "mps3-an547"),
        ("an54", ""),
        ("host", ""),
        ("", ""),
        ("c" * 300, ""),
    ],
)
def test_names(name: str, near: str) -> None:
    known = ("cortex-m4", "cortex-m55", "cortex-m85", "mps3-an547")
    assert nearest(name, known) == near
    assert nearest(name, reversed(known)) == near
    assert did_you_mean(name, known) == (f'did you mean "{near}"?' if near else "")
    assert nearest(name, ()) == ""


@pytest.mark.parametrize(
    ("path", "near"),
    [
        ("models/motin.pte", "models/motion.pte"),
        ("model/motion.pte", "models/motion.pte"),
        ("modls/motin.pte", "models/motion.pte"),
        ("models/motion", "models/motion.pte"),
        ("wristbnd.toml", "wristband.toml"),
        ("models/digits.pte", None),
        ("elsewhere/motion.pte", None),
        ("a" * 300, None),
        (f"{'a' * 300}/motion.pte", None),
    ],
)
def test_paths(path: str, near: str | None, tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    for name in ("models/motion.pte", "wristband.toml", "wristband.lock"):
        (tmp_path / name).touch()
    assert nearest_path(tmp_path / path) == (near and tmp_path / near)
    assert nearest_path(Path("/")) is None
