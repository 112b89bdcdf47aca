"""docs/getting-started.md from its first line to its last, training and export too."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests.tools import need_toolchain
from tests.tutorial import EXAMPLE, follow, make_distributions

if TYPE_CHECKING:
    from pathlib import Path

PYTHON = os.environ.get("EXECUTORCH_PYTHON", "")

pytestmark = [
    pytest.mark.executorch,
    pytest.mark.skipif(not PYTHON, reason="EXECUTORCH_PYTHON is not set; see `nox -s interop`"),
]


def test_the_page_works_and_writes_what_is_checked_in(tmp_path: Path) -> None:
    need_toolchain("cortex-m4", "zig")
    (tmp_path / "dist").mkdir()
    folder = follow(tmp_path, make_distributions(tmp_path / "dist"), PYTHON)
    for name in ("in0.npy", "out0.npy"):
        np.testing.assert_allclose(np.load(folder / name), np.load(EXAMPLE / name), rtol=1e-5)
    assert (folder / "gestures.csv").read_text() == (EXAMPLE / "gestures.csv").read_text()
    size = (folder / "gestures.pte").stat().st_size
    assert size == (EXAMPLE / "gestures.pte").stat().st_size
