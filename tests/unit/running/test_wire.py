"""The host's end of a wire, with a device that asks as runtime/platform/uart does."""

from __future__ import annotations

import struct
from binascii import crc32

import numpy as np

from orchestrator.running.wire import WireEnd


def frame(kind: str, sequence: int, payload: bytes = b"") -> bytes:
    text = struct.pack("<BBH", ord(kind), sequence, len(payload)) + payload
    return b"\xa5" + text + struct.pack("<I", crc32(text))


def greeted(request: bytes = b"") -> WireEnd:
    """The host's end after a device said that it is ready, as its question 1."""
    end = WireEnd(request)
    assert end.receive(frame("H", 1)) == frame("H", 1)
    return end


def test_it_gives_the_request_and_keeps_the_response() -> None:
    end = greeted(b"0123456789")
    assert end.receive(frame("R", 2, b"\x04\x00")) == frame("R", 2, b"0123")
    assert end.receive(frame("W", 3, b"abc")) == frame("W", 3)
    assert end.receive(frame("L", 4, b"hello")) == frame("L", 4)
    assert end.receive(frame("R", 5, b"\x40\x00")) == frame("R", 5, b"456789")
    assert end.receive(frame("R", 6, b"\x40\x00")) == frame("R", 6)
    assert end.receive(frame("X", 7, b"\x03")) == frame("X", 7)
    assert (end.taken(), end.said(), end.status) == (b"abc", b"hello\n", 3)
    assert (end.taken(), end.damaged, end.has_restarted) == (b"", 0, False)


def test_what_is_asked_again_happens_once() -> None:
    end = greeted(b"0123")
    for _ in range(3):
        assert end.receive(frame("R", 2, b"\x02\x00")) == frame("R", 2, b"01")
    for _ in range(2):
        assert end.receive(frame("W", 3, b"a")) == frame("W", 3)
    assert end.taken() == b"a"


def test_questions_asked_twice_before_the_host_reads_them_have_one_answer() -> None:
    end = greeted(b"0123")
    assert end.receive(frame("R", 2, b"\x02\x00") * 3000) == frame("R", 2, b"01")


def test_an_old_question_changes_nothing() -> None:
    end = greeted(b"0123")
    for sequence in range(2, 600):
        end.receive(frame("W", sequence % 256, b"a"))
    end.taken()
    for ago in range(1, 128):
        assert end.receive(frame("W", (599 - ago) % 256, b"b")) == b""
        assert end.receive(frame("R", (599 - ago) % 256, b"\x02\x00")) == b""
    # A line of text may be lost: nothing is missing then.
    assert end.receive(frame("R", 602 % 256, b"\x02\x00")) == frame("R", 602 % 256, b"01")
    assert (end.taken(), end.has_restarted) == (b"", False)


def test_a_device_in_the_middle_of_something_else_ends_it() -> None:
    end = WireEnd(b"0123")
    for kind, payload in (("R", b"\x02\x00"), ("W", b"a"), ("L", b"a"), ("X", b"\x00")):
        assert end.receive(frame(kind, 9, payload)) == frame(kind, 9)
    assert (end.taken(), end.said(), end.status) == (b"", b"", None)
    assert end.receive(frame("H", 1)) == frame("H", 1)
    assert end.receive(frame("R", 2, b"\x02\x00")) == frame("R", 2, b"01")


def test_another_firmware_gets_no_answer() -> None:
    end = WireEnd(b"0123", bytes(range(20)))
    assert end.receive(frame("H", 1, bytes(20))) == b""
    assert (end.is_other, end.is_heard) == (True, False)
    end = WireEnd(b"0123", bytes(range(20)))
    assert end.receive(frame("H", 1, bytes(range(20)))) == frame("H", 1)
    assert not end.is_other


def test_after_the_exit_code_nothing_counts() -> None:
    end = greeted()
    for _ in range(2):
        assert end.receive(frame("X", 2, b"\x03")) == frame("X", 2)
    end.receive(frame("W", 3, b"a") + frame("X", 4, b"\x00") + frame("H", 1))
    assert (end.taken(), end.status, end.has_restarted) == (b"", 3, False)


def test_sizes_that_a_kind_never_has_are_no_frames() -> None:
    wrong = {"H": (1, 512), "R": (0, 1, 3, 512), "X": (0, 2, 512), "W": (513, 0xFFFF)}
    for kind, sizes in wrong.items():
        for size in sizes:
            end = greeted(bytes(1 << 20))
            text = frame(kind, 2, bytes([255]) * size) + frame("R", 2, b"\xff\xff")
            # The frame behind it is found at once: nothing is waited for.
            assert end.receive(text) == frame("R", 2, bytes(512))
            assert (end.taken(), end.status, end.has_restarted) == (b"", None, False)


def test_a_device_that_begins_anew_is_noticed() -> None:
    end = greeted(b"0123")
    end.receive(frame("H", 1) * 2)
    assert not end.has_restarted
    end.receive(frame("R", 2, b"\x02\x00") + frame("H", 1))
    assert end.has_restarted


def test_bytes_come_one_by_one_and_behind_others() -> None:
    end = WireEnd(b"0123")
    text = b"boot 1.0\r\n\xa5\xa5" + frame("H", 1) + b"\xa5" + frame("R", 2, b"\x04\x00")
    answers = b"".join(end.receive(bytes([byte])) for byte in text)
    assert answers == frame("H", 1) + frame("R", 2, b"0123")


def test_damaged_frames_are_not_answered() -> None:
    whole = frame("W", 9, bytes(range(40)))
    for at in range(1, len(whole)):
        for bit in range(8):
            end = greeted()
            damaged = bytearray(whole)
            damaged[at] ^= 1 << bit
            # What follows is found, whatever size the damaged one has, once enough came.
            answers = end.receive(bytes(damaged) + frame("W", 2, b"x") + bytes(600))
            assert answers == frame("W", 2)
            assert end.taken() == b"x"


def test_any_bytes_are_taken_in_little_memory() -> None:
    random = np.random.default_rng(4)
    end = greeted(bytes(1000))
    for _ in range(200):
        data = random.integers(0, 256, int(random.integers(1, 900)), np.uint8)
        data[random.random(len(data)) < 0.05] = 0xA5
        end.receive(data.tobytes())
        assert len(end._came) < 600  # noqa: SLF001
