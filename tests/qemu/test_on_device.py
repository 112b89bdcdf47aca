"""Firmware behind a GDB server: written, compared and run, in QEMU in place of a board."""

from __future__ import annotations

import os
import select
import stat
import subprocess
import sys
from contextlib import contextmanager
from io import StringIO
from typing import TYPE_CHECKING

import numpy as np
import pytest

from orchestrator.build.on_device import open_serial
from orchestrator.running.wire import WireEnd
from orchestrator.targets.boards import BOARDS
from tests.conftest import CORPUS
from tests.integration.workspace import ROOT
from tests.product import Product
from tests.qemu.boards import built_for, gdb_server

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.toolchain, pytest.mark.qemu]

BOARD = "netduinoplus2"
OTHERS = ("stm32vldiscovery", "microbit", "mps3-an547", "sifive-e", "virt-rv64")
"""A core with and without FPU, an M0, an M55; RISC-V whose boot ROM runs first, and 64 bits."""


def _built(
    folder: Path,
    board: str = BOARD,
    case: str = "add_mul",
    *,
    toolchain: str = "zig",
    via: str = "semihosting",
) -> Product:
    return built_for(board, folder, case, toolchain=toolchain, via=via)


def _qemu(board: str, port: int) -> list[str]:
    program, *words = BOARDS[board].emulator
    return [program, *words, "-S", "-gdb", f"tcp:127.0.0.1:{port}"]


@contextmanager
def _device(board: str = BOARD, *more: str) -> Iterator[str]:
    """An empty board behind QEMU's GDB server, which gets further arguments."""
    with gdb_server(lambda port: [*_qemu(board, port), *more]) as device:
        yield device


@pytest.mark.parametrize("board", OTHERS)
def test_a_board_gives_what_executorch_gives(board: str, tmp_path: Path) -> None:
    product = _built(tmp_path, board, toolchain="gnu" if board == "microbit" else "zig")
    scenario = ("--scenario", str(CORPUS / "add_mul" / "case.json"))
    with _device(board) as device:
        assert product.run("flash", "--on", device, "--yes") == 0
        for _ in range(2):  # a run leaves the board as the next one needs it
            assert product.run("run", "--on", device, *scenario) == 0


