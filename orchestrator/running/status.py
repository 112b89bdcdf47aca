"""A status of a device in words: what failed where, and what to do about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final

from orchestrator.document import picked
from orchestrator.errors import Diagnostic, UsageError, did_you_mean
from orchestrator.method.linked import LinkedCall, LinkedInstruction, LinkedMethod
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
from orchestrator.program.values import TensorValue
from orchestrator.running.protocol import NO_INSTRUCTION, DeviceError


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a status comes from.

    Args:
        model: Name of the model.
        method: The method.
        instruction: Index in what the device runs; None if none failed.
        linked: What it runs if the model is prelinked, or passes changed it; else it
            runs the method.
    """

    model: str
    method: Method
    instruction: int | None = None
    linked: LinkedMethod | None = None

    @property
    def instructions(self) -> Sequence[Instruction | LinkedInstruction]:
        """Those that the device runs."""
        return (self.linked or self.method).instructions

    @property
    def operator(self) -> str:
        """Name of the operator the instruction calls; "" if it calls none."""
        if self.instruction is None:
            return ""
        match self.instructions[self.instruction]:
            case KernelCall(operator=index):
                return str(self.method.operators[index])
            case LinkedCall(operator=operator):
                return str(operator)
        return ""

    @property
    def origin(self) -> int | None:
        """Index of the program's instruction; None if none failed.

        It is not that of the device where passes have taken instructions out.
        """
        if self.instruction is None or self.linked is None:
            return self.instruction
        # Passes leave out and join calls, so a prelinked method has other indices than
        # the program. Remedies and source lines are found by those of the program.
        return self.linked.origins[self.instruction]

    @property
    def text(self) -> str:
        """`model "kws", method "f": instruction 12, which calls aten::add.out`."""
        owner = f'model "{self.model}", method "{self.method.name}"'
        if self.instruction is None:
            return owner
        return f"{owner}: instruction {self.step}"

    @property
    def step(self) -> str:
        """`12, which calls aten::add.out`; "" if no instruction failed."""
        if self.instruction is None:
            return ""
        does = _does(self.instructions[self.instruction], self.method)
        index = str(self.instruction)
        if self.origin != self.instruction:
            index += f" ({self.origin} of the program)"
        return f"{index}, which {does}"

    @property
    def source(self) -> str:
        """Line of the user's Python code, innermost; "" if it is not known."""
        if self.origin is None or self.origin >= len(self.method.frames):
            return ""
        frames = [f for f in self.method.frames[self.origin] if f.filename]
        return f"{frames[-1].filename}:{frames[-1].line}" if frames else ""


def _does(instruction: Instruction | LinkedInstruction, method: Method) -> str:
    match instruction:
        case LinkedCall(operator=name):
            return f"calls {name}"
        case KernelCall(operator=operator):
            return f"calls {method.operators[operator]}"
        case DelegateCall(delegate=delegate):
            return f"calls the delegate {method.delegates[delegate].backend}"
        case MoveCall():
            return "moves a value"
        case JumpFalseCall():
            return "jumps if a value is false"
        case FreeCall():
            return "frees a tensor"


def parse_status(text: str) -> DeviceError:
    """The status of a number or a name: `11`, `ShapeTooLarge`, `ORCH_SHAPE_TOO_LARGE`.

    Raises:
        UsageError: There is none (`unknown-status`).
    """
    known = {_bare(error.name): error for error in DeviceError}
    # Devices log numbers, users paste names of C or C++: all are the same status.
    known |= {str(int(error)): error for error in DeviceError}
    found = known.get(_bare(text))
    if found is not None:
        return found
    names = [error.name for error in DeviceError]
    raise UsageError.of(
        "unknown-status",
        f"{text} is not a status of the runtime",
        expected=f"0 to {max(DeviceError)}, or {', '.join(names)}",
        hint=did_you_mean(text, names) or "docs/runtime.md lists them",
    )


def _bare(name: str) -> str:
    return name.upper().removeprefix("ORCH_").replace("_", "")


def find_place(
    programs: Mapping[str, Program],
    *,
    model: str | None,
    method: str | None,
    instruction: int | None,
    linked: Mapping[str, Sequence[LinkedMethod]] = MappingProxyType({}),
) -> Place:
    """What model, method and instruction a user names.

    Args:
        programs: By model name.
        model: None if only one has such a method.
        method: None if there is only one.
        instruction: From the device; None if it reported none.
        linked: By name of a model that passes changed, or that is prelinked: its
            methods in the program's order.

    Raises:
        UsageError: There is nothing of that name (`unknown-model`, `unknown-method`,
            `unknown-instruction`), or more than one thing (`unknown-method`).
    """
    if model is not None and model not in programs:
        raise _unknown("model", model, list(programs))
    owners = {n: p for n, p in programs.items() if model in (None, n)}
    places = [
        Place(model=n, method=m, linked=linked[n][i] if n in linked else None)
        for n, p in owners.items()
        for i, m in enumerate(p.methods)
    ]
    known = list(dict.fromkeys(place.method.name for place in places))
    if method is not None and method not in known:
        raise _unknown("method", method, known)
    found = [place for place in places if method in (None, place.method.name)]
    if len(found) != 1:
        raise UsageError(
            Diagnostic(
                code="unknown-method",
                message="several methods match" if found else "the product has no method",
                notes=tuple(("one of", place.text) for place in found),
                hint="name it: --model, --method",
            )
        )
    (place,) = found
    # `..._run_at` gives that number where no instruction failed.
    if instruction is None or instruction == NO_INSTRUCTION:
        return place
    count = len(place.instructions)
    if instruction >= count:
        raise UsageError.of(
            "unknown-instruction",
            f"there is no instruction {instruction} in {place.text}",
            expected=f"less than {count}",
            hint="name the profile, and the model, that the device was built from",
        )
    return replace(place, instruction=instruction)


