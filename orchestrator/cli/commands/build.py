"""`orchestrator build`: firmware, library, reports and lock of profiles."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING

from orchestrator.cli.workspace_command import needs_profile, run_workspace
from orchestrator.errors import ExitCode
from orchestrator.fleet.kind import Kind

if TYPE_CHECKING:
    from orchestrator.build import BuildOptions
    from orchestrator.cli.console import Console


def run(args: Namespace, console: Console) -> ExitCode:
    """Build the profiles, or all products of the workspace."""
    of_one = "out lock=lock_file explain depfile"
    if needs_profile(args, args.profiles, of_one):
        # What builds is imported only if something has to be built.
        from orchestrator.cli.profile_builds import build_profiles  # noqa: PLC0415

        return build_profiles(args, console)

    def options() -> BuildOptions:
        from orchestrator.cli.commands.options import build_options  # noqa: PLC0415

        return build_options(args)

    return run_workspace(args, console, Kind.BUILD, options)
