"""Whether a firmware can run a program that is newer than itself.

This predicts what the device does when it loads the program, from the kernel table, the
memory and the API of the firmware.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from orchestrator.catalog.expressions.condition import refusal
from orchestrator.compat.firmware import Firmware, FirmwareMethod, KernelRule, data_text, port_text
from orchestrator.core.operator import OperatorName, OpSchema
from orchestrator.errors import Diagnostic, did_you_mean
from orchestrator.method.separate import plan_faults
from orchestrator.method.state import StateError, kept_arenas, with_state
from orchestrator.program.caller import caller_outputs, caller_problems, caller_values, own_outputs
from orchestrator.program.external import data_problem
from orchestrator.program.interface import TENSOR_LISTS, with_items
from orchestrator.program.program import DelegateCall, KernelCall, Method, MoveCall, Program
from orchestrator.program.values import NoneValue, TensorValue, Value, kind_name
from orchestrator.scratch import ScratchNeed, SizedKernel, method_scratch
from orchestrator.selection.call import MethodFacts, argument_facts, table_refusal
from orchestrator.selection.op_info import OpCall, OpInfo
from orchestrator.selection.resolution import Resolution, TableEntry

if TYPE_CHECKING:
    from orchestrator.memory.plan import MemoryPlan


def firmware_of(
    *,
    resolution: Resolution,
    memory: MemoryPlan,
    programs: Mapping[str, Program],
    pointer_bytes: int,
    inline_constants: bool = False,
    isa: str = "scalar",
) -> Firmware:
    """What a product offers to programs that replace its own.

    Args:
        resolution: Has its kernel table.
        memory: Sizes of its blocks.
        programs: Its models, which the API is made for.
        pointer_bytes: Of the target.
        inline_constants: Its loader reads constants inside the flatbuffer.
        isa: Of the target.
    """
    rules = kernel_rules(resolution)
    return Firmware(
        pointer_bytes=pointer_bytes,
        kernels=resolution.table_entries,
        delegates=tuple(resolution.delegate_states.items()),
        takers=frozenset(d.code.backend for d in resolution.delegates if d.code.named_data),
        methods=tuple(
            FirmwareMethod(
                model=place.model,
                method=place.method,
                state_bytes=place.state_bytes,
                arena_bytes=tuple(a.size_bytes for a in place.arenas),
                inputs=_inputs(method),
                outputs=_outputs(method),
                common=frozenset(a.memory_id for a in place.arenas if a.common),
                shared=frozenset(a.memory_id for a in place.arenas if a.shared),
            )
            for model in memory.models
            for place in model.methods
            for method in [programs[place.model].method(place.method)]
        ),
        inline_constants=inline_constants,
        # Only if sizes depend on it: locks of products without scratch memory stay the
        # same.
        isa=isa if any(rule.scratch for rule in rules) else "",
        rules=rules,
        data=tuple(
            ((model, e.name), data_text(e.dtype, len(e.data)))
            for model, program in sorted(programs.items())
            for e in program.external
        ),
    )


def kernel_rules(resolution: Resolution) -> tuple[KernelRule, ...]:
    """Scratch sizes and conditions of a product's kernels, by operator."""
    rules = []
    for operator in resolution.operators:
        kernels = [binding.kernel for binding in operator.bindings]
        sizes = {name: size for kernel in kernels for name, size in kernel.scratch}
        scratch = tuple((n, size) for n, size in sorted(sizes.items()) if size != "0")
        # Which of several kernels takes a call is not among the facts: the condition of
        # one would refuse calls of another.
        requires = kernels[0].requires if len(kernels) == 1 else ()
        if scratch or requires:
            rules.append(KernelRule(schema=operator.schema, scratch=scratch, requires=requires))
    return tuple(rules)


