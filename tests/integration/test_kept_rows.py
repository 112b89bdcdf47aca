"""Inputs that stay, in models by rows."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.conftest import CORPUS
from tests.product import Product

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

INPUT_BYTES = 96 * 96 * 3
"""Of an input that outputs lie over otherwise."""


def test_an_input_that_stays_lies_under_no_output(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = CORPUS / "vww_mobilenetv1_int8_m55" / "model.pte"
    sizes = []
    for name, io in (("reused", ""), ("kept", "input0 = { reuse = false }\n")):
        profile = tmp_path / f"{name}.toml"
        profile.write_text(
            f'schema = 1\nname = "{name}"\n[target]\ncpu = "cortex-m4"\n'
            '[kernels]\nlibraries = ["cortex_m", "quantized", "portable"]\n'
            '[memory]\nfuse = "smallest"\n'
            f'[[models]]\nname = "net"\npath = "{model}"\nload = "prelinked"\n'
            f"[models.io]\nquantized = true\n{io}"
        )
        capsys.readouterr()
        product = Product(profile=profile, out=tmp_path / name)
        assert product.run("memory", "--json") == 0
        (arena,) = json.loads(capsys.readouterr().out)["arenas"]
        sizes.append(arena["size_bytes"])
    reused, kept = sizes
    assert reused < INPUT_BYTES + 2_000
    assert kept > INPUT_BYTES + 10_000
