"""What the device loader says of programs: `load_file` and its answers."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

_FILES_AT_ONCE: Final = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodAnswer:
    """One method, in exactly the memory it asks for.

    Args:
        error: Of loading it.
        state_bytes: That the loader said it needs; 0 if it did not get that far.
        less_state: Error with one byte of state less; "" if it was not tried.
        less_arena: By arena, error with one byte less; "-" for one without bytes.
        inputs: By input, most bytes and the error with one more in the first dimension;
            "-" if it has none.
        outputs: By output, most bytes and the error with memory of one byte less.
        run: Error of a run; "" if it was not loaded.
        instruction: Where the run ended.
    """

    error: str
    state_bytes: int
    less_state: str = ""
    less_arena: tuple[str, ...] = ()
    inputs: tuple[tuple[int, str], ...] = ()
    outputs: tuple[tuple[int, str], ...] = ()
    run: str = ""
    instruction: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One program: the error of opening it, and its methods if there was none."""

    opened: str
    methods: tuple[MethodAnswer, ...]

    @property
    def error(self) -> str:
        """The first error; "Ok" if everything was loaded."""
        errors = [self.opened, *(method.error for method in self.methods)]
        return next((error for error in errors if error != "Ok"), "Ok")


def ask(load_file: Path, files: Iterable[Path], *, stand_ins: bool = False) -> list[Answer]:
    """What the loader says of each file.

    Args:
        load_file: The program.
        files: In the order of the result.
        stand_ins: Give every operator a kernel that takes any call; else it has the
            kernels of the portable library.
    """
    command = "shape" if stand_ins else "check"
    paths, lines = [str(file) for file in files], []
    for first in range(0, len(paths), _FILES_AT_ONCE):
        done = subprocess.run(
            [load_file, command, *paths[first : first + _FILES_AT_ONCE]],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        lines += done.stdout.splitlines()
    answers = list(_answers(lines))
    assert len(answers) == len(paths)
    return answers


def _answers(lines: list[str]) -> Iterator[Answer]:
    starts = [i for i, line in enumerate(lines) if line.startswith("open ")]
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        methods = tuple(_method(line.split()) for line in lines[start + 1 : end])
        yield Answer(opened=lines[start].split()[1], methods=methods)


_FIELDS: Final = frozenset(
    {*("method", "load", "state", "less_state", "less_arena", "inputs"), *("outputs", "run")}
)


def _method(words: list[str]) -> MethodAnswer:
    found: dict[str, list[str]] = {}
    field = ""
    for word in words:
        if word in _FIELDS:
            field = word
            found[field] = []
        else:
            found[field].append(word)
    run = found.get("run", ["", "-1"])
    return MethodAnswer(
        error=found["load"][0],
        state_bytes=int(found["state"][0]),
        less_state="".join(found.get("less_state", [])),
        less_arena=tuple(found.get("less_arena", [])),
        inputs=_limits(found.get("inputs", [])),
        outputs=_limits(found.get("outputs", [])),
        run=run[0],
        instruction=int(run[1]),
    )


def _limits(words: list[str]) -> tuple[tuple[int, str], ...]:
    pairs = (word.split(":") for word in words)
    return tuple((int(size), error) for size, error in pairs)
