"""Who calls whom in a firmware, and how deep the stack gets on the way.

Functions of the product's own objects are known by their code and relocations, their
frames by the compiler's `.su` files. Functions of the toolchain are read out of the
linked firmware. Where a call goes to an address in a register, it is taken to go to
every function whose address anything on the way there knows; the tables of kernels and
delegates and the structs of prepared calls do not count, as the executor's calls go to
what the method that runs has, and those of the loader to what makes delegates ready.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from orchestrator.errors import CompileError
from orchestrator.measure.functions import CodeFile, Function, plain
from orchestrator.measure.owner import mangled_start

# gcc: "add.cpp:12:5:void f(int)"; clang: "add.cpp:12:_Z1fi", with the symbol and no
# column. tests/unit/measure/test_frames.py has both.
_PLACE: Final = re.compile(r"^.*?:\d+(?::\d+)?:(.*)$")
_COLUMNS: Final = 3
"""Place and function, bytes, qualifiers; separated by tabs."""


class Frame(NamedTuple):
    """A line of a `.su` file, as gcc and clang write it with `-fstack-usage`.

    Args:
        function: The symbol with clang, the declaration with gcc.
        size_bytes: What it takes on the stack; the bound if there is one.
        is_dynamic: It may take more, without a bound.
    """

    function: str
    size_bytes: int
    is_dynamic: bool


def read_frames(text: str) -> Iterator[Frame]:
    """Functions of a `.su` file, in the order of the code; skips other lines."""
    for line in text.splitlines():
        columns = line.split("\t")
        if len(columns) != _COLUMNS or not columns[1].isdigit():
            continue
        found = _PLACE.match(columns[0])
        function = found[1] if found else columns[0]
        # "dynamic,bounded": the number is the bound.
        yield Frame(function, int(columns[1]), columns[2] == "dynamic")


# These are mangled names of runtime/src. Who renames such a function, or gives it
# another namespace, changes them here. A name that is not found makes depths too small,
# as no other pointer goes to kernels; tests/qemu/test_stack.py shows it.
EXECUTOR: Final = "_ZN4orch7executeE"
"""What the symbol of the function that calls kernels begins with."""
_STEPS: Final = "_ZN4orch13execute_stepsE"
"""The function that calls kernels of methods by rows."""
_STARTER: Final = "_ZN4orch12MethodLoader15start_delegatesE"
"""What the symbol of the function that makes delegates ready begins with."""
_LANES: Final = "_ZN4orch9lane_rowsI"
"""What the symbol of the function that calls a LaneFn begins with: no stack below."""
_TABLES: Final = frozenset(
    f"obj/gen/src/registered_{what}.cpp.o" for what in ("kernels", "delegates")
)
_Way = tuple[int, tuple[tuple[str, int], ...]]
"""Bytes, and (function, bytes of its frame) of everything on the way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Depth:
    """How deep the stack gets in a function and what it calls.

    Args:
        stack_bytes: In the worst case.
        path: (function, bytes of its frame) of the worst case, outermost first.
        unknown: Functions of unknown frame size, at 0 bytes here; and functions that
            call themselves, counted once.
    """

    stack_bytes: int
    path: tuple[tuple[str, int], ...]
    unknown: frozenset[str]


def read_calls(
    objects: Mapping[str, bytes], stack_usage: Mapping[str, str], firmware: bytes
) -> CallGraph:
    """The calls of a firmware for a board, with the frames of its functions.

    Args:
        objects: Bytes of all objects by path.
        stack_usage: Texts of the `.su` files by the object next to them.
        firmware: Bytes of the linked firmware.

    Raises:
        CompileError: One of them cannot be read (`object-unreadable`).
    """
    try:
        return CallGraph(
            {path: data for path, data in objects.items() if path not in _TABLES},
            stack_usage,
            firmware,
        )
    except (LookupError, ValueError) as error:
        raise CompileError.of(
            "object-unreadable",
            "the calls of the firmware cannot be read",
            found=str(error) or type(error).__name__,
            expected="little-endian ELF files for Cortex-M or RISC-V",
            hint="delete the build folder and build again",
        ) from error


