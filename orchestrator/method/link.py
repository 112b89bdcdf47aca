"""Link a program's methods: find the kernel of every call."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING

from orchestrator.core.kernel import KernelKey
from orchestrator.core.layout import layout_of
from orchestrator.core.operator import OperatorName
from orchestrator.errors import Diagnostic, ModelError, SourceSpan
from orchestrator.method.effects import effects_of_method
from orchestrator.method.linked import Linkage, LinkedCall, LinkedInstruction, LinkedMethod
from orchestrator.method.places import (
    Access,
    Place,
    accesses,
    names_of,
    place_of,
    tensor_of,
    written_positions,
)
from orchestrator.method.state import zeroed_state
from orchestrator.program.interface import TENSOR_LISTS, with_items
from orchestrator.program.program import (
    DelegateCall,
    FreeCall,
    Instruction,
    JumpFalseCall,
    KernelCall,
    Method,
    MoveCall,
    Program,
)
from orchestrator.program.values import TensorValue, Value

if TYPE_CHECKING:
    from orchestrator.selection.op_info import OpInfo
    from orchestrator.selection.resolution import Resolution


def link_program(
    program: Program, info: OpInfo, resolution: Resolution, *, where: SourceSpan | None
) -> tuple[LinkedMethod, ...]:
    """Link the methods of a program: every call gets the kernel that serves it.

    Args:
        program: The program.
        info: Operators and calls of the program.
        resolution: The kernels that serve its calls.
        where: The profile line that requires it.

    Returns:
        Methods in the program's order. Calls get the kernels that the device's loader
        would find.

    Raises:
        ModelError: The device's loader would reject the program (`cannot-prelink`).
    """
    linkage = try_link(program, info, resolution)
    if linkage.problems:
        raise ModelError(
            [
                Diagnostic(
                    code="cannot-prelink",
                    message=f'model "{info.model}" cannot be prelinked: {problem}',
                    where=where,
                    hint='write load = "pte", or export the model without it',
                )
                for problem in linkage.problems
            ]
        )
    return linkage.methods


def try_link(program: Program, info: OpInfo, resolution: Resolution) -> Linkage:
    """Like `link`, but problems are part of the result; raises nothing."""
    linker = _Linker(program, info, resolution)
    methods = tuple(linker.method(method) for method in program.methods)
    return Linkage(methods=methods, problems=tuple(linker.problems))


class _Linker:
    def __init__(self, program: Program, info: OpInfo, resolution: Resolution) -> None:
        self.problems: list[str] = []
        self._program = program
        self._model = info.model
        self._keys: Mapping[tuple[str, int], KernelKey] = {
            (c.method, c.instruction): c.pattern.key for c in info.calls
        }
        self._schemas = resolution.schemas
        self._functions = {
            (entry.operator, entry.key): entry.function for entry in resolution.table_entries
        }

        self._in_place = {
            binding.kernel.function: binding.kernel.in_place
            for operator in resolution.operators
            for binding in operator.bindings
        }

    def method(self, method: Method) -> LinkedMethod:
        # Free instructions do nothing and are removed: jumps to one go to the next.
        kept = [i for i, x in enumerate(method.instructions) if not isinstance(x, FreeCall)]
        new_index = {
            index: bisect_left(kept, index) for index in range(len(method.instructions) + 1)
        }
        instructions: list[LinkedInstruction] = []
        origins: list[int] = []
        for index in kept:
            linked = self._instruction(method, index, new_index)
            if linked is not None:
                instructions.append(linked)
                origins.append(index)
        data = [
            (i, self._program.data_bytes(v))
            for i, v in enumerate(method.values)
            if isinstance(v, TensorValue)
            and (v.is_constant or v.is_mutable_state or self._program.has_data(v))
        ]
        zeroed = zeroed_state(self._program, method)
        data += [(i, bytes(size_bytes)) for i, size_bytes in zeroed.items()]
        return LinkedMethod(
            model=self._model,
            name=method.name,
            values=method.values,
            instructions=tuple(instructions),
            inputs=method.inputs,
            outputs=method.outputs,
            data=tuple(sorted(data, key=itemgetter(0))),
            origins=tuple(origins),
        )

    def _instruction(
        self, method: Method, index: int, new_index: Mapping[int, int]
    ) -> LinkedInstruction | None:
        instruction: Instruction = method.instructions[index]
        place = f"method {method.name}, instruction {index}"
        match instruction:
            case KernelCall(operator=operator, args=args):
                return self._call(method, index, method.operators[operator], args)
            case MoveCall(source=source, target=target):
                if not _may_move(method.values[source], method.values[target]):
                    self.problems.append(f"{place} moves a value to another kind")
                return instruction
            case JumpFalseCall(condition=condition, destination=destination):
                return JumpFalseCall(condition=condition, destination=new_index[destination])
            case DelegateCall():
                self.problems.append(f"{place} calls a delegate")
        return None

    def _call(
        self, method: Method, index: int, name: OperatorName, args: tuple[int, ...]
    ) -> LinkedCall | None:
        key = self._keys[method.name, index]
        # As the device's loader looks kernels up: the one for exactly these dtypes, then the one
        # for any.
        function = self._functions.get((name, key)) or self._functions.get((name, None))
        schema = self._schemas.get(name)
        if function is None or schema is None:
            self.problems.append(
                f"method {method.name}, instruction {index} calls {name}, which has no kernel"
            )
            return None
        how = accesses(schema)
        # Programs repeat out arguments as results, which kernels do not get.
        taken = args[: len(how)]
        outs = [args[position] for position in written_positions(schema)]
        pairs = zip(taken, how, strict=True)
        # Whatever a kernel leaves in scratch memory has overwritten what was there.
        outs += [index for index, access in pairs if access is Access.SCRATCH]
        in_place = self._in_place.get(function, ())
        return LinkedCall(
            operator=name,
            function=function,
            args=taken,
            accesses=how,
            # A list itself does not change, but its items.
            outs=tuple(
                i
                for i in dict.fromkeys(with_items(method, outs))
                if not isinstance(method.values[i], TENSOR_LISTS)
            ),
            in_place=tuple(i for i, x in enumerate(schema.arguments) if x.name in in_place),
            names=names_of(schema),
        )


def _may_move(source: Value, target: Value) -> bool:
    """Whether the device's loader accepts a move: kernels of calls stay valid."""
    if type(source) is not type(target) or isinstance(source, TENSOR_LISTS):
        return False
    if not isinstance(source, TensorValue) or not isinstance(target, TensorValue):
        return True
    # A kernel was chosen for the dtype and dim order of its arguments.
    return source.dtype == target.dtype and source.dim_order == target.dim_order


