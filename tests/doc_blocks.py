"""Fenced blocks of the documentation, and the commands in them."""

from __future__ import annotations

import re
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


NOT_RUN = {
    "docs/cmake.md 1": "runs in examples/cmake/README.md",
    "docs/executorch-compatibility.md 1": "ExecuTorch's; tests/interop gives it a list",
    "docs/export.md 1": "needs PyTorch; tests/interop exports this example",
    "docs/fleet.md 1": "needs a place to publish, see test_published.py",
    "docs/fleet.md 2": "needs a place to publish, see test_published_exports.py",
    "docs/fleet.md 3": "needs machines, see test_scheduler.py",
    "docs/fleet.md 4": "needs a Redis, see test_remote_storage.py",
    "docs/install.md 1": "needs an index of packages",
    "docs/provenance.md 1": "needs a network, and sigstore's cosign",
    "docs/report.md 1": "needs the history of a repository, see test_report_command.py",
    "docs/runtime.md 1": "stands for a line of the user's own build",
    "docs/testing.md 1": "these tests",
    "docs/testing.md 2": "these tests, many times",
    "docs/testing.md 3": "needs PyTorch; a run of hours",
    "docs/testing.md 4": "a run of minutes, see test_differential.py",
    "docs/testing.md 5": "a run of days",
    "docs/testing.md 6": "needs a finding of the fuzzer",
    "examples/cmsis_nn/README.md 1": "needs CMSIS-NN, see test_cmsis_nn.py",
    "examples/digits/README.md 1": "needs PyTorch and scikit-learn",
    "examples/gestures/README.md 1": "needs PyTorch; tests/interop trains and exports",
    "examples/python_model/README.md 1": "needs PyTorch; tests/interop exports it",
}
"""Blocks of commands (`sh`) that tests do not run, and why."""


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
    r"(?:\b(?P<how>as|to)\s`(?P<path>[\w./-]+)`:\n\n)?"
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
    """What a reader of a page does, in order: files to save, commands to type.

    Commands are those of `console` blocks, with their output, and those of `sh` blocks
    that tests can run.
    """
    found: list[Command | SavedFile] = []
    scripts = 0
    for step in _STEP.finditer((ROOT / page).read_text(encoding="utf-8")):
        if step["tag"] == "console":
            found += _session(step["text"])
        elif step["tag"] == "sh":
            scripts += 1
            block = blocks("sh")[f"{page} {scripts}"]
            if block.name not in NOT_RUN:
                found += [Command(line, ()) for line in block.commands]
        elif step["path"]:
            found.append(SavedFile(step["path"], step["text"], step["how"] == "to"))
    return found


WALKED = tuple(
    sorted(
        {
            name.rpartition(" ")[0]
            for name in [*blocks("console"), *(blocks("sh").keys() - NOT_RUN.keys())]
        }
    )
)
"""Pages with commands that can run: each is typed from its beginning to its end."""
