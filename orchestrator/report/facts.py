"""What the page shows, collected from the results of a build."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from pathlib import PurePosixPath

from orchestrator.core.dtype import dtype_names
from orchestrator.core.operator import OperatorName, OpSchema
from orchestrator.explain.facts import kernel_parts
from orchestrator.explain.why import Requester, requesters_of
from orchestrator.measure.size import SizeReport
from orchestrator.memory.plan import Arena, MemoryPlan
from orchestrator.method.effects import MethodEffects, effects_of_linked, effects_of_method
from orchestrator.method.ledger import MethodPasses
from orchestrator.method.lifetimes import Lifetime, lifetimes, split_at_writes
from orchestrator.method.linked import LinkedCall, LinkedInstruction, LinkedMethod
from orchestrator.method.places import Place, place_of
from orchestrator.program.interface import macs_of
from orchestrator.program.program import (
    DelegateCall,
    Frame,
    FreeCall,
    Instruction,
    JumpFalseCall,
    KernelCall,
    Method,
    MoveCall,
    Program,
)
from orchestrator.program.values import TensorValue
from orchestrator.selection.resolution import Binding, Resolution
from orchestrator.targets.boards import Board


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorFacts:
    """A tensor of a method.

    Args:
        index: Of its value.
        name: As the exporter wrote it; "" for most.
        dtype: Of its items.
        sizes: Upper bounds where they may change.
        size_bytes: Of its data.
        role: `input`, `output`, `state`, `weight` or `activation`.
        data_id: Same for tensors that share constant bytes; "" without such bytes.
    """

    index: int
    name: str
    dtype: str
    sizes: tuple[int, ...]
    size_bytes: int
    role: str
    data_id: str

    @property
    def text(self) -> str:
        """`Char [1, 8, 12]`."""
        return f"{self.dtype} [{', '.join(map(str, self.sizes))}]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """An instruction of a method as it is built.

    Args:
        index: In the method.
        origin: Index of the program's instruction that it comes from.
        operator: What it calls; `move`, `jump if false`, ... for other instructions.
        function: The kernel; "" if there is none.
        reads: Tensors that it reads, by value index.
        writes: Tensors that it writes, scratch memory left out.
        scratch_bytes: Of its scratch memory.
        macs: Multiply-accumulates; None where they do not apply.
        source: Line of Python that it comes from; "" if the program does not say.
        after: Steps whose results it reads; -1 stands for what was there before.
    """

    index: int
    origin: int
    operator: str
    function: str
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    scratch_bytes: int
    macs: int | None
    source: str
    after: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ArenaFacts:
    """An arena of a method: what the plan says, and what lies in it when."""

    plan: Arena
    lives: tuple[Lifetime, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodFacts:
    """A method as it is built.

    Args:
        model: Its model.
        name: Of the method.
        is_prelinked: The build linked it; else the device loads it.
        steps: Its instructions.
        tensors: By value index.
        inputs: Value indices of tensors that the caller gives.
        outputs: Value indices of tensors that it gets.
        arenas: In order of their memory id, empty ones left out.
        removed: (index, operator) of the program's calls that passes removed.
        passes: What each pass did; None if none ran.
        writers: By value index of a tensor: the step that wrote its bytes last; -1
            for inputs.
        state_bytes: Of the method state.
    """

    model: str
    name: str
    is_prelinked: bool
    steps: tuple[Step, ...]
    tensors: Mapping[int, TensorFacts]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    arenas: tuple[ArenaFacts, ...]
    removed: tuple[tuple[int, str], ...]
    passes: MethodPasses | None
    writers: Mapping[int, int]
    state_bytes: int

    @property
    def title(self) -> str:
        """`kws.forward`."""
        return f"{self.model}.{self.name}"

    def weights(self, step: Step) -> tuple[TensorFacts, ...]:
        """Constants that a step reads."""
        found = (self.tensors[i] for i in step.reads)
        return tuple(t for t in found if t.role == "weight")

    def bytes_of(self, step: Step) -> tuple[int, int, int]:
        """Bytes of weights read, of other tensors read, and of tensors written."""
        weights = sum(t.size_bytes for t in self.weights(step))
        reads = sum(self.tensors[i].size_bytes for i in step.reads)
        writes = sum(self.tensors[i].size_bytes for i in step.writes)
        return weights, reads - weights, writes


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelFacts:
    """A kernel of the product.

    Args:
        operator: What it serves.
        function: Qualified C++ name.
        library: Of kernels.
        sources: Its files, relative to the library's folder.
        dtypes: That its code is instantiated for.
        requesters: What needs it.
        code_bytes: Flash of its sources, which other kernels may share.
    """

    operator: str
    function: str
    library: str
    sources: tuple[str, ...]
    dtypes: str
    requesters: tuple[Requester, ...]
    code_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportFacts:
    """All that the page shows.

    Args:
        size: What the firmware costs.
        memory: The plan that it was built from.
        methods: Of all models, in the profile's order.
        kernels: By operator.
        board: Memories with addresses; None on hosts.
        budget_flash: Bound of the profile in bytes.
        budget_ram: Likewise.
        costs: By model, method and instruction: what a profile run counted.
        cost_unit: `instructions` or `ns`; "" without a run.
        cycles: By model, method and instruction: an estimate; empty without one.
        cycle_assumption: What the estimate assumes, as a sentence.
    """

    size: SizeReport
    memory: MemoryPlan = field(repr=False)
    methods: tuple[MethodFacts, ...]
    kernels: tuple[KernelFacts, ...]
    board: Board | None
    budget_flash: int | None
    budget_ram: int | None
    costs: Mapping[tuple[str, str, int], int] = field(default_factory=dict, repr=False)
    cost_unit: str = ""
    cycles: Mapping[tuple[str, str, int], int] = field(default_factory=dict, repr=False)
    cycle_assumption: str = ""


def report_facts(
    *,
    size: SizeReport,
    memory: MemoryPlan,
    originals: Mapping[str, Program],
    programs: Mapping[str, Program],
    linked: Mapping[str, Sequence[LinkedMethod]],
    rewritten: Mapping[str, Sequence[LinkedMethod]],
    resolution: Resolution,
    board: Board | None,
    budget_flash: int | None,
    budget_ram: int | None,
) -> ReportFacts:
    """Collect the facts.

    Args:
        size: What the firmware costs.
        memory: The memory plan.
        originals: Programs of the profile's models, by name.
        programs: The same after passes and planning.
        linked: Methods of prelinked models.
        rewritten: Methods of loaded models that passes changed.
        resolution: Kernels after passes.
        board: None on hosts.
        budget_flash: Bound of the profile in bytes; None without.
        budget_ram: Likewise.
    """
    schemas = resolution.schemas
    # Kernels are bound to instructions of the program as it came; passes keep for each
    # of theirs which that was.
    kernels = {
        (origin.source, origin.method, origin.instruction): binding
        for operator in resolution.operators
        for binding in operator.bindings
        for origin in binding.origins
    }
    plans = {(m.model, m.method): m for x in memory.models for m in x.methods}
    ledger = {(p.model, p.method): p for p in size.prelink}
    methods = []
    for model, original in originals.items():
        for number, before in enumerate(original.methods):
            after = programs[model].methods[number]
            origins: Sequence[int] = range(len(after.instructions))
            if model in linked:
                link = linked[model][number]
                maker = _Maker.of_linked(link, schemas)
                origins = link.origins
            else:
                maker = _Maker.of_program(after, schemas)
                if model in rewritten:
                    origins = rewritten[model][number].origins
            key = (model, before.name)
            work = _work(before, schemas)
            steps = maker.steps(key, origins, kernels, before.frames, work)
            methods.append(
                MethodFacts(
                    model=model,
                    name=before.name,
                    is_prelinked=model in linked,
                    steps=steps,
                    tensors=maker.tensors,
                    inputs=maker.effects.inputs,
                    outputs=maker.effects.outputs,
                    arenas=tuple(
                        ArenaFacts(plan=arena, lives=tuple(maker.lives(arena.memory_id)))
                        for arena in plans[key].arenas
                        if arena.size_bytes
                    ),
                    removed=tuple(_removed(before, origins)),
                    passes=ledger.get(key),
                    writers=maker.writers,
                    state_bytes=plans[key].state_bytes,
                )
            )
    return ReportFacts(
        size=size,
        memory=memory,
        methods=tuple(methods),
        kernels=tuple(
            _kernel(str(operator.name), binding, size)
            for operator in resolution.operators
            for binding in operator.bindings
        ),
        board=board,
        budget_flash=budget_flash,
        budget_ram=budget_ram,
    )


def _kernel(operator: str, binding: Binding, size: SizeReport) -> KernelFacts:
    kernel = binding.kernel
    return KernelFacts(
        operator=operator,
        function=kernel.function,
        library=kernel.library,
        sources=tuple(kernel.sources),
        dtypes=dtype_names(binding.dtypes) if binding.dtypes else "",
        requesters=requesters_of(binding.origins),
        code_bytes=sum(c.flash_bytes for c in kernel_parts(size, kernel)),
    )


def _work(before: Method, schemas: Mapping[OperatorName, OpSchema]) -> dict[int, tuple[int, int]]:
    """MACs and items of the output of the program's calls.

    Packed and prepared calls have other arguments, which do not tell.
    """
    found = {}
    for index, instruction in enumerate(before.instructions):
        if isinstance(instruction, KernelCall):
            schema = schemas.get(before.operators[instruction.operator])
            out = before.values[instruction.args[-1]]
            if schema and isinstance(out, TensorValue) and out.numel:
                macs = macs_of(schema, instruction.args, before.values)
                if macs is not None:
                    found[index] = macs, out.numel
    return found


def _removed(before: Method, origins: Iterable[int]) -> Iterable[tuple[int, str]]:
    """Calls of the program that no instruction comes from."""
    kept = set(origins)
    for index, instruction in enumerate(before.instructions):
        if isinstance(instruction, KernelCall) and index not in kept:
            yield index, str(before.operators[instruction.operator])


class _Maker:
    """Facts of one method."""

    def __init__(
        self,
        effects: MethodEffects,
        instructions: Sequence[Instruction | LinkedInstruction],
        names: Sequence[str],
        schemas: Mapping[OperatorName, OpSchema],
        data: Mapping[int, str],
    ) -> None:
        self.effects = effects
        self._instructions = instructions
        self._names = names
        self._schemas = {str(name): schema for name, schema in schemas.items()}
        self.writers: Mapping[int, int] = {}
        self.tensors = {
            index: self._tensor(index, value, data.get(index, ""))
            for index, value in enumerate(effects.values)
            if isinstance(value, TensorValue)
        }

    @classmethod
    def of_linked(cls, method: LinkedMethod, schemas: Mapping[OperatorName, OpSchema]) -> _Maker:
        ids = {data: f"{n}" for n, data in enumerate(method.constants)}
        data = {i: ids[d] for i, d in method.data if d in ids}
        names = [_does(instruction) for instruction in method.instructions]
        return cls(effects_of_linked(method), method.instructions, names, schemas, data)

    @classmethod
    def of_program(cls, method: Method, schemas: Mapping[OperatorName, OpSchema]) -> _Maker:
        names = [_does(instruction, method) for instruction in method.instructions]
        data = {
            index: _data_id(value)
            for index, value in enumerate(method.values)
            if isinstance(value, TensorValue)
        }
        effects = effects_of_method(method, schemas)
        return cls(effects, method.instructions, names, schemas, data)

    def _tensor(self, index: int, value: TensorValue, data_id: str) -> TensorFacts:
        role = "activation"
        if index in self.effects.inputs:
            role = "input"
        elif value.is_state:
            role = "state"
        elif data_id and not value.is_planned:
            role = "weight"
        elif index in self.effects.outputs:
            role = "output"
        return TensorFacts(
            index=index,
            name=value.extra.qualified_name if value.extra else "",
            dtype=dtype_names(frozenset({value.dtype})),
            sizes=value.sizes,
            size_bytes=value.size_bytes,
            role=role,
            data_id=data_id,
        )

    def lives(self, memory_id: int) -> list[Lifetime]:
        """Lifetimes in an arena, by their first instruction."""
        found = lifetimes(self.effects, memory_id)
        return sorted(split_at_writes(self.effects, found))

    def steps(
        self,
        key: tuple[str, str],
        origins: Sequence[int],
        kernels: Mapping[tuple[str, str, int], Binding],
        frames: Sequence[Sequence[Frame]],
        work: Mapping[int, tuple[int, int]],
    ) -> tuple[Step, ...]:
        flow = _Flow(self.effects)
        found = []
        for index, (effect, name) in enumerate(zip(self.effects.at, self._names, strict=True)):
            origin = origins[index]
            binding = kernels.get((*key, origin))
            writes = tuple(dict.fromkeys((*effect.fills, *effect.updates)))
            macs, whole = work.get(origin, (None, 1))
            if macs is not None:  # one call may have become several, each for a part
                part = sum(prod(self.tensors[i].sizes) for i in writes)
                macs = macs * part // whole
            after = {s for i in (*effect.reads, *effect.moved) for s in flow.writers(i)}
            found.append(
                Step(
                    index=index,
                    origin=origin,
                    operator=name,
                    function=binding.kernel.function if binding else "",
                    reads=tuple(effect.reads),
                    writes=writes,
                    scratch_bytes=sum(self.tensors[i].size_bytes for i in effect.scratch),
                    macs=macs,
                    source=_source(frames[origin]) if origin < len(frames) else "",
                    after=tuple(sorted(after)),
                )
            )
            for value in (*writes, *effect.replaces):
                flow.write(value, index)
        self.writers = flow.last
        return tuple(found)


class _Flow:
    """Who wrote what a step reads: by value, and by memory that values share."""

    def __init__(self, effects: MethodEffects) -> None:
        self._values = effects.values
        self._places: dict[tuple[str, int], list[tuple[Place, int]]] = {}
        self.last: dict[int, int] = {}
        for index in effects.inputs:
            self.write(index, -1)

    def write(self, index: int, step: int) -> None:
        """Note that a step writes a value."""
        self.last[index] = step
        place = place_of(self._values[index], index)
        if place is not None:
            here = self._places.setdefault(place.space, [])
            # Writes that a later one covers can no longer be read: the list stays as
            # short as what lies there now.
            here[:] = [w for w in here if not place.holds(w[0])]
            here.append((place, step))

    def writers(self, index: int) -> Iterable[int]:
        """The steps that wrote a value's bytes last; those of the value without any."""
        place = place_of(self._values[index], index)
        if place is None or place.space not in self._places:
            return {self.last[index]} if index in self.last else set()
        found = set()
        gaps = [(place.begin, place.end)]  # whose writer is still unknown
        for written, step in reversed(self._places[place.space]):
            rest = []
            for begin, end in gaps:
                if written.end <= begin or end <= written.begin:
                    rest.append((begin, end))
                    continue
                found.add(step)
                rest += [(begin, written.begin)] if begin < written.begin else []
                rest += [(written.end, end)] if written.end < end else []
            gaps = rest
            if not gaps:
                break
        if found and index not in self.last:
            self.last[index] = max(found)
        return found


def _data_id(value: TensorValue) -> str:
    if value.is_external and value.extra:
        return f"external {value.extra.qualified_name}"
    return f"{value.data_buffer_index}" if value.is_constant else ""


def _does(  # noqa: PLR0911  # one per kind
    instruction: Instruction | LinkedInstruction, method: Method | None = None
) -> str:
    """What an instruction calls, or else does; `method` names what its program calls."""
    match instruction:
        case LinkedCall(operator=name):
            return str(name)
        case KernelCall(operator=operator) if method:
            return str(method.operators[operator])
        case DelegateCall(delegate=delegate) if method:
            return f"delegate {method.delegates[delegate].backend}"
        case MoveCall():
            return "move"
        case JumpFalseCall():
            return "jump if false"
        case FreeCall():
            return "free"
    return "unknown"


def _source(frames: Sequence[Frame]) -> str:
    """`net.py:12`: the innermost line of the user's code that has a name."""
    for frame in reversed(frames):
        if frame.filename:
            return f"{PurePosixPath(frame.filename).name}:{frame.line}"
    return ""
