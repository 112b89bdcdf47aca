"""Random products: what models call, what profiles add, what libraries offer.

Libraries are texts, so that whatever reads them is part of what is tested. Beside each
kernel stands what it serves, found from its entry without the code under test.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from hypothesis import strategies as st

from orchestrator.catalog import LibraryText, read_catalog
from orchestrator.core.dtype import ScalarType
from orchestrator.core.kernel import KernelKey, TensorMeta
from orchestrator.core.operator import OpSchema, parse_schema
from orchestrator.selection.extract import aggregate
from orchestrator.selection.op_info import CallPattern, OpCall, OpInfo, Origin, SelectedOperator
from orchestrator.selection.resolve import resolve

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from orchestrator.selection.op_info import Selection
    from orchestrator.selection.resolution import Resolution

ADD: Final = parse_schema(
    "aten::add.out(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)"
)
CAT: Final = parse_schema(
    "aten::cat.out(Tensor[] tensors, int dim=0, *, Tensor(a!) out) -> Tensor(a!)"
)
CLAMP: Final = parse_schema(
    "aten::clamp.Tensor_out(Tensor self, Tensor? min=None, Tensor? max=None, *,"
    " Tensor(a!) out) -> Tensor(a!)"
)
SUB: Final = parse_schema("executorch_prim::sub.Scalar(Scalar a, Scalar b) -> Scalar")
_SCHEMAS: Final = {str(s.name): s for s in (ADD, CAT, CLAMP, SUB)}

# Few of each, so that calls and kernels meet.
_DTYPES: Final = ("Float", "Half", "Int")
_ORDERS: Final = ((0, 1), (1, 0))
_T = TypeVar("_T")


class Shuffle(Protocol):
    """Puts items into some order."""

    def __call__(self, items: Sequence[_T], /) -> list[_T]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """A kernel of an entry.

    Args:
        function: Its C++ name.
        meta: Arguments that its calls give, all of one dtype and one dim order; empty
            for a fallback kernel.
        types: Dtypes it is specialised for.
        orders: Dim orders it is specialised for.
    """

    function: str
    meta: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    orders: tuple[tuple[int, ...], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """An entry of a functions.yaml."""

    operator: str
    offers: tuple[Offer, ...]
    dtypes: tuple[tuple[str, tuple[str, ...]], ...]
    dtype_arguments: tuple[str, ...]
    closure: tuple[str, ...]
    dim_orders: str
    sources: tuple[str, ...]

    def text(self, shuffle: Shuffle) -> str:
        """The entry with its parts in the order of `shuffle`."""
        kernels, types, orders = [], [], []
        for number, offer in enumerate(self.offers):
            alias = [f"T{number}", f"D{number}"]
            meta = dict.fromkeys(shuffle(offer.meta), alias) if offer.meta else None
            kernels.append({"arg_meta": meta, "kernel_name": offer.function})
            if offer.meta:
                types.append((alias[0], shuffle(offer.types)))
                orders.append((alias[1], shuffle(offer.orders)))
        fields: list[tuple[str, Any]] = [
            ("func", _SCHEMAS[self.operator].text),
            ("kernels", shuffle(kernels)),
            ("sources", shuffle(self.sources)),
            ("closure", shuffle(self.closure)),
            ("dim_orders", self.dim_orders),
            ("dtypes", dict(shuffle([(n, shuffle(d)) for n, d in self.dtypes]))),
            ("dtype_arguments", shuffle(self.dtype_arguments)),
        ]
        if types:
            fields += [
                ("type_alias", dict(shuffle(types))),
                ("dim_order_alias", dict(shuffle(orders))),
            ]
        return f"- {json.dumps(dict(shuffle(fields)))}\n"

    def serves(self, offer: Offer, call: CallPattern) -> bool:
        """Whether a kernel of this entry takes a call, by docs/kernels.md."""
        names = [argument.name for argument in _SCHEMAS[self.operator].arguments]
        tensors = [(names[p], m) for p, m in call.tensors if p < len(names)]
        items = [(names[p], m) for p, m in call.list_items]
        if offer.meta:
            # The key holds the first tensor of each argument; the others have to be
            # of its dtypes.
            return (
                {name for name, _ in tensors} == set(offer.meta)
                and len({m for _, m in tensors}) == 1
                and all(m.dtype.name in offer.types for _, m in (*tensors, *items))
                and all(m.dim_order in offer.orders for _, m in tensors)
            )
        found = [m.dim_order for _, m in (*tensors, *items)]
        in_order = {
            "any": True,
            "same": len(set(found)) <= 1,
            "contiguous": all(order == (0, 1) for order in found),
        }
        taken = dict(self.dtypes)
        return in_order[self.dim_orders] and all(
            m.dtype.name in taken[name] for name, m in (*tensors, *items)
        )

    def has_dtype(self, dtype: ScalarType) -> bool:
        """Whether its fallback kernel can be instantiated for a dtype."""
        taken = dict(self.dtypes)
        return all(dtype.name in taken[name] for name in self.dtype_arguments)


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """A product: models, requests of its profile, and libraries in their order."""

    infos: tuple[OpInfo, ...]
    extra: tuple[SelectedOperator, ...]
    every: bool
    every_dtype: bool
    libraries: tuple[tuple[str, tuple[Entry, ...]], ...]

    def kernels(self) -> Iterator[tuple[str, Entry, Offer]]:
        """Every kernel on offer, with its library and entry."""
        for library, entries in self.libraries:
            for entry in entries:
                for offer in entry.offers:
                    yield library, entry, offer

    def without(self, function: str) -> World:
        """The same without one kernel; an entry that has no other goes with it."""
        libraries = []
        for library, entries in self.libraries:
            left = []
            for entry in entries:
                offers = tuple(o for o in entry.offers if o.function != function)
                left += [replace(entry, offers=offers)] if offers else []
            libraries.append((library, tuple(left)))
        return replace(self, libraries=tuple(libraries))

    def requests(self) -> dict[tuple[str, KernelKey], list[CallPattern]]:
        """Calls by operator and kernel key: those of one key share a kernel."""
        found: dict[tuple[str, KernelKey], list[CallPattern]] = {}
        patterns = [(call.operator, call.pattern) for info in self.infos for call in info.calls]
        for asked in self.extra:
            for key in asked.keys:
                # Only of `add`, whose tensors all are arguments of every call.
                tensors = tuple(zip((0, 1, 3, 4), key.tensors, strict=True))
                patterns.append((asked.name, CallPattern("", tensors)))
        for name, pattern in patterns:
            found.setdefault((str(name), pattern.key), []).append(pattern)
        return found

    def unserved(self) -> set[str]:
        """Operators that ask for something no single kernel serves."""
        kernels = [(entry, offer) for _, entry, offer in self.kernels()]
        missing = {
            name
            for (name, _), calls in self.requests().items()
            if not any(
                entry.operator == name and all(entry.serves(offer, c) for c in calls)
                for entry, offer in kernels
            )
        }
        for asked in self.extra:
            name = str(asked.name)
            mine = [(e, o) for e, o in kernels if e.operator == name]
            if asked.every_dtype and not mine:
                missing.add(name)
            for dtype in asked.dtypes:
                if not any(not o.meta and e.has_dtype(dtype) for e, o in mine):
                    missing.add(name)
        return missing

    def texts(self, shuffle: Shuffle) -> list[LibraryText]:
        """Its libraries, in their order, with all that is in them shuffled."""
        return [
            LibraryText(
                name=name,
                file=f"{name}/functions.yaml",
                text="".join(entry.text(shuffle) for entry in shuffle(entries)),
            )
            for name, entries in self.libraries
        ]

    def selection(self, shuffle: Shuffle) -> Selection:
        """Everything asked for, put together in the order of `shuffle`."""
        infos = [
            replace(
                info, operators=tuple(shuffle(info.operators)), calls=tuple(shuffle(info.calls))
            )
            for info in shuffle(self.infos)
        ]
        return replace(aggregate(infos, shuffle(self.extra)), every_operator=self.every)

    def resolve(self, shuffle: Shuffle = list) -> Resolution:
        """What is linked. Raises KernelError."""
        return resolve(
            self.selection(shuffle),
            read_catalog(self.texts(shuffle)),
            every_dtype=self.every_dtype,
            span_of=lambda _: None,
        )


_METAS: Final = st.builds(
    TensorMeta, st.sampled_from([ScalarType[name] for name in _DTYPES]), st.sampled_from(_ORDERS)
)
_OFTEN: Final = st.sampled_from([True, True, True, False])
_LISTS: Final = st.sampled_from([*[_DTYPES] * 6, ("Float", "Int"), ("Float",)])


@st.composite
def _patterns(draw: st.DrawFn, schema: OpSchema) -> CallPattern:
    """A call that fits a schema, its tensors mostly alike."""
    kinds, tensors, items = "", [], []
    base = draw(_METAS)
    metas = st.sampled_from([base] * 8) | _METAS
    for position, argument in enumerate(schema.arguments):
        kind = str(argument.kind)
        if argument.optional and draw(st.booleans()):
            kind = "N"
        kinds += "I" if kind == "S" else kind
        if kind in "TL":
            tensors.append((position, draw(metas)))
        if kind == "L" and draw(_OFTEN):
            items.append((position, draw(_METAS)))
    if tensors:
        tensors.append((len(schema.arguments), tensors[-1][1]))
    kinds += "T" if tensors else "I"
    return CallPattern(kinds=kinds, tensors=tuple(tensors), list_items=tuple(items))


@st.composite
def _infos(draw: st.DrawFn, schemas: Sequence[OpSchema]) -> tuple[OpInfo, ...]:
    infos = []
    for model in draw(st.sampled_from(["ab", "a", "ba"])):
        called = draw(st.lists(st.sampled_from(schemas), min_size=1, max_size=2))
        calls = tuple(
            OpCall(
                operator=schema.name,
                pattern=draw(_patterns(schema)),
                method=draw(st.sampled_from(["forward", "encode"])),
                instruction=index,
            )
            for index, schema in enumerate(called)
        )
        listed = tuple(dict.fromkeys((c.method, c.operator) for c in calls))
        infos.append(OpInfo(model=model, operators=listed, calls=calls, delegates=()))
    return tuple(infos)


@st.composite
def _extra(draw: st.DrawFn, schemas: Sequence[OpSchema]) -> tuple[SelectedOperator, ...]:
    """What a profile asks for besides its models: operators, dtypes, kernel keys."""
    asked = [
        SelectedOperator(
            name=schema.name,
            dtypes=tuple(
                ScalarType[name]
                for name in sorted(draw(st.sets(st.sampled_from(_DTYPES), max_size=1)))
                if schema is not SUB
            ),
            keys=(draw(_patterns(schema)).key,) if schema is ADD and draw(st.booleans()) else (),
            every_dtype=not draw(_OFTEN),
            origins=(Origin("operators"),),
        )
        for schema in schemas
        if not draw(_OFTEN)
    ]
    return tuple(asked)


@st.composite
def _entry(draw: st.DrawFn, schema: OpSchema, library: str) -> Entry:
    tensors = [a for a in schema.arguments if a.kind in ("T", "L")]
    names = [argument.name for argument in tensors]
    function = f"{library}::{schema.name.identifier}"
    offers = []
    # No dtype belongs to two specialised kernels, so no key is offered twice.
    types = draw(st.permutations(_DTYPES)) if names else []
    for number in range(draw(st.integers(0, 2)) if names else 0):
        meta = [a.name for a in tensors if not a.optional or draw(st.booleans())]
        offers.append(
            Offer(
                function=f"{function}_{number}",
                meta=tuple(meta),
                types=tuple(types[number::2]),
                orders=draw(st.sampled_from([_ORDERS, _ORDERS[:1], _ORDERS[1:]])),
            )
        )
    if not offers or draw(_OFTEN):
        offers.append(Offer(function=function))
    deciding = [name for name in names if draw(_OFTEN)]
    return Entry(
        operator=str(schema.name),
        offers=tuple(offers),
        dtypes=tuple((name, draw(_LISTS)) for name in names),
        dtype_arguments=tuple(deciding),
        closure=tuple(draw(st.lists(st.sampled_from(["Long", "Double"]), unique=True))),
        dim_orders=draw(st.sampled_from([*["any"] * 6, "same", "contiguous"])),
        sources=tuple(
            draw(
                st.sampled_from(
                    [(f"{schema.name.base}.cpp",), (f"{schema.name.base}.cpp", "z.cpp")]
                )
            )
        ),
    )


@st.composite
def worlds(draw: st.DrawFn, *, disjoint: bool = False) -> World:
    """A product; with `disjoint`, no two of its libraries have an operator in common.

    Libraries have most of what is asked for, often more than once.
    """
    schemas = draw(
        st.lists(st.sampled_from(list(_SCHEMAS.values())), min_size=1, max_size=2, unique=True)
    )
    names = draw(st.sampled_from([("m",), ("m", "n"), ("n", "m"), ("n", "k", "m")]))
    libraries: dict[str, list[Entry]] = {name: [] for name in names}
    for schema in schemas:
        chosen = [draw(st.sampled_from(names))] if disjoint else names
        for name in chosen:
            if disjoint or draw(_OFTEN):
                libraries[name].append(draw(_entry(schema, name)))
    return World(
        infos=draw(_infos(schemas)),
        extra=draw(_extra(schemas)),
        every=not draw(_OFTEN),
        every_dtype=not draw(_OFTEN),
        libraries=tuple((name, tuple(libraries[name])) for name in names),
    )
