"""Two products in one program: each computes what it computes alone.

They are traced, and differ in what the runtime is compiled for: one is prelinked and
has compact tables; the other loads its programs, has dynamic sizes, checks, and another
ISA. Both have one model in common, so their kernels have the same names.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
import pytest

from orchestrator.emit.compile import CompileUnit
from tests.conftest import CORPUS
from tests.product import Product
from tests.qemu.bare_firmware import run_firmware
from tests.tools import need_emulator, need_tool, need_toolchain

if TYPE_CHECKING:
    from typing import Any

pytestmark = [pytest.mark.toolchain, pytest.mark.qemu]

ROOT: Final = Path(__file__).parents[2]
APPLICATION: Final = Path(__file__).with_name("two_products.cpp")
_TARGETS: Final = {
    # target of the first product, and of the second
    "host": ("", ""),
    "cortex-m4": ("", 'isa = "scalar"'),
    "cortex-m55": ("", 'isa = "dsp"'),
}
_MODELS: Final = {
    "first": '[[models]]\nname = "net"\npath = "net.pte"\nload = "prelinked"\n',
    "second": "".join(
        f'[[models]]\nname = "{name}"\npath = "{name}.pte"\n'
        for name in ("net", "counter", "batch")
    )
    + '[scratch]\nruntime_check = "always"\n',
}


def _products(folder: Path, cpu: str, toolchain: str) -> tuple[Product, Product]:
    for name, source in (
        ("net", "linear_softmax"),
        ("counter", "counter"),
        ("batch", "dynamic_batch"),
    ):
        shutil.copyfile(CORPUS / source / "model.pte", folder / f"{name}.pte")
    found = []
    for name, isa in zip(_MODELS, _TARGETS[cpu], strict=True):
        profile = folder / f"{name}.toml"
        profile.write_text(
            f'schema = 1\nname = "{name}"\n[target]\ncpu = "{cpu}"\n'
            f'toolchain = "{toolchain}"\n{isa}\n'
            f"{_MODELS[name]}[trace]\nenable = true\n"
        )
        product = Product(profile=profile, out=folder / name)
        assert product.run("build", "--quiet") == 0
        found.append(product)
    first, second = found
    return first, second


def _input() -> Any:
    return np.load(CORPUS / "linear_softmax" / "in0.npy").astype("<f4").ravel()


def _check(both: list[int], first: list[int], second: list[int]) -> None:
    """Alone, the words of the other product are zeros."""
    assert both == [a | b for a, b in zip(first, second, strict=True)]
    assert both[0] == 0
    expected = np.load(CORPUS / "linear_softmax" / "out0.npy").ravel()
    scores = np.array(both[1:41], "<i4").view("<f4")
    np.testing.assert_allclose(scores, expected, rtol=1e-5)
    assert both[1:41] == both[44:84]  # the same model in the other product
    # Instructions that each product's hooks recorded, by method.
    assert all(both[192:196])
    assert not any(both[196:])


def _strong_symbols(library: Path) -> set[str]:
    listed = subprocess.run(
        [need_tool("nm"), "--defined-only", "--extern-only", str(library)],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    words = [line.split() for line in listed.splitlines()]
    return {w[2] for w in words if len(w) == 3 and w[1] not in "VWu"}


@pytest.mark.parametrize(("cpu", "toolchain"), [("cortex-m4", "gnu"), ("cortex-m55", "zig")])
def test_a_firmware_of_two_products(cpu: str, toolchain: str, tmp_path: Path) -> None:
    need_toolchain(cpu, toolchain)
    need_emulator(cpu)
    first, second = _products(tmp_path, cpu, toolchain)
    libraries = {p.profile.stem: p.out / f"lib{p.profile.stem}.a" for p in (first, second)}
    names = [_strong_symbols(library) for library in libraries.values()]
    assert all(len(n) > 50 for n in names)
    assert not names[0] & names[1]
    answers = []
    for without in ("", "SECOND", "FIRST"):
        folder = tmp_path / f"without{without}"
        folder.mkdir()
        macro = (f"-DHAS_{without}=0",) if without else ()
        includes = tuple(f"-I{p.out / 'include'}" for p in (first, second))

        def unit(
            flags: tuple[str, ...], more: tuple[str, ...] = (*macro, *includes)
        ) -> list[CompileUnit]:
            return [CompileUnit(str(APPLICATION), "obj/app.o", (*flags, *more))]

        answers.append(
            run_firmware(
                folder,
                target=(cpu, {"cortex-m4": "dsp", "cortex-m55": "mve"}[cpu], toolchain),
                sources=(),
                units=unit,
                libraries=[p for n, p in libraries.items() if n != without.lower()],
                request=_input().view("<u4").tolist(),
            )
        )
    _check(*answers)


def test_a_program_of_two_products(tmp_path: Path) -> None:
    """On the host; the application is optimized at link time."""
    need_toolchain("host", "gnu")
    gcc = need_tool("g++")
    products = _products(tmp_path, "host", "gnu")
    (tmp_path / "request").write_bytes(_input().tobytes())
    platform = ROOT / "runtime/platform/posix/platform.cpp"
    includes = [f"-I{p.out / 'include'}" for p in products]
    includes += [f"-I{ROOT / 'runtime/include'}"]
    answers = []
    for without in ("", "SECOND", "FIRST"):
        macro = [f"-DHAS_{without}=0"] if without else []
        libraries = [
            str(p.out / f"lib{p.profile.stem}.a")
            for p in products
            if p.profile.stem != without.lower()
        ]
        flags = ["-O2", "-flto", "-no-pie", "-Wall", "-Wextra", "-Werror", *macro]
        sources = [str(APPLICATION), str(platform)]
        command = [gcc, "-std=c++17", *flags, *includes, *sources, *libraries]
        subprocess.run([*command, "-o", "program"], cwd=tmp_path, check=True)
        run = ["./program", "request", "response"]
        subprocess.run(run, cwd=tmp_path, check=True, timeout=60)
        answers.append(np.fromfile(tmp_path / "response", "<i4").tolist())
    _check(*answers)
