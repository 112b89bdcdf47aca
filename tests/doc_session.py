"""Pages of the documentation, followed by the letter: files, commands, their output."""

from __future__ import annotations

import math
import re
import signal
import subprocess
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.doc_blocks import Command, SavedFile

if TYPE_CHECKING:
    from collections.abc import Mapping

WATCH_SECONDS: Final = 120
"""Within which `watch` prints all that a page shows."""

_NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?")
_CHANGE = re.compile(rf"\([+-]{_NUMBER.pattern}\)")


def _values(numbers: list[str]) -> list[float]:
    return [float(number.replace(",", "")) for number in numbers]


def matches(shown: str, printed: str) -> bool:
    """Whether the page shows this line: `...` stands for any text, figures may drift.

    Kernels change by some bytes; a tenth is where a page has to be corrected. Changes,
    such as (+12), may be any: they are small differences of such figures.
    """
    shown, printed = (_CHANGE.sub("(+)", text) for text in (shown, printed))
    pattern = _NUMBER.sub("\0", shown)
    pattern = r"\s+".join(map(re.escape, pattern.split()))
    pattern = pattern.replace(re.escape("..."), ".*")
    found = re.fullmatch(pattern.replace("\0", f"({_NUMBER.pattern})"), printed.strip())
    if not found:
        return False
    pairs = zip(
        _values(_NUMBER.findall(shown)), _values(list(found.groups())), strict=True
    )
    return all(math.isclose(a, b, rel_tol=0.1) for a, b in pairs)


def missing(shown: tuple[str, ...], printed: str) -> str | None:
    """The first line of the page that is not in the output, in this order."""
    lines = iter(printed.splitlines())
    for line in shown:
        text = line.strip()
        if text in ("", "..."):
            continue
        if not any(matches(text, candidate) for candidate in lines):
            return line
    return None


class Session:
    """A shell in a folder: variables and the folder go from command to command."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self.folder = folder
        self._environment = {**environment, "NO_COLOR": "1"}

    def follow(self, step: Command | SavedFile) -> None:
        """Do what the page says, and compare what it shows."""
        if isinstance(step, Command) and step.line.startswith("orchestrator watch "):
            self._watch(step)
        elif isinstance(step, Command):
            self._type(step)
        elif step.added:
            with (self.folder / step.path).open("a") as file:
                file.write(f"\n{step.text}")
        else:
            (self.folder / step.path).write_text(step.text)

    def _watch(self, command: Command) -> None:
        """Type a command that only Ctrl-C ends; change a file where the page does."""
        with subprocess.Popen(
            ["/bin/bash", "-c", f"exec {command.line}"],
            cwd=self.folder,
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as running:
            assert running.stdout is not None
            # What is not printed would be waited for without end.
            limit = threading.Timer(WATCH_SECONDS, running.kill)
            limit.start()
            said = ""
            try:
                for line in command.shown:
                    path, changed, _ = line.partition(" changed")
                    if changed:
                        self._optimize_for_speed(self.folder / path)
                    while not matches(line, said.rpartition("\n")[2]):
                        text = running.stdout.readline()
                        assert text, f"not printed: {line}\n{said}"
                        said += f"\n{text.strip()}"
            finally:
                limit.cancel()
                running.send_signal(signal.SIGINT)

    @staticmethod
    def _optimize_for_speed(profile: Path) -> None:
        before = profile.read_text()
        after = before.replace("[target]", '[target]\noptimize = "speed"')
        assert after != before
        profile.write_text(after)

    def _type(self, command: Command) -> None:
        state = self.folder / ".session"
        done = subprocess.run(
            # What `cd` and `activate` change outlives the command.
            ["/bin/bash", "-c", f"trap 'env -0 >\"$0\"' EXIT\n{command.line}", state],
            cwd=self.folder,
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        variables = state.read_text().rstrip("\0").split("\0")
        state.unlink()
        self._environment = dict(text.split("=", 1) for text in variables)
        self.folder = Path(self._environment["PWD"])
        said = f"$ {command.line}\n{done.stdout}"
        fails = any(re.search(r"error[\[:]", line) for line in command.shown)
        assert (done.returncode != 0) == fails, said
        line = missing(command.shown, done.stdout)
        assert line is None, f"not printed: {line}\n{said}"
