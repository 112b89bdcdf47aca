"""docs/getting-started.md: its `export.py` writes what the other tests take from it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

from tests.doc_blocks import blocks

PYTHON = os.environ.get("EXECUTORCH_PYTHON", "")
WRITTEN = Path(__file__).parents[1] / "data" / "getting_started"

pytestmark = [
    pytest.mark.executorch,
    pytest.mark.skipif(
        not PYTHON, reason="EXECUTORCH_PYTHON is not set; see `nox -s interop`"
    ),
]


def test_the_script_writes_what_is_checked_in(tmp_path: Path) -> None:
    script = tmp_path / "export.py"
    script.write_text(blocks("python")["docs/getting-started.md 1"].text)
    subprocess.run([PYTHON, str(script)], cwd=tmp_path, check=True, capture_output=True)
    for name in ("image.npy", "scores.npy"):
        np.testing.assert_allclose(
            np.load(tmp_path / name), np.load(WRITTEN / name), rtol=1e-5, atol=1e-6
        )
    assert (tmp_path / "model.pte").stat().st_size == (
        WRITTEN / "model.pte"
    ).stat().st_size
