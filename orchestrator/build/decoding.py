"""Decode the text files that a profile names."""

from __future__ import annotations

from orchestrator.errors import ProfileError, SourceSpan


def decoded(data: bytes, *, file: str) -> str:
    """Text of a file in UTF-8.

    Raises:
        ProfileError: It is not UTF-8.
    """
    try:
        return data.decode().removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise ProfileError.of(
            "not-utf8",
            f'"{file}" is not UTF-8 text',
            where=SourceSpan(file=file, line=line),
            found=f"byte 0x{data[error.start]:02x} at {error.start}",
            expected="YAML in UTF-8",
            hint="save the file as UTF-8",
        ) from error