class CallGraph:
    """The functions of a product.

    Args:
        objects: Bytes of its objects by path, without those of the tables.
        stack_usage: Texts of the `.su` files by the object next to them.
        firmware: Bytes of the linked firmware.

    Raises:
        ValueError: A file is for another machine, or damaged; also LookupError.
    """

    def __init__(
        self, objects: Mapping[str, bytes], stack_usage: Mapping[str, str], firmware: bytes
    ) -> None:
        self._functions: dict[str, Function] = {}
        for path, data in sorted(objects.items()):
            # Objects come first: their relocations name what is called. In the linked
            # firmware a call is only an offset, so that what objects have is not taken
            # from there.
            functions = list(CodeFile(data, path).functions())
            _apply(stack_usage.get(path, ""), functions)
            for function in functions:
                self._add(function)
        # libgcc, compiler-rt and a linker's stubs: no objects of theirs are at hand.
        for function in CodeFile(firmware, "firmware.elf").functions():
            if not any(name in self._functions for name in function.names):
                self._add(function)
        self._names = sorted(self._functions)

    def _add(self, function: Function) -> None:
        """Take in a function; of an inline one, what any object has of it."""
        known = next((self._functions[n] for n in function.names if n in self._functions), None)
        if known is not None:
            # Inline functions are in many objects, compiled once for each. Which copy
            # the linker keeps is not looked up: the largest frame and all calls of any
            # copy are an upper bound.
            function.names += known.names
            function.frame_bytes = max(function.frame_bytes, known.frame_bytes)
            function.is_bounded = function.is_bounded and known.is_bounded
            function.calls_pointer = function.calls_pointer or known.calls_pointer
            function.calls |= known.calls
            function.tails |= known.tails
            function.takes |= known.takes
        # Nodes are compared by `id`: aliases share one object, so that a function
        # counts once under all its names.
        self._functions.update(dict.fromkeys(function.names, function))

    def __contains__(self, name: object) -> bool:
        return name in self._functions

    def symbols(self, start: str) -> Iterator[str]:
        """All symbols that begin so, sorted."""
        for place in range(bisect_left(self._names, start), len(self._names)):
            if not self._names[place].startswith(start):
                return
            yield self._names[place]

    def symbol(self, start: str) -> str:
        """The first symbol that begins so; `start` if there is none."""
        return next(self.symbols(start), start)

    def kernel(self, function: str) -> str:
        """Symbol of a kernel by its qualified C++ name."""
        if "::" not in function and function in self:
            return function  # with the name it has in C
        return self.symbol(mangled_start(function))

    def reached(self, root: str) -> frozenset[str]:
        """Names of what a function can come to, through calls and addresses it knows.

        What the executor calls is not among it.
        """
        return frozenset(_Walk(self._functions, root, {}).reached)

    def depth(
        self, root: str, kernels: Collection[str] = (), starts: Collection[str] = ()
    ) -> Depth:
        """How deep the stack gets in a function.

        Args:
            root: Its name.
            kernels: Names of the functions that the executor calls.
            starts: Names of those that the loader calls, for delegates.
        """
        # The executor's kernels are those of the method, not all whose address is
        # known: with all, each method would have the depth of the deepest kernel of the
        # product.
        called = {
            EXECUTOR: sorted(kernels),
            _STEPS: sorted(kernels),
            _STARTER: sorted(starts),
            _LANES: (),
        }
        return _Walk(self._functions, root, called).result


