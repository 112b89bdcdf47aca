"""Files that describe boards: those of the package, and a user's own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from orchestrator.errors import Diagnostic, ProfileError
from orchestrator.profile import load
from orchestrator.profile.board import read_board
from orchestrator.targets import boards
from orchestrator.targets.boards import BOARDS
from orchestrator.targets.uarts import Setting

if TYPE_CHECKING:
    from orchestrator.profile.tables import Profile

OWN = """\
cpu = "rv32imac"
stack = "1 KiB"
flash_wait_states = 3

[[regions]]
name = "rom"
origin = 0x20000000
size = "64 KiB"
kind = "flash"

[[regions]]
name = "work"
origin = 0x80000000
size = "8 KiB"
kind = "ram"
"""
PROFILE = """\
schema = 1
name = "small"
models = [{path = "a.pte"}]
target.cpu = "rv32imac"
target.board = "boards/own.toml"
"""


def _read(board: str | None, profile: str = PROFILE) -> Profile:
    """The profile, with this file beside it; without one, there is none."""

    def text_of(path: Path) -> str:
        if path.name == "p.toml":
            return profile
        assert path.as_posix() == "boards/own.toml"
        if board is None:
            raise FileNotFoundError
        return board

    return load.load_profile(
        Path("p.toml"), text_of=text_of, is_file=lambda _: True, known_libraries=("portable",)
    )


def _problem(board: str | None, profile: str = PROFILE) -> Diagnostic:
    with pytest.raises(ProfileError) as caught:
        _read(board, profile)
    (problem,) = caught.value.diagnostics
    return problem


@pytest.mark.parametrize("name", BOARDS)
def test_files_of_the_package_are_valid(name: str) -> None:
    path = Path(boards.__file__).parent / "board_files" / f"{name}.toml"
    found = read_board(path, path.name, text_of=lambda p: p.read_text())
    shipped = BOARDS[name]
    assert (found.board.regions, found.board.cpus) == (shipped.regions, shipped.cpus)
    assert shipped.description
    assert 'source = "' in path.read_text()


def test_a_profile_in_the_place_of_a_board() -> None:
    problem = _problem(PROFILE)
    assert (problem.code, problem.message) == (
        "other-file",
        "boards/own.toml is a profile, not a board file",
    )
    assert str(problem.where) == "p.toml:5"
    assert problem.hint == "name a file that describes a board: docs/howto-own-board.md"


def test_a_board_in_the_place_of_a_profile() -> None:
    problem = _problem(None, OWN)
    assert (problem.code, problem.message) == (
        "other-file",
        "p.toml is a board file, not a profile",
    )
    assert problem.hint == 'name a profile; it names a board below [target]: board = "p.toml"'


def test_a_profile_names_its_own() -> None:
    profile = _read(OWN)
    board = profile.target.described_board
    assert board is not None
    assert (board.name, board.stack_bytes, board.is_own) == ("own", 1024, True)
    assert [r.name for r in board.regions] == ["rom", "work"]
    assert profile.target.board == "boards/own.toml"
    assert profile.target.flash_wait_states == 3
    assert [path.as_posix() for path in profile.files] == ["p.toml", "boards/own.toml"]


@pytest.mark.parametrize(
    ("before", "after", "code", "place"),
    [
        ('cpu = "rv32imac"', 'cpu = "rv32imacc"', "unknown-cpu", "boards/own.toml:1"),
        ("stack", "stakc", "unknown-key", "boards/own.toml:2"),
        ('kind = "ram"', 'kind = "flash"', "bad-region", "boards/own.toml:5"),
        ("0x80000000", "0x20008000", "overlapping-regions", "boards/own.toml:11"),
        ('"work"', '"rom"', "duplicate-region", "boards/own.toml:12"),
        ("0x80000000", "0xFFFFF000", "bad-region", "boards/own.toml:14"),
        ('cpu = "rv32imac"', 'cpu = "host"', "bad-value", "boards/own.toml:1"),
        ("rv32imac", "cortex-m4", "board-mismatch", "p.toml:5"),
    ],
)
def test_problems_are_where_they_are(before: str, after: str, code: str, place: str) -> None:
    assert before in OWN
    problem = _problem(OWN.replace(before, after, 1))
    assert (problem.code, str(problem.where)) == (code, place)


def test_a_file_that_is_not_there() -> None:
    problem = _problem(None)
    assert problem.message == 'there is no board file "boards/own.toml"'
    assert str(problem.where) == "p.toml:5"


def test_a_path_is_relative() -> None:
    problem = _problem(OWN, PROFILE.replace("boards/", "/boards/"))
    assert problem.code == "bad-value"


_UART = '[uart]\ndriver = "stm32-usart"\nbase = 0x40000000\nclock = 16_000_000\n\n[[regions]]'


def test_a_uart_has_the_registers_of_its_driver() -> None:
    text = OWN.replace("[[regions]]", _UART, 1)
    board = _read(text, PROFILE + 'target.via = "uart"\n').target.described_board
    assert board is not None
    assert board.uart is not None
    # 16 MHz by 115,200 bits per second.
    assert board.uart.settings[0] == Setting(address=0x40000008, mask=0xFFFF, value=139)
    assert (board.uart.receive.data, board.uart.send.data) == (0x40000004, 0x40000004)


def test_a_uart_needs_a_driver_and_a_clock() -> None:
    text = OWN.replace("[[regions]]", _UART, 1)
    problem = _problem(text.replace("clock = 16_000_000\n", ""))
    assert problem.message == "the baud rate of stm32-usart comes from a clock"
    assert str(problem.where) == "boards/own.toml:5"
    problem = _problem(text.replace("stm32-usart", "stm32"))
    assert (problem.code, problem.hint) == ("unknown-uart", 'did you mean "stm32-usart"?')
    text = text.replace("stm32-usart", "nrf-uart").replace("clock = 16_000_000", "baud = 9600")
    assert _problem(text).message == "nrf-uart has 115,200 bits per second"


def test_settings_write_and_wait() -> None:
    written = 'settings = [[0x40000000, 3, 1], [0x40000004, 4, 4, "wait"]]\ntried = "our bench"\n'
    board = _read(written + OWN).target.described_board
    assert board is not None
    assert board.settings == (
        Setting(address=0x40000000, mask=3, value=1),
        Setting(address=0x40000004, mask=4, value=4, waits=True),
    )
    assert (board.tried, board.tried_on) == ("our bench", "our bench")
    problem = _problem(written.replace("3, 1", "3, 4") + OWN)
    assert problem.message == "the register 0x40000000 has no room for 0x4"
    assert str(problem.where) == "boards/own.toml:1"


def test_registers_of_a_uart_have_room() -> None:
    text = OWN.replace("[[regions]]", _UART, 1)
    problem = _problem(text.replace("16_000_000", "100_000_000\nbaud = 300"))
    assert problem.message == "the register 0x40000008 has no room for 0x51615"
    assert str(problem.where) == "boards/own.toml:5"


@pytest.mark.parametrize("line", ["settings = [[0, 1, -1]]", "baud = 5", "baud = 9_000_000"])
def test_numbers_of_a_uart_are_in_their_range(line: str) -> None:
    problem = _problem(OWN.replace("[[regions]]", _UART.replace("clock", f"{line}\nclock"), 1))
    assert (problem.code, str(problem.where)) == ("bad-value", "boards/own.toml:8")
    assert dict(problem.notes)["expected"].startswith("an integer from ")


def test_a_board_without_uart_is_no_way_to_the_host() -> None:
    problem = _problem(OWN, PROFILE + 'target.via = "uart"\n')
    assert (problem.code, problem.message) == ("no-uart", "nothing is known of a UART of own")
    assert str(problem.where) == "p.toml:6"
