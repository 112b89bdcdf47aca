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


def _figures(shown: str, printed: str) -> list[str] | None:
    """What the output has for each number of a shown line; None if words differ.

    `...` stands for any text.
    """
    pattern = r"\s+".join(map(re.escape, _NUMBER.sub("\0", shown).split()))
    pattern = pattern.replace(re.escape("..."), ".*")
    found = re.fullmatch(pattern.replace("\0", f"({_NUMBER.pattern})"), printed.strip())
    return list(found.groups()) if found else None


def matches(shown: str, printed: str) -> bool:
    """Whether the page shows this line: `...` stands for any text, figures may drift.

    Kernels change by some bytes; a tenth is where a page has to be corrected. Changes,
    such as (+12), may be any: they are small differences of such figures.
    """
    shown, printed = (_CHANGE.sub("(+)", text) for text in (shown, printed))
    figures = _figures(shown, printed)
    return figures is not None and all(
        math.isclose(*(float(n.replace(",", "")) for n in pair), rel_tol=0.1)
        for pair in zip(_NUMBER.findall(shown), figures, strict=True)
    )


def with_figures(shown: str, printed: str) -> str | None:
    """A shown line with the printed figures, in its columns; None if words differ."""
    signs = iter(_CHANGE.findall(printed))
    shown = _CHANGE.sub(lambda old: next(signs, old[0])[:2] + old[0][2:], shown)
    figures = _figures(shown, printed)
    if figures is None:
        return None
    parts = _NUMBER.split(shown)
    for place, (old, new) in enumerate(
        zip(_NUMBER.findall(shown), figures, strict=True)
    ):
        spaces = len(parts[place]) - len(parts[place].rstrip(" "))
        if spaces > 1:
            width = max(1, spaces + len(old) - len(new))
            parts[place] = parts[place].rstrip(" ") + " " * width
        parts[place] += new
    return "".join(parts)


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

    def __init__(
        self,
        folder: Path,
        environment: Mapping[str, str],
        *,
        corrected: Path | None = None,
    ) -> None:
        """Begin a session.

        Args:
            folder: Where it begins.
            environment: Its variables.
            corrected: The page, to write the figures of this run into it.
        """
        self.folder = folder
        self._page = corrected
        self._corrected = 0
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
            path = self.folder / step.path
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(step.text)

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
                    while not self._shows(line, said.rpartition("\n")[2]):
                        text = running.stdout.readline()
                        assert text, f"not printed: {line}\n{said}"
                        said += f"\n{text.strip()}"
            finally:
                limit.cancel()
                running.send_signal(signal.SIGINT)
        if self._page:
            self._correct(self._page, command, said)

    def _shows(self, shown: str, printed: str) -> bool:
        if self._page:
            return with_figures(shown, printed) is not None
        return matches(shown, printed)

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
        if self._page:
            self._correct(self._page, command, done.stdout)
            return
        line = missing(command.shown, done.stdout)
        assert line is None, f"not printed: {line}\n{said}"

    def _correct(self, page: Path, command: Command, printed: str) -> None:
        """Write the printed figures into the page, behind what was corrected before."""
        text = page.read_text(encoding="utf-8")
        lines = iter(printed.splitlines())
        for line in command.shown:
            if line.strip() in ("", "..."):
                continue
            new = next((n for p in lines if (n := with_figures(line, p))), None)
            assert new is not None, f"not printed: {line}\n{printed}"
            before = text.index(f"\n{line}\n", self._corrected) + 1
            text = f"{text[:before]}{new}{text[before + len(line) :]}"
            self._corrected = before + len(new)
        page.write_text(text, encoding="utf-8")
