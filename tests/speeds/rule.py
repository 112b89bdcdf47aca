"""What every call of `random_calls`, and every int8 net, takes on one core.

    python -m tests.speeds.rule [TOOLCHAIN ...]

prints the calls that break the rule of tests/qemu/test_speed_rule.py. One product per
toolchain, instruction set and optimize has them all: a method whose instructions are
the calls, whose inputs are constants, and the nets. `run --profile` counts each. What
builds may pack is called twice, prelinked and by a loaded method.
"""

from __future__ import annotations

import argparse
import io
import json
import shutil
import tempfile
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from orchestrator.build import BuildOptions, Project, load, open_build, table
from orchestrator.method.linked import LinkedCall
from orchestrator.method.passes import unlink_program
from orchestrator.program.program import KernelCall
from orchestrator.program.reader import read_program
from orchestrator.program.values import TensorValue
from tests.conftest import CORPUS
from tests.opinfo.programs import program_of
from tests.product import Product
from tests.speeds.random_calls import random_calls
from tests.unit.method.recorded_calls import method_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tests.speeds.random_calls import Named

CPU: Final = "cortex-m55"
"""Has all instruction sets: only kernels differ."""
TOOLCHAINS: Final = ("gnu", "zig")
ISAS: Final = ("mve", "dsp", "scalar")
OPTIMIZE: Final = ("size", "speed")
SLACK: Final = 150
"""Instructions that a call may take more than the rule says: a fast path first finds
out, or sets up, what a slow one does not need. Only calls of a few items show it."""
SHARE: Final = 0.025
"""The same as a part of all: where a core has two loops, each pixel chooses one."""
NETS: Final = {
    "kws": CORPUS / "kws_dscnn_int8_m55",
    "resnet8": CORPUS / "ic_resnet8_int8_m55",
    **{path.stem: path for path in sorted((CORPUS.parent / "held_out").glob("*.pte"))},
}
_SKIPPED: Final = (
    *("fold_permutes", "fold_constants", "evaluate_constants", "alias_copies"),
    "drop_unused_calls",
)
"""Passes that would leave calls out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Broken:
    """A call that takes more than the rule says.

    Args:
        rule: Such as `dsp <= scalar`.
        where: The rest of the target, such as `size`.
        call: Its name; `loaded NAME` if a loaded method makes it.
        more: What it takes.
        less: What it may take.
    """

    rule: str
    where: str
    call: str
    more: int
    less: int

    @property
    def ratio(self) -> float:
        """How many times more."""
        return self.more / self.less

    def __str__(self) -> str:
        return (
            f"{self.rule} ({self.where}), {self.call}:"
            f" {self.more:,} > {self.less:,}, {self.ratio:.2f} times"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A product.

    Args:
        instructions: Of each call and net, by name.
        kernel_bytes: Of each source of kernels.
    """

    instructions: Mapping[str, int]
    kernel_bytes: Mapping[str, int]


def _write_calls(path: Path, calls: Sequence[Named]) -> None:
    """A program of one method that makes these calls; the last one is its output."""
    linked = method_of(named.call for named in calls)
    code = [c for c in linked.instructions if isinstance(c, LinkedCall)]
    operators = tuple(dict.fromkeys(c.operator for c in code))
    ends = (
        v.allocation.offset_bytes + v.size_bytes
        for v in linked.values
        if isinstance(v, TensorValue) and v.allocation is not None
    )
    base = read_program(program_of(calls[0].call, dynamic=False)[0], file="")
    method = replace(
        base.methods[0],
        values=linked.values,
        inputs=(),
        outputs=code[-1].outs,
        arena_bytes=(0, max(ends)),
        operators=operators,
        instructions=tuple(
            KernelCall(operator=operators.index(c.operator), args=(*c.args, *c.outs))
            for c in code
        ),
    )
    linked = replace(linked, outputs=code[-1].outs)
    program = unlink_program(replace(base, methods=(method,)), (linked,))
    path.write_bytes(bytes(program.data))