def check_compat(
    firmware: Firmware,
    program: Program,
    info: OpInfo,
    state_bytes: Mapping[str, int],
    *,
    model: str,
    file: str,
) -> tuple[Diagnostic, ...]:
    """Why a program cannot take the place of a model; nothing if it can.

    Each method of the model must be in the program, take and give the same values, and
    load in the place of that method. What else the program has is not used.

    Args:
        firmware: What there is.
        program: The new one; the reader has checked it.
        info: Its operators.
        state_bytes: By method of the program, the method state that it needs.
        model: Of the firmware, whose place it takes.
        file: Of the program, for messages.
    """
    problems = []
    # The device rejects the file as ExecuTorch wrote it (decision 0015).
    if program.original is not None:
        problems.append(
            Diagnostic.of(
                "newer-program",
                f"{file} has scratch memory of delegates beside its values",
                expected="it among the arguments of calls",
                hint="build the program with its profile and ship models/",
            )
        )
    if program.inline_constants and not firmware.inline_constants:
        problems.append(
            Diagnostic.of(
                "unsupported-program",
                f"{file} has constants inside the flatbuffer",
                expected="constants in a segment, as in the firmware's",
                hint="export the model again with ExecuTorch 0.7 or newer",
            )
        )
    try:
        program = with_state(program, _schemas(firmware))
    except StateError as error:
        problems.append(
            Diagnostic.of(
                "state-not-shared",
                f"methods of {file} cannot share their state",
                found=str(error),
                hint="export them together, with share_mutable_buffers=True",
            )
        )
    methods = {method.name: method for method in program.methods}
    places = [place for place in firmware.methods if place.model == model]
    used = [methods[p.method] for p in places if p.method in methods]
    parts = [delegate for method in used for delegate in method.delegates]
    takes = {b: b in firmware.takers for b, _ in firmware.delegates}
    outside = [name for (owner, name), _ in firmware.data if owner == model]
    # Once for all methods, as in a build: it reads all bytes of the delegates.
    if problem := data_problem(program, parts, takes, outside):
        what = f"{file}: {problem.message} in the firmware"
        hint = "build firmware with this program, its data and its delegate"
        problems.append(replace(problem, message=what, hint=hint))
    for place in places:
        method = methods.get(place.method)
        if method is None:
            problems.append(
                Diagnostic.of(
                    "method-missing",
                    f"{file} has no method {place.method}",
                    found=", ".join(sorted(methods)) or "none",
                    hint=did_you_mean(place.method, methods)
                    or "export the program with this method",
                )
            )
            continue
        calls = [call for call in info.calls if call.method == method.name]
        problems += _MethodCheck(
            firmware, place, program, method, f"{file}, method {method.name}"
        ).problems(calls, state_bytes[method.name])
    return tuple(problems)


def _schemas(firmware: Firmware) -> dict[OperatorName, OpSchema]:
    """Schemas that a firmware records: those of kernels with scratch memory."""
    return {rule.schema.name: rule.schema for rule in firmware.rules}