class _Walk:
    """One root and everything it reaches."""

    def __init__(
        self, functions: Mapping[str, Function], root: str, called: Mapping[str, Collection[str]]
    ) -> None:
        self._functions = functions
        self._called = called
        self._unknown: set[str] = set()
        self._known: dict[int, _Way] = {}
        self._active: set[int] = set()
        self.reached: set[str] = set()
        self._pointers = self._taken(root)
        stack_bytes, path = self._deepest(root)
        self.result = Depth(stack_bytes=stack_bytes, path=path, unknown=frozenset(self._unknown))

    def _ends(self, function: Function) -> Iterable[str]:
        yield from sorted(function.calls | function.tails)
        yield from self._by_pointer(function) or ()

    def _by_pointer(self, function: Function) -> Collection[str] | None:
        """What the pointers of executor and loader lead to; None for all others."""
        for start, called in self._called.items():
            if any(name.startswith(start) for name in function.names):
                return called
        return None

    def _taken(self, root: str) -> list[str]:
        """Functions whose address is known to something that the root reaches."""
        seen: set[int] = set()
        taken: set[str] = set()
        queue = [root]
        while queue:
            function = self._functions.get(queue.pop())
            if function is None or id(function) in seen:
                continue
            seen.add(id(function))
            self.reached.update(function.names)
            queue += [*self._ends(function), *function.takes]
            taken |= function.takes
        # Kernels of the method are called by the executor only. Their addresses stand
        # in prepared calls as well, and no other pointer goes there.
        taken -= {*self._called.get(EXECUTOR, ())}
        return sorted(name for name in taken if self._is_code(name))

    def _is_code(self, name: str) -> bool:
        return name in self._functions and not self._functions[name].is_data

    def _deepest(self, name: str) -> _Way:
        function = self._functions.get(name)
        if function is None:
            self._unknown.add(name)
            return 0, ((name, 0),)
        # Recursion. No depth bounds it: the function is named in reports as not
        # bounded, and counted once.
        if id(function) in self._active:
            self._unknown.add(name)
            return 0, ()
        if id(function) not in self._known:
            self._active.add(id(function))
            self._known[id(function)] = self._compute(name, function)
            self._active.remove(id(function))
        return self._known[id(function)]

    def _compute(self, name: str, function: Function) -> _Way:
        if not function.is_bounded:
            self._unknown.add(name)
        frame = function.frame_bytes
        calls = set(function.calls)
        called = self._by_pointer(function)
        if called is not None:
            calls.update(called)
        elif function.calls_pointer:
            calls.update(self._pointers)
        best: _Way = (frame, ((name, frame),))
        for end in sorted(calls):
            below, path = self._deepest(end)
            if frame + below > best[0]:
                best = frame + below, ((name, frame), *path)
        # A tail call leaves its own frame first, so the frames are not added.
        for end in sorted(function.tails):
            below, path = self._deepest(end)
            if below > best[0]:
                best = below, ((name, 0), *path)
        return best


def _apply(text: str, functions: list[Function]) -> None:
    """Set the frames that a `.su` file has.

    clang names symbols. gcc writes declarations, in the order of the code: what it cut
    out of a function (`.cold`) has no line, and the frame of that function.
    """
    frames = list(read_frames(text))
    code = [f for f in functions if not f.is_data]
    symbols = {plain(name): f for f in code for name in f.names}
    # gcc names functions as C++ declares them, which symbols are not. Its lines are in
    # the order of the code, and parts that it moved away have none. If the counts
    # differ, the order says nothing, and instructions alone tell the frame.
    whole = [f for f in code if ".cold" not in f.names[0]]
    in_order = whole if len(whole) == len(frames) else []
    for place, frame in enumerate(frames):
        function = symbols.get(frame.function) or (in_order[place] if in_order else None)
        if function is not None:
            # gcc leaves out what a function makes room for in front of an argument
            # that came half in registers; its instructions have it.
            function.frame_bytes = max(function.frame_bytes, frame.size_bytes)
            function.is_bounded = not frame.is_dynamic
    for name, function in symbols.items():
        # gcc moves unlikely paths to a function of this name; it runs in the frame of
        # the whole one, which instructions of the part do not show.
        whole_name, cut, _ = name.partition(".cold")
        if cut and whole_name in symbols:
            function.frame_bytes = symbols[whole_name].frame_bytes