def _unknown(what: str, name: str, known: Sequence[str]) -> UsageError:
    owner = {"model": "profile", "method": "model"}[what]
    return UsageError.of(
        f"unknown-{what}",
        f'there is no {what} "{name}"',
        expected=", ".join(known) or "none",
        hint=did_you_mean(name, known) or f"name a {what} of the {owner}",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """What a status means.

    Args:
        error: The status.
        place: Where it comes from.
        remedy: What to do about it.
    """

    error: DeviceError
    place: Place
    remedy: str

    @property
    def data(self) -> dict[str, object]:
        """The status as JSON data; the keys are stable."""
        place = self.place
        return {
            "code": int(self.error),
            **picked(self.error, "name", "meaning"),
            "model": place.model,
            "method": place.method.name,
            "instruction": place.instruction,
            "program_instruction": place.origin,
            "operator": place.operator or None,
            "source": place.source or None,
            **picked(self, "remedy", "sentence"),
        }

    @property
    def sentence(self) -> str:
        """All of it."""
        if self.error is DeviceError.Ok:
            return f"{self.place.text}: {self.error.name} ({int(self.error)}), success"
        return (
            f"{self.place.text}, failed with {self.error.name} ({int(self.error)}),"
            f" {self.error.meaning}: {self.remedy}"
        )


def explain_status(
    error: DeviceError, place: Place, *, state_bytes: int, missing: Sequence[str] = ()
) -> Explanation:
    """What a status means and what to do.

    Args:
        error: The status.
        place: Where it comes from.
        state_bytes: What the method state needs.
        missing: Operators and backends of the profile without kernel or delegate.
    """
    method, operator = place.method, place.operator
    called = {str(o) for o in method.operators} | {d.backend for d in method.delegates}
    absent = ", ".join(name for name in missing if name in called)
    match error:
        case DeviceError.OperatorMissing | DeviceError.DelegateMissing if absent:
            remedy = f"the profile allows {absent} to be missing; add what serves it"
        case DeviceError.StateTooSmall:
            remedy = f"give the method state {state_bytes:,} bytes"
        case DeviceError.ArenaTooSmall:
            sizes = ", ".join(
                f"arena {index}: {size:,} bytes"
                for index, size in enumerate(method.arena_bytes)
                if index
            )
            remedy = f"give each arena its size ({sizes or 'the method has none'})"
        case DeviceError.ShapeTooLarge if bounds := _bounds(method):
            remedy = (
                f"give inputs of at most these sizes: {bounds}; if they are no larger,"
                " the program plans too little for small ones: build it from `source`"
            )
        case DeviceError.NotSupported if operator:
            remedy = (
                f"change the model so that it calls {operator} otherwise, or choose"
                " another library in [kernels.operators]"
            )
        case DeviceError.InvalidArgument if operator:
            remedy = (
                f"check the arguments of {operator}: an index in a tensor, or sizes"
                " that do not fit each other"
                + "; a .pte does not say how small inputs may be"
                * bool(_bounds(method))
            )
        case _:
            remedy = _REMEDIES[error]
    return Explanation(error=error, place=place, remedy=remedy)


def _bounds(method: Method) -> str:
    """Largest sizes of the inputs whose sizes change."""
    values = [(at, method.values[index]) for at, index in enumerate(method.inputs)]
    return ", ".join(
        f"input {at} {list(value.sizes)}"
        for at, value in values
        if isinstance(value, TensorValue) and value.is_dynamic
    )


_DAMAGED: Final = (
    "a program that was built in has been proved, so check that flash holds what was"
    " linked; one that came over the air was cut off or changed on its way"
)
_REMEDIES: Final = {
    DeviceError.Ok: "nothing",
    DeviceError.InvalidProgram: _DAMAGED,
    DeviceError.UnsupportedProgram: "export the program for this version of the"
    " runtime; `orchestrator check` names what it does not have",
    DeviceError.OperatorMissing: "add the operators of the program to"
    " operators.include and build the firmware again",
    DeviceError.DtypeNotSelected: "add the dtypes of the program to [dtypes.operators]"
    " and build the firmware again",
    DeviceError.DelegateMissing: "link the delegate with [[delegates]] and build the"
    " firmware again, or export the program without it",
    DeviceError.NotFound: "use a method, input or output that the program has;"
    " `orchestrator inspect` lists them",
    DeviceError.Misaligned: "place programs and arenas at multiples of 16 bytes, method"
    " states of 8: see the linker script",
    DeviceError.InvalidArgument: "give inputs with the sizes and values that the method takes",
    DeviceError.ShapeTooLarge: "give inputs of at most the sizes that the program was exported for",
    DeviceError.NotSupported: "change the model so that it calls operators otherwise",
    DeviceError.InstructionLimit: "raise `max_instructions` of [[models]], or see why"
    " the loop in the program does not end",
    DeviceError.ImageDamaged: "flash the firmware again; if it happens on the same"
    " device again, its flash is worn out or something overwrites it",
    DeviceError.MemoryNotSet: "give every input and output that is not planned its"
    " memory before the run: ..._set_input0 and the like",
    DeviceError.ScratchTooSmall: 'build with policy = "plan" in [scratch]; a program'
    " that comes over the air must be the one in models/ of its build",
    DeviceError.NotDone: "call ..._step until it returns another status",
    DeviceError.WrongFloatMode: "leave the FPU of the task as reset does: clear FZ, FZ16,"
    " AHP and RMode of FPSCR (or frm on RISC-V), and of FPDSCR for new tasks",
}
