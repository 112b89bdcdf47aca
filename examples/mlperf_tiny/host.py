"""Speaks the protocol of MLPerf Tiny with a board or with QEMU, for one sample.

The sample is a file of bytes as the runner sends them, or a .npy file of floats in the
order in which the model's input lies in memory.
"""

from __future__ import annotations

import argparse
import os
import re
import select
import subprocess
import sys
import termios
import time
import tty
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

if TYPE_CHECKING:
    from types import TracebackType

BYTES_PER_COMMAND: Final = 31
MACHINES: Final = {"m4": "mps2-an386", "m55": "mps3-an547"}


class Device:
    """Two ends of a line to a device, and the emulator if it is one."""

    def __init__(
        self, read: int, write: int, process: subprocess.Popen[bytes] | None = None
    ) -> None:
        self._read, self._write, self._process = read, write, process
        self._rest = b""

    @classmethod
    def of_emulator(cls, elf: Path, board: str) -> Device:
        """Start QEMU; its first UART is the line."""
        command = ["qemu-system-arm", "-M", MACHINES[board], "-kernel", str(elf)]
        command += ["-display", "none", "-monitor", "none", "-serial", "stdio"]
        pipe = subprocess.PIPE
        process = subprocess.Popen(command, stdin=pipe, stdout=pipe)
        if process.stdin is None or process.stdout is None:
            raise TypeError  # never, with pipes
        return cls(process.stdout.fileno(), process.stdin.fileno(), process)

    @classmethod
    def of_serial(cls, path: str, baud: int) -> Device:
        """Open a serial device such as /dev/ttyACM0."""
        line = os.open(path, os.O_RDWR | os.O_NOCTTY)
        tty.setraw(line)
        settings = termios.tcgetattr(line)
        settings[4] = settings[5] = getattr(termios, f"B{baud}")
        termios.tcsetattr(line, termios.TCSANOW, settings)
        return cls(line, line)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._process is None:
            os.close(self._read)
            return
        self._process.kill()
        self._process.communicate()

    def answer(self, timeout_s: float = 60) -> list[str]:
        """Lines up to m-ready, without it.

        Raises:
            TimeoutError: The device is silent, or gone.
        """
        lines: list[str] = []
        end = time.monotonic() + timeout_s
        while True:
            line, found, rest = self._rest.partition(b"\n")
            if found:
                self._rest = rest
                lines.append(line.decode("ascii", "replace").strip())
                if lines[-1] == "m-ready":
                    return lines[:-1]
                continue
            left = max(0, end - time.monotonic())
            ready, _, _ = select.select([self._read], [], [], left)
            more = os.read(self._read, 4096) if ready else b""
            if not more:
                message = f"no m-ready from the device after {lines}"
                raise TimeoutError(message)
            self._rest += more

    def command(self, text: str) -> list[str]:
        """Send a command, without its %; the lines of the answer."""
        os.write(self._write, f"{text}%".encode("ascii"))
        return self.answer()

    def load(self, sample: bytes) -> list[str]:
        """Send a sample; the last answer, or the first error."""
        answer = self.command(f"db load {len(sample)}")
        for at in range(0, len(sample), BYTES_PER_COMMAND):
            if any(line.startswith("e-") for line in answer):
                break
            answer = self.command(f"db {sample[at : at + BYTES_PER_COMMAND].hex()}")
        return answer


def main() -> int:
    """Load a sample, infer, print results and the time of one inference."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sample", type=Path)
    parser.add_argument("--elf", type=Path, help="firmware to start in QEMU")
    parser.add_argument("--board", choices=sorted(MACHINES), default="m4")
    parser.add_argument("--port", help="a serial device instead")
    parser.add_argument("--baud", type=int, default=115200)
    parser.add_argument("--runs", type=int, default=10)
    options = parser.parse_args()
    if (options.elf is None) == (options.port is None):
        parser.error("give either --elf or --port")
    try:
        sample = options.sample.read_bytes()
        if options.sample.suffix == ".npy":
            sample = sample[10 + int.from_bytes(sample[8:10], "little") :]
        if options.elf is not None:
            device = Device.of_emulator(options.elf, options.board)
        else:
            device = Device.of_serial(options.port, options.baud)
        with device:
            if options.elf is not None:
                device.answer()
            lines = device.command("name") + device.command("profile")
            lines += device.load(sample)
            if not any(line.startswith("e-") for line in lines):
                lines += device.command(f"infer {options.runs} 1")
    except (OSError, AttributeError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print("\n".join(lines))
    laps = [
        int(n) for n in re.findall(r"^m-lap-us-(\d+)$", "\n".join(lines), re.MULTILINE)
    ]
    for begin, end in zip(laps[::2], laps[1::2], strict=False):
        # The device counts 32 bits.
        microseconds = (end - begin) % (1 << 32) / options.runs
        print(f"{microseconds:.1f} us for one inference")
    return 1 if any(line.startswith("e-") for line in lines) else 0


if __name__ == "__main__":
    sys.exit(main())
