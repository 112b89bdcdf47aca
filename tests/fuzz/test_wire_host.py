"""The host's end of a wire: wires that spoil bytes, and devices that are broken or lie.

The devices here are written from docs/runner-protocol.md alone.
"""

from __future__ import annotations

import sys
import time
import zlib
from random import Random
from typing import TYPE_CHECKING, Final

import pytest

from orchestrator.build import on_device
from orchestrator.build.firmware import carry_out, results_as_they_come
from orchestrator.build.judging import scenario_of
from orchestrator.errors import ExitCode, OrchestratorError
from orchestrator.running.wire import WireEnd
from tests.bad_wire import spoiled
from tests.conftest import CORPUS
from tests.unit.running.corpus_products import product_of

if TYPE_CHECKING:
    from pathlib import Path

_SEEDS: Final = 100
_TRIES: Final = 100


def _frame(kind: bytes, sequence: int, payload: bytes = b"") -> bytes:
    text = kind + bytes([sequence]) + len(payload).to_bytes(2, "little") + payload
    return b"\xa5" + text + zlib.crc32(text).to_bytes(4, "little")


class _Device:
    """Asks over a wire that spoils bytes; `gave_up` after too many tries."""

    def __init__(self, end: WireEnd, random: Random, rate: float) -> None:
        self.end, self.random, self.rate = end, random, rate
        self.sequence, self.gave_up, self.answers = 0, False, b""

    def ask(self, kind: bytes, payload: bytes = b"") -> bytes:
        """The answer; b"" if there is none."""
        self.sequence = (self.sequence + 1) % 256
        head = b"\xa5" + kind + bytes([self.sequence])
        for _ in range(_TRIES):
            text = spoiled(_frame(kind, self.sequence, payload), self.random, self.rate)
            cut = self.random.randrange(len(text) + 1)
            # It may ask again before the host has read the first question.
            text *= 1 + (self.random.random() < self.rate)
            came = self.end.receive(text[:cut]) + self.end.receive(text[cut:])
            self.answers = spoiled(came, self.random, self.rate)
            at = self.answers.find(head)
            if at < 0:
                continue
            size = int.from_bytes(self.answers[at + 3 : at + 5], "little")
            found = self.answers[at + 5 : at + 5 + size]
            if self.answers[at:][: size + 9] == _frame(kind, self.sequence, found):
                return found
        self.gave_up = True
        return b""


@pytest.mark.parametrize("rate", [0, 0.001, 0.01, 0.1])
def test_a_bad_wire_never_changes_a_byte(rate: float) -> None:
    gave_up = 0
    for seed in range(_SEEDS if rate else 20):
        random = Random(seed)  # noqa: S311  # no secret
        request = random.randbytes(random.choice((0, 1, 511, 512, 513, 3000)))
        end = WireEnd(request)
        device = _Device(end, random, rate)
        device.ask(b"H")
        read, written = b"", b""
        while not device.gave_up and random.random() < 0.97:
            size = random.choice((1, 4, 64, 512))
            if random.random() < 0.5:
                read += device.ask(b"R", size.to_bytes(2, "little"))
            else:
                written += (part := random.choice((bytes(size), random.randbytes(size))))
                device.ask(b"W", part)
        assert request.startswith(read)
        if not device.gave_up:
            assert (end.taken(), end.status, end.has_restarted) == (written, None, False)
            device.ask(b"X", b"\x07")
            assert end.status == (None if device.gave_up else 7) or device.gave_up
        gave_up += device.gave_up
    assert gave_up == 0 if rate <= 0.001 else gave_up < _SEEDS


def test_any_frames_leave_the_host_whole() -> None:
    """Sound frames in any order, cut and mixed with noise."""
    random = Random(1)  # noqa: S311  # no secret
    for _ in range(200):
        end = WireEnd(random.randbytes(5000))
        sent = bytearray()
        for _ in range(100):
            kind = random.choice([b"H", b"R", b"W", b"L", b"X", b"?", b"\xa5"])
            size = random.choice((0, 1, 2, 3, 64, 512, 513, 4000))
            sent += _frame(kind, random.randrange(256), random.randbytes(size))
            if random.random() < 0.3:
                sent += random.randbytes(random.randrange(40)) + b"\xa5" * random.randrange(4)
        while sent:
            cut = random.randrange(1, 3000)
            answer = end.receive(bytes(sent[:cut]))
            assert len(answer) <= 512 + 9
            assert len(end._came) < 600  # noqa: SLF001
            del sent[:cut]


_PRELUDE: Final = """
import os, random, sys, time, zlib
def frame(kind, sequence, payload=b""):
    text = kind + bytes([sequence % 256]) + len(payload).to_bytes(2, "little") + payload
    return b"\\xa5" + text + zlib.crc32(text).to_bytes(4, "little")
def say(data):
    while data:
        data = data[os.write(1, data):]
def ask(*of):
    say(frame(*of))
    return os.read(0, 1 << 16)
def words(*numbers):
    return b"".join((n % 2**32).to_bytes(4, "little") for n in numbers)
def forever():
    n = 1
    while True:
        yield (n := n + 1)
def wait():
    time.sleep(100)
HEAD = words(0x3153524F, 0, -1, 0, 1, 1)
RANDOM = random.Random(5)
"""
_LATE: Final = "it did not end within the time limit"
_RESTARTED: Final = "it restarted or was stopped before it had ended"
_TOO_MUCH: Final = "its response has more than 1 GiB"
_DAMAGED: Final = "the response of the firmware is damaged"

