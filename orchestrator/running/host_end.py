"""What a firmware wrote and said, kept for its host."""

from __future__ import annotations


class HostEnd:
    """The host's end of a firmware: over a wire, or by semihosting.

    Args:
        request: What it reads.
    """

    def __init__(self, request: bytes) -> None:
        self._request = request
        self._read = 0
        self._response = bytearray()
        self._log = bytearray()
        self.status: int | None = None
        """How it ended; None before."""

    def taken(self) -> bytes:
        """What it wrote since this was asked last."""
        found = bytes(self._response)
        self._response.clear()
        return found

    def said(self) -> bytes:
        """Text for developers, likewise."""
        found = bytes(self._log)
        self._log.clear()
        return found

    def request_part(self, size: int) -> bytes:
        """At most so many bytes of the request, after those that were read before."""
        begin = self._read
        self._read = min(begin + size, len(self._request))
        return self._request[begin : self._read]
