"""What a firmware offers to programs that replace its own: kernels, memory, interfaces.

The facts are pairs of texts, so that a lock holds them one per line.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from orchestrator.catalog.cmsis_nn import Backend
from orchestrator.catalog.expressions.reader import compiled
from orchestrator.catalog.expressions.values import Kind
from orchestrator.catalog.scratch_arguments import scratch_arguments
from orchestrator.core.dtype import ScalarType
from orchestrator.core.kernel import KernelKey
from orchestrator.core.operator import OperatorName, OpSchema, parse_schema
from orchestrator.selection.resolution import TableEntry

# These words stand in locks of firmware in the field: a new meaning needs a new word,
# and all of them are read for ever.
_ANY_KEY: Final = "any"
_AND: Final = "; "
_COMMON: Final = "c"
_SHARED: Final = "s"
_TAKES: Final = ", takes named data"
CALLER_TEXT: Final = " in memory of the caller"


@dataclass(frozen=True, slots=True, kw_only=True)
class FirmwareMethod:
    """The place of one method of one model.

    Args:
        model: Its model.
        method: Its name.
        state_bytes: Block for the method state.
        arena_bytes: Arenas in order of their memory id, from 1.
        common: Memory ids of arenas that overlap those of other methods.
        shared: Memory ids of arenas in which methods of the model share state.
        inputs: What the API promises of each, as `port_text` has it.
        outputs: Likewise.
    """

    model: str
    method: str
    state_bytes: int
    arena_bytes: tuple[int, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    common: frozenset[int] = frozenset()
    shared: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelRule:
    """What the kernels of an operator require of calls, beyond their table entries.

    Args:
        schema: Of the operator; expressions and conditions name its arguments.
        scratch: (argument, expression for its size in bytes), as in `functions.yaml`;
            sizes that are always 0 are left out.
        requires: Conditions, likewise; only of operators with a single kernel. Where
            there are several, the device chooses one for each call by its key.
    """

    schema: OpSchema
    scratch: tuple[tuple[str, str], ...] = ()
    requires: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Firmware:
    """What a firmware offers to programs.

    Args:
        pointer_bytes: Of its core.
        kernels: Its kernel table; `function` is "", as no program names it.
        methods: Of its models, in order of the names.
        delegates: (backend, state bytes) of its delegates, sorted.
        takers: Backends of those that find data by name.
        data: Constants outside the programs, by (model, name): dtype and bytes.
        inline_constants: Its loader reads constants inside the flatbuffer.
        isa: Of the target, for scratch sizes; "" without any.
        rules: In order of the operators.
    """

    pointer_bytes: int
    kernels: tuple[TableEntry, ...]
    methods: tuple[FirmwareMethod, ...]
    delegates: tuple[tuple[str, int], ...] = ()
    takers: frozenset[str] = frozenset()
    data: tuple[tuple[tuple[str, str], str], ...] = ()
    inline_constants: bool = False
    isa: str = ""
    rules: tuple[KernelRule, ...] = ()

    @property
    def has_caller_memory(self) -> bool:
        """Its loader knows inputs and outputs that lie in memory of the caller."""
        return any(
            text.endswith(CALLER_TEXT)
            for method in self.methods
            for text in (*method.inputs, *method.outputs)
        )


def firmware_facts(firmware: Firmware) -> tuple[tuple[str, str], ...]:
    """Pairs of a name and a text, sorted."""
    found = {"pointer": f"{firmware.pointer_bytes} bytes"}
    for entry in firmware.kernels:
        key = _ANY_KEY if entry.key is None else str(entry.key)
        dtypes = " ".join(d.name for d in sorted(entry.dtypes))
        found[f"kernel {entry.operator} {key}"] = f"{entry.signature} {dtypes}".strip()
    if firmware.inline_constants:
        found["constants"] = "in segments and in the flatbuffer"
    for rule in firmware.rules:
        found |= _rule_facts(rule, firmware.isa)
    for backend, state_bytes in firmware.delegates:
        taken = _TAKES if backend in firmware.takers else ""
        found[f"delegate {backend}"] = f"{state_bytes} bytes{taken}"
    for method in firmware.methods:
        name = f"{method.model}.{method.method}"
        sizes = " ".join(
            f"{size}{_COMMON if n in method.common else ''}{_SHARED if n in method.shared else ''}"
            for n, size in enumerate(method.arena_bytes, 1)
        )
        found[f"memory {name}"] = f"{method.state_bytes} {sizes}".strip()
        for side in ("input", "output"):
            for index, text in enumerate(getattr(method, f"{side}s")):
                # Three digits: names are sorted as text, and order is what tells inputs
                # apart.
                found[f"{side} {name} {index:03}"] = text
    for (model, constant), text in firmware.data:
        found[f"data {model}.{constant}"] = text
    return tuple(sorted(found.items()))


def _rule_facts(rule: KernelRule, isa: str) -> dict[str, str]:
    operator = rule.schema.name
    found = {
        f"scratch {operator} {argument}": f"{isa} {expression}"
        for argument, expression in rule.scratch
    }
    if rule.requires:
        found[f"requires {operator}"] = _AND.join(rule.requires)
    return {f"schema {operator}": rule.schema.text, **found}


def read_firmware(facts: Mapping[str, str]) -> Firmware:
    """The firmware of these facts.

    Raises:
        ValueError: Facts are missing or damaged.
    """
    kernels: list[TableEntry] = []
    methods: list[FirmwareMethod] = []
    delegates: list[tuple[str, int]] = []
    takers: set[str] = set()
    data: list[tuple[tuple[str, str], str]] = []
    scratch: dict[str, list[tuple[str, str]]] = {}
    requires: dict[str, tuple[str, ...]] = {}
    isas: set[str] = set()
    for name, text in sorted(facts.items()):
        kind, _, what = name.partition(" ")
        if kind == "kernel":
            kernels.append(_entry(what, text))
        elif kind == "scratch":
            operator, _, argument = what.partition(" ")
            isa, _, expression = text.partition(" ")
            isas.add(Backend(isa))
            scratch.setdefault(operator, []).append((argument, expression))
        elif kind == "requires":
            requires[what] = tuple(text.split(_AND))
        elif kind == "delegate":
            delegates.append((what, int(text.partition(" ")[0])))
            takers |= {what} if text.endswith(_TAKES) else set()
        elif kind == "data":
            model, _, constant = what.partition(".")
            data.append(((model, constant), text))
        elif kind == "memory":
            model, _, method = what.rpartition(".")
            state, *arenas = text.split()
            marks = dict(enumerate(arenas, 1))
            methods.append(
                FirmwareMethod(
                    model=model,
                    method=method,
                    state_bytes=int(state),
                    arena_bytes=tuple(int(a.strip(_COMMON + _SHARED)) for a in arenas),
                    common=frozenset(n for n, a in marks.items() if _COMMON in a),
                    shared=frozenset(n for n, a in marks.items() if _SHARED in a),
                    inputs=_ports(facts, f"input {what} "),
                    outputs=_ports(facts, f"output {what} "),
                )
            )
    if "pointer" not in facts:
        raise ValueError("the size of a pointer is missing")
    if len(isas) > 1:
        raise ValueError(f"scratch sizes are for several ISAs: {sorted(isas)}")
    return Firmware(
        pointer_bytes=int(facts["pointer"].partition(" ")[0]),
        kernels=tuple(kernels),
        methods=tuple(methods),
        delegates=tuple(delegates),
        takers=frozenset(takers),
        data=tuple(data),
        inline_constants="constants" in facts,
        isa="".join(isas),
        rules=tuple(
            _rule(operator, scratch.get(operator, ()), requires.get(operator, ()), facts)
            for operator in sorted({*scratch, *requires})
        ),
    )


def _rule(
    operator: str,
    scratch: Iterable[tuple[str, str]],
    requires: tuple[str, ...],
    facts: Mapping[str, str],
) -> KernelRule:
    if f"schema {operator}" not in facts:
        raise ValueError(f"the schema of {operator} is missing")
    schema = parse_schema(facts[f"schema {operator}"])
    if str(schema.name) != operator:
        raise ValueError(f"the schema of {operator} is that of {schema.name}")
    known = [argument.name for _, argument in scratch_arguments(schema)]
    for argument, expression in scratch:
        if argument not in known:
            raise ValueError(f"{argument} is no scratch argument of {operator}")
        compiled(expression, schema, Kind.NUMBER)
    for condition in requires:
        compiled(condition, schema, Kind.TRUTH)
    return KernelRule(schema=schema, scratch=tuple(scratch), requires=requires)


def _entry(what: str, text: str) -> TableEntry:
    operator, _, key = what.partition(" ")
    signature, _, dtypes = text.partition(" ")
    try:
        return TableEntry(
            operator=OperatorName.parse(operator),
            key=None if key == _ANY_KEY else KernelKey.parse(key),
            function="",
            signature=signature,
            dtypes=frozenset(ScalarType[name] for name in dtypes.split()),
        )
    except KeyError as error:
        raise ValueError(f"{error} is no dtype") from error


def _ports(facts: Mapping[str, str], start: str) -> tuple[str, ...]:
    return tuple(text for name, text in sorted(facts.items()) if name.startswith(start))


def data_text(dtype: ScalarType, size_bytes: int) -> str:
    """What a loader requires of a constant outside the program."""
    return f"{dtype.name} {size_bytes} bytes"


def port_text(
    kind: str,
    dtype: ScalarType | None = None,
    sizes: Iterable[int] = (),
    dim_order: Iterable[int] = (),
    *,
    is_dynamic: bool = False,
    is_caller: bool = False,
) -> str:
    """What an API promises of an input or output: the same text, the same port.

    Args:
        kind: `tensor`, `int`, and so on.
        dtype: Of a tensor, like the rest.
        sizes: Upper bounds if `is_dynamic`.
        dim_order: From outermost to innermost in memory.
        is_dynamic: The sizes may change.
        is_caller: It lies in memory of the caller.
    """
    if dtype is None:
        return kind
    bound = "at most " if is_dynamic else ""
    where = CALLER_TEXT if is_caller else ""
    return f"{dtype.name} {bound}{list(sizes)} in order {list(dim_order)}{where}"
