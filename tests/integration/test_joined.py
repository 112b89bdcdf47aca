"""Passes that join calls change no bit, on any of many nets made for them."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pytest

from orchestrator.method.passes import OPTIONAL, PASSES
from tests.integration.joined_functions import activation_nets, island_nets
from tests.integration.joined_limits import limited_nets
from tests.integration.joined_nets import write_nets
from tests.integration.joined_pads import pad_nets
from tests.integration.joined_transposes import norm_nets, transpose_nets
from tests.product import Product
from tests.tools import need_emulator, need_toolchain

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

pytestmark = pytest.mark.toolchain

NETS: Final = {
    "fold_pads": pad_nets,
    "fold_transposes": transpose_nets,
    "cancel_quantize": island_nets,
    "fuse_activations": activation_nets,
    "fuse_float_activations": limited_nets,
}
COUNT: Final = 60
CORES: Final = ("host", "cortex-m4", "cortex-m55")


@pytest.fixture(scope="module", params=NETS)
def folder(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, Path]:
    """The name of a pass, and programs for it with a scenario."""
    folder = tmp_path_factory.mktemp(request.param)
    write_nets(folder, NETS[request.param](COUNT), np.random.default_rng(3))
    return request.param, folder


def _outputs(
    folder: Path, cpu: str, load: str, skip: Collection[str], more: str = ""
) -> tuple[Product, dict[str, bytes]]:
    name = f"{cpu}-{load}-{len(skip)}{len(more)}"
    profile = folder / f"{name}.toml"
    profile.write_text(
        f'schema = 1\nname = "{name}"\n'
        f'[target]\ncpu = "{cpu}"\ntoolchain = "zig"\n'
        '[kernels]\nlibraries = ["cortex_m", "quantized", "portable"]\n'
        f'[[models]]\nname = "nets"\npath = "nets.pte"\nload = "{load}"\n'
        f"[passes]\nskip = {json.dumps([*skip])}\n{more}"
    )
    product = Product(profile=profile, out=folder / name)
    outputs = folder / f"{name}.outputs"
    scenario = ("--scenario", str(folder / "scenario.json"))
    assert product.run("run", *scenario, "--output-dir", str(outputs)) == 0
    return product, {path.name: _bits(path) for path in outputs.iterdir()}


def _bits(path: Path) -> bytes:
    """Those of an output; which NaN it is depends on the processor."""
    items: np.ndarray[Any, Any] = np.load(path)
    if items.dtype.kind == "f":
        items[np.isnan(items)] = np.nan
    return items.tobytes()


def _changed(product: Product) -> Counter[str]:
    """How many methods each pass changed."""
    methods: Any = product.report()["prelink"]
    return Counter(p["name"] for m in methods for p in m["passes"] if p["changed"])


@pytest.fixture(scope="module")
def plain(folder: tuple[str, Path]) -> dict[str, bytes]:
    """Outputs without passes."""
    need_toolchain("host", "zig")
    return _outputs(folder[1], "host", "prelinked", [*PASSES])[1]


@pytest.mark.parametrize("load", ["prelinked", "pte"])
def test_the_pass_alone_changes_no_bit(
    load: str, folder: tuple[str, Path], plain: dict[str, bytes]
) -> None:
    name, path = folder
    skip = [p for p in PASSES if p != name]
    product, outputs = _outputs(path, "host", load, skip)
    assert [n for n in plain if outputs[n] != plain[n]] == []
    if name == "fuse_float_activations" and load == "pte":
        assert _changed(product)[name] == 0  # needs prepared calls
        return
    # Near misses stay as they are.
    assert COUNT / 10 < _changed(product)[name] < COUNT


@pytest.mark.qemu
@pytest.mark.parametrize("cpu", ["cortex-m0plus", "cortex-m4", "cortex-m55"])
def test_all_passes_change_no_bit_on_a_core(
    cpu: str, folder: tuple[str, Path], plain: dict[str, bytes]
) -> None:
    if cpu == "cortex-m0plus" and folder[0] != "fuse_float_activations":
        pytest.skip("computes integers as the host does")
    need_toolchain(cpu, "zig")
    need_emulator(cpu)
    product, outputs = _outputs(folder[1], cpu, "prelinked", ())
    assert [n for n in plain if outputs[n] != plain[n]] == []
    assert _changed(product)[folder[0]] > COUNT / 12
    if folder[0] == "fold_pads":
        # Pads that only packed kernels can take, of nets of two calls: none is left.
        methods: Any = product.report()["prelink"]
        left = Counter(
            m["passes"][-1]["after"]["calls"] for m in methods if m["method"].startswith("same_")
        )
        assert left[1] > COUNT / 6
        assert left[2] == 0


@pytest.mark.parametrize("load", ["prelinked", "pte"])
def test_batch_normalization_in_weights_changes_last_bits(load: str, tmp_path: Path) -> None:
    need_toolchain("host", "zig")
    write_nets(tmp_path, norm_nets(40), np.random.default_rng(3))
    skip = [*PASSES]
    _, plain = _outputs(tmp_path, "host", "prelinked", skip)
    product, same = _outputs(tmp_path, "host", load, ())
    assert same == plain  # only where the profile wants it
    assert not OPTIONAL.keys() & _changed(product).keys()
    skip.remove("fold_batch_norm")
    more = "fold_batch_norm = true\n"
    product, found = _outputs(tmp_path, "host", load, skip, more)
    assert 10 < _changed(product)["fold_batch_norm"] < 40
    assert found != plain
    for name, bits in plain.items():
        one, other = (np.frombuffer(x, "<f4") for x in (bits, found[name]))
        assert np.allclose(one, other, rtol=1e-5, atol=1e-5 * np.abs(one).max()), name
