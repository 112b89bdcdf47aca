"""A search for plans without an unused byte, from the first moment to the last.

Where all sections are full, blocks that end at a moment leave holes, and those that
begin there fill them. So blocks fall into groups: the ones of a group that end lie
beside each other, and the ones that begin take exactly their bytes. Groups are all that
has to be found: which orders of blocks are possible in a section follows, and offsets
follow from orders.

The orders that are possible in a section are a PQ-tree: children of a P-node lie in any
order, those of a Q-node in the given one or its reverse. Blocks that have to lie beside
each other restrict it, or show that the groups are wrong; few groups that merely have
equal sums survive that. Blocks that fill a hole are a P-node in the place of the hole.

Of a section, the trees with most orders are kept: blocks to come are the same for all
of them, so the more orders there are, the likelier one of them goes on to the end.

Nothing is left to chance, and work is counted in trees: plans are the same everywhere.

Source: PQ-trees are of Booth and Lueker, doi 10.1016/S0022-0000(76)80045-1. A tiling is
a planar graph, groups are its vertices: planarity is tested so by Lempel, Even and
Cederbaum (1967).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import combinations, product
from math import comb, factorial
from typing import TYPE_CHECKING, Final

from orchestrator.planner.search import deep
from orchestrator.planner.sections import Sections, indices

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from orchestrator.planner.blocks import Block

_WIDTHS: Final = (1, 4, 16, 64, 256)
"""How many trees of a section are kept: few, then more."""
_SUBSETS: Final = (200, 4_000)
"""How many subsets of blocks are tried as groups: small ones, and those that leave few.

