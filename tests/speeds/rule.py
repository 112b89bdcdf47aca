"""What every call of `random_calls`, and programs, take on cores.

    python -m tests.speeds.rule [--corpus] [TOOLCHAIN ...]

prints what breaks the rule of tests/qemu/test_speed_rule.py. One product per toolchain,
core, instruction set and optimize has many of them: a method whose instructions are the
calls, whose inputs are constants, and nets. `run --profile` counts each. What builds
may pack is called twice, prelinked and by a loaded method. `--corpus` adds products of
all programs of the corpus, prelinked and loaded.
"""

from __future__ import annotations

import argparse
import io
import json
import shutil
import tempfile
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from itertools import pairwise, product
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from orchestrator.build import BuildOptions, Project, load, open_build, table
from orchestrator.method.linked import LinkedCall
from orchestrator.method.passes import unlink_program
from orchestrator.program.program import KernelCall
from orchestrator.program.reader import read_program
from orchestrator.program.values import TensorValue
from tests.conftest import CORPUS
from tests.integration.test_corpus import DATA, RUNNABLE, calls_of
from tests.opinfo.programs import program_of
from tests.product import Product
from tests.speeds.random_calls import random_calls
from tests.unit.method.recorded_calls import method_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tests.speeds.random_calls import Named

CORES: Final = {"cortex-m55": ("mve", "dsp", "scalar"), "cortex-m4": ("dsp", "scalar")}
"""Instruction sets of each: only kernels differ."""
CALLS: Final = "cortex-m55"
"""Has all instruction sets, and all calls."""
TOOLCHAINS: Final = ("gnu", "zig")
OPTIMIZE: Final = ("size", "speed")
SLACK: Final = 150
"""Instructions that a call may take more than the rule says: a fast path first finds
out, or sets up, what a slow one does not need. Only calls of a few items show it."""
SHARE: Final = 0.025
"""The same as a part of all: where a core has two loops, each pixel chooses one."""
HELD_OUT: Final = CORPUS.parent / "held_out"
NETS: Final = (
    *("kws_dscnn_int8_m55", "ic_resnet8_int8_m55", "vww_mobilenetv1_int8_m55"),
    *("ad_autoencoder_int8_m55", "kws_dscnn_fp32"),
)
"""Programs of the corpus in a product of each core, with those held out."""
SMALL: Final = ("mlp", "small_cnn", "lstm_unrolled", "transformer_block")
"""Programs with other kernels, beside the calls."""
LARGE: Final = ("ad_autoencoder_fp32", "vww_mobilenetv1_fp32")
"""Programs for which the board of the M55 has no room beside others."""
_WEIGHTS: Final = {"cortex-m55": 'weights = "code_sram"\n'}
"""Where programs lie, so that all of the first memory is left for code."""
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
        cpu: The core.
        where: The rest of the target, such as `size`.
        call: Its name; `loaded NAME` if a loaded method makes it. That of a program
            or, of bytes, of a source.
        more: What it takes.
        less: What it may take.
    """

    rule: str
    cpu: str
    where: str
    call: str
    more: int
    less: int

    @classmethod
    def of(cls, rule: tuple[str, str, str], call: str, more: int, less: int) -> Broken:
        """A call, of a rule with its core and the rest of the target."""
        name, cpu, where = rule
        return cls(rule=name, cpu=cpu, where=where, call=call, more=more, less=less)

    @property
    def ratio(self) -> float:
        """How many times more."""
        return self.more / self.less

    def __str__(self) -> str:
        return (
            f"{self.rule} ({self.cpu}, {self.where}), {self.call}:"
            f" {self.more:,} > {self.less:,}, {self.ratio:.2f} times"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A product.

    Args:
        instructions: Of each call and net, by name.
        calls: How many calls a net makes, by its name; others are one.
        kernel_bytes: Of each source of kernels.
    """

    instructions: Mapping[str, int]
    calls: Mapping[str, int]
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
            KernelCall(operator=operators.index(c.operator), args=(*c.args, *c.outs)) for c in code
        ),
    )
    linked = replace(linked, outputs=code[-1].outs)
    program = unlink_program(replace(base, methods=(method,)), (linked,))
    path.write_bytes(bytes(program.data))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Model:
    """A model of a product.

    Args:
        program: Its file.
        calls: Of the scenario.
        loading: `prelinked` or `pte`.
        names: Of its instructions, where each is measured.
        data: File of constants outside of it.
    """

    program: Path
    calls: Sequence[Mapping[str, Any]]
    loading: str = "prelinked"
    names: Sequence[str] = ()
    data: Path | None = None


