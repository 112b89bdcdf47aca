"""The host's end of a wire to a firmware: it answers frames (docs/runner-protocol.md)."""

from __future__ import annotations

import struct
from binascii import crc32
from typing import Final

from orchestrator.running.host_end import HostEnd

_SYNC: Final = 0xA5
_HEAD: Final = struct.Struct("<BBBH")
"""Sync, kind, sequence, size of the payload."""
_SUM: Final = struct.Struct("<I")
_MOST_PAYLOAD: Final = 512
"""As in runtime/platform/uart/uart.cpp."""
_ANY: Final = range(_MOST_PAYLOAD + 1)
_SIZES: Final = {"H": (0, 20), "R": range(2, 3), "W": _ANY, "L": _ANY, "X": range(1, 2)}
"""Sizes of the payload of each kind. Anything else is no frame: a damaged size must not make
the host wait for more bytes than the device will ever send."""
_AHEAD: Final = 128
"""Half of all sequences: a question that is further ahead is an old one."""


class WireEnd(HostEnd):
    """Answers what a firmware asks.

    Args:
        request: What it reads.
        identity: The build id of the firmware that it is for; empty for any.
    """

    def __init__(self, request: bytes, identity: bytes = b"") -> None:
        super().__init__(request)
        self._identity = identity
        self._came = bytearray()
        self._last: tuple[str, int] | None = None
        self._answer = b""
        self.damaged = 0
        """Frames whose checksum was wrong."""
        self.has_restarted = False
        """Whether it began anew."""
        self.is_other = False
        """Whether it is another firmware."""

    @property
    def is_heard(self) -> bool:
        """Whether a device has said that it is ready."""
        return self._last is not None

    def receive(self, data: bytes) -> bytes:
        """What to send, after some bytes came: the answer to the last question in them."""
        self._came += data
        answer = b""
        while (begin := self._came.find(_SYNC)) >= 0:
            del self._came[:begin]
            if len(self._came) < _HEAD.size:
                return answer
            _, letter, sequence, size = _HEAD.unpack_from(self._came)
            kind, end = chr(letter), _HEAD.size + size
            is_head = size in _SIZES.get(kind, ())
            if is_head and len(self._came) < end + _SUM.size:
                return answer
            if not is_head or _SUM.unpack_from(self._came, end) != (crc32(self._came[1:end]),):
                # It may be a byte of something else that looks like the first of a frame.
                self.damaged += 1
                del self._came[0]
                continue
            payload = bytes(self._came[_HEAD.size : end])
            del self._came[: end + _SUM.size]
            answer = self._answered(kind, sequence, payload)
        self._came.clear()
        return answer

    def _answered(self, kind: str, sequence: int, payload: bytes) -> bytes:
        # Asked once more, as the answer was lost: nothing happens twice.
        if (kind, sequence) == self._last:
            return self._answer
        if self._last is None:
            # A device is in the middle of what another host wanted: it reads nothing more, ends,
            # and begins anew.
            if kind != "H":
                return self._framed(kind, sequence, b"")
            self.is_other = bool(self._identity) and payload != self._identity
            is_next = not self.is_other
        else:
            self.has_restarted |= kind == "H" and self.status is None
            ahead = (sequence - self._last[1]) % 256
            is_next = kind != "H" and 0 < ahead < _AHEAD and self.status is None
        if not is_next:
            return b""
        self._answer = self._framed(kind, sequence, self._carried_out(kind, payload))
        self._last = kind, sequence
        return self._answer

    def _framed(self, kind: str, sequence: int, payload: bytes) -> bytes:
        text = _HEAD.pack(_SYNC, ord(kind), sequence, len(payload)) + payload
        return text + _SUM.pack(crc32(text[1:]))

    def _carried_out(self, kind: str, payload: bytes) -> bytes:
        match kind:
            case "R":
                return self.request_part(min(int.from_bytes(payload, "little"), _MOST_PAYLOAD))
            case "W":
                self._response += payload
            case "L":
                self._log += payload + b"\n"
            case "X":
                self.status = int.from_bytes(payload, "little")
            case _:
                pass  # "H": it is ready
        return b""
