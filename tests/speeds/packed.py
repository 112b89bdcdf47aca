"""Calls that builds pack for each kernel of the inventory, and what the kernels execute."""

from __future__ import annotations

import io
import json
from contextlib import redirect_stdout
from typing import TYPE_CHECKING, Any, Final

from orchestrator.build import BuildOptions, Project, load, open_build, table
from orchestrator.method.linked import LinkedCall
from orchestrator.shell.toolchain import find_toolchain
from orchestrator.targets.cores import resolve_target
from tests.product import Product
from tests.qemu.call_products import write_calls
from tests.speeds.calls import Timed, full, given, result
from tests.unit.method.recorded_calls import Call

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_HALF: Final = 1 << 30
_SIZE, _CHANNELS, _DEPTH, _OUTPUTS = 16, 16, 256, 32


def packed_calls() -> Iterator[Timed]:
    """For each family of each core one call."""
    sizes, order, one = (1, _CHANNELS, _SIZE, _SIZE), (0, 2, 3, 1), (1, 1)
    x = given("c", *sizes, low=-128, high=128, order=order)
    bias = given("i", _OUTPUTS, low=-1000, high=1000)
    scratch, taps = full("B", 0, 0), 9 * _SIZE * _SIZE * _CHANNELS
    for name, outputs, most, offset in (
        *(("conv2d", _OUTPUTS, 128, -4), ("conv2d", _OUTPUTS, 8, -4)),
        # Outputs from the lowest item on have kernels of their own.
        *(("depthwise_conv2d", _CHANNELS, 128, -4), ("depthwise_conv2d", _CHANNELS, 128, -128)),
    ):
        each = given("i", outputs, low=-1000, high=1000)
        is_depthwise = "depthwise" in name
        shape = (1, 3, 3, outputs) if is_depthwise else (outputs, 3, 3, _CHANNELS)
        w = given("c", *shape, low=-most, high=most)
        scales = (full("i", _HALF, outputs), full("i", -8, outputs), -128, 127, scratch)
        windows = (one, one, one, *((1,) if is_depthwise else ()))
        y = result("c", 1, outputs, _SIZE, _SIZE, order=order)
        args = (x, w, each, *windows, 3, offset, *scales, y)
        products = taps if is_depthwise else taps * outputs
        yield Timed(Call(f"cortex_m::quantized_{name}.out", args), products, "product")
    for most in (128, 8):
        w = given("c", _OUTPUTS, _DEPTH, low=-most, high=most)
        row = given("c", 1, _DEPTH, low=-128, high=128)
        args = (row, w, bias, None, 3, 0, -4, (_HALF,), (-6,), 127, -128, result("c", 1, _OUTPUTS))
        yield Timed(Call("cortex_m::quantized_linear.out", args), _DEPTH * _OUTPUTS, "product")


def count_packed(cpu: str, toolchain: str, folder: Path) -> tuple[str, dict[str, float]]:
    """The compiler, and instructions for each product by kernel.

    Args:
        cpu: Core.
        toolchain: Compiler.
        folder: An empty one.
    """
    timed = [*packed_calls()]
    write_calls(folder, [(one.call, frozenset({0})) for one in timed])
    profile = folder / "packed.toml"
    profile.write_text(
        f'schema = 1\nname = "packed"\n[target]\ncpu = "{cpu}"\ntoolchain = "{toolchain}"\n'
        '[kernels]\nlibraries = ["cortex_m", "quantized", "portable"]\n'
        '[[models]]\nname = "nets"\npath = "nets.pte"\nload = "prelinked"\n'
    )
    product = Product(profile=profile, out=folder / "out")
    printed = io.StringIO()
    with redirect_stdout(printed):
        scenario = str(folder / "scenario.json")
        assert product.run("run", "--json", "--profile", "--scenario", scenario) == 0
    build = open_build(Project(load(profile), BuildOptions(out=product.out)))
    (linked,) = build[table.REPLAN].linked.values()
    calls = {
        (method.name, number): call.function
        for method in linked
        for number, call in enumerate(method.instructions)
        if isinstance(call, LinkedCall)
    }
    units = {f"m{number}": one.units for number, one in enumerate(timed)}
    rows: Any = json.loads(printed.getvalue())["profile"]["instructions"]
    found = {}
    for row in rows:
        name = calls[row["method"], row["instruction"]].rpartition("::")[2]
        found[name] = row["total"] / units[row["method"]]
    target = resolve_target(cpu=cpu, isa=None, board=None, toolchain=toolchain, optimize="size")
    return find_toolchain(target).version, found