def _corpus_model(case: str, loading: str = "prelinked") -> _Model:
    folder = CORPUS / case
    return _Model(
        program=folder / "model.pte",
        calls=[
            {name: call[name] for name in ("method", "inputs") if name in call}
            for call in calls_of(case)
        ],
        loading=loading,
        data=folder / DATA[case] if case in DATA else None,
    )


def _held_out_model(program: Path) -> _Model:
    value = {"kind": "tensor", "file": str(program.with_suffix(".in0.npy"))}
    return _Model(program=program, calls=[{"method": "forward", "inputs": [value]}])


def _nets(cases: Sequence[str]) -> dict[str, _Model]:
    return {case: _corpus_model(case) for case in cases} | {
        path.stem: _held_out_model(path) for path in sorted(HELD_OUT.glob("*.pte"))
    }


def _calls(folder: Path) -> dict[str, _Model]:
    """Models of calls, written to a folder."""
    named = random_calls()
    twice = [call for call in named if call.has_weights]
    _write_calls(folder / "packed.pte", named)
    _write_calls(folder / "plain.pte", twice)
    run = [{"method": "forward", "inputs": []}]
    return {
        "packed": _Model(
            program=folder / "packed.pte", calls=run, names=[call.name for call in named]
        ),
        "plain": _Model(
            program=folder / "plain.pte",
            calls=run,
            loading="pte",
            names=[f"loaded {call.name}" for call in twice],
        ),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """Models that a product of each kind has.

    Args:
        cpu: The core.
        models: By name.
        folder: An empty one.
        together: Bytes are compared of all sources together, not of each.
    """

    cpu: str
    models: Mapping[str, _Model]
    folder: Path
    together: bool = False

    def measured(self, toolchain: str, isa: str, optimize: str) -> Measured:
        """Build and run a product."""
        self.folder.mkdir(exist_ok=True)
        name = f"{toolchain}-{isa}-{optimize}"
        text = (
            f'schema = 1\nname = "{name}"\n[target]\ncpu = "{self.cpu}"\n'
            f'isa = "{isa}"\ntoolchain = "{toolchain}"\noptimize = "{optimize}"\n'
            '[kernels]\nlibraries = ["cortex_m", "quantized", "portable", "prim_ops"]\n'
            f'[memory]\nconcurrency = "sequential"\n{_WEIGHTS.get(self.cpu, "")}'
        )
        if any(model.names for model in self.models.values()):
            skipped = ", ".join(f'"{name}"' for name in _SKIPPED)
            text += f"[passes]\nskip = [{skipped}]\n"
        for key, model in self.models.items():
            shutil.copyfile(model.program, self.folder / f"{key}.pte")
            text += f'[[models]]\nname = "{key}"\npath = "{key}.pte"\n'
            text += f'load = "{model.loading}"\n'
            if model.data:
                shutil.copyfile(model.data, self.folder / f"{key}.ptd")
                text += f'data = ["{key}.ptd"]\n'
        profile = self.folder / f"{name}.toml"
        profile.write_text(text)
        built = Product(profile=profile, out=self.folder / name)
        scenario = self.folder / "scenario.json"
        runs = [
            {"model": key, **call} for key, model in self.models.items() for call in model.calls
        ]
        document = {"runs": runs, "tolerance": {"atol": 0, "rtol": 0}}
        scenario.write_text(json.dumps(document))
        printed = io.StringIO()
        with redirect_stdout(printed):
            code = built.run("run", "--json", "--profile", "--scenario", f"{scenario}")
        assert code == 0, name
        rows = json.loads(printed.getvalue())["profile"]["instructions"]
        calls: dict[str, int] = {}
        for row in rows:
            if not self.models[row["model"]].names:
                net = f"net {row['model']}"
                calls[net] = calls.get(net, 0) + row["calls"]
        kernel_bytes: dict[str, int] = {}
        report: Any = built.report()
        for symbol in report["symbols"]:
            source = symbol["object"] or ""
            if symbol["is_function"] and "kernels/" in source:
                key = "all kernels" if self.together else source
                kernel_bytes[key] = kernel_bytes.get(key, 0) + symbol["size_bytes"]
        instructions = self._by_name(rows, built)
        shutil.rmtree(built.out)
        return Measured(instructions=instructions, calls=calls, kernel_bytes=kernel_bytes)

    def _by_name(self, rows: Sequence[Mapping[str, Any]], product: Product) -> dict[str, int]:
        """Instructions of each call, and of each model whose calls have no names."""
        build = open_build(Project(load(product.profile), BuildOptions(out=product.out)))
        linked = build[table.REPLAN].linked
        found: dict[str, int] = {}
        for row in rows:
            model, number = row["model"], row["instruction"]
            names = self.models[model].names
            call = f"net {model}"
            if names:
                if model in linked:  # where a call may have become several
                    number = linked[model][0].origins[number]
                call = names[number]
            found[call] = found.get(call, 0) + row["total"]
        count = sum(len(model.names) or 1 for model in self.models.values())
        assert len(found) == count
        return found

    def broken(self, toolchain: str) -> Iterator[Broken]:
        """What is against the rule."""
        isas = CORES[self.cpu]
        every = {
            (isa, optimize): self.measured(toolchain, isa, optimize)
            for isa in isas
            for optimize in OPTIMIZE
        }
        for optimize in OPTIMIZE:
            for less, more in pairwise(isas):
                rule = (f"{less} <= {more}", self.cpu, optimize)
                yield from _slower(rule, every[less, optimize], every[more, optimize])
        for isa in isas:
            size, speed = every[isa, "size"], every[isa, "speed"]
            yield from _slower(("speed <= size", self.cpu, isa), speed, size)
            rule = ("size <= speed in bytes", self.cpu, isa)
            for source, most in speed.kernel_bytes.items():
                # A source without a function left has no bytes.
                found = size.kernel_bytes.get(source, 0)
                if found > most:
                    yield Broken.of(rule, source, found, most)


def broken_rules(folder: Path, toolchain: str, *, corpus: bool = False) -> Iterator[Broken]:
    """Calls, nets and sources of kernels that are against the rule.

    Args:
        folder: An empty one.
        toolchain: Of the products.
        corpus: With products of all programs of the corpus.
    """
    yield from Sweep(
        cpu=CALLS, models=_calls(folder) | _nets((*NETS, *SMALL)), folder=folder / CALLS
    ).broken(toolchain)
    if corpus:
        yield from Sweep(
            cpu="cortex-m4",
            models=_nets((*NETS, "ic_resnet8_fp32", *LARGE)),
            folder=folder / "cortex-m4",
            together=True,
        ).broken(toolchain)
    if corpus:
        others = tuple(case for case in RUNNABLE if case not in LARGE)
        for number, (cpu, cases, loading) in enumerate(
            product(CORES, (LARGE, others), ("prelinked", "pte"))
        ):
            yield from Sweep(
                cpu=cpu,
                models={case: _corpus_model(case, loading) for case in cases},
                folder=folder / str(number),
                together=True,
            ).broken(toolchain)


def _slower(rule: tuple[str, str, str], first: Measured, second: Measured) -> Iterator[Broken]:
    """What takes more than it may in the first product."""
    for call, less in second.instructions.items():
        more = first.instructions[call]
        slack = SLACK * second.calls.get(call, 1)
        if more > less + max(slack, SHARE * less):
            yield Broken.of(rule, call, more, less)


def main() -> None:
    """Print what breaks the rule, the worst first."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--corpus", action="store_true")
    parser.add_argument("toolchains", nargs="*", metavar="TOOLCHAIN")
    args = parser.parse_args()
    for toolchain in args.toolchains or TOOLCHAINS:
        with tempfile.TemporaryDirectory() as folder:
            found = [*broken_rules(Path(folder), toolchain, corpus=args.corpus)]
        for broken in sorted(found, key=lambda b: (b.rule, b.cpu, b.where, -b.ratio)):
            print(f"{toolchain}: {broken}")


if __name__ == "__main__":
    main()
