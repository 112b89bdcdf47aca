"""The device's end of a wire, under sanitizers: random wires, and hosts that lie."""

from __future__ import annotations

import re
import subprocess
from typing import TYPE_CHECKING, Final

import pytest

from tests.cpp.support.native import ROOT
from tests.tools import need_tool

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.toolchain

_SEEDS: Final = 120
_POLLS: Final = 4096
_SOURCE: Final = ROOT / "runtime" / "platform" / "uart" / "uart.cpp"
_HEADER: Final = """#include <stdint.h>

#include <iterator>

namespace orch::uart {
struct Port {
  uintptr_t status;
  uint32_t mask;
  uint32_t ready;
  uintptr_t data;
  bool is_event;
};
constexpr int kSettings = 0;
inline Port kReceive;
inline Port kSend;
}  // namespace orch::uart

inline void apply(int) {}  // registers of a board

struct Register {
  uintptr_t address;
  uint32_t get() const;
  void set(uint32_t value) const;
  operator uint32_t() const { return get(); }
  void operator=(uint32_t value) const { set(value); }
  void operator|=(uint32_t value) const { set(get() | value); }
};
constexpr uint32_t kPolls = %d;
/// Bytes of 65536 that may be spoiled while every run succeeds.
constexpr unsigned kReliable = 60;
"""


def _program(folder: Path) -> Path:
    """The source with registers that the test plays, and without assembly."""
    compiler = need_tool("clang++-14", "clang++")
    text = _SOURCE.read_text(encoding="utf-8").replace('"../', '"platform/')
    for pattern, instead in (
        (
            r"volatile uint32_t& at\(uintptr_t address\) \{[^}]*\}",
            "Register at(uintptr_t a) { return {a}; }",
        ),
        (r"constexpr uint32_t kPolls = .*;", "using ::kPolls;"),
        (r"  __asm__ volatile\([^;]*\);\n", ""),
        (r" __asm__\(\"r0\"\)", ""),
        (r"register int first", "[[maybe_unused]] int first"),
    ):
        text, count = re.subn(pattern, instead, text)
        assert count, pattern
    text = re.sub(r"#if defined\(__riscv\)\n.*?#else\n", "#if 1\n", text, flags=re.DOTALL)
    (folder / "device.inc").write_text(text)
    (folder / "orch_uart.h").write_text(_HEADER % _POLLS)
    done = subprocess.run(
        [
            *(compiler, "-std=c++17", "-O1", "-g", "-Wall", "-Wextra", "-Werror"),
            *("-fsanitize=address,undefined", "-fno-sanitize-recover=all"),
            *("-I", str(folder), "-I", str(ROOT / "runtime"), "-I", str(ROOT / "runtime/include")),
            *(str(ROOT / "tests/fuzz/uart_device.cpp"), "-o", str(folder / "uart_device")),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return folder / "uart_device"


def _run(program: Path, first: int, last: int) -> tuple[int, int, int, int]:
    done = subprocess.run(
        [program, str(first), str(last)], capture_output=True, text=True, timeout=1800, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    completed, refused, hostile, damaged = map(int, re.findall(r"\d+", done.stdout))
    return completed, refused, hostile, damaged


def test_the_device_keeps_to_its_buffers_and_takes_no_damaged_request(tmp_path: Path) -> None:
    completed, refused, hostile, damaged = _run(_program(tmp_path), 1, _SEEDS)
    assert completed > 0.2 * _SEEDS
    assert refused > 0.1 * _SEEDS
    assert hostile > 0.15 * _SEEDS
    assert damaged > 10 * _SEEDS


@pytest.mark.nightly
def test_many_more_wires(tmp_path: Path) -> None:
    _run(_program(tmp_path), _SEEDS + 1, 20 * _SEEDS)
