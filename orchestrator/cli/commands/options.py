"""Options of commands that build: the build folder, jobs, and the lock."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import replace
from pathlib import Path

from orchestrator.build import BuildOptions, ExportChoice, Project, inputs, load
from orchestrator.build.on_device import ready_device
from orchestrator.build.project import open_build, piped_name
from orchestrator.cli.command_table import COMMANDS
from orchestrator.errors import UsageError
from orchestrator.running.device import Device
from orchestrator.running.product import Product


def build_options(args: Namespace) -> BuildOptions:
    """The build options of a command line; those that the command lacks are as not given.

    Raises:
        UsageError: Two of its options contradict each other.
    """
    # Checked here, not by the parser: argparse's groups exclude only what stands in one
    # group, and --lock is in none.
    options = {one.long_name for one in COMMANDS[args.command].options if one.is_given(args)}
    for option, other in _CONTRADICTIONS:
        if {option, other} <= options:
            raise UsageError.wrong(
                f"argument {option}: not allowed with argument {other}", "leave one of them out"
            )
    given = vars(args).get
    return BuildOptions(
        out=given("out"),
        jobs=given("jobs"),
        locked=bool(given("locked") or given("frozen")),
        frozen=bool(given("frozen")),
        lock=given("lock_file"),
        write_lock=not given("no_lock"),
        export=ExportChoice(deny_float=bool(given("deny_float"))),
    )


def project_of(args: Namespace) -> Project:
    """The profile that a command line names, with its build options.

    Raises:
        OrchestratorError: The options contradict each other, or the profile is wrong.
    """
    options = options_of(build_options(args), args.profile)
    return Project(load(args.profile), options)


def options_of(options: BuildOptions, profile: Path) -> BuildOptions:
    """The options for a profile: one from a pipe has no lock unless one is named.

    Raises:
        UsageError: A lock is needed.
    """
    if piped_name(profile) is None or options.lock is not None:
        return options
    if options.locked:
        raise no_place_for_lock()
    return replace(options, write_lock=False)


def device_for(args: Namespace, project: Project, product: Product) -> Device | None:
    """The device that `--on` names, with what the profile's board says about it.

    Raises:
        OrchestratorError: The board cannot be reached so.
    """
    if args.on is None:
        return None
    return ready_device(args.on, open_build(project)[inputs.TARGET].board, product)


def no_place_for_lock() -> UsageError:
    """A profile from a pipe has no lock beside it."""
    return UsageError.wrong(
        "a profile from a pipe has no lock beside it", "name the lock with --lock FILE"
    )


_CONTRADICTIONS = (
    ("--no-lock", "--lock"),
    ("--no-build", "--lock"),
    ("--no-build", "--locked"),
    ("--no-build", "--frozen"),
)
"""Besides those that the parser checks."""
