"""Text files that a command line names."""

from __future__ import annotations

from pathlib import Path

from orchestrator.errors import SourceSpan, UsageError
from orchestrator.shell.files import MOST_TEXT_BYTES, read_text_file, reason_of


def read_text(path: Path, *, wanted: str, most_bytes: int = MOST_TEXT_BYTES) -> str:
    """The text of a file in UTF-8, with or without a byte order mark.

    Args:
        path: The file.
        wanted: What the file should be: `a table of scratch sizes (CSV)`.
        most_bytes: A larger file is an error.

    Raises:
        UsageError: It cannot be read.
    """
    try:
        return read_text_file(path, encoding="utf-8-sig", most_bytes=most_bytes)
    except (OSError, UnicodeDecodeError) as error:
        decoding = isinstance(error, UnicodeDecodeError)
        raise UsageError.of(
            "not-utf8" if decoding else "unreadable-file",
            f"{path} cannot be read",
            where=SourceSpan(file=str(path)),
            found=getattr(error, "strerror", None) or reason_of(error),
            hint=f"name {wanted}",
        ) from error
