"""Output of commands: results on stdout, progress and errors on stderr."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from orchestrator.cli.terminal import drop_output, put, say
from orchestrator.errors import Diagnostic, ExitCode, OrchestratorError, UsageError
from orchestrator.printable import printable_lines

if TYPE_CHECKING:
    from orchestrator.build import Shell
    from orchestrator.shell.reporter import Reporter


class Console:
    """Standard output and error of one command, and what it builds with.

    Args:
        json: Print results as JSON.
        shell: Tools to build with; None for those of this machine.
    """

    def __init__(self, *, json: bool, shell: Shell | None = None) -> None:
        self.json = json
        self._shell = shell
        self._quiet = self._verbose = False
        self.color = sys.stderr.isatty() and not os.environ.get("NO_COLOR")

    def settings(self, *, color: str, quiet: bool, verbose: bool) -> None:
        """What the command line says about output.

        Args:
            color: `always`, `never`, or `auto`: on a terminal.
            quiet: Results and errors only.
            verbose: Every step as a line.
        """
        if color != "auto":
            self.color = color == "always"
        self._quiet, self._verbose = quiet, verbose

    def data(self, text: str) -> None:
        """Print a result as text; nothing with --json."""
        if not self.json:
            self.put(printable_lines(text.removesuffix("\n")) + "\n")

    def document(self, document: object) -> None:
        """Print a result as JSON; nothing without --json."""
        if self.json:
            import json  # noqa: PLC0415  # only --json needs it

            # JSON escapes everything outside of ASCII, except for one control
            # character.
            text = json.dumps(document, indent=2).replace("\x7f", "\\u007f")
            self.put(f"{text}\n")

    def result(self, document: object, text: str) -> ExitCode:
        """Print a result, as JSON with --json and else as text; success."""
        self.document(document)
        self.data(text)
        return ExitCode.OK

    def put(self, text: str) -> None:
        """Write a text to stdout, unchanged.

        Raises:
            UsageError: It cannot be written.
            BrokenPipeError: The reader has closed the stream.
        """
        try:
            put(text)
        # The reader closed its end, as `head` does: no error, see main.
        except BrokenPipeError:
            raise
        except OSError as error:
            # Else Python tries to flush at exit, and ends with 120 and a message of its
            # own.
            drop_output()
            reason = (error.strerror or str(error)).lower()
            raise UsageError.of(
                "system-error",
                f"cannot write to stdout: {reason}",
                hint="free space where stdout goes, or leave it open",
            ) from error

    def status(self, text: str) -> None:
        """Print a line about progress to stderr; nothing with --quiet."""
        if self._quiet:
            return
        say(f"{printable_lines(text)}\n")

    def failure(self, error: OrchestratorError) -> None:
        """Show every problem of an error."""
        from orchestrator.cli.render import failure_document, render_diagnostics, with_near_file  # noqa: PLC0415  # only errors need it

        error = with_near_file(error)
        with suppress(UsageError):  # the first error matters more
            self.document(failure_document(error))
        say(render_diagnostics(error.diagnostics, color=self.color))

    def problems(self, diagnostics: Iterable[Diagnostic], *, of: str = "") -> None:
        """Show problems on stderr only, below the names of what has them."""
        from orchestrator.cli.render import render_diagnostics  # noqa: PLC0415

        title = f"{printable_lines(of)}:\n" if of else ""
        say(title + render_diagnostics(diagnostics, color=self.color))

    def verdict(self, problems: Sequence[Diagnostic]) -> ExitCode:
        """Show what is wrong with results that were printed; the exit code."""
        if problems:
            self.problems(problems)
        return ExitCode.MISMATCH if problems else ExitCode.OK

    def refusal(self, error: OSError) -> None:
        """Show a system error, such as a file that cannot be read or written."""
        from orchestrator.shell.files import refused  # noqa: PLC0415  # errors only

        self.failure(refused(error))

    def bug(self, error: Exception, issues: str) -> None:
        """Report an internal error, with the traceback in a file."""
        import tempfile  # noqa: PLC0415
        import traceback  # noqa: PLC0415

        # A traceback on the terminal would hide the message; it is kept for the report.
        with tempfile.NamedTemporaryFile(
            "w", prefix="orchestrator-", suffix=".log", delete=False
        ) as file:
            file.write("".join(traceback.format_exception(error)))
        bug = OrchestratorError.of(
            "internal-error",
            f"internal error: {type(error).__name__}: {error}",
            trace=file.name,
            hint=f"please report it with that file attached: {issues}",
        )
        self.failure(bug)

    def shell(self, reporter: Reporter | None = None) -> Shell:
        """Tools for builds.

        Args:
            reporter: Gets the progress; None for silence.
        """
        from dataclasses import replace  # noqa: PLC0415  # only builds need these

        from orchestrator.build import Shell  # noqa: PLC0415

        # One for all builds of the command: it knows which places were given up.
        self._shell = self._shell or Shell()
        if reporter is None:
            return self._shell
        return replace(self._shell, reporter=reporter)

    def reporter(self, *, explain: bool = False) -> Reporter:
        """Progress: a line with a clock on a terminal, plain lines elsewhere."""
        if self._quiet:
            from orchestrator.shell.reporter import Reporter  # noqa: PLC0415

            return Reporter()
        if sys.stderr.isatty() and not self._verbose:
            from orchestrator.cli.progress import Bar  # noqa: PLC0415  # imports rich

            return Bar(explain=explain, color=self.color)
        from orchestrator.cli.progress import Lines  # noqa: PLC0415

        return Lines(explain=explain, verbose=self._verbose)

    @contextmanager
    def progress(self, *, explain: bool = False) -> Iterator[Reporter]:
        """A reporter of progress, closed at the end of the block."""
        reporter = self.reporter(explain=explain)
        try:
            yield reporter
        finally:
            reporter.close()
