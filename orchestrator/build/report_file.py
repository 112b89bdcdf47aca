"""Read the report of a build back."""

from __future__ import annotations

from pathlib import Path

from orchestrator.build.project import Project
from orchestrator.errors import SourceSpan, UsageError
from orchestrator.measure import read_report
from orchestrator.measure.size import SizeReport
from orchestrator.profile.tables import Profile
from orchestrator.shell.files import read_text_file, reason_of


def last_report(project: Project) -> tuple[str, SizeReport]:
    """The report of the last build, and its text. Raises UsageError (`no-report`)."""
    return read_report_file(project.reports / "report.json", of=project.profile)


def read_report_file(path: Path, *, of: Profile | None = None) -> tuple[str, SizeReport]:
    """A report and its text.

    Args:
        path: Path of the report.
        of: Whose build writes it; None for a file that the user named.

    Raises:
        UsageError: It cannot be read (`no-report`).
    """
    try:
        text = read_text_file(path)
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError.of(
            "no-report",
            f"{path} cannot be read",
            where=SourceSpan(file=str(of.file)) if of else None,
            found=getattr(error, "strerror", None) or reason_of(error),
            hint=f"run `orchestrator build {of.named}` first"
            if of
            else "name the report.json of a build, a profile or a product",
        ) from error
    return text, read_report(text, file=str(path))
