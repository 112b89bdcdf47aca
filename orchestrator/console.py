"""What commands say: data on stdout, talk on stderr."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, TextIO

from orchestrator.errors import (
    Diagnostic,
    OrchestratorError,
    UsageError,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from orchestrator.reporter import Reporter


def _write(stream: TextIO, text: str) -> None:
    """Write a text, with escapes for what the stream cannot show: odd file names."""
    encoding = stream.encoding or "utf-8"
    stream.write(text.encode(encoding, "backslashreplace").decode(encoding))


class Console:
    """Standard output and error of one command."""

    def __init__(self, *, json: bool) -> None:
        self.json = json
        self.color = sys.stderr.isatty() and not os.environ.get("NO_COLOR")

    def data(self, text: str) -> None:
        """Print data for people; nothing with --json."""
        if not self.json:
            _write(sys.stdout, text if text.endswith("\n") else f"{text}\n")

    def document(self, document: object) -> None:
        """Print data for programs; nothing without --json."""
        if self.json:
            import json  # noqa: PLC0415  # only --json needs it

            sys.stdout.write(json.dumps(document, indent=2) + "\n")

    def talk(self, text: str) -> None:
        """Tell what happens."""
        _write(sys.stderr, f"{text}\n")

    def failure(self, error: OrchestratorError) -> None:
        """Show every problem of an error."""
        from orchestrator.render import (  # noqa: PLC0415  # only errors need it
            diagnostic_to_json,
            render_diagnostics,
        )

        self.document(
            {
                "exit_code": int(error.exit_code),
                "diagnostics": [diagnostic_to_json(d) for d in error.diagnostics],
            }
        )
        _write(sys.stderr, render_diagnostics(error.diagnostics, color=self.color))

    def problems(self, diagnostics: Iterable[Diagnostic]) -> None:
        """Show problems on stderr only."""
        from orchestrator.render import render_diagnostics  # noqa: PLC0415

        _write(sys.stderr, render_diagnostics(diagnostics, color=self.color))

    def refusal(self, error: OSError) -> None:
        """Show a file that cannot be read or written, or what else the system says."""
        from orchestrator.shell.files import (  # noqa: PLC0415  # errors only
            WriteError,
            reason_of,
        )

        file = error.filename2 or error.filename
        name = f"cannot access {os.fsdecode(file)}: " if file else ""
        problem = Diagnostic(
            code="system-error",
            message=str(error)
            if isinstance(error, WriteError)
            else f"{name}{reason_of(error)}",
            hint="check that the path is right, may be written, and has space left",
        )
        self.failure(UsageError(problem))

    def bug(self, error: Exception, issues: str) -> None:
        """Admit a mistake of ours, with the trace in a file."""
        import tempfile  # noqa: PLC0415
        import traceback  # noqa: PLC0415

        with tempfile.NamedTemporaryFile(
            "w", prefix="orchestrator-", suffix=".log", delete=False
        ) as file:
            file.write("".join(traceback.format_exception(error)))
        bug = OrchestratorError(
            Diagnostic(
                code="internal-error",
                message=f"this is a bug of ours: {type(error).__name__}: {error}",
                notes=(("trace", file.name),),
                hint=f"please report it with that file: {issues}",
            )
        )
        self.failure(bug)

    def notes(self) -> Reporter:
        """What takes long, for commands that mostly do not."""
        from orchestrator.progress_lines import Lines  # noqa: PLC0415

        return Lines(explain=False)

    def reporter(self, *, explain: bool) -> Reporter:
        """Progress: a bar on a terminal, plain lines elsewhere."""
        if sys.stderr.isatty():
            from orchestrator.progress import Bar  # noqa: PLC0415  # imports rich

            return Bar(explain=explain)
        from orchestrator.progress_lines import Lines  # noqa: PLC0415

        return Lines(explain=explain)
