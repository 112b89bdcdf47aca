"""Steps of a method by rows say what its calls are, down to each address and word."""

from __future__ import annotations

import struct
from random import Random
from typing import TYPE_CHECKING

import pytest

from orchestrator.core.dtype import ScalarType
from orchestrator.core.operator import OperatorName
from orchestrator.method.linked import LinkedCall, LinkedMethod, Prepared
from orchestrator.method.places import Access
from orchestrator.method.steps import step_table
from orchestrator.program.values import Allocation, Dynamism, TensorValue

if TYPE_CHECKING:
    from collections.abc import Iterator

    from orchestrator.method.steps import StepTable

OPERATOR = OperatorName("test", "rows", "out")
HEADER_WORDS = 6


class Made:
    """A method of a few layers, whose calls come in any order."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self.values: list[TensorValue] = []
        self.data: list[tuple[int, bytes]] = []
        calls = []
        for layer in range(random.randint(1, 5)):
            calls += [(layer, call) for call in self._layer(layer)]
        random.shuffle(calls)
        self.method = LinkedMethod(
            model="m",
            name="forward",
            values=tuple(self.values),
            instructions=tuple(call for _, call in calls),
            inputs=(),
            outputs=(),
            data=tuple(self.data),
            origins=tuple(layer for layer, _ in calls),
            by_rows=True,
        )

    def _value(self, offset: int | None) -> int:
        place = None
        if offset is not None:
            place = Allocation(memory_id=1, offset_bytes=offset)
        self.values.append(
            TensorValue(
                dtype=ScalarType.Char,
                sizes=(4,),
                dim_order=(0,),
                dynamism=Dynamism.STATIC,
                data_buffer_index=0,
                allocation=place,
                extra=None,
                requires_grad=False,
            )
        )
        return len(self.values) - 1

    def _layer(self, layer: int) -> Iterator[LinkedCall]:
        random = self._random
        header = None
        if random.random() < 0.5:
            header = self._value(None)
            words = [random.randint(-9, 9) for _ in range(HEADER_WORDS)]
            self.data.append((header, struct.pack("<6i", *words)))
        own = [random.randint(-9, 9) for _ in range(3)]
        unit = random.choice([1, 3, 16, 384, 1 << 16, 200_000])
        bases = random.randint(0, 50), random.randint(0, 50)
        for _ in range(random.choice([1, 2, 40, 300])):
            args = [
                self._value(base + unit * random.randint(0, random.choice([0, 9, 400])))
                for base in bases
            ]
            memory: list[tuple[str, int | None]] = [("input", 0), ("scratch", None), ("out", 1)]
            changed: tuple[int, ...] = ()
            if header is not None:
                args.append(header)
                memory.insert(1, ("header", 2))
                changed = tuple(random.choice([word, random.randint(0, 5)]) for word in words)
                changed = random.choice([(), changed])
            yield LinkedCall(
                operator=OPERATOR,
                function=f"test::run{layer % 2}",
                args=tuple(args),
                accesses=(Access.READS,) * len(args),
                outs=(),
                prepared=Prepared(
                    struct="orch::Call",
                    memory=tuple(memory),
                    numbers=(
                        ()
                        if header is not None
                        else (
                            ("rows", own[0] + random.randint(0, 1)),
                            ("size", (("a", own[1]), ("b", own[2] + random.randint(0, 2)))),
                            ("scale", random.choice([0.5, -0.0])),
                        )
                    ),
                    header=changed,
                ),
            )


def carried_out(
    method: LinkedMethod, table: StepTable
) -> Iterator[tuple[str, list[int | None], list[int]]]:
    """Function, addresses and words of each step, as a device finds them."""
    rest = iter(b"".join(table.steps))

    def item() -> int:
        byte = next(rest)
        return byte if byte < 128 else byte - 128 + 128 * item()

    for _ in table.steps:
        template = table.templates[item()]
        call = method.instructions[template.instruction]
        addresses = places(method, call)
        for address in template.addresses:
            assert address.unit < 1 << 16
            addresses[address.pointer] = address.base + item() * address.unit
        words = words_of(method, call, changed=False)
        number = item() if template.words else 0
        if number:
            shape = (number - 1) * len(template.words)
            for place, word in enumerate(template.words):
                words[word] = template.shapes[shape + place]
        assert isinstance(call, LinkedCall)
        yield call.function, addresses, words
    assert not [*rest]


def places(method: LinkedMethod, call: object) -> list[int | None]:
    assert isinstance(call, LinkedCall)
    assert call.prepared is not None
    found: list[int | None] = []
    for _, at in call.prepared.memory:
        value = None if at is None else method.values[call.args[at]]
        assert value is None or isinstance(value, TensorValue)
        place = None if value is None else value.allocation
        found.append(None if place is None else place.offset_bytes)
    return found


def words_of(method: LinkedMethod, call: object, *, changed: bool) -> list[int]:
    """Words of the header, or of the struct's numbers."""
    assert isinstance(call, LinkedCall)
    assert call.prepared is not None
    prepared = call.prepared
    if not prepared.numbers:
        if changed and prepared.header:
            return [*prepared.header]
        data = bytes(dict(method.data)[call.args[2]])
        return [*struct.unpack("<6i", data)]
    (_, rows), (_, size), (_, scale) = prepared.numbers
    assert isinstance(size, tuple)
    (bits,) = struct.unpack("<i", struct.pack("<f", scale))
    return [rows, *(number for _, number in size), bits]


@pytest.mark.parametrize("seed", range(40))
def test_steps_are_the_calls(seed: int) -> None:
    method = Made(Random(seed)).method  # noqa: S311  # the same each time
    table = step_table(method)
    assert len(table.steps) == len(method.instructions)
    found = [*carried_out(method, table)]
    assert found == [
        (call.function, places(method, call), words_of(method, call, changed=True))
        for call in method.instructions
        if isinstance(call, LinkedCall)
    ]


def test_layers_with_one_function_have_templates_of_their_own() -> None:
    method = Made(Random(1)).method  # noqa: S311  # the same each time
    table = step_table(method)
    layers = [method.origins[t.instruction] for t in table.templates]
    assert len(layers) == len(set(layers)) == len(set(method.origins))