# Tensors that are read in another order than their items were written in.


@dataclass(frozen=True, slots=True, kw_only=True)
class ReorderedRead:
    """An instruction that reads a tensor whose memory holds another one.

    Args:
        instruction: Index of the instruction.
        read: The tensor that it reads.
        written: The tensor that was written there.
    """

    instruction: int
    read: TensorValue
    written: TensorValue


def reordered_reads(method: Method) -> tuple[ReorderedRead, ...]:
    """Reads of views whose items lie in another order than those of their base.

    An exporter may give a view the memory of its base. If the base is not contiguous,
    as an image in channels-last, the items then are in the wrong places. Each pair of
    tensors is reported once.
    """
    places = {i: p for i, v in enumerate(method.values) if (p := place_of(v, i))}
    effects = effects_of_method(method, {})
    last: dict[Place, int] = {places[i]: i for i in effects.inputs if i in places}
    found: dict[tuple[int, int], ReorderedRead] = {}
    for number, effect in enumerate(effects.at):
        for index in effect.reads:
            source = last.get(places[index]) if index in places else None
            if source is None or (source, index) in found:
                continue
            one, other = (tensor_of(method.values[i]) for i in (source, index))
            if one.dtype == other.dtype and _layout(one) != _layout(other):
                found[source, index] = ReorderedRead(instruction=number, read=other, written=one)
        for index in (*effect.writes, *effect.replaces):
            if index not in places or index in effect.views:
                continue
            here = places[index]
            for place in [p for p in last if p.overlaps(here)]:
                del last[place]
            last[here] = index
    return tuple(found.values())


def _layout(tensor: TensorValue) -> list[tuple[int, int]]:
    return layout_of(tensor.sizes, tensor.dim_order)
