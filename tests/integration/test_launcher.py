"""Objects from ccache: the same bytes, compiled once."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from orchestrator.shell.settings import LAUNCHER as VARIABLE
from tests.product import make_product
from tests.tools import need_tool, need_toolchain

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.toolchain


def _counted(name: str) -> int:
    """One of ccache's counters."""
    done = subprocess.run(
        [need_tool("ccache"), "--print-stats"], capture_output=True, text=True, check=True
    )
    return int(dict(line.split() for line in done.stdout.splitlines())[name])


def test_a_product_elsewhere_has_the_same_bytes_and_compiles_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    need_toolchain("cortex-m4", "zig")
    need_tool("ccache")
    monkeypatch.setenv("CCACHE_DIR", str(tmp_path / "ccache"))
    outputs = []
    for folder, launcher in (("a", ""), ("b/deeper", "ccache"), ("c", "ccache")):
        monkeypatch.setenv(VARIABLE, launcher)
        product = make_product(tmp_path / folder, "add_mul", cpu="cortex-m4", toolchain="zig")
        before = _counted("cache_miss")
        assert product.run("build") == 0
        outputs.append(
            {n: (product.out / n).read_bytes() for n in ("firmware.elf", "report.json")}
            | {"lock": product.lock.read_bytes()}
        )
        if folder == "c":
            assert _counted("direct_cache_hit") > 0
            assert _counted("cache_miss") == before
    assert outputs[0] == outputs[1] == outputs[2]
    assert "ccache" not in (product.out / "build.ninja").read_text()
    hits = _counted("direct_cache_hit")
    shutil.rmtree(product.out)
    assert product.run("build", "--frozen") == 0
    assert product.run("verify") == 0
    assert _counted("direct_cache_hit") == hits
