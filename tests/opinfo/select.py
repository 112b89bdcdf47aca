"""Chooses some of the drawn calls, for tests that have no PyTorch.

    python -m tests.opinfo.select FOLDER

reads the files that `draw` wrote in FOLDER and writes tests/data/kernels/opinfo.bin: of
each operator that `make_reference.py` does not call, and of others with complex
results, small calls with every dtype, dim order, rank and kind of argument that were
drawn.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from orchestrator.core.dtype import COMPLEX, ScalarType
from tests.integration.test_conditions import kernels, verdict
from tests.opinfo.programs import tensors
from tests.unit.method.recorded_calls import RECORDED, Call, Tensor, calls_bytes, read_calls

if TYPE_CHECKING:
    from collections.abc import Iterable

    from orchestrator.core.kernel import Kernel

MOST: Final = 40
"""Calls of an operator."""
BYTES: Final = 600
"""Of the tensors of a call; one of a kind may be larger."""
UNSETTLED: Final = (*("aten::topk", "aten::median.dim", "aten::nanmedian.dim", "aten::kthvalue"),)
"""Operators that may give the index of any of several equal items."""


def dtypes(call: Call) -> Iterable[Any]:
    """The dtypes of each argument; the one of all, but for masks and indices.

    Also which arguments the output could take the place of.
    """
    every = {t.dtype for t in tensors(call)}
    if len(every) == 1 or len(every - {ScalarType.Bool, ScalarType.Long}) == 1:
        yield frozenset(every)
    for place, argument in enumerate(call.args):
        yield from ((place, t.dtype) for t in tensors(Call("", (argument,))))
        if isinstance(argument, Tensor) and any(
            (argument.dtype, argument.sizes, argument.order) == (out.dtype, out.sizes, out.order)
            for out in call.outs
        ):
            yield (place, "may be in place")


def facts(call: Call) -> Iterable[Any]:
    """What a chosen call is to show that others do not."""
    found = [*tensors(call)]
    yield "dtypes", tuple(t.dtype for t in found)
    yield "ranks", tuple(len(t.sizes) for t in found)
    yield "kinds", tuple(type(argument) for argument in call.args)
    orders = (tuple(t.order) == tuple(range(len(t.sizes))) for t in found)
    yield "orders", tuple(orders)
    yield "empty", any(not t.data for t in found)
    for place, argument in enumerate(call.args):
        if isinstance(argument, bool | str | int) or argument is None:
            yield "value", place, argument
        elif not isinstance(argument, float) and not any(
            True for _ in tensors(Call("", (argument,)))
        ):
            yield "length", place, len(argument)


def size(call: Call) -> int:
    """Bytes of its tensors."""
    return sum(len(t.data) for t in tensors(call))


@cache
def known_kernels() -> dict[str, Kernel]:
    """Kernels by operator."""
    return kernels()


def is_settled(call: Call) -> bool:
    """Whether every kernel must give these results: the call is taken, without ties."""
    if verdict(call, known_kernels()[call.operator]) != "":
        return False
    if not call.operator.startswith(UNSETTLED):
        return True
    items = [
        t.data[i : i + t.dtype.item_bytes]
        for t in tensors(call)
        if not t.is_out
        for i in range(0, len(t.data), t.dtype.item_bytes)
    ]
    return len(items) == len({*items})


def chosen(calls: Iterable[Call]) -> list[Call]:
    """Calls that show something that those before do not, smallest first.

    Every dtype of every tensor is in one of them.
    """
    drawn = sorted(calls, key=size)
    found: list[Call] = []
    seen: set[Any] = set()
    for call in drawn:
        new = {*dtypes(call)} - seen
        if new and all(t.data for t in tensors(call)) and is_settled(call):
            seen |= new
            found.append(call)
    known: set[Any] = {fact for call in found for fact in facts(call)}
    for call in drawn:
        new = {*facts(call)} - known
        is_large = size(call) > BYTES
        if not new or len(found) >= MOST or (is_large and len(found) > MOST // 4):
            continue
        if not is_settled(call):
            continue
        known |= new
        found.append(call)
    return found


def main() -> None:
    """Choose and write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    options = parser.parse_args()
    known = {call.operator for call in read_calls(RECORDED / "reference.bin")}
    found: list[Call] = []
    for file in sorted(options.folder.glob("*.bin")):
        calls = read_calls(file)
        if calls and calls[0].operator in known:
            calls = tuple(c for c in calls if any(t.dtype in COMPLEX for t in c.outs))
        found += chosen(calls)
    data = calls_bytes(found)
    (RECORDED / "opinfo.bin").write_bytes(data)
    counts: dict[str, int] = {}
    for call in found:
        counts[call.operator] = counts.get(call.operator, 0) + 1
    index = {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest(), "calls": counts}
    text = json.dumps(index, indent=2) + "\n"
    (RECORDED / "opinfo.json").write_text(text, encoding="utf-8")
    print(f"{len(found)} calls of {len(counts)} operators, {len(data):,} bytes")


if __name__ == "__main__":
    main()