def test_every_command_that_runs_firmware_works(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    product = _built(tmp_path, case="kws_dscnn_int8_m4")
    samples = np.random.default_rng(1).normal(size=(5, 1, 49, 10)).astype(np.float32)
    np.savez(tmp_path / "data.npz", inputs=samples, labels=np.arange(5))
    with _device() as device:
        assert product.run("flash", "--on", device, "--yes") == 0
        assert product.run("test", "--on", device) == 0
        data = ("--data", str(tmp_path / "data.npz"))
        assert product.run("evaluate", "--on", device, *data) == 0
    assert "5 samples" in capsys.readouterr().out


def test_another_firmware_is_not_taken_for_this_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, other = _built(tmp_path / "one"), _built(tmp_path / "other", case="mul_add_broadcast")
    scenario = ("--scenario", str(CORPUS / "add_mul" / "case.json"))
    with _device() as device:
        assert one.run("run", "--on", device, *scenario) == 10  # it is empty
        assert "other-firmware" in capsys.readouterr().err
        assert other.run("flash", "--on", device, "--yes") == 0
        assert one.run("run", "--on", device, *scenario) == 10
        assert "other-firmware" in capsys.readouterr().err
        assert one.run("flash", "--on", device, "--yes") == 0
        assert one.run("run", "--on", device, *scenario) == 0


def test_nothing_is_written_without_a_yes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    product = _built(tmp_path)
    with _device() as device:
        assert product.run("flash", "--on", device) == 2
        said = capsys.readouterr().err
        assert "not-confirmed" in said
        assert "bytes to flash at 0x08000000" in said
        scenario = ("--scenario", str(CORPUS / "add_mul" / "case.json"))
        assert product.run("run", "--on", device, *scenario) == 10
        assert "other-firmware" in capsys.readouterr().err
        monkeypatch.setattr("orchestrator.cli.commands.flash.can_ask", lambda: True)
        monkeypatch.setattr("sys.stdin", StringIO("n\n"))
        assert product.run("flash", "--on", device) == 2
        assert "Write it (yes, no) [no]: " in capsys.readouterr().err
        monkeypatch.setattr("sys.stdin", StringIO("y\n"))
        assert product.run("flash", "--on", device) == 0
        assert product.run("run", "--on", device, *scenario) == 0


PROBES = {
    "pyocd": ("pyocd", "gdbserver --no-wait --target part --port PORT"),
    "openocd": (
        "openocd",
        "-c|gdb_port PORT; tcl_port disabled; telnet_port disabled|-f|interface/stlink.cfg"
        "|-f|target/stm32f4x.cfg",
    ),
    "jlink": ("JLinkGDBServerCLExe", "-nogui -silent -if SWD -device STM32F405RG -port PORT"),
}
"""Programs of probes and their arguments, as their documentation has them."""


@pytest.mark.parametrize("name", PROBES)
def test_a_probe_is_served_by_its_program(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fake of the program: QEMU behind its arguments."""
    product = _built(tmp_path)
    board = (tmp_path / "own.toml").resolve()
    text = ROOT / "orchestrator/targets/board_files" / f"{BOARD}.toml"
    board.write_text(text.read_text().replace("[probe]", '[probe]\npyocd = "part"'))
    profile = product.profile.read_text()
    product.profile.write_text(profile.replace(f'"{BOARD}"', '"own.toml"'))
    programs = tmp_path / "bin"
    programs.mkdir()
    program, line = PROBES[name]
    fake = programs / program
    fake.write_text(
        f"#!{sys.executable}\nimport os, re, sys\n"
        f"words = {line.split('|' if '|' in line else None)!r}\n"
        "given = '\\0'.join(sys.argv[1:])\n"
        "pattern = re.escape('\\0'.join(words)).replace('PORT', '([0-9]+)')\n"
        "port = re.fullmatch(pattern, given)[1]\n"
        f"command = {_qemu(BOARD, 0)!r}\n"
        "os.execvp(command[0], [w.replace(':0', ':' + port) for w in command]"
        f" + ['-kernel', {str(product.out / 'firmware.elf')!r}])\n"
    )
    fake.chmod(fake.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(programs), prepend=":")
    assert product.run("flash", "--on", f"probe:{name}", "--yes") == 0
    assert product.run("test", "--on", f"probe:{name}") == 0
    fake.write_text("#!/bin/sh\necho no probe is connected >&2; exit 1\n")
    capsys.readouterr()
    assert product.run("test", "--on", f"probe:{name}") == 7
    assert "no probe is connected" in capsys.readouterr().err


def test_a_server_that_goes_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    product = _built(tmp_path)
    with _device() as device:
        pass
    assert product.run("flash", "--on", device, "--yes") == 7
    said = capsys.readouterr().err
    assert "probe-failed" in said
    assert "Traceback" not in said


def test_a_drive_takes_the_file_that_a_build_makes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A folder in place of the drive of a boot loader."""
    product = _built(tmp_path)
    drive = tmp_path / "drive"
    drive.mkdir()
    on = ("flash", "--on", f"uf2:{drive}", "--yes")
    assert product.run(*on) == 2
    assert "is not the drive" in capsys.readouterr().err
    (drive / "INFO_UF2.TXT").write_text("UF2 Bootloader\n")
    assert product.run(*on) == 2
    assert 'write images = ["uf2"]' in capsys.readouterr().err
    board = (ROOT / "orchestrator/targets/board_files" / f"{BOARD}.toml").read_text()
    (tmp_path / "own.toml").write_text(f"uf2_family = 0x57755A57\n{board}")
    text = product.profile.read_text().replace(f'"{BOARD}"', '"own.toml"\nimages = ["uf2"]')
    product.profile.write_text(text)
    assert product.run(*on) == 0
    assert (drive / "firmware.uf2").read_bytes() == (product.out / "firmware.uf2").read_bytes()
    scenario = ("--scenario", str(CORPUS / "add_mul" / "case.json"))
    assert product.run("run", "--on", f"uf2:{drive}", *scenario) == 2
    assert "wrong-device" in capsys.readouterr().err


@contextmanager
def _serial_port(product: Product, board: str = BOARD) -> Iterator[str]:
    """A serial port with a running board behind it: a pty of QEMU."""
    program, *words = BOARDS[board].emulator
    at = words.index("-serial")
    words[at : at + 2] = ["-serial", "pty"]
    firmware = str(product.out / "firmware.elf")
    with subprocess.Popen(
        [program, *words, "-kernel", firmware], stderr=subprocess.PIPE, stdout=subprocess.PIPE
    ) as emulator:
        try:
            assert emulator.stdout is not None
            # It says: char device redirected to /dev/pts/3 (label serial0)
            yield f"uart:{emulator.stdout.readline().split()[4].decode()}"
        finally:
            emulator.kill()


def test_a_board_at_a_serial_port(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    product = _built(tmp_path / "one", via="uart")
    scenario = ("--scenario", str(CORPUS / "add_mul" / "case.json"))
    with _serial_port(product) as device:
        for _ in range(3):  # it begins anew each time
            assert product.run("run", "--on", device, *scenario) == 0
        assert product.run("test", "--on", device) == 0
        other = _built(tmp_path / "other", case="mul_add_broadcast", via="uart")
        capsys.readouterr()
        assert other.run("test", "--on", device) == 10
        assert "other-firmware" in capsys.readouterr().err
        # Somebody was interrupted in the middle of a run.
        port = open_serial(device.partition(":")[2], 115200)
        _ask_and_leave(port)
        os.close(port)
        assert product.run("run", "--on", device, *scenario) == 0
    assert product.run("run", "--on", device, *scenario) == 7
    assert "probe-failed" in capsys.readouterr().err


def _ask_and_leave(port: int) -> None:
    """Answer the board's first questions, and no more."""
    end, left = WireEnd(b"ORQ1" + bytes(100)), 2
    while left:
        select.select([port], [], [], 10)
        answer = end.receive(os.read(port, 4096))
        left -= bool(answer)
        os.write(port, answer)
