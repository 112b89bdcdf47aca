"""Graphs after every step, for comparison with those of another run.

Two runs with the same final bytes may differ in between. A recording has every
graph after every pass and every run of a pass manager: names, operators, targets,
arguments and all metadata of the nodes, placeholders and outputs of the signature.
Numbers that mean an object's place in memory are left out.
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import executorch.exir.pass_manager  # noqa: F401  # so that its classes are known
import torch
from torch._subclasses.fake_tensor import FakeTensor, unset_fake_temporarily
from torch.export import ExportedProgram
from torch.fx import GraphModule, Node
from torch.fx.passes.infra.pass_base import PassBase
from torch.fx.passes.infra.pass_manager import PassManager
from torch.fx.traceback import NodeSource

from orchestrator.lowering.passes import classes_of
from orchestrator.lowering.patches import Patches

# Both are counted by the process: equal graphs of two runs have other numbers, in one
# order.
_GENERATED = re.compile(r"<eval_with_key>\.\d+")
"""Code that PyTorch generated, counted since the process began."""
_NUMBERED = "seq_nr"
"""Counted by PyTorch since the process began: compared by order of appearance."""


TOSA = "TOSA flatbuffer"
"""Step of a stage that has the digest of one."""


@dataclass(frozen=True)
class Stage:
    """A graph after a step.

    Args:
        step: The pass, or the pass manager.
        lines: One for each node, and what the signature says.
    """

    step: str
    lines: tuple[str, ...]


@dataclass(frozen=True)
class Difference:
    """The first difference between two recordings.

    Args:
        stage: Which one, from 0 on.
        step: What ran before.
        line: In the graph.
        one: The text there.
        other: The same of the other recording.
    """

    stage: int
    step: str
    line: int
    one: str
    other: str


@dataclass
class Recording:
    """Every graph of a run, in order."""

    stages: list[Stage] = field(default_factory=list)
    numbers: dict[int, int] = field(default_factory=dict, compare=False)

    @property
    def digest(self) -> str:
        """SHA-256 over everything, in hex."""
        whole = hashlib.sha256()
        for stage in self.stages:
            whole.update("\n".join((stage.step, *stage.lines, "")).encode())
        return whole.hexdigest()

    def difference(self, other: Recording) -> Difference | None:
        """The first difference from another run; None if there is none."""
        for number in range(max(len(self.stages), len(other.stages))):
            one = self.stages[number] if number < len(self.stages) else _NOTHING
            two = other.stages[number] if number < len(other.stages) else _NOTHING
            if one == two:
                continue
            pairs = [(one.step, two.step)]
            count = max(len(one.lines), len(two.lines))
            pairs += zip(
                one.lines + ("",) * (count - len(one.lines)),
                two.lines + ("",) * (count - len(two.lines)),
                strict=True,
            )
            line = next(n for n, (a, b) in enumerate(pairs) if a != b)
            return Difference(number, one.step, line, *pairs[line])
        return None


_NOTHING = Stage("nothing more", ())


@contextmanager
def recorded() -> Iterator[Recording]:
    """Record every graph inside the block."""
    recording, patches = Recording(), Patches()
    # Classes that are imported by then: a recording begins after a first, plain
    # lowering (export/worker.py).
    for owner in (*classes_of(PassBase), *classes_of(PassManager)):
        if "__call__" in vars(owner):
            _watch(owner, recording, patches)
    _watch_tosa(recording, patches)
    try:
        yield recording
    finally:
        patches.restore()


def _watch_tosa(recording: Recording, patches: Patches) -> None:
    """Record what Vela compiles for Ethos-U, where its backend is in use."""
    backend = sys.modules.get("executorch.backends.arm.tosa.backend")
    if backend is None:
        return
    # TOSA is made outside of passes, and Vela's input is what Ethos-U runs.
    preprocess = backend.TOSABackend._preprocess

    def watched(*args: Any, **kwargs: Any) -> Any:
        result = preprocess(*args, **kwargs)
        digest = hashlib.sha256(result.processed_bytes).hexdigest()
        recording.stages.append(Stage(TOSA, (digest,)))
        return result

    patches.replace(backend.TOSABackend, "_preprocess", staticmethod(watched))


def _watch(owner: type, recording: Recording, patches: Patches) -> None:
    call = vars(owner)["__call__"]

    def watched(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = call(self, *args, **kwargs)
        lines = facts_of(result, recording.numbers)
        recording.stages.append(Stage(type(self).__qualname__, lines))
        return result

    patches.replace(owner, "__call__", watched)


def facts_of(value: Any, numbers: dict[int, int]) -> tuple[str, ...]:
    """One line for each node of a graph, a program or the result of a pass.

    Args:
        value: That.
        numbers: Sequence numbers seen so far, by their replacements; more are added.
    """
    modified = getattr(value, "modified", "")
    value = getattr(value, "exported_program", value)
    value = getattr(value, "graph_module", value) if modified != "" else value
    lines = [f"modified: {modified}"]
    if isinstance(value, ExportedProgram):
        lines.append(f"signature: {value.graph_signature}")
        value = value.graph_module
    if isinstance(value, GraphModule):
        for name, module in value.named_modules():
            if isinstance(module, GraphModule):
                lines.append(f"module {name}")
                lines += (_node_facts(node, numbers) for node in module.graph.nodes)
    return tuple(lines)


def _node_facts(node: Node, numbers: dict[int, int]) -> str:
    meta = dict(node.meta)
    if _NUMBERED in meta:
        # Numbers of two runs differ by a constant or more; equal order of first
        # appearance means equal structure.
        meta[_NUMBERED] = numbers.setdefault(meta[_NUMBERED], len(numbers))
    text = (
        f"{node.name} {node.op} {_text(node.target)} {_text(node.args)}"
        f" {_text(node.kwargs)} {_text(meta)}"
    )
    return _GENERATED.sub("<eval_with_key>", text)


def _text(value: Any) -> str:  # noqa: PLR0911
    """Text of a value, without its address."""
    if isinstance(value, Node):
        return f"%{value.name}"
    if isinstance(value, FakeTensor):
        return _tensor(value) + _text(value.constant)
    if isinstance(value, torch.Tensor):
        return _tensor(value) + _content(value)
    if isinstance(value, GraphModule):
        return f"graph of {len(value.graph.nodes)}"
    if isinstance(value, NodeSource):
        return _source(value)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k}: {_text(v)}" for k, v in value.items()) + "}"
    if isinstance(value, (tuple, list, set, frozenset)):
        items = [_text(v) for v in value]
        # Sets have no order of their own.
        if isinstance(value, (set, frozenset)):
            items.sort()
        return f"{type(value).__name__}({', '.join(items)})"
    text = str(value) if isinstance(value, type) or callable(value) else repr(value)
    # The default repr of an object ends with its address.
    return text.split(" at 0x")[0]


def _tensor(value: torch.Tensor) -> str:
    return (
        f"{type(value).__name__}({value.dtype}, {tuple(map(str, value.shape))},"
        f" {tuple(map(str, value.stride()))}, {value.device}, {value.requires_grad})"
    )


def _content(value: torch.Tensor) -> str:
    if value.device.type != "cpu" or type(value) not in _WITH_CONTENT:
        return ""
    # Constants inside of a fake mode would be copied as fake tensors, without content.
    with unset_fake_temporarily():
        data = value.detach().contiguous().flatten().view(torch.uint8)
        return hashlib.sha256(data.numpy().tobytes()).hexdigest()


_WITH_CONTENT = (torch.Tensor, torch.nn.Parameter)


def _source(source: NodeSource) -> str:
    inner = ", ".join(_source(s) for s in source.from_node)
    actions = "+".join(a.name for a in source.action)
    return f"<{source.name} {source.target} {source.pass_name} {actions} [{inner}]>"
