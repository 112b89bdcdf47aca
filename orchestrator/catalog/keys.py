"""Expand `arg_meta` and its aliases to kernel keys."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import product
from math import prod
from typing import TYPE_CHECKING, TypeVar

from yaml.nodes import Node, ScalarNode, SequenceNode

from orchestrator.core.dtype import ScalarType, parse_dtypes
from orchestrator.core.kernel import KernelKey, TensorMeta
from orchestrator.core.operator import ArgKind, Argument, OpSchema

if TYPE_CHECKING:
    from orchestrator.catalog.nodes import YamlFile

DimOrder = tuple[int, ...]
_T = TypeVar("_T")
ArgumentDtypes = tuple[tuple[str, frozenset["ScalarType"]], ...]
Types = dict[str, list["ScalarType"]]
Orders = dict[str, list[DimOrder]]

_DIMENSION = re.compile(r"[0-9]{1,3}")
_MAX_KEYS = 4096  # of one kernel; more is a mistake in the aliases


def tensor_arguments(schema: OpSchema) -> dict[str, Argument]:
    """Arguments that hold tensors, by name, in order; the result is left out."""
    kinds = (ArgKind.TENSOR, ArgKind.TENSOR_LIST)
    return {a.name: a for a in schema.arguments if a.kind in kinds}


class KeyReader:
    """Reads dtypes, dim orders and kernel keys; problems are recorded in the file."""

    def __init__(self, file: YamlFile) -> None:
        self._file = file
        # A library uses few dtypes, but each of them often.
        self._known: dict[str, frozenset[ScalarType] | str] = {}

    def dtypes(self, node: Node | None, what: str) -> frozenset[ScalarType]:
        """The dtypes that a list of dtype and group names means."""
        found: set[ScalarType] = set()
        for name, item in self._file.scalars(node, what):
            found |= self._dtype(name, item)
        return frozenset(found)

    def _dtype(self, name: str, node: Node) -> frozenset[ScalarType]:
        known = self._known.get(name)
        if known is None:
            try:
                known = parse_dtypes([name])
            except ValueError as error:
                known = str(error)
            self._known[name] = known
        if isinstance(known, frozenset):
            return known
        message, _, hint = known.partition(", ")
        hint = hint or "use a dtype name like Float, or integral, floating or real"
        self._file.problem("unknown-dtype", message, node, hint=hint)
        return frozenset()

    def argument(self, name: str, node: Node, known: Mapping[str, Argument]) -> bool:
        """Whether a name is one of the tensor arguments."""
        if name not in known:
            message = f'"{name}" is not a tensor argument of this operator'
            hint = "use a name of the schema"
            self._file.unknown(name, node, known, message, hint=hint)
        return name in known

    def aliases(self, types: Node | None, orders: Node | None) -> tuple[Types, Orders]:
        """`type_alias` and `dim_order_alias` of an entry.

        A dim order alias is one dim order, as in ExecuTorch, or a list of them.
        """
        file = self._file
        found = file.mapping(types, "`type_alias`") if types else None
        of_type = {
            alias: sorted(self.dtypes(value, f"`type_alias` {alias}"))
            for alias, value in (found or {}).items()
        }
        found = file.mapping(orders, "`dim_order_alias`") if orders else None
        of_order: Orders = {}
        for alias, value in (found or {}).items():
            items = file.sequence(value, f"`dim_order_alias` {alias}") or []
            nested = bool(items) and isinstance(items[0], SequenceNode)
            each = [self._dim_order(order) for order in (items if nested else [value])]
            of_order[alias] = sorted({order for order in each if order is not None})
        return of_type, of_order

    def _dim_order(self, node: Node) -> DimOrder | None:
        items = node.value if isinstance(node, SequenceNode) else [node]
        texts = [i.value if isinstance(i, ScalarNode) else "" for i in items]
        if all(map(_DIMENSION.fullmatch, texts)):
            order = tuple(map(int, texts))
            if sorted(order) == list(range(len(order))):
                return order
        self._file.problem(
            "bad-dim-order",
            "a dim order has every dimension once, from outermost to innermost",
            node,
            hint="write it like [0, 1, 2, 3]",
        )
        return None

    def keys(
        self, node: Node, schema: OpSchema, types: Types, orders: Orders
    ) -> tuple[tuple[KernelKey, ...], ArgumentDtypes] | None:
        """Kernel keys of a specialised kernel, and the dtypes its arguments have there.

        An alias stands for the same dtype, or dim order, wherever it occurs. The
        result repeats the first out argument. An argument without an entry is None
        in every call, so it has no dtypes.

        Returns:
            Keys, sorted, and (argument, dtypes); None if there are problems.
        """
        noted = len(self._file.problems)
        tensors = tensor_arguments(schema)
        types, orders = dict(types), dict(orders)
        metas = self._metas(node, tensors, types, orders)
        outs = [name for name, a in tensors.items() if a.is_out]
        entries = [name for name in tensors if name in metas]
        if schema.result is not None and not outs:
            self._missing(node, "a specialised kernel needs an out argument")
        elif schema.result is not None:
            entries += outs[:1]
        if len(self._file.problems) != noted:
            return None
        type_slots = sorted({t for t, _ in metas.values()})
        order_slots = sorted({o for _, o in metas.values()})
        count = prod(len(types[t]) for t in type_slots)
        count *= prod(len(orders[o]) for o in order_slots)
        # Counted before they are made: a few aliases in one entry can stand for more than memory
        # holds.
        if not 0 < count <= _MAX_KEYS:
            self._file.problem(
                "bad-arg-meta",
                f"`arg_meta` stands for {count} kernel keys",
                node,
                notes=(("expected", f"1 to {_MAX_KEYS}"),),
                hint="correct the aliases",
            )
            return None
        slots = [metas[name] for name in entries]
        keys = {
            KernelKey(tuple(TensorMeta(dtypes[t], dim_orders[o]) for t, o in slots))
            for dtypes in _choices(type_slots, types)
            for dim_orders in _choices(order_slots, orders)
        }
        taken = {name: frozenset(types[t]) for name, (t, _) in metas.items()}
        return tuple(sorted(keys)), tuple((name, taken.get(name, frozenset())) for name in tensors)

    def _metas(
        self, node: Node, tensors: dict[str, Argument], types: Types, orders: Orders
    ) -> dict[str, tuple[str, str]]:
        """Alias of the dtype and of the dim order per argument."""
        metas: dict[str, tuple[str, str]] = {}
        fields = self._file.mapping(node, "`arg_meta`")
        if fields is None:
            return metas
        for name, value in fields.items():
            pair = self._file.sequence(value, f"`arg_meta` of {name}")
            if self.argument(name, value, tensors) and pair is not None:
                metas[name] = self._slots(value, pair, types, orders)
        for name, argument in tensors.items():
            if name not in fields and not argument.optional:
                self._missing(node, f'`arg_meta` lacks "{name}"')
        return metas

    def _missing(self, node: Node, message: str) -> None:
        hint = "give every tensor argument that is not optional, the outs too"
        self._file.problem("bad-arg-meta", message, node, hint=hint)

    def _slots(self, node: Node, pair: list[Node], types: Types, orders: Orders) -> tuple[str, str]:
        """Names of the dtype and dim order of one argument.

        A dtype or a dim order written in place is added as an alias of itself.
        """
        if len(pair) != len(("dtype", "dim order")):
            self._file.problem(
                "bad-arg-meta",
                "an argument of `arg_meta` has a dtype and a dim order",
                node,
                hint="write it like [T0, D0], with aliases or in place",
            )
            return "", ""
        dtype = self._file.scalar(pair[0], "the dtype of an argument") or ""
        if dtype and dtype not in types:
            types[dtype] = sorted(self._dtype(dtype, pair[0]))
        if isinstance(pair[1], SequenceNode):
            found = self._dim_order(pair[1])
            order = str(found)
            orders[order] = [] if found is None else [found]
        else:
            order = self._file.scalar(pair[1], "the dim order of an argument") or ""
            if order and order not in orders:
                message = f'"{order}" is not a dim order alias of this entry'
                self._file.unknown(
                    *(order, pair[1], orders, message),
                    hint="add it to `dim_order_alias`",
                    code="unknown-alias",
                )
        return dtype, order


def _choices(slots: list[str], options: dict[str, list[_T]]) -> list[dict[str, _T]]:
    """All combinations of one option for each slot."""
    chosen = product(*(options[slot] for slot in slots))
    return [dict(zip(slots, choice, strict=True)) for choice in chosen]
