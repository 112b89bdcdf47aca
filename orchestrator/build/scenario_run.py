"""Run the scenario of a built product, and compare its outputs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from orchestrator.build.device_status import explain_failure
from orchestrator.build.firmware import carry_out, need_runnable
from orchestrator.build.project import Project
from orchestrator.errors import Diagnostic, MismatchError, SourceSpan, UsageError
from orchestrator.running.compare import compare_calls
from orchestrator.running.product import Product, read_product
from orchestrator.running.protocol import decode_response
from orchestrator.running.report import failures
from orchestrator.running.scenario import Scenario, read_scenario
from orchestrator.shell.files import read_file, read_text_file, reason_of

if TYPE_CHECKING:
    from orchestrator.profile.tables import Profile

_TIMEOUT_S: Final = 600.0
"""Of a run, as `orchestrator run` has it by default."""


def found_scenario(profile: Profile) -> Path:
    """The scenario beside a profile. Raises UsageError without one (`no-scenario`)."""
    if path := own_scenario(profile):
        return path
    raise UsageError(
        Diagnostic(
            code="no-scenario",
            message=f"{profile.name} has no scenario to run",
            notes=tuple(("expected", str(path)) for path in _scenarios(profile)),
            hint="write one, or choose other products with -p",
        )
    )


def own_scenario(profile: Profile) -> Path | None:
    """The scenario beside a profile, `scenarios/NAME.json`; None without one."""
    return next((path for path in _scenarios(profile) if path.is_file()), None)


def _scenarios(profile: Profile) -> list[Path]:
    names = dict.fromkeys((profile.name, profile.file.stem))
    return [profile.file.parent / "scenarios" / f"{name}.json" for name in names]


def run_scenario(project: Project, path: Path) -> None:
    """Run the calls of a scenario on a product that is built.

    Args:
        project: The product.
        path: The scenario.

    Raises:
        UsageError: The scenario does not fit.
        ToolchainError: Nothing here runs the firmware.
        MismatchError: A call failed, or gave another output.
    """
    product = product_of(project)
    need_runnable(product)
    scenario = scenario_of(path, product)
    firmware = (project.folder / product.firmware).resolve()
    answer = carry_out(product, firmware, scenario.calls, timeout_s=_TIMEOUT_S)
    results = decode_response(answer.response, scenario.calls)
    outputs = compare_calls(scenario.calls, results, scenario.tolerance)
    failure = explain_failure(project, scenario.calls, results)
    problems = failures(scenario.calls, results, outputs, scenario.tolerance, failure)
    if problems:
        raise MismatchError(problems)


def product_of(project: Project) -> Product:
    """What a build says about its firmware.

    Raises:
        UsageError: There is no build (`not-built`).
    """
    path = project.folder / "product.json"
    try:
        text = read_text_file(path)
    except (OSError, UnicodeDecodeError) as error:
        profile = project.profile.named
        raise UsageError.of(
            "not-built",
            f"{profile} is not built",
            expected=str(path),
            hint=f"run `orchestrator build {profile}` first",
        ) from error
    return read_product(text)


def scenario_of(path: Path, product: Product) -> Scenario:
    """The calls of a file.

    Raises:
        UsageError: It cannot be read, or is not for this product (`bad-scenario`).
    """
    try:
        text = read_text_file(path)
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError.of(
            "bad-scenario",
            "cannot read the scenario",
            where=SourceSpan(file=str(path)),
            found=getattr(error, "strerror", None) or reason_of(error),
            hint="name a JSON file with runs and tolerance",
        ) from error
    return read_scenario(text, file=str(path), product=product, read_bytes=read_bytes)


def read_bytes(path: str) -> bytes:
    """A file of a scenario or of the command line."""
    return read_file(Path(path))
