"""Files that describe boards: those of the package, and a user's own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from orchestrator.errors import Diagnostic, ProfileError
from orchestrator.profile import load
from orchestrator.profile.board import read_board
from orchestrator.profile.choices import Image
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
    assert profile.target.data_wait_states is None
    slow = OWN.replace("flash", "data_wait_states = 1\nflash", 1)
    assert _read(slow).target.data_wait_states == 1
    own = _read(slow, PROFILE + "target.data_wait_states = 0\n")
    assert (own.target.data_wait_states, own.target.flash_wait_states) == (0, 3)
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


@pytest.mark.parametrize(
    ("driver", "clock", "baud", "found"),
    [
        ("stm32-usart", 16_000_000, 4_000_000, "4,000,000 with a clock of 16,000,000 Hz"),
        ("stm32-usart", 1, 4_000_000, "1 with a clock of 1 Hz"),
        ("ns16550", 12_000_000, 115_200, "107,143 with a clock of 12,000,000 Hz"),
        ("pl011", 12_000_000, 115_200, None),
        ("stm32-usart", 16_000_000, 921_600, None),
    ],
)
def test_a_baud_rate_is_one_that_the_clock_gives(
    driver: str, clock: int, baud: int, found: str | None
) -> None:
    uart = f"{_UART.replace('16_000_000', str(clock))}".replace("base", f"baud = {baud}\nbase")
    text = OWN.replace("[[regions]]", uart.replace("stm32-usart", driver), 1)
    if found is None:
        assert _read(text).target.described_board is not None
        return
    problem = _problem(text)
    assert problem.message == f"{driver} does not reach {baud:,} bits per second"
    assert dict(problem.notes)["found"] == found
    assert str(problem.where) == "boards/own.toml:7"


def test_a_pl011_divides_in_sixty_fourths() -> None:
    uart = _UART.replace("stm32-usart", "pl011").replace("16_000_000", "12_000_000")
    board = _read(OWN.replace("[[regions]]", uart, 1)).target.described_board
    assert board is not None
    assert board.uart is not None
    # 12 MHz by 16 times 115,200 are 6.51: 6 and 33 of 64.
    assert [(s.address & 0xFF, s.value) for s in board.uart.settings[1:3]] == [
        (0x24, 6),
        (0x28, 33),
    ]


@pytest.mark.parametrize(
    ("line", "address"),
    [
        ("base = 0x40000001", "0x40000001"),
        ("base = 0x20000000", "0x20000000"),
        ("base = 0xFFFFFFFC", "0x100000004"),
        ("base = 0x40000000\nsettings = [[0x80000010, 1, 1]]", "0x80000010"),
        ("base = 0x40000000\nsettings = [[0x40000102, 1, 1]]", "0x40000102"),
    ],
)
def test_registers_of_a_uart_are_words_outside_of_memories(line: str, address: str) -> None:
    text = OWN.replace("[[regions]]", _UART.replace("base = 0x40000000", line), 1)
    assert _problem(text).message == f"no register is at {address}"


def test_a_board_without_uart_is_no_way_to_the_host() -> None:
    problem = _problem(OWN, PROFILE + 'target.via = "uart"\n')
    assert (problem.code, problem.message) == ("no-uart", "nothing is known of a UART of own")
    assert str(problem.where) == "p.toml:6"


def _images(board: str, images: str, more: str = "") -> Profile:
    return _read(board, f"{PROFILE}target.images = {images}\n{more}")


def _image_problem(board: str, images: str = '["uf2"]', more: str = "") -> Diagnostic:
    problem = _problem(board, f"{PROFILE}target.images = {images}\n{more}")
    assert str(problem.where) == "p.toml:6"
    return problem


def test_images_have_known_formats() -> None:
    assert _images(OWN, '["hex", "bin"]').target.images == (Image.HEX, Image.BIN)
    problem = _image_problem(OWN, '["elf"]')
    assert (problem.code, dict(problem.notes)["expected"]) == ("bad-value", "hex, bin, uf2")


def test_a_uf2_file_needs_a_family() -> None:
    problem = _image_problem(OWN)
    assert (problem.code, problem.message) == ("no-uf2-family", "no UF2 family is known of own")
    assert "rp2040" in dict(problem.notes)["known"]
    assert _images(f"uf2_family = 1\n{OWN}", '["uf2"]').target.images == (Image.UF2,)


def test_a_uf2_file_leaves_the_boot_loader_alone() -> None:
    board = f"uf2_family = 1\nuf2_start = 0x20002000\n{OWN}"
    problem = _image_problem(board)
    assert (problem.code, problem.message) == (
        "bad-uf2-start",
        "firmware for own begins where its UF2 boot loader lies",
    )
    assert problem.notes == (("found", "0x20000000"), ("expected", "0x20002000 or behind it"))
    behind = """
[[memory.regions]]
name = "rom"
origin = 0x20002000
size = "56 KiB"
kind = "flash"

[[memory.regions]]
name = "work"
origin = 0x80000000
size = "8 KiB"
kind = "ram"
"""
    assert _images(board, '["uf2"]', behind).target.images == (Image.UF2,)


def test_a_uf2_file_begins_with_a_sector() -> None:
    """The RP2040's has the second-stage boot loader in it, or it would be erased."""
    board = f"uf2_family = 1\n{OWN.replace('0x20000000', '0x20000100')}"
    problem = _image_problem(board)
    assert (problem.code, problem.message) == (
        "bad-uf2-start",
        "a UF2 file for own would erase what lies in front of the firmware",
    )
    digits = "00 b5\n" * 128
    profile = _images(f'boot = """{digits}"""\n{board}', '["uf2"]')
    found = profile.target.described_board
    assert found is not None
    assert (found.boot, found.image_start) == (b"\0\xb5" * 128, 0x20000000)


@pytest.mark.parametrize("digits", ["0", "0x00", "00 0", "zz"])
def test_a_boot_loader_is_in_digits(digits: str) -> None:
    problem = _problem(f'boot = "{digits}"\n{OWN}')
    assert (problem.code, str(problem.where)) == ("bad-value", "boards/own.toml:1")
    assert problem.hint == "`xxd -p FILE` writes them"


@pytest.mark.parametrize("before", ["0x00000001", "0x80002000"])
def test_a_boot_loader_has_room(before: str) -> None:
    problem = _problem(f'boot = "0011"\n{OWN.replace("0x20000000", before)}')
    assert problem.message == 'there is no room for boot in front of "rom"'


def test_programs_for_linux_have_no_images() -> None:
    profile = 'schema = 1\nname = "p"\nmodels = [{path = "a.pte"}]\n[target]\n'
    problem = _problem(None, f'{profile}cpu = "host"\nimages = ["bin"]\n')
    assert (problem.code, problem.message) == ("no-images", "programs of host have no images")
    assert str(problem.where) == "p.toml:6"
