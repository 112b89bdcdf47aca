"""Packed weights give the bits of the plain kernel, for windows of every kind.

A product of methods with one random call each runs on the host, whose kernel is plain
C++, and on cores with DSP or vector instructions, where the build packs what the packed
kernels can take, and leaves the rest.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import pytest

from orchestrator.method.passes import prepare_calls
from orchestrator.method.passes.inventory import PACKED
from tests.qemu.call_products import Guarded, linked_calls, run_calls, write_calls
from tests.qemu.linked_names import isa_of, packed_names
from tests.tools import need_emulator, need_toolchain
from tests.unit.method.random_convolutions import Images, RandomCalls, Windows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from orchestrator.method.passes.arguments import Arguments
    from orchestrator.method.passes.preparing.form import Form, Preparer
    from tests.unit.method.recorded_calls import Call

pytestmark = [pytest.mark.toolchain, pytest.mark.qemu]

COUNT: Final = 150
NARROW: Final = 40
"""Further ones, of `narrow`."""
CORES: Final = (
    *(("cortex-m4", "gnu", "size"), ("cortex-m4", "zig", "speed")),
    *(("cortex-m33", "gnu", "speed"), ("cortex-m7", "zig", "size")),
    *(("cortex-m55", "gnu", "size"), ("cortex-m55", "zig", "speed")),
    # Plain kernels, in another instruction set.
    pytest.param(("cortex-m0plus", "gnu", "size"), marks=pytest.mark.nightly),
)
TWO_CORES: Final = (
    ("cortex-m4", "zig", "size"),
    pytest.param(("cortex-m7", "gnu", "speed"), marks=pytest.mark.nightly),
)
BAND_CORES: Final = (("cortex-m55", "zig", "size"), ("cortex-m55", "gnu", "speed"))


def _calls() -> Iterator[Call]:
    random = RandomCalls()
    for number in range(COUNT):
        kinds = (
            *(random.image, random.depthwise, random.words, random.matrix),
            *(random.words, random.first),
        )
        rest = {6: random.lines, 4: random.transposed}
        yield rest.get(number % 8, kinds[number % len(kinds)])()
    others = RandomCalls(19)
    for _ in range(NARROW):
        yield others.narrow()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program, and a scenario that calls all of its methods."""
    folder = tmp_path_factory.mktemp("packed")
    write_calls(folder, [(call, frozenset({0})) for call in _calls()])
    return folder


@pytest.fixture(scope="module")
def plain(folder: Path) -> list[Guarded]:
    """Outputs of plain C++ on the host."""
    need_toolchain("host", "zig")
    return run_calls(folder, "host", "zig")[1]


@pytest.fixture
def change_no_bit(
    folder: Path, plain: list[Guarded], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., None]:
    """Lets kernels for bands have all calls of those that they may replace, and compares bits."""

    def check(core: tuple[str, str, str], family: str = "") -> None:
        cpu, toolchain, optimize = core
        need_toolchain(cpu, toolchain)
        need_emulator(cpu)
        replaced, changed = {}, dict(prepare_calls.PREPARERS)
        rows = {row.name: row for row in PACKED}
        for row in rows.values():
            is_there = row.instead_of and row.isa == isa_of(cpu) and row.when in {"", optimize}
            if is_there and family in {"", row.of}:
                wide = rows[row.instead_of]
                for limited in (False, True):
                    function, other = (of.function(is_limited=limited) for of in (wide, row))
                    replaced[function] = other
                    prepare = changed[f"{function}_out"]
                    changed[f"{function}_out"] = partial(_instead, prepare=prepare, function=other)
        monkeypatch.setattr(prepare_calls, "PREPARERS", changed)
        monkeypatch.setenv("ORCHESTRATOR_CACHE", str(tmp_path))
        product, outputs = run_calls(folder, cpu, toolchain, optimize=optimize, name="bands-")
        different = [n for n in range(COUNT + NARROW) if outputs[n] != plain[n]]
        assert different == []
        functions = {call.function for call in linked_calls(product)}
        assert functions >= {*replaced.values()}
        assert functions.isdisjoint(replaced)

    return check


def test_a_convolution_alone_of_one_channel_in_each_group_has_its_kernel(tmp_path: Path) -> None:
    """With DSP that of depthwise ones, whose sources only these have to name otherwise."""
    need_toolchain("cortex-m4", "gnu")
    need_emulator("cortex-m4")
    random = RandomCalls()
    call = random.call(
        Images((5, 5), 1, 4, 8),
        Windows((2, 2), (1, 1), (0, 0), (1, 1)),
        (-128, -128, 127),
        depthwise=False,
    )
    write_calls(tmp_path, [(call, frozenset({0}))])
    product, _ = run_calls(tmp_path, "cortex-m4", "gnu")
    (linked,) = linked_calls(product)
    assert linked.function == "orch::cortex_m::packed_depthwise"


@pytest.mark.parametrize("core", TWO_CORES, ids="-".join)
def test_two_pixels_at_once_change_no_bit(
    core: tuple[str, str, str], change_no_bit: Callable[..., None]
) -> None:
    """Calls get the kernel for bands of few pixels, which takes all of them."""
    change_no_bit(core, "Pairs")


@pytest.mark.parametrize("core", BAND_CORES, ids="-".join)
def test_odd_pixels_by_themselves_change_no_bit(
    core: tuple[str, str, str], change_no_bit: Callable[..., None]
) -> None:
    """The same of kernels for bands with vectors."""
    change_no_bit(core)


def _instead(arguments: Arguments, isa: str, prepare: Preparer, function: str) -> Form:
    return replace(prepare(arguments, isa), function=function)


@pytest.mark.parametrize("core", CORES, ids="-".join)
def test_packed_weights_change_no_bit(
    core: tuple[str, str, str],
    folder: Path,
    plain: list[Guarded],
    record_property: Callable[[str, object], None],
) -> None:
    cpu, toolchain, optimize = core
    need_toolchain(cpu, toolchain)
    need_emulator(cpu)
    product, outputs = run_calls(folder, cpu, toolchain, optimize=optimize)
    assert len(plain) == len(outputs) == COUNT + NARROW
    different = [n for n in range(COUNT + NARROW) if outputs[n] != plain[n]]
    assert different == []
    packed = sum("packed_" in call.function for call in linked_calls(product))
    record_property("packed", packed)
    if cpu == "cortex-m0plus":
        assert packed == 0
        return
    assert COUNT / 4 < packed < COUNT + NARROW
    symbols: Any = product.report()["symbols"]
    names = {symbol["name"] for symbol in symbols}
    # Some call takes each, with limits and without.
    is_taken = packed_names(cpu, optimize, lambda row: row.is_whole and row.weights == "int8")
    assert is_taken <= names