class _MethodCheck:
    """One method of the program in the place of one of the firmware."""

    def __init__(
        self, firmware: Firmware, place: FirmwareMethod, program: Program, method: Method, name: str
    ) -> None:
        self._firmware = firmware
        self._place = place
        self._program = program
        self._method = method
        self._rules = {rule.schema.name: rule for rule in firmware.rules}
        self._entries: dict[OperatorName, list[TableEntry]] = {}
        for entry in firmware.kernels:
            self._entries.setdefault(entry.operator, []).append(entry)
        self._name = name
        given = caller_outputs(method)
        moved = {i.target for i in method.instructions if isinstance(i, MoveCall)}
        self._fixed = {
            index
            for index, value in enumerate(method.values)
            if isinstance(value, TensorValue)
            and (index in moved or not (value.is_planned or index in given))
        }

    def problems(self, calls: list[OpCall], state_bytes: int) -> list[Diagnostic]:
        return [
            *self._memory(state_bytes),
            *self._values(),
            *self._delegates(),
            *self._kernels(calls),
            *self._scratch(),
            *self._interface(),
        ]

    @cached_property
    def _facts(self) -> MethodFacts:
        return MethodFacts.of(self._method)

    def _problem(self, code: str, what: str, *notes: tuple[str, str], hint: str) -> Diagnostic:
        return Diagnostic(code=code, message=f"{self._name}: {what}", notes=notes, hint=hint)

    def _memory(self, state_bytes: int) -> Iterator[Diagnostic]:
        def short(what: str, needs: int, has: int) -> Diagnostic:
            return self._problem(
                "update-memory",
                f"{what} is {needs - has} bytes short",
                ("needs", f"{needs} bytes"),
                ("found", f"{has} bytes in the firmware"),
                hint="build firmware with this program; its size cannot be changed over the air",
            )

        place, method = self._place, self._method
        if state_bytes > place.state_bytes:
            yield short("the method state", state_bytes, place.state_bytes)
        used = {
            value.allocation.memory_id
            for value in method.values
            if isinstance(value, TensorValue) and value.allocation is not None
        }
        for memory_id in sorted(used):
            # Arena 0 is that of constants; ids past the firmware's have nothing.
            has = (0, *place.arena_bytes, *(0,) * memory_id)[memory_id]
            needs = method.arena_bytes[memory_id]
            # The device requires an arena to exist even if it is empty.
            if needs > has or memory_id > len(place.arena_bytes):
                yield short(f"arena {memory_id}", needs, has)
        for memory_id in sorted(kept_arenas(method) & place.common):
            yield self._problem(
                "update-memory",
                f"arena {memory_id} holds state, and other methods write over it",
                hint="build firmware with this program, which gives the arena memory of its own",
            )
        shares = method.name in self._program.sharers
        if shares != bool(place.shared):
            yield self._problem(
                "update-memory",
                "it shares state with other methods"
                if shares
                else "it shares no state with other methods",
                ("expected", "the opposite, as in the firmware"),
                hint="build firmware with this program",
            )
        # The device does not prove memory plans: a program from elsewhere is trusted
        # for its plan, unless it is refused here. The first fault is enough.
        for fault in plan_faults(method, _schemas(self._firmware))[:1]:
            yield self._problem(
                "unsound-plan",
                "its memory plan is wrong",
                ("found", fault.text(method)),
                hint="build the program with its profile and ship models/",
            )

    def _values(self) -> Iterator[Diagnostic]:
        method = self._method
        model, data = self._place.model, self._firmware.data
        has = {name: text for (owner, name), text in data if owner == model}
        outside = [
            f"value {index}"
            for index, value in enumerate(method.values)
            if isinstance(value, TensorValue)
            and value.is_external
            and (value.is_planned or _name(value) not in has)
        ]
        if outside:
            yield self._problem(
                "unsupported-program",
                "tensors have their data outside the program, where the firmware has none",
                ("found", ", ".join(outside)),
                ("expected", ", ".join(sorted(has)) or "no data outside"),
                hint="export without external constants, or with those of the firmware",
            )
        for name, value in [
            (_name(v), v)
            for v in method.values
            if isinstance(v, TensorValue) and v.is_external and not v.is_planned
        ]:
            needs = data_text(value.dtype, value.size_bytes)
            if has.get(name, needs) != needs:
                yield self._problem(
                    "other-data",
                    f'the data "{name}" differs from that of the firmware',
                    ("found", needs),
                    ("expected", has[name]),
                    hint="build firmware with this program and its data",
                )
        for message, hint, values in caller_problems(method):
            yield self._problem(
                "unsupported-program",
                message,
                ("found", f"values {', '.join(map(str, values))}"),
                hint=hint,
            )
        given = caller_values(method)
        if given and not self._firmware.has_caller_memory:
            yield self._problem(
                "unsupported-program",
                "inputs or outputs are to lie in memory of the caller",
                ("found", f"values {', '.join(map(str, sorted(given)))}"),
                ("expected", "planned ones, as all in the firmware are"),
                hint="export with memory-planned inputs and outputs",
            )
        inputs = with_items(method, method.inputs)
        fixed = [str(i) for i in inputs if i in self._fixed - given]
        if fixed and not outside:
            yield self._problem(
                "write-to-constant",
                "inputs lie in memory that must not change",
                ("found", f"values {', '.join(fixed)}"),
                hint="export the program again",
            )

    def _delegates(self) -> Iterator[Diagnostic]:
        # A firmware without delegates looks at calls only.
        needed = {
            self._method.delegates[i.delegate].backend
            for i in self._method.instructions
            if isinstance(i, DelegateCall)
        }
        if self._firmware.delegates:
            needed = {delegate.backend for delegate in self._method.delegates}
        for backend in sorted(needed - dict(self._firmware.delegates).keys()):
            yield self._problem(
                "delegate-missing",
                f"the firmware has no delegate {backend}",
                hint="build firmware with this program and the delegate, or export"
                " without this backend",
            )

    def _kernels(self, calls: list[OpCall]) -> Iterator[Diagnostic]:
        seen: dict[tuple[str, str], tuple[int, str]] = {}
        for call in calls:
            entries = self._entries.get(call.operator, ())
            fixed = self._fixed_arguments(call.instruction)
            reasons = [table_refusal(e, call.pattern, fixed) for e in entries]
            why = reasons[-1] if reasons else ""
            if "" in reasons:
                why = self._unmet_condition(call)
                if not why:
                    continue
            # One problem for each cause: a wrong operator is called hundreds of times.
            seen.setdefault((str(call.operator), why), (call.instruction, why))
        for (operator, _), (instruction, why) in seen.items():
            if not why:
                yield self._problem(
                    "operator-missing",
                    f"the firmware has no kernel for {operator}",
                    ("found", f"instruction {instruction}"),
                    hint="build firmware with this program, or add the operator to"
                    " `operators.include`",
                )
            else:
                yield self._problem(
                    "call-refused",
                    f"the firmware's kernel for {operator} does not take the call",
                    ("found", f"instruction {instruction}: {why}"),
                    hint="build firmware with this program, or select what it needs"
                    " with `dtypes.operators`",
                )

    def _fixed_arguments(self, instruction: int) -> frozenset[int]:
        """Positions of arguments that the device protects from writes."""
        found = set()
        args = self._method.instructions[instruction].args  # type: ignore[union-attr]  # of a kernel call
        for position, arg in enumerate(args):
            value = self._method.values[arg]
            items = value.items if isinstance(value, TENSOR_LISTS) else (arg,)
            if self._fixed.intersection(items):
                found.add(position)
        return frozenset(found)

    def _unmet_condition(self, call: OpCall) -> str:
        """The condition of the firmware's kernel that a call does not meet, or ""."""
        rule = self._rules.get(call.operator)
        instruction = self._method.instructions[call.instruction]
        if rule is None or not isinstance(instruction, KernelCall):
            return ""
        arguments = argument_facts(
            self._method.values,
            instruction.args,
            rule.schema,
            self._facts,
            self._program.data_bytes,
        )
        unmet = refusal(rule.requires, rule.schema, arguments)
        if unmet is None:
            return ""
        reason = f": {unmet.reason}" if unmet.reason else ""
        return f"it requires {unmet.condition}{reason}"

    def _scratch(self) -> Iterator[Diagnostic]:
        method, isa = self._method, self._firmware.isa
        kernels = {}
        for number, call in enumerate(method.instructions):
            if not isinstance(call, KernelCall):
                continue
            rule = self._rules.get(method.operators[call.operator])
            # A call with other arguments has been refused already.
            if rule is not None and len(call.args) >= len(rule.schema.arguments):
                kernels[number] = SizedKernel(rule.schema, "firmware", rule.scratch)
        for need in method_scratch(method, kernels, isa):
            if not isinstance(need, ScratchNeed):
                notes: tuple[tuple[str, str], ...] = (("found", need.reason),)
            elif need.needed_bytes > need.reserved_bytes:
                notes = (
                    ("needs", f"{need.needed_bytes} bytes with {isa}"),
                    ("found", f"{need.reserved_bytes} bytes in the program"),
                )
            else:
                continue
            operator = kernels[need.instruction].schema.name
            yield self._problem(
                "update-scratch",
                f"instruction {need.instruction}, {operator}, has too little scratch"
                f" memory in {need.argument}",
                *notes,
                hint="export the program for the core of the firmware, or build it with"
                " the firmware's profile and ship models/ of the build folder",
            )

    def _interface(self) -> Iterator[Diagnostic]:
        method, place = self._method, self._place
        for side, promised, given in (
            ("input", place.inputs, _inputs(method)),
            ("output", place.outputs, _outputs(method)),
        ):
            if len(promised) != len(given):
                notes = [(str(len(promised)), str(len(given)), f"count of {side}s")]
            else:
                notes = [
                    (a, b, f"{side} {i}")
                    for i, (a, b) in enumerate(zip(promised, given, strict=True))
                    if a != b
                ]
            for expected, found, what in notes:
                yield self._problem(
                    "other-interface",
                    f"the {what} differs from the API",
                    ("found", found),
                    ("expected", expected),
                    hint="export the program with the inputs and outputs that the"
                    " application gives and takes",
                )


def _name(value: TensorValue) -> str:
    return value.extra.qualified_name if value.extra else ""


def _inputs(method: Method) -> tuple[str, ...]:
    given = caller_values(method)
    return _ports(method, method.inputs, [i in given for i in method.inputs])


def _outputs(method: Method) -> tuple[str, ...]:
    return _ports(method, method.outputs, own_outputs(method))


def _ports(method: Method, indices: tuple[int, ...], given: Sequence[bool]) -> tuple[str, ...]:
    return tuple(
        _port(method, method.values[index], is_caller=is_caller)
        for index, is_caller in zip(indices, given, strict=True)
    )


def _port(method: Method, value: Value, *, is_caller: bool = False) -> str:
    if isinstance(value, TENSOR_LISTS):
        items = (method.values[i] if i >= 0 else NoneValue() for i in value.items)
        # To the device, a list of tensors and one that may have None are the same.
        return f"tensor list of ({', '.join(_port(method, item) for item in items)})"
    if not isinstance(value, TensorValue):
        return port_text(kind_name(type(value)))
    return port_text(
        "tensor",
        value.dtype,
        value.sizes,
        value.dim_order,
        is_dynamic=value.is_dynamic,
        is_caller=is_caller,
    )
