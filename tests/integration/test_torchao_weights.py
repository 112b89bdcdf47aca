"""Weights that torchao quantized to 4 bits: stored so, with the outputs of PyTorch.

Programs, inputs and PyTorch's outputs are from tests/data/torchao/make_programs.py.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any, Final

import pytest

from tests.product import Product
from tests.targets import EVERY_PAIR
from tests.tools import need_emulator, need_toolchain

pytestmark = pytest.mark.toolchain

DATA: Final = Path(__file__).parents[1] / "data" / "torchao"
KERNELS: Final = {
    "groups": "orch::quantized::int4_mixed_linear_out",
    "rows": "orch::quantized::int4_mixed_linear_out",
    "image": "int4_packed_",
}
"""By model: what takes its weights."""
ATOL: Final = {"groups": 1e-6, "rows": 1e-6, "image": 0.0}
"""Sums of floats have an order, int8 has not."""
WEIGHTS: Final = {
    "groups": 96 * 64 + 5 * 96,
    "rows": 40 * 75 + 3 * 40,
    "image": 16 * 72 + 24 * 16 + 10 * 24,
}
"""By model: how many it has."""


def _outputs(folder: Path, name: str, cpu: str, keys: str) -> tuple[Product, bytes]:
    folder.mkdir(parents=True)
    shutil.copyfile(DATA / f"{name}.model.pte", folder / "model.pte")
    profile = folder / "product.toml"
    profile.write_text(
        'schema = 1\nname = "product"\n'
        f'[target]\ncpu = "{cpu}"\ntoolchain = "gnu"\n'
        '[kernels]\nlibraries = ["cortex_m", "quantized", "portable"]\n'
        f'[[models]]\nname = "{name}"\npath = "model.pte"\n{keys}'
    )
    product = Product(profile=profile, out=folder / "out")
    files = folder / "files"
    paths = ("--input", str(DATA / f"{name}.in0.npy"), "--output-dir", str(files))
    expected = ("--expect", str(DATA / f"{name}.out0.npy"), "--rtol", "0")
    tolerance = ("--atol", str(ATOL[name]))
    assert product.run("run", *paths, *expected, *tolerance) == 0
    (file,) = files.iterdir()
    return product, file.read_bytes()


def _model_bytes(product: Product) -> int:
    totals: Any = product.report()["totals"]
    assert isinstance(totals["model_bytes"], int)
    return totals["model_bytes"]


@pytest.mark.parametrize("name", sorted(KERNELS))
def test_outputs_are_those_of_pytorch_and_of_int8_weights(name: str, tmp_path: Path) -> None:
    need_toolchain("host", "gnu")
    load = 'load = "prelinked"\n'
    four, found = _outputs(tmp_path / "4", name, "host", load)
    off = '[passes]\nskip = ["pack_weights"]\n'
    eight, wanted = _outputs(tmp_path / "8", name, "host", load + off)
    assert found == wanted, "the same bits"
    functions = _functions(four)
    assert any(KERNELS[name] in function for function in functions)
    assert not any("int4_" in function for function in _functions(eight))
    saved = _model_bytes(eight) - _model_bytes(four)
    # Headers of packed int8 calls take some of it.
    part = 0.3 if name == "image" else 0.48
    assert saved > part * WEIGHTS[name]


def _functions(product: Product) -> set[str]:
    """Functions that the product's table of calls names."""
    text = (product.out / ".work" / "gen" / "src" / "api.cpp").read_text()
    return {word.strip("&,;(){}") for word in text.split() if "orch::" in word}


@pytest.mark.qemu
@pytest.mark.parametrize(
    "cpu", ["cortex-m4", *(("cortex-m0plus", "cortex-m55") if EVERY_PAIR else ())]
)
def test_cores_give_the_same(cpu: str, tmp_path: Path) -> None:
    need_toolchain(cpu, "gnu")
    need_emulator(cpu)
    for name in ("groups", "image"):
        product, _ = _outputs(tmp_path / name, name, cpu, 'load = "prelinked"\n')
        symbols: Any = product.report()["symbols"]
        assert any("int4_" in symbol["name"] for symbol in symbols)