class Sweep:
    """The programs, which all products share.

    Args:
        folder: An empty one.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        named = random_calls()
        twice = [call for call in named if call.has_weights]
        _write_calls(folder / "packed.pte", named)
        _write_calls(folder / "plain.pte", twice)
        self._names = {
            "packed": [call.name for call in named],
            "plain": [f"loaded {call.name}" for call in twice],
        }
        runs: list[dict[str, Any]] = [{"model": m, "inputs": []} for m in self._names]
        for net, path in NETS.items():
            is_case = path.is_dir()
            program = path / "model.pte" if is_case else path
            given = path / "in0.npy" if is_case else path.with_suffix(".in0.npy")
            shutil.copyfile(program, folder / f"{net}.pte")
            np.save(folder / f"{net}.npy", np.load(given))
            value = {"kind": "tensor", "file": f"{net}.npy"}
            runs.append({"model": net, "inputs": [value]})
        runs = [{"method": "forward", **run} for run in runs]
        scenario = {"runs": runs, "tolerance": {"atol": 0, "rtol": 0}}
        (folder / "scenario.json").write_text(json.dumps(scenario))

    def measured(self, toolchain: str, isa: str, optimize: str) -> Measured:
        """Build and run a product."""
        name = f"{toolchain}-{isa}-{optimize}"
        skipped = ", ".join(f'"{name}"' for name in _SKIPPED)
        text = (
            f'schema = 1\nname = "{name}"\n[target]\ncpu = "{CPU}"\nisa = "{isa}"\n'
            f'toolchain = "{toolchain}"\noptimize = "{optimize}"\n'
            '[kernels]\nlibraries = ["cortex_m", "quantized", "portable"]\n'
            f'[memory]\nconcurrency = "sequential"\n[passes]\nskip = [{skipped}]\n'
        )
        for model in (*self._names, *NETS):
            how = "pte" if model == "plain" else "prelinked"
            text += f'[[models]]\nname = "{model}"\npath = "{model}.pte"\n'
            text += f'load = "{how}"\n'
        profile = self._folder / f"{name}.toml"
        profile.write_text(text)
        product = Product(profile=profile, out=self._folder / name)
        printed = io.StringIO()
        scenario = ("--scenario", str(self._folder / "scenario.json"))
        with redirect_stdout(printed):
            assert product.run("run", "--json", "--profile", *scenario) == 0
        profiled = json.loads(printed.getvalue())["profile"]
        build = open_build(Project(load(profile), BuildOptions(out=product.out)))
        linked = build[table.REPLAN].linked
        found: dict[str, int] = {}
        for row in profiled["instructions"]:
            model, number = row["model"], row["instruction"]
            if model in linked:  # where a call may have become several
                number = linked[model][0].origins[number]
            names = self._names.get(model)
            call = names[number] if names else f"net {model}"
            found[call] = found.get(call, 0) + row["total"]
        assert len(found) == len(NETS) + sum(map(len, self._names.values()))
        kernel_bytes: dict[str, int] = {}
        report: Any = product.report()
        for symbol in report["symbols"]:
            source = symbol["object"] or ""
            if symbol["is_function"] and "kernels/" in source:
                size = kernel_bytes.get(source, 0) + symbol["size_bytes"]
                kernel_bytes[source] = size
        shutil.rmtree(product.out)
        return Measured(instructions=found, kernel_bytes=kernel_bytes)


def broken_rules(folder: Path, toolchain: str) -> Iterator[Broken]:
    """Calls, nets and sources of kernels that are against the rule."""
    sweep = Sweep(folder)
    every = {
        (isa, optimize): sweep.measured(toolchain, isa, optimize)
        for isa in ISAS
        for optimize in OPTIMIZE
    }
    for optimize in OPTIMIZE:
        for less, more in (("mve", "dsp"), ("dsp", "scalar")):
            yield from _compared(
                (f"{less} <= {more}", optimize),
                every[less, optimize].instructions,
                every[more, optimize].instructions,
            )
    for isa in ISAS:
        size, speed = every[isa, "size"], every[isa, "speed"]
        rule = ("speed <= size", isa)
        yield from _compared(rule, speed.instructions, size.instructions)
        rule = ("size <= speed in bytes", isa)
        sizes = (size.kernel_bytes, speed.kernel_bytes)
        yield from _compared(rule, *sizes, slack=0, share=0)


def _compared(
    rule: tuple[str, str],
    first: Mapping[str, int],
    second: Mapping[str, int],
    *,
    slack: int = SLACK,
    share: float = SHARE,
) -> Iterator[Broken]:
    for call, less in second.items():
        # A source without a function left has no bytes.
        more = first.get(call, 0)
        if more > less + max(slack, share * less):
            yield Broken(rule=rule[0], where=rule[1], call=call, more=more, less=less)


def main() -> None:
    """Print what breaks the rule, the worst first."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("toolchains", nargs="*", metavar="TOOLCHAIN")
    for toolchain in parser.parse_args().toolchains or TOOLCHAINS:
        with tempfile.TemporaryDirectory() as folder:
            found = [*broken_rules(Path(folder), toolchain)]
        for broken in sorted(found, key=lambda b: (b.rule, b.where, -b.ratio)):
            print(f"{toolchain}: {broken}")


if __name__ == "__main__":
    main()
