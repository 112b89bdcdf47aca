"""Generated files, and files of a finished build."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from textwrap import wrap
from typing import Final

# The width of C++ in this project (clang-format), so that generated and written code
# read alike.
_WIDTH: Final = 80


@dataclass(frozen=True, slots=True, order=True)
class GeneratedFile:
    """A generated text file, by its POSIX path relative to the output folder."""

    path: str
    text: str

    @property
    def sha256(self) -> str:
        """Digest of the UTF-8 bytes, in hex."""
        return hashlib.sha256(self.text.encode()).hexdigest()


def comment_text(text: str) -> str:
    """A text in one line that neither ends nor starts a comment of C or C++."""
    # Names come from programs: a backslash at the end of a line would continue the
    # comment, and `*/` end it.
    plain = text.replace("\\", "/").replace("*/", "* /").replace("/*", "/ *")
    return " ".join(plain.split())


def row_comment(text: str, *, indent: str = "    ") -> str:
    """A comment before a row of a table: whole lines of at most 80 columns."""
    lines = wrap(
        comment_text(text),
        _WIDTH,
        initial_indent=f"{indent}// ",
        subsequent_indent=f"{indent}//   ",
        break_long_words=False,
        break_on_hyphens=False,
    )
    return "".join(f"{line}\n" for line in lines)


@dataclass(frozen=True, slots=True, order=True)
class Artifact:
    """A file of the finished build, by its POSIX path relative to the output folder."""

    path: str
    sha256: str
    size_bytes: int
