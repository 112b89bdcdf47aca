"""Fenced blocks of the documentation, and the commands in them."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGES = tuple(
    sorted(
        path
        for pattern in ("README.md", "docs/*.md", "examples/**/README.md")
        for path in ROOT.glob(pattern)
    )
)
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_INLINE = re.compile(r"(?<!`)`([^`]+)`(?!`)")


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block; `name` is its page and its place among those of its language."""

    name: str
    text: str

    @property
    def commands(self) -> list[str]:
        """Commands of a shell block, without comments."""
        text = re.sub(r"\\\n\s*|(&&)\n\s*", r"\1 ", self.text)
        parts = re.split(r"\n|&&", re.sub(r"\s+# .*", "", text))
        return [part.strip() for part in parts if part.strip()]


@cache
def blocks(language: str) -> dict[str, Block]:
    """All blocks of a language, by name: `README.md 1`."""
    found = {}
    for page in PAGES:
        texts = [
            text
            for tag, text in _FENCE.findall(page.read_text(encoding="utf-8"))
            if tag == language
        ]
        for number, text in enumerate(texts, 1):
            name = f"{page.relative_to(ROOT)} {number}"
            found[name] = Block(name, text)
    return found


def inline_commands(page: str) -> list[list[str]]:
    """Words of the commands that running text shows with a file of `profiles/`."""
    text = _FENCE.sub("", (ROOT / page).read_text(encoding="utf-8"))
    codes = (" ".join(code.split()) for code in _INLINE.findall(text))
    return [
        shlex.split(code)
        for code in codes
        if code.startswith("orchestrator ") and " profiles/" in code
    ]


@dataclass(frozen=True, slots=True)
class Command:
    """A command of a console block, and the lines that the page shows of its output."""

    line: str
    shown: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SavedFile:
    """A block that the page says to save as a file, or to add to one."""

    path: str
    text: str
    added: bool


_STEP = re.compile(
    r"(?:\b(?P<how>as|to) `(?P<path>[\w./-]+)`:\n\n)?"
    r"^```(?P<tag>\w+)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)


def _session(text: str) -> list[Command]:
    found = []
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        line, _, shown = re.sub(r"\\\n\s*", "", part).partition("\n")
        found.append(Command(line, tuple(shown.splitlines())))
    return found


def steps(page: str) -> list[Command | SavedFile]:
    """What a reader of a page does, in order: files to save, commands to type."""
    found: list[Command | SavedFile] = []
    for step in _STEP.finditer((ROOT / page).read_text(encoding="utf-8")):
        if step["tag"] == "console":
            found += _session(step["text"])
        elif step["path"]:
            found.append(SavedFile(step["path"], step["text"], step["how"] == "to"))
    return found


WALKED = tuple(
    sorted({name.rpartition(" ")[0] for name in blocks("console")}),
)
"""Pages with console blocks: each is typed from its beginning to its end."""
