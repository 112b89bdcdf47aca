"""Pages of the documentation, followed by the letter: files, commands, their output."""

from __future__ import annotations

import platform
import re
import signal
import subprocess
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.doc_blocks import Command, SavedFile
from tests.tools import heed_signals

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

WATCH_SECONDS: Final = 120
"""Within which `watch` prints all that a page shows."""

EXACT: Final = platform.machine() == "x86_64"
"""Whether figures are compared: pages show what a PC prints of products for itself."""

_NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?")
_CHANGE = re.compile(rf"\([+-]{_NUMBER.pattern}\)")
_VARIES = rf"{_NUMBER.pattern}\s?(?:ms|s|min)\b|[0-9a-f]{{8,}}\b"
"""A time or a digest."""
_PROGRESS = re.compile(r".*, \d+ s")
_FIGURE = re.compile(rf"(?<![\w.,:/-])(?!{_VARIES})\d")


def _parts(shown: str, printed: str) -> list[str] | None:
    """What the output has for each number and `...` of a line; None if words differ.

    `...` stands for any text without figures: paths, times, digests, words.
    """
    pattern = r"\s+".join(map(re.escape, _NUMBER.sub("\0", shown).split()))
    pattern = pattern.replace(re.escape("..."), "(.*)")
    found = re.fullmatch(pattern.replace("\0", f"({_NUMBER.pattern})"), printed.strip())
    return list(found.groups()) if found else None


def matches(shown: str, printed: str) -> bool:
    """Whether the page shows this line, with these figures."""
    parts = _parts(shown, printed)
    if parts is None or not EXACT:
        return parts is not None
    return all(
        not _FIGURE.search(part) if was == "..." else was == part
        for was, part in zip(_shown_parts(shown), parts, strict=True)
    )


def _shown_parts(shown: str) -> list[str]:
    return re.findall(rf"{_NUMBER.pattern}|\.\.\.", shown)


def with_figures(shown: str, printed: str) -> str | None:
    """A shown line with the printed figures, in its columns; None if words differ."""
    signs = iter(_CHANGE.findall(printed))
    shown = _CHANGE.sub(lambda old: next(signs, old[0])[:2] + old[0][2:], shown)
    found = _parts(shown, printed)
    if found is None:
        return None
    pairs = zip(_shown_parts(shown), found, strict=True)
    figures = [(old, new) for old, new in pairs if old != "..."]
    parts = _NUMBER.split(shown)
    for place, (old, new) in enumerate(figures):
        spaces = len(parts[place]) - len(parts[place].rstrip(" "))
        if spaces > 1:
            width = max(1, spaces + len(old) - len(new))
            parts[place] = parts[place].rstrip(" ") + " " * width
        parts[place] += new
    return "".join(parts)


def paired(
    shown: Sequence[str], printed: str, fits: Callable[[str, str], object] = matches
) -> tuple[list[tuple[str, str]], str | None]:
    """The lines of a page with those of the output, and the first difference.

    A line `...` stands for any lines. Empty lines do not count, nor do those that slow
    builds print now and then.
    """
    lines = [line for line in printed.splitlines() if line.strip()]
    lines = [line for line in lines if not _PROGRESS.fullmatch(line)]
    pairs: list[tuple[str, str]] = []
    place, skips = 0, not shown
    for line in filter(str.strip, shown):
        if line.strip() == "...":
            skips = True
            continue
        end = len(lines) if skips else place + 1
        candidates = range(place, min(end, len(lines)))
        found = next((n for n in candidates if fits(line.strip(), lines[n])), None)
        if found is None:
            return pairs, f"not printed: {line}"
        pairs.append((line, lines[found]))
        place, skips = found + 1, False
    if skips or place == len(lines):
        return pairs, None
    return pairs, f"not shown: {lines[place]}"


class Session:
    """A shell in a folder: variables and the folder go from command to command."""

    def __init__(
        self, folder: Path, environment: Mapping[str, str], *, corrected: Path | None = None
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
            preexec_fn=heed_signals,  # noqa: PLW1509  # there are no threads
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
        _, difference = paired(command.shown, done.stdout)
        assert difference is None, f"{difference}\n{said}"

    def _correct(self, page: Path, command: Command, printed: str) -> None:
        """Write the printed figures into the page, behind what was corrected before."""
        text = page.read_text(encoding="utf-8")
        pairs, difference = paired(command.shown, printed, with_figures)
        assert difference is None, f"{difference}\n{printed}"
        for line, found in pairs:
            new = with_figures(line, found) or line
            before = text.index(f"\n{line}\n", self._corrected) + 1
            text = f"{text[:before]}{new}{text[before + len(line) :]}"
            self._corrected = before + len(new)
        page.write_text(text, encoding="utf-8")
