"""Safe writes to stdout and stderr."""

from __future__ import annotations

import os
import sys
from contextlib import suppress


def open_standard_streams() -> None:
    """Open the standard streams that this process was started without.

    Otherwise the next file to be opened gets their descriptor, and what other programs
    write to the stream. Writing to a closed stream still fails, as it should.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        # Python gives None where a descriptor was closed (`>&-`). Opened in this order,
        # they take the numbers 0, 1 and 2, which a file of ours must not get.
        if getattr(sys, name) is None:
            # Opened for reading only, so that writing fails.
            descriptor = os.open(os.devnull, os.O_RDONLY)
            setattr(sys, name, os.fdopen(descriptor, mode, encoding="utf-8"))


def say(text: str) -> None:
    """Write to stderr. On a full disk the text is lost; this is not an error.

    Raises:
        BrokenPipeError: The reader has closed the stream.
    """
    try:
        sys.stderr.write(_encodable(text, sys.stderr.encoding))
        sys.stderr.flush()
    except BrokenPipeError:
        raise
    except OSError:
        pass


def put(text: str) -> None:
    """Write to stdout.

    Raises:
        OSError: It cannot be written.
    """
    sys.stdout.write(_encodable(text, sys.stdout.encoding))
    sys.stdout.flush()


def drop_output() -> None:
    """Discard unwritten output, which Python would otherwise report at exit."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            with suppress(OSError):
                # The stream still has the text, and flushes it at exit: into nothing.
                null = os.open(os.devnull, os.O_WRONLY)
                os.dup2(null, stream.fileno())
                os.close(null)


def _encodable(text: str, encoding: str | None) -> str:
    """The text, with escapes for what a stream cannot encode: odd file names."""
    encoding = encoding or "utf-8"
    # A file name with bytes that are no UTF-8 has lone surrogates, which no stream
    # takes.
    return text.encode(encoding, "backslashreplace").decode(encoding)
