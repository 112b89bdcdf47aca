"""Many models in one firmware: their tables take more flash than their kernels."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from orchestrator.method.passes import PASSES
from tests.doc_blocks import ROOT
from tests.estimates import check_estimate
from tests.product import Product
from tests.tools import need_toolchain

if TYPE_CHECKING:
    from pathlib import Path

_COUNT = 50
_PLACES = range(-20_000, -16_000, 500)
_MORE = -5000
"""Bytes of weights in the program, counted from its end; the last one is the first of
a layer in which the models change a byte each."""


@pytest.mark.toolchain
def test_fifty_models_fit_an_m55(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Their weights fill its first flash, and their tables are there, too."""
    need_toolchain("cortex-m55", "zig")
    text = (
        'schema = 1\nname = "many"\n[target]\ncpu = "cortex-m55"\ntoolchain = "zig"\n'
        f"[passes]\nskip = {json.dumps([*PASSES])}\n"
        '[kernels]\nlibraries = ["cortex_m", "quantized", "portable"]\n'
    )
    net = (ROOT / "examples" / "models" / "kws_dscnn_int8.pte").read_bytes()
    for number in range(_COUNT):
        own = bytearray(net)
        for place in _PLACES:
            own[place] = (own[place] + number) % 256
        own[_MORE + number] ^= 1
        (tmp_path / f"m{number}.pte").write_bytes(own)
        text += f'[[models]]\nname = "m{number}"\npath = "m{number}.pte"\n'
        text += 'load = "prelinked"\n'
    profile = tmp_path / "many.toml"
    profile.write_text(text)
    product = Product(profile=profile, out=tmp_path / "out")
    assert product.run("check") == 0
    assert "everything fits" in capsys.readouterr().out
    assert product.run("build") == 0
    check_estimate(profile, product.out)
    report: Any = product.report()
    used = {r["name"]: r["used_bytes"] for r in report["regions"]}
    assert used["itcm"] <= 512 * 1024 < used["itcm"] + used["code_sram"]