Of many some are the right ones, but more have equal sums by accident."""
_TREES: Final = 300
"""How many trees are made at most from one."""


@dataclass(frozen=True, slots=True, eq=False)
class _Node:
    """Orders of blocks that lie beside each other.

    Args:
        mask: The blocks.
        key: Equal for nodes from which the same can follow.
        orders: How many there are.
        children: None: a block.
        turns: Whether the order of the children is given, up to its reverse.
    """

    mask: int
    key: int
    orders: int = 1
    children: tuple[_Node, ...] = ()
    turns: bool = False


_Groups = tuple[tuple[int, int], ...]
"""Blocks that end and those that take their bytes, as masks."""


@dataclass(frozen=True, slots=True, eq=False)
class _State:
    """Orders that are possible in a section, and how it came to that."""

    tree: _Node
    before: _State | None = None
    groups: _Groups = ()


def search_columns(
    blocks: Sequence[Block], *, capacity_bytes: int, trees: int
) -> tuple[int, ...] | None:
    """Offsets of a plan that fits a capacity, if one is found.

    Args:
        blocks: Of a size above 0, in an order that does not depend on the caller's.
        capacity_bytes: What the plan may take; nothing is found unless the blocks fill
            it all the time.
        trees: When to give up.
    """
    unit = max(b.alignment for b in blocks)
    sizes = [-(-b.size_bytes // unit) * unit for b in blocks]
    sections = Sections(blocks)
    live = [0] * sections.count
    for size, (first, last) in zip(sizes, sections.spans, strict=True):
        for t in range(first, last + 1):
            live[t] += size
    if any(size != capacity_bytes for size in live):
        return None
    end = sections.count - 1
    turned = [(end - last, end - first) for first, last in sections.spans]
    for width, subsets, spans in product(_WIDTHS, _SUBSETS, (sections.spans, turned)):
        sweep = _Sweep(sizes, spans, sections.count, subsets)
        with deep(4 * len(blocks)):
            found = sweep.run(width, trees)
        trees -= sweep.trees
        if found or trees <= 0:
            return found
    return None


class _Forest:
    """Makes nodes; equal ones have equal keys."""

    def __init__(self) -> None:
        self._keys: dict[tuple[object, ...], int] = {}

    def block(self, index: int, size: int, last: int) -> _Node:
        """A block: what follows depends on its size and its end only."""
        return _Node(mask=1 << index, key=self._key(0, size, last))

    def free(self, children: Sequence[_Node]) -> _Node:
        """Children in any order: a P-node."""
        if len(children) == 1:
            return children[0]
        key = self._key(1, *sorted(child.key for child in children))
        return self._node(children, key, factorial(len(children)))

    def turning(self, children: Sequence[_Node]) -> _Node:
        """Children in this order or its reverse: a Q-node."""
        if len(children) < 3:  # noqa: PLR2004  # two have no other orders
            return self.free(children)
        keys = tuple(child.key for child in children)
        key = self._key(2, *min(keys, keys[::-1]))
        return self._node(children, key, 2, turns=True)

    def _key(self, *parts: object) -> int:
        return self._keys.setdefault(parts, len(self._keys))

    @staticmethod
    def _node(
        children: Sequence[_Node], key: int, orders: int, *, turns: bool = False
    ) -> _Node:
        mask = 0
        for child in children:
            mask |= child.mask
            orders *= child.orders
        return _Node(
            children=tuple(children), turns=turns, mask=mask, key=key, orders=orders
        )

    def beside(self, node: _Node, some: int, new: _Node | None) -> _Node | None:
        """Orders in which some blocks lie beside each other; None if there are none.

        Args:
            node: What has all of them, and maybe others.
            some: Blocks.
            new: What takes their place; None leaves them.
        """
        if node.mask & some == node.mask:
            return new or node
        for at, child in enumerate(node.children):
            if child.mask & some == some:
                below = self.beside(child, some, new)
                if below is None:
                    return None
                children = (*node.children[:at], below, *node.children[at + 1 :])
                return (self.turning if node.turns else self.free)(children)
        if node.turns:
            row = self._row(node.children, some, open_end=True)
            return self.turning(_replaced(row, some, new)) if row else None
        return self._brought(node, some, new)

    def _brought(self, node: _Node, some: int, new: _Node | None) -> _Node | None:
        """The same for a P-node, of which several children have some of the blocks."""
        without, full, partly = _sorted(node.children, some)
        if len(partly) > 2:  # noqa: PLR2004  # one at each end
            return None
        ends = [self._towards(part, some) for part in partly]
        row = [self.free(full)] if full else []
        for end in ends:
            if end is None:
                return None
            row = [*end, *row][::-1]
        together = self.turning(_replaced(row, some, new))
        return self.free([*without, together]) if without else together

    def _towards(self, node: _Node, some: int) -> list[_Node] | None:
        """The row that a node becomes if some blocks have to be at its end."""
        if node.mask & some in {0, node.mask}:
            return [node]
        if not node.turns:
            without, full, partly = _sorted(node.children, some)
            if len(partly) > 1:
                return None
            row = self._towards(partly[0], some) if partly else []
            if row is None:
                return None
            before = [self.free(without)] if without else []
            return [*before, *row, *([self.free(full)] if full else [])]
        children = node.children
        begin, end = (child.mask & some for child in (children[0], children[-1]))
        if begin == children[0].mask or (begin and not end):
            children = children[::-1]
        return self._row(children, some, open_end=False)

    def _row(
        self, children: Sequence[_Node], some: int, *, open_end: bool
    ) -> list[_Node] | None:
        """Children of a Q-node, with some blocks beside each other.

        Args:
            children: In their order.
            some: Blocks.
            open_end: Whether others may follow.
        """
        row: list[_Node] = []
        begun = ended = False
        for child in children:
            inside = child.mask & some
            if not inside:
                ended = begun
                row.append(child)
                continue
            if ended:
                return None
            if inside == child.mask:
                row.append(child)
            else:
                part = self._towards(child, some)
                if part is None:
                    return None
                row += part[::-1] if begun else part
                ended = begun
            begun = True
        return None if ended and not open_end else row


def _sorted(
    nodes: Sequence[_Node], some: int
) -> tuple[list[_Node], list[_Node], list[_Node]]:
    """Nodes without any of some blocks, of them alone, and with others."""
    without, full, partly = [], [], []
    for node in nodes:
        inside = node.mask & some
        if not inside:
            without.append(node)
        elif inside == node.mask:
            full.append(node)
        else:
            partly.append(node)
    return without, full, partly


def _replaced(row: Sequence[_Node], some: int, new: _Node | None) -> list[_Node]:
    """A row with a node in the place of some blocks, which lie beside each other."""
    if new is None:
        return list(row)
    at = next(i for i, node in enumerate(row) if node.mask & some)
    others = [node for node in row if not node.mask & some]
    return [*others[:at], new, *others[at:]]


class _Sweep:
    """One way through the sections."""

    def __init__(
        self,
        sizes: Sequence[int],
        spans: Sequence[tuple[int, int]],
        count: int,
        subsets: int,
    ) -> None:
        self._sizes, self._count, self.subsets = sizes, count, subsets
        self._begins, self._ends = [0] * count, [0] * count
        self._forest = _Forest()
        for index, (first, last) in enumerate(spans):
            self._begins[first] |= 1 << index
            self._ends[last] |= 1 << index
        self._block = [
            self._forest.block(i, size, span[1])
            for i, (size, span) in enumerate(zip(sizes, spans, strict=True))
        ]
        self.trees = 0

    def run(self, width: int, trees: int) -> tuple[int, ...] | None:
        """Offsets of the blocks, if they are found with so many trees."""
        states = [_State(self._new(self._begins[0]))]
        for t in range(self._count - 1):
            following: dict[int, _State] = {}
            ways = _Ways(self, self._ends[t], self._begins[t + 1])
            for state in states:
                for tree, groups in ways.of(state.tree):
                    following.setdefault(tree.key, _State(tree, state, groups))
            if self.trees > trees or not following:
                return None
            states = sorted(following.values(), key=lambda s: -s.tree.orders)[:width]
        return self._offsets(states[0])

    def _new(self, mask: int) -> _Node:
        return self._forest.free([self._block[i] for i in indices(mask)])

    def size(self, mask: int) -> int:
        """Bytes of blocks."""
        return sum(self._sizes[i] for i in indices(mask))

    def alike(self, mask: int) -> tuple[int, ...]:
        """Equal for blocks that can stand for each other."""
        return tuple(sorted(self._block[i].key for i in indices(mask)))

    def replaced(self, tree: _Node, ends: int, begins: int) -> _Node | None:
        """Orders after blocks have taken the bytes of others."""
        self.trees += 1
        return self._forest.beside(tree, ends, self._new(begins))

    def _offsets(self, state: _State) -> tuple[int, ...]:
        """Offsets, from orders that fit each other, the last section first."""
        offsets = [0] * len(self._sizes)
        place = dict.fromkeys(range(len(self._sizes)), 0)
        tree: _Node | None = state.tree
        while tree:
            order = _arranged(tree, place)
            at = 0
            for rank, index in enumerate(order):
                offsets[index] = at
                at += self._sizes[index]
                place[index] = rank
            if state.before is None:
                break
            tree = state.before.tree
            for ends, begins in state.groups:
                tree = tree and self._forest.beside(tree, ends, None)
                rank = min(place[i] for i in indices(begins))
                place |= dict.fromkeys(indices(ends), rank)
            state = state.before
        return tuple(offsets)


def _arranged(node: _Node, place: dict[int, int]) -> list[int]:
    """Blocks of a tree in an order with given places, as far as they are given."""
    if not node.children:
        return [node.mask.bit_length() - 1]
    rows = [_arranged(child, place) for child in node.children]
    first = [min(place[i] for i in row) for row in rows]
    if not node.turns:
        rows = [rows[i] for i in sorted(range(len(rows)), key=lambda i: first[i])]
    elif first[0] > first[-1]:
        rows.reverse()
    return [index for row in rows for index in row]


@dataclass(slots=True)
class _Ways:
    """What can become of trees at a moment."""

    sweep: _Sweep
    ends: int
    begins: int
    _by_size: dict[int, list[int]] = field(default_factory=dict)
    _sizes: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        seen = set()
        blocks = [1 << i for i in indices(self.begins)]
        for some in _unions(blocks, self.sweep.subsets):
            alike = self.sweep.alike(some)
            if alike not in seen:
                seen.add(alike)
                self._by_size.setdefault(self.sweep.size(some), []).append(some)

    def of(self, tree: _Node) -> list[tuple[_Node, _Groups]]:
        """Trees that one becomes, and their groups."""
        found: dict[int, tuple[_Node, _Groups]] = {}
        beside = dict.fromkeys((self.ends, *_natural(tree, self.ends)))
        beside |= dict.fromkeys(_Beside(self.ends, self.sweep.subsets).inside(tree))
        matches = {some: self._by_size.get(self._size(some)) for some in beside}
        candidates = [some for some in beside if matches[some]]
        most = self.sweep.trees + _TREES
        todo: list[tuple[_Node, int, int, list[int], _Groups]] = [
            (tree, self.ends, self.begins, candidates, ())
        ]
        while todo and self.sweep.trees < most:
            tree, ends, begins, candidates, groups = todo.pop()
            further = []
            for some in _fewest(candidates, ends):
                left = [other for other in candidates if not other & some]
                for others in matches[some] or ():
                    if self.sweep.trees >= most:
                        break
                    if others & ~begins or (others == begins) != (some == ends):
                        continue
                    rest = self.sweep.replaced(tree, some, others)
                    if rest is None:
                        break
                    pair = (some, others)
                    further.append(
                        (rest, ends ^ some, begins ^ others, left, (*groups, pair))
                    )
            for way in sorted(further, key=lambda way: way[0].orders):
                if way[1]:
                    todo.append(way)
                else:
                    found.setdefault(way[0].key, (way[0], way[4]))
        return list(found.values())

    def _size(self, some: int) -> int:
        if some not in self._sizes:
            self._sizes[some] = self.sweep.size(some)
        return self._sizes[some]


def _fewest(candidates: Sequence[int], ends: int) -> list[int]:
    """Groups of the block that is in the fewest of them."""
    count = dict.fromkeys(indices(ends), 0)
    for some in candidates:
        for block in indices(some):
            count[block] += 1
    least = min(count, key=lambda block: (count[block], block))
    return [some for some in candidates if some >> least & 1]


def _natural(node: _Node, some: int) -> Iterator[int]:
    """Of some blocks those below each node, and in each part of a Q-node."""
    below = node.mask & some
    if not below or not node.children:
        return
    yield below
    if node.turns:
        for at in range(len(node.children)):
            part = 0
            for child in node.children[at:]:
                if child.mask & some:
                    part |= child.mask & some
                    yield part
                if child.mask & some != child.mask:
                    break
    for child in node.children:
        yield from _natural(child, some)


class _Beside:
    """Which of some blocks can lie beside each other, with no others between.

    Not all if there are more than a limit: few blocks and nearly all come first.
    """

    def __init__(self, some: int, limit: int) -> None:
        self._some, self._limit = some, limit

    def inside(self, node: _Node) -> list[int]:
        """Those below a node, as masks."""
        return self._both(node)[0]

    def _both(self, node: _Node) -> tuple[list[int], list[int]]:
        """Those below a node, and those that can be at its end."""
        if not node.mask & self._some:
            return [], []
        if not node.children:
            return [node.mask], [node.mask]
        parts = [self._both(child) for child in node.children]
        inside = dict.fromkeys(some for own, _ in parts for some in own)
        ends = dict[int, None]()
        rows = self._rows if node.turns else self._heaps
        for some, is_end in rows(node, [end for _, end in parts]):
            inside.setdefault(some)
            if is_end:
                ends.setdefault(some)
            if len(inside) > self._limit:
                break
        return list(inside), list(ends)

    def _rows(
        self, node: _Node, ends: Sequence[Sequence[int]]
    ) -> Iterator[tuple[int, bool]]:
        """Of a Q-node."""
        last = len(ends) - 1
        for first in range(last + 1):
            for begin in ends[first]:
                is_whole = begin == node.children[first].mask
                yield begin, first in {0, last} or (is_whole and last == 0)
                yield from self._run(node, ends, first, begin)

    def _run(
        self, node: _Node, ends: Sequence[Sequence[int]], first: int, begin: int
    ) -> Iterator[tuple[int, bool]]:
        """From the end of a child on, through whole ones to the begin of another."""
        last, run = len(ends) - 1, begin
        for at in range(first + 1, last + 1):
            whole = node.children[at].mask
            from_begin = first == 0 and begin == node.children[0].mask
            for end in ends[at]:
                yield run | end, from_begin or (at == last and end == whole)
            if whole & ~self._some:
                return
            run |= whole

    def _heaps(
        self, node: _Node, ends: Sequence[Sequence[int]]
    ) -> Iterator[tuple[int, bool]]:
        """Of a P-node."""
        whole = [c.mask for c in node.children if not c.mask & ~self._some]
        partly = [
            (child.mask, end)
            for child, some in zip(node.children, ends, strict=True)
            for end in some
            if end != child.mask
        ]
        for heap in _unions(whole, self._limit):
            yield heap, True
            for at, (child, end) in enumerate(partly):
                if child & heap:
                    continue
                yield heap | end, True
                for other, more in partly[at + 1 :]:
                    if not other & (heap | child):
                        yield heap | end | more, False
        for at, (child, end) in enumerate(partly):
            yield end, True
            for other, more in partly[at + 1 :]:
                if other != child:
                    yield end | more, False


def _unions(masks: Sequence[int], limit: int) -> Iterator[int]:
    """Of one and more masks: few of them and nearly all first."""
    everything = sum(masks)
    left = limit
    for length in range(1, len(masks) // 2 + 1):
        left -= 2 * comb(len(masks), length)
        if left < 0:
            break
        for chosen in combinations(masks, length):
            yield sum(chosen)
            if 2 * length < len(masks):
                yield everything - sum(chosen)
    if masks:
        yield everything
