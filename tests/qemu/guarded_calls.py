"""Products of methods of one call each, which run between canaries and are counted.

A build gives each tensor of such a method gaps around it. `guarded_calls.cpp`, in the
place of the product's application, fills the arena with a pattern before each call and
finds what was written beside the output and the scratch memory.
"""

from __future__ import annotations

import json
import struct
import subprocess
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from unittest import mock

from orchestrator import planner
from orchestrator.measure.elf import ElfFile
from orchestrator.method.passes import unlink_program
from orchestrator.planner.blocks import BlockPlan, aligned
from orchestrator.program.reader import read_program
from orchestrator.program.values import Allocation, TensorValue
from orchestrator.running.counting import COUNTS_FILE, CountPlan, read_counts
from orchestrator.running.product import read_product
from orchestrator.shell.ninja import ninja_program
from orchestrator.shell.qemu_plugin import counting_plugin
from orchestrator.shell.toolchain import find_emulator
from tests.opinfo.programs import program_of
from tests.product import Product
from tests.unit.method.recorded_calls import method_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from orchestrator.method.linked import LinkedMethod
    from orchestrator.planner.blocks import Block
    from orchestrator.program.program import Method, Program
    from tests.unit.method.recorded_calls import Call

APPLICATION: Final = Path(__file__).with_suffix(".cpp")
GAP: Final = 48
"""Bytes before, between and after the tensors of a method."""
_PRODUCT: Final = "guarded"
_RUN: Final = "guarded_run"
_FAR: Final = 1 << 20
"""Larger than an arena: no plan of a program is kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What came of a call.

    Args:
        status: 0 if there is no error.
        changed: Bytes beside tensors that were written.
        changed_input: Bytes of the input that were written.
        out: The output.
        instructions: That the call took, if they were counted.
    """

    status: int
    changed: int
    changed_input: int
    out: bytes
    instructions: int = 0

    @property
    def is_clean(self) -> bool:
        """Whether there was no error, and nothing written but output and scratch."""
        return not (self.status or self.changed or self.changed_input)


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A model whose methods have an input and an output.

    Args:
        name: In the product.
        program: Its bytes.
        load: As in a profile.
        inputs: Of each method, by name.
    """

    name: str
    program: bytes
    load: str
    inputs: Mapping[str, bytes]


def model_of(calls: Sequence[Call], *, name: str = "calls", load: str) -> Model:
    """A method per call: it takes the first tensor and returns the last argument."""
    made = [_method(call, number) for number, call in enumerate(calls)]
    program = replace(made[0][1], methods=tuple(method for method, _, _ in made))
    found = unlink_program(program, tuple(linked for _, _, linked in made))
    inputs = (call.args[0].data for call in calls)
    return Model(
        name=name,
        program=bytes(found.data),
        load=load,
        inputs={f"m{number}": data for number, data in enumerate(inputs)},
    )


def _method(call: Call, number: int) -> tuple[Method, Program, LinkedMethod]:
    """A method that takes the first tensor of a call and returns its output."""
    program = read_program(program_of(call, dynamic=False)[0], file="")
    linked = method_of([call])
    (instruction,) = linked.instructions
    x, y = instruction.args[0], instruction.args[-1]  # type: ignore[union-attr]
    values = [
        replace(
            value,
            allocation=Allocation(memory_id=1, offset_bytes=_FAR * (index == y)),
            data_buffer_index=0,
        )
        if index in (x, y) and isinstance(value, TensorValue)
        else value
        for index, value in enumerate(linked.values)
    ]
    linked = replace(
        linked,
        name=f"m{number}",
        values=tuple(values),
        inputs=(x,),
        outputs=(y,),
        data=tuple((i, d) for i, d in linked.data if i != x),
    )
    (method,) = program.methods
    method = replace(
        method, name=f"m{number}", inputs=(x,), outputs=(y,), arena_bytes=(0, 2 * _FAR)
    )
    return method, program, linked


@dataclass(frozen=True, slots=True, kw_only=True)
class _Arena:
    """Where the tensors of a method lie, in bytes, the input first; none: anywhere."""

    blocks: tuple[tuple[int, int], ...]
    size_bytes: int


_MOST_BLOCKS: Final = 3
"""Input, output and scratch memory: an arena of more is planned as always."""


@contextmanager
def _gaps() -> Iterator[list[_Arena]]:
    """Plans have gaps; arenas are added to the list, in the order of methods."""
    arenas: list[_Arena] = []
    usual = planner.plan_blocks

    def plan(blocks: Sequence[Block], **settings: Any) -> BlockPlan:
        if len(blocks) > _MOST_BLOCKS:
            found = usual(blocks, **settings)
            arenas.append(_Arena(blocks=(), size_bytes=found.size_bytes))
            return found
        offsets, end = [], 0
        for block in blocks:
            offsets.append(aligned(end + GAP))
            end = offsets[-1] + block.size_bytes
        pairs = zip(offsets, blocks, strict=True)
        places = tuple((at, at + block.size_bytes) for at, block in pairs)
        arenas.append(_Arena(blocks=places, size_bytes=end + GAP))
        return BlockPlan(
            offsets=tuple(offsets),
            size_bytes=end + GAP,
            peak_live_bytes=end,
            planner="gaps",
        )

    with mock.patch.object(planner, "plan_blocks", plan):
        yield arenas


class GuardedCalls:
    """A product of models, and its firmware with another application.

    Args:
        folder: Gets the product.
        models: In the product.
        target: Keys of `[target]`, strings.
    """

    def __init__(self, folder: Path, models: Sequence[Model], **target: str) -> None:
        self._inputs = {
            (model.name, method): data
            for model in models
            for method, data in model.inputs.items()
        }
        keys = "".join(f'{key} = "{value}"\n' for key, value in target.items())
        text = (
            f'schema = 1\nname = "{_PRODUCT}"\n[target]\n{keys}'
            '[kernels]\nlibraries = ["cortex_m", "quantized", "portable"]\n'
        )
        for model in models:
            (folder / f"{model.name}.pte").write_bytes(model.program)
            text += f'[[models]]\nname = "{model.name}"\npath = "{model.name}.pte"\n'
            text += f'load = "{model.load}"\n'
        name = "-".join(target.values())
        profile = folder / f"{name}.toml"
        profile.write_text(text)
        self.product = Product(profile=profile, out=folder / name)
        with _gaps() as arenas:
            assert self.product.run("build") == 0
        self._work = self.product.out / ".work"
        self._sizes: dict[tuple[str, str], int] = {}
        self._write_rows(arenas)
        self._link()

    def _write_rows(self, arenas: Sequence[_Arena]) -> None:
        """What the application knows of each method."""
        plans: Any = json.loads((self.product.out / "memory_plan.json").read_text())
        planned = [(m["model"], p) for m in plans["models"] for p in m["methods"]]
        rows = ""
        for (model, method), arena in zip(planned, arenas, strict=True):
            assert [a["size_bytes"] for a in method["arenas"]] == [arena.size_bytes]
            (inputs,), (outputs,) = method["input_bytes"], method["output_bytes"]
            self._sizes[model, method["method"]] = outputs
            api = f"{_PRODUCT}_{model}_{method['method']}"
            blocks = ", ".join(f"{{{b}, {e}}}" for b, e in arena.blocks)
            bounds = f"{arena.size_bytes}, {arena.blocks[0][0]}" if blocks else "0, 0"
            rows += (
                f"    {{[]() -> void* {{ return {api}_input0(); }},\n"
                f"     {api}_run,\n"
                f"     []() -> const void* {{ return {api}_output0(); }},\n"
                f"     {inputs}, {outputs}, {bounds}, {{{blocks}}}}},\n"
            )
        (self._work / "guarded_rows.h").write_text(
            f'#pragma once\n#include "{_PRODUCT}.h"\n'
            "struct Block {\n  uint32_t begin, end;\n};\n"
            "struct Row {\n  void* (*input)();\n  orch_status (*run)();\n"
            "  const void* (*output)();\n  uint32_t input_bytes, output_bytes;\n"
            "  uint32_t arena_bytes, input_offset;\n"
            f"  Block blocks[{_MOST_BLOCKS}];\n}};\n"
            f"constexpr Row kRows[] = {{\n{rows}}};\n"
        )

    def _link(self) -> None:
        """The firmware, with the application in the place of the runner."""
        lines = (self._work / "build.ninja").read_text().splitlines()
        runner = "obj/runtime/app/runner.cpp.o"
        compiled = next(i for i, x in enumerate(lines) if f"build {runner}" in x)
        linked = next(i for i, x in enumerate(lines) if x.startswith("build firmware"))
        link = lines[linked].replace(runner, "obj/guarded.o").split(": ")[1]
        text = (
            f"include build.ninja\nbuild obj/guarded.o: cxx {APPLICATION}\n"
            f"{lines[compiled + 1]} -I.\nbuild guarded.elf: {link}\n"
            + "\n".join(lines[linked + 1 : linked + 3]).replace(".map", "")
            + "\n"
        )
        (self._work / "guarded.ninja").write_text(text)
        command = (str(ninja_program()), "--quiet", "-f", "guarded.ninja")
        self._run((*command, "guarded.elf"))

    def answers(self, *, counted: bool = False) -> dict[tuple[str, str], Answer]:
        """Run each method once.

        Args:
            counted: Whether to count instructions.

        Returns:
            By model and method.
        """
        (self._work / "request").write_bytes(b"".join(self._inputs.values()))
        product = read_product((self.product.out / "product.json").read_text())
        if not product.emulator:
            self._run(("./guarded.elf", "request", "response"))
        else:
            paths = "enable=on,target=native,arg=firmware,arg=request,arg=response"
            run = [*find_emulator(product.emulator), "-semihosting-config", paths]
            if counted:
                run += ["-plugin", f"{counting_plugin()},{self._plan().arguments}"]
            self._run((*run, "-kernel", "guarded.elf"))
        counts = (
            read_counts((self._work / COUNTS_FILE).read_text()).calls_of(0)
            if counted
            else (0,) * len(self._inputs)
        )
        data, at, found = (self._work / "response").read_bytes(), 0, {}
        for key, count in zip(self._inputs, counts, strict=True):
            status, changed, changed_input = struct.unpack_from("<3I", data, at)
            begin, at = at + 12, at + 12 + self._sizes[key]
            found[key] = Answer(
                status=status,
                changed=changed,
                changed_input=changed_input,
                out=data[begin:at],
                instructions=count,
            )
        assert at == len(data)
        return found

    def _plan(self) -> CountPlan:
        elf = ElfFile((self._work / "guarded.elf").read_bytes())
        (function,) = (s.value for s in elf.symbols if s.name == _RUN)
        return CountPlan(executor=(0, 0), tables=(), functions=(function,))

    def _run(self, command: Sequence[str]) -> None:
        done = subprocess.run(
            command,
            cwd=self._work,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, f"{done.returncode}\n{done.stdout}{done.stderr}"
