"""Which products a command is about, and what builds of a process share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from orchestrator.errors import UsageError
from orchestrator.fleet.run import chosen
from orchestrator.fleet.task import MOST_RESULTS, RecentResults
from orchestrator.shell.input_files import CommonFiles, InputFiles
from orchestrator.shell.sources import package_files
from orchestrator.shell.toolchain import KnownToolchains
from orchestrator.targets.cores import Toolchain, resolve_target
from orchestrator.workspace import Product
from orchestrator.workspace.product import names_text

if TYPE_CHECKING:
    from orchestrator.targets.cores import Target

PRODUCTS = [Product(name=name, profile=Path("x")) for name in ("a-host", "a-m4", "b-m4")]


@pytest.mark.parametrize(
    ("patterns", "names"),
    [
        ([], ["a-host", "a-m4", "b-m4"]),
        (["*-m4"], ["a-m4", "b-m4"]),
        (["b-m4", "a-h*"], ["a-host", "b-m4"]),
    ],
)
def test_products_by_name(patterns: list[str], names: list[str]) -> None:
    assert [p.name for p in chosen(PRODUCTS, patterns)] == names


def test_a_name_that_is_none() -> None:
    with pytest.raises(UsageError) as caught:
        chosen(PRODUCTS, ["a-m5", "*"])
    (problem,) = caught.value.diagnostics
    assert problem.message == 'the workspace has no product "a-m5"'
    assert problem.notes == (("found", "a-host, a-m4, b-m4"),)
    assert problem.hint == 'did you mean "a-m4"?'


def test_several_names_in_one() -> None:
    with pytest.raises(UsageError) as caught:
        chosen(PRODUCTS, ["a-m4,b-m4"])
    assert caught.value.diagnostics[0].hint == "repeat the option: -p a-m4 -p b-m4"


def test_of_many_names_the_number_is_shown() -> None:
    assert names_text(["a"] * 8) == "a, a, a, a, a, a, a, a"
    assert names_text(["a"] * 9) == "9 products"


def test_the_last_results_are_kept() -> None:
    results = RecentResults()
    for number in range(MOST_RESULTS):
        results.put(str(number), number)
    assert results.get("0") == 0  # and so it is not the oldest any more
    results.put("one more", 7)
    assert results.get("1") is None
    assert (results.get("0"), results.get("one more")) == (0, 7)


def test_own_files_are_read_once_and_noted_each_time(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    own, other = package_files()[0], tmp_path / "model.pte"
    other.write_bytes(b"1")
    common = CommonFiles()
    first = InputFiles(common)
    data = first.read(own)
    monkeypatch.setattr("orchestrator.shell.input_files.read_file", lambda *_, **__: b"")
    second = InputFiles(common)
    assert second.read(own) == data == own.read_bytes()
    assert second.states == first.states
    assert list(second.states) == [str(own)]
    # What only one product reads is read each time.
    assert second.read(other) == b""
    assert InputFiles().read(own) == b""


class _Counting:
    """Finds a compiler that is a file, and counts how often."""

    def __init__(self, program: Path) -> None:
        self._program = program
        self.count = 0

    def name_for_host(self) -> str:
        return "gnu"

    def find(self, target: Target, *, trust_cache: bool) -> Toolchain:
        self.count += 1
        return Toolchain(
            name=target.toolchain,
            version=str(trust_cache),
            compiler=("c",),
            archiver=("a",),
            linker=("l",),
            programs=(),
            files=(str(self._program),),
        )

    def builtins(self, toolchain: Toolchain, target: Target) -> bytes:
        raise AssertionError(f"no test needs {toolchain.name} for {target.cpu}")


def test_a_compiler_is_looked_for_until_it_changes(tmp_path: Path) -> None:
    program = tmp_path / "cc"
    program.write_text("1")
    counting = _Counting(program)
    known = KnownToolchains(counting)

    def find(cpu: str, toolchain: str, *, trust_cache: bool = True) -> Toolchain:
        target = resolve_target(cpu=cpu, isa=None, board=None, toolchain=toolchain, optimize="size")
        return known.find(target, trust_cache=trust_cache)

    assert find("cortex-m4", "zig").name == "zig"
    assert find("cortex-m7", "gnu").name == "gnu"
    find("cortex-m55", "zig")
    find("cortex-m55", "gnu")
    assert counting.count == 2
    # gcc for another architecture is another program, and so is a digest to trust.
    find("rv32imac", "gnu")
    assert find("cortex-m4", "zig", trust_cache=False).version == "False"
    assert counting.count == 4
    program.write_text("22")
    find("cortex-m4", "zig")
    assert counting.count == 5
