"""Damaged programs in Python, the same for the same seed, and what later stages do."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Final

from orchestrator.errors import ModelError
from orchestrator.program.reader import read_program
from orchestrator.program.values import TensorValue
from orchestrator.selection.extract import extract
from tests.conftest import model_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from orchestrator.program.program import Program

# Small programs that between them have every kind of value and instruction in the
# corpus, state, several methods and arenas, dynamic shapes, and a delegate.
PROGRAMS: Final = tuple(
    model_bytes(case)
    for case in (
        "add_mul",
        "cond_branch",
        "kv_cache",
        "list_arguments",
        "map_loop",
        "multi_method",
        "optional_arguments",
        "two_arenas",
        "xnnpack_partial",
    )
)
_EDGES: Final = (0, 1, 4, 0xFF, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)


def damaged(programs: Sequence[bytes], seed: int) -> bytes:
    """One of the programs with a few changes; which ones, the seed decides."""
    random = Random(seed)  # noqa: S311  # not for secrets
    data = bytearray(random.choice(programs))
    for _ in range(random.randint(1, 4)):
        at = random.randrange(len(data))
        word = min(at // 4 * 4, len(data) - 4)
        match random.randrange(5):
            case 0:
                data[at] ^= 1 << random.randrange(8)
            case 1:
                data[at] = random.randrange(256)
            case 2:
                data[word : word + 4] = random.choice(_EDGES).to_bytes(4, "little")
            case 3:  # a neighbour: another field, item or offset
                near = int.from_bytes(data[word : word + 4], "little")
                near = (near + random.randint(-8, 8)) % 2**32
                data[word : word + 4] = near.to_bytes(4, "little")
            case _:  # a word that occurs
                other = random.randrange(len(data) // 4) * 4
                data[word : word + 4] = data[other : other + 4]
    if random.randrange(20) == 0:
        del data[random.randrange(len(data)) :]
    return bytes(data)


def read_and_use(data: bytes) -> bool:
    """Read a program; do with it what later stages do. False: it was refused."""
    try:
        program = read_program(data, file="m.pte")
    except ModelError:
        return False
    use(program)
    return True


def use(program: Program) -> None:
    """Do with a program what later stages do without checks."""
    extract(program, model="m")
    for method in program.methods:
        count = len(method.values)
        assert all(0 <= i < count for i in (*method.inputs, *method.outputs))
        for delegate in method.delegates:
            program.delegate_bytes(delegate)
        for value in method.values:
            if not isinstance(value, TensorValue):
                continue
            if value.is_constant or value.is_mutable_state:
                assert len(program.data_bytes(value)) == value.size_bytes
            if value.allocation is not None:
                place = value.allocation
                end = place.offset_bytes + value.size_bytes
                assert 0 <= place.offset_bytes <= end
                assert end <= method.arena_bytes[place.memory_id]
