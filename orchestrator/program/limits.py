"""Limits of a program: what later stages do takes its time for each of these.

No exporter comes near them. Without them a file of some hundred KB would keep
Orchestrator, or the device, busy for minutes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from orchestrator.program.interface import moved_to
from orchestrator.program.problems import Problems, method_place
from orchestrator.program.program import (
    DelegateCall,
    JumpFalseCall,
    KernelCall,
    Method,
    MoveCall,
    Program,
)
from orchestrator.program.values import (
    IntListValue,
    OptionalTensorListValue,
    TensorListValue,
    TensorValue,
)

_ITEMS_PER_BYTE: Final = 2
"""Most items of all calls and lists together, for each byte of the flatbuffer.

Calls may share one list of arguments, and without a bound a small file would keep the
device busy for as long as the square of its size: one of 193 KB, 24,000 calls with one
list, took 16 s to load. What each has for itself takes four bytes or more.
`MethodLoader::spend` of the runtime counts the same, per method.
"""
# These three are what a flatbuffer takes at the least if nothing is shared: below that
# methods, instructions or values share tables, so that a small file describes a large
# program.
_LEAST_METHOD_BYTES: Final = 36
"""An entry in the vector, and a table with the fields that each method has."""
_LEAST_INSTRUCTION_BYTES: Final = 20
"""An entry in the vector and two tables, whose fields may have defaults."""
_LEAST_VALUE_BYTES: Final = 16
"""Bytes that count for a value without content."""
# Each makes some dozen functions of the API; chosen by hand, as are all limits below.
# tests/fuzz/test_bounded_time.py holds that 200 KB of any bytes end within seconds.
_MOST_METHODS: Final = 1000
_MOST_PORTS: Final = 4096
"""Inputs and outputs of a method, with the items of those that are lists.

Each is a parameter of a C function; the standard promises 127 (C11, 5.2.4.1).
"""
_MOST_ARENAS: Final = 16
"""ExecuTorch plans one for each memory of the target."""
_MOST_LOOPS: Final = 64
"""Jumps back: `map`, `scan` and `while_loop` have one each."""
_MOST_JUMPED: Final = 500_000
"""Jumps times tensors: behind each jump each tensor may hold something else."""
_MOST_MOVED: Final = 50_000
"""Pairs of a value and one that may have been moved there; a loop has two for each.

Long chains of moves close over each other in cubes. With the limits here 200 KB of any
program are read or refused within seconds (tests/fuzz/test_bounded_time.py).
"""
# Chosen by hand: a list of all tensors in each call makes proofs and the search for
# orders go through the square of them.
_MOST_JOINED: Final = 20_000
"""Tensors in the lists of all calls. DenseNet-201 has 1,900."""
_LISTS: Final = (IntListValue, TensorListValue, OptionalTensorListValue)
"""Whose items name values."""


def is_within_limits(program: Program, problems: Problems) -> bool:
    """Whether a decoded program has no more than later stages can go through in time.

    Args:
        program: Nothing of it is checked yet.
        problems: Get the first limit that is exceeded.
    """
    if len(program.methods) > _MOST_METHODS:
        problems.too_large(
            "the program has too many methods",
            found=str(len(program.methods)),
            expected=f"at most {_MOST_METHODS}",
            hint="export fewer methods, or several programs",
        )
        return False
    # Sharing first: it bounds what the counts below go through.
    return _shares_little(program, problems) and all(
        _has_few(method, problems) for method in program.methods
    )


def _shares_little(program: Program, problems: Problems) -> bool:
    """Whether methods are not much larger than the bytes of the program.

    Tables that many entries lead to are something that no exporter writes.
    """
    items = least = 0
    most, place = program.flatbuffer_bytes, ""
    for method in program.methods:
        place = method_place(method.name)
        for count in _items(method):
            items += count
            if items > _ITEMS_PER_BYTE * most:
                problems.damaged(
                    "calls and lists share their items too often",
                    place=place,
                    found=f"{items} items or more",
                    expected=f"at most {_ITEMS_PER_BYTE * most}, {_ITEMS_PER_BYTE} per"
                    " byte of the program",
                )
                return False
        least += _LEAST_METHOD_BYTES
        least += _LEAST_INSTRUCTION_BYTES * len(method.instructions)
        least += _LEAST_VALUE_BYTES * len(method.values)
        if least > most:
            problems.damaged(
                "instructions and values share their tables",
                place=place,
                found=f"{len(method.instructions)} instructions and {len(method.values)} values",
                expected=f"at most {most} bytes of them in all methods",
            )
            return False
    return True


def _items(method: Method) -> Iterator[int]:
    """How many items lists, delegates and calls of a method have."""
    yield from (len(v.items) for v in method.values if isinstance(v, _LISTS))
    for delegate in method.delegates:
        yield len(delegate.compile_specs)
    for i in method.instructions:
        if isinstance(i, KernelCall | DelegateCall):
            yield len(i.args)
    yield from _joined(method)


def _joined(method: Method) -> Iterator[int]:
    """How many tensors each list of a call has: its kernel depends on them."""
    lists = {
        index: len(value.items)
        for index, value in enumerate(method.values)
        if isinstance(value, TensorListValue | OptionalTensorListValue)
    }
    for i in method.instructions:
        for arg in i.args if isinstance(i, KernelCall) and lists else ():
            if arg in lists:
                yield lists[arg]


def _has_few(method: Method, problems: Problems) -> bool:
    """Whether a method has few of what makes later stages slow."""
    values = range(len(method.values))
    ports = [
        len(getattr(method.values[i], "items", ())) if i in values else 1
        for i in (*method.inputs, *method.outputs)
    ]
    jumps = [i for i in method.instructions if isinstance(i, JumpFalseCall)]
    tensors = [v for v in method.values if isinstance(v, TensorValue)]
    loops = [
        at
        for at, i in enumerate(method.instructions)
        if isinstance(i, JumpFalseCall) and i.destination <= at
    ]
    moves = {(i.source, i.target) for i in method.instructions if isinstance(i, MoveCall)}
    moved = 0
    for _, sources in moved_to(moves):
        moved += len(sources)
        # Stops counting: the closure itself is what takes the time.
        if moved > _MOST_MOVED:
            break
    for message, count, most, hint in (
        (
            "a method has more inputs and outputs than a C function can take",
            sum(max(1, count) for count in ports),
            _MOST_PORTS,
            "export a model that takes and returns fewer values: join its tensors",
        ),
        (
            "a method has too many arenas",
            len(method.arena_bytes) - 1,
            _MOST_ARENAS,
            "export the model with a memory plan of fewer memories",
        ),
        (
            "a method has too many loops",
            len(loops),
            _MOST_LOOPS,
            "unroll loops of the model, or export its parts as methods",
        ),
        (
            "a method has too many jumps for its tensors, or tensors for its jumps",
            len(jumps) * len(tensors),
            _MOST_JUMPED,
            "export the model with fewer branches, or its parts as methods",
        ),
        (
            "calls of a method join too many tensors",
            sum(_joined(method)),
            _MOST_JOINED,
            "join fewer tensors at a time",
        ),
        (
            "moves pass values on through too many others",
            moved,
            _MOST_MOVED,
            "export the model with fewer loops, or its parts as methods",
        ),
    ):
        if count > most:
            place = method_place(method.name)
            expected = f"at most {most}"
            problems.too_large(message, place=place, found=str(count), expected=expected, hint=hint)
            return False
    return True