# What a device does, and what the error says of it.
_DEVICES: Final = {
    "silence": ("wait()", _LATE),
    "noise": ("while True: say(RANDOM.randbytes(4096))", _LATE),
    "nothing but sync": ("while True: say(b'\\xa5' * 4096)", _LATE),
    "heads": ("ask(b'H', 1)\nwhile True: say(b'\\xa5W\\2\\0\\2' * 999)", _LATE),
    "half a frame": ("ask(b'H', 1); say(frame(b'R', 2, b'\\4\\0')[:-1]); wait()", _LATE),
    "never H": ("for n in forever(): say(frame(b'R', n, b'\\4\\0')); time.sleep(.01)", _LATE),
    "H without end": ("while True: say(frame(b'H', 1))", _LATE),
    "asks and never reads": (
        # Linux: fcntl.F_SETPIPE_SZ; the smallest pipe is full soon.
        "import fcntl; fcntl.fcntl(0, 1031, 4096); ask(b'H', 1)\n"
        "for n in forever(): say(frame(b'R', 2, b'\\377\\377')); time.sleep(.0005)",
        _LATE,
    ),
    "huge wishes": ("ask(b'H', 1)\nfor n in forever(): say(frame(b'R', n, b'\\377' * 512))", _LATE),
    "text without end": (
        "ask(b'H', 1)\nfor n in forever(): say(frame(b'L', n, b'\\33[2J\\377' * 99))",
        _LATE,
    ),
    "errors without end": ("while True: os.write(2, b'x' * 4096)", _LATE),
    "an exit code of no byte": ("ask(b'H', 1); say(frame(b'X', 2)); wait()", _LATE),
    "an exit code of many": ("ask(b'H', 1); say(frame(b'X', 2, bytes(512))); wait()", _LATE),
    "closes its output": ("ask(b'H', 1); os.close(1); wait()", _LATE),
    "closes its input": (
        "os.close(0)\nfor n in forever(): say(frame(b'H', 1)); time.sleep(.01)",
        _LATE,
    ),
    "ends": ("ask(b'H', 1)", _RESTARTED),
    "ends before": ("", _RESTARTED),
    "ends with an error": ("ask(b'H', 1); sys.exit(1)", "exit status 1"),
    "is killed": ("ask(b'H', 1); os.kill(os.getpid(), 9)", "exit status -9"),
    "restarts": ("ask(b'H', 1); ask(b'R', 2, b'\\4\\0'); ask(b'H', 1); wait()", _RESTARTED),
    "cannot": ("ask(b'H', 1); ask(b'X', 2, b'\\3')", "it rejected the request"),
    "says nothing": ("ask(b'H', 1); ask(b'X', 2, b'\\0')", "the firmware wrote no response"),
    "another response": (
        "ask(b'H', 1); ask(b'W', 2, b'hello!'); ask(b'X', 3, b'\\0')",
        "it does not begin with ORS1",
    ),
    "a response without end": (
        "ask(b'H', 1)\nfor n in forever(): say(frame(b'W', n, HEAD[:4] * 128))",
        _TOO_MUCH,
    ),
    "a giant output": (
        "ask(b'H', 1); ask(b'W', 2, HEAD + words(6, 2, -1 >> 1, 2**31 - 1, 2**31 - 1));"
        " ask(b'X', 3, b'\\0')",
        _DAMAGED,
    ),
    "a replay": (
        # The first half twice, as a frame that was on its way for long.
        "ask(b'H', 1); half = frame(b'W', 2, HEAD[:12]); say(half); ask(b'L', 3, b'');"
        " say(half); ask(b'X', 4, b'\\0')",
        "bytes are left of 4",
    ),
}


@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize("name", _DEVICES)
def test_a_broken_device_is_one_error_in_time(
    name: str,
    streams: bool,  # noqa: FBT001
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(on_device, "_MOST_RESPONSE", 1 << 16)
    behaviour, expected = _DEVICES[name]
    script = tmp_path / "device.py"
    script.write_text(_PRELUDE + behaviour)
    product = product_of("add_mul").model_copy(
        update={
            "board": "test",
            "via": "uart",
            "emulator": (sys.executable, "-ISE", str(script), "-serial", "none"),
        }
    )
    calls = scenario_of(CORPUS / "add_mul" / "case.json", product).calls
    # Those that end are waited for, however busy the machine is.
    timeout_s = 0.3 if expected == _LATE else 60.0

    def run() -> object:
        if streams:
            return list(results_as_they_come(product, script, calls, timeout_s=timeout_s))
        return carry_out(product, script, calls, timeout_s=timeout_s).results

    begin = time.monotonic()
    with pytest.raises(OrchestratorError) as caught:
        run()
    assert time.monotonic() - begin < 10
    assert caught.value.exit_code == ExitCode.MISMATCH
    (problem,) = caught.value.diagnostics
    notes = dict(problem.notes)
    if streams and problem.code == "bad-response":
        return  # the reader of streams sees it earlier, or tells it in other words
    assert expected in (problem.message, notes["found"]) or expected in notes["found"]
    assert len(notes.get("output", "")) <= 2000
    if name in {"silence", "noise", "nothing but sync", "never H"}:
        assert "is the [uart] of the board right?" in notes["output"]
