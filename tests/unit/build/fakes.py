"""A compiler and a ninja that compile nothing, for builds in unit tests."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orchestrator.build import Shell
from orchestrator.errors import Diagnostic, ToolchainError
from orchestrator.shell.process import Finished
from orchestrator.shell.reporter import Reporter
from orchestrator.targets.cores import Toolchain
from tests.unit.measure.measure_cases import case
from tests.unit.measure.objects import ObjectSpec

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from orchestrator.core.lazy_bytes import Bytes
    from orchestrator.targets.cores import Target

ZIG = Toolchain(
    name="zig",
    version="ziglang 0.17.0 (clang 22.1.8)",
    compiler=("/opt/zig", "clang"),
    archiver=("/opt/zig", "ar"),
    linker=("/opt/zig", "ld.lld"),
    programs=(("zig", "a" * 64),),
    files=("/opt/zig",),
)


@dataclass
class FakeToolchains:
    """One toolchain for everything; None: none is installed.

    Args:
        toolchain: It.
        asked: Of each search, whether digests of the cache would do.
    """

    toolchain: Toolchain | None = ZIG
    asked: list[bool] = field(default_factory=list)

    def name_for_host(self) -> str:
        return "zig"

    def find(self, target: Target, *, trust_cache: bool) -> Toolchain:
        assert target.toolchain == "zig"
        self.asked.append(trust_cache)
        if self.toolchain is None:
            raise ToolchainError(
                Diagnostic(code="toolchain-missing", message="zig is not installed")
            )
        return self.toolchain

    def builtins(self, toolchain: Toolchain, target: Target) -> bytes:
        assert (toolchain, target.cpu.name) == (self.toolchain, "host")
        return b"support functions"


@dataclass
class FakeFolder:
    """Links one and the same firmware, whatever is laid out.

    Args:
        log: What ninja writes.
        runs: Of each run, the files that were laid out.
    """

    log: str = ""
    runs: list[Mapping[str, Bytes]] = field(default_factory=list)

    def compile(
        self, files: Mapping[str, Bytes], *, whole: Iterable[str], keys: Mapping[str, str]
    ) -> str:
        assert all(name.startswith("obj/") for name in keys)
        assert set(whole) == {"src", "gen", "models"}
        self.runs.append(dict(files))
        return self.log

    def read(self, name: str) -> bytes:
        linked = case("host-zig")
        if name == "firmware.elf":
            return linked.elf
        if name == "firmware.map":
            return linked.map_text.encode()
        if name.endswith(".a"):
            return b"!<arch>\n"
        if name.endswith(".su"):
            raise FileNotFoundError(name)
        return ObjectSpec(sections=[".text"]).make()


@dataclass
class FakeExporter:
    """Runs the process that exports; it gives one and the same program.

    Args:
        program: It; None: the process dies.
        warnings: (code, text) of each.
        decomposed: Calls of operators that it decomposed.
        asked: Operators that it asked for; if they are offered is in the result.
        requests: What was requested.
    """

    program: bytes | None
    warnings: list[tuple[str, str]] = field(default_factory=list)
    decomposed: dict[str, int] = field(default_factory=dict)
    asked: tuple[str, ...] = ()
    requests: list[dict[str, Any]] = field(default_factory=list)

    def run(
        self, command: Sequence[str], *, cwd: Path, env: Mapping[str, str], timeout_s: float
    ) -> Finished:
        request, made = command[-2:]
        self.requests.append(json.loads(Path(request).read_text()))
        assert (env["PYTHONHASHSEED"], timeout_s > 3600) == ("0", True)
        if self.program is None:
            return Finished(status=-11, stdout="", stderr="Segmentation fault\n")
        (Path(made) / "model.pte").write_bytes(self.program)
        result = {
            "arrays": [],
            "files": [str(cwd / "net.py")],
            "folders": [],
            "distributions": {"torch": {"version": "2.9", "record": "", "sha256": ""}},
            "python": "3.11.0",
            "warnings": self.warnings,
            "seconds": 0.1,
            "ledger": None,
            "decomposed": self.decomposed,
            "asked": {n: n in self.requests[-1]["offered"] for n in self.asked},
        }
        (Path(made) / "result.json").write_text(json.dumps(result))
        return Finished(status=0, stdout="", stderr="")


@dataclass
class Recorder(Reporter):
    """A reporter that writes down what it hears."""

    stages: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    work: list[tuple[str, int, int]] = field(default_factory=list)

    def stage(self, label: str, reason: str) -> None:
        self.stages[label] = reason

    def skipped(self, label: str) -> None:
        self.stages[label] = ""

    def explained(self, text: str) -> None:
        self.lines.append(text)

    def working(self, text: str, number: int = 1, total: int = 1) -> None:
        self.work.append((text, number, total))

    def progress(self, done: int, total: int, text: str) -> None:
        raise AssertionError((done, total, text))

    def note(self, text: str) -> None:
        self.notes.append(text)


@dataclass
class FakeShell:
    """A shell of fakes, and these."""

    toolchains: FakeToolchains = field(default_factory=FakeToolchains)
    folder: FakeFolder = field(default_factory=FakeFolder)
    reporter: Recorder = field(default_factory=Recorder)
    exporter: FakeExporter = field(default_factory=lambda: FakeExporter(program=None))

    @property
    def shell(self) -> Shell:
        return Shell(
            reporter=self.reporter,
            toolchains=self.toolchains,
            processes=self.exporter,
            compile_folder=self.folder,
        )
