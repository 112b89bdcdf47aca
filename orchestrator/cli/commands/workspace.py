"""Commands without PROFILE: what one of them does, for every product of a workspace."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path

from orchestrator.cli.command_table import COMMANDS, WORKSPACE
from orchestrator.cli.commands.options import build_options
from orchestrator.cli.console import Console
from orchestrator.cli.render import diagnostic_to_json, render_diagnostics
from orchestrator.errors import ExitCode, UsageError
from orchestrator.fleet.outcome import Kind, Outcome
from orchestrator.fleet.run import chosen, junit_text, run_tasks, sizes_at, unchanged
from orchestrator.fleet.table import by_cause, counts, document, in_order, markdown_text, table_text
from orchestrator.fleet.task import Work
from orchestrator.shell.files import write_atomic
from orchestrator.shell.stamp import Looked
from orchestrator.workspace import Product
from orchestrator.workspace.listing import read_listing
from orchestrator.workspace.lookup import find_workspace
from orchestrator.workspace.product import WORKSPACE_FILE, in_shard


def needs_profile(args: Namespace, named: object) -> bool:
    """Whether the command is about the profile that it names, not about a workspace.

    Args:
        args: Of the command line.
        named: What stands for PROFILE; empty or None without.

    Raises:
        UsageError: An option is for the other one.
    """
    options = WORKSPACE.options if named else COMMANDS[args.command].options
    for option in options:
        if named and option.is_given(args):
            raise UsageError.wrong(
                f"{option.long_name} works on a workspace",
                f"leave out either PROFILE or {option.long_name}",
                found="a PROFILE",
            )
        if option.needs_profile and option.is_given(args):
            raise UsageError.wrong(
                f"{option.long_name} requires PROFILE",
                "name a profile or a product: without one the command works on all products"
                " of the workspace",
            )
    return bool(named)


def run_workspace(args: Namespace, console: Console, kind: Kind | Work) -> ExitCode:
    """Do it for every product, and show one table; a failure stops no other product.

    Args:
        args: Of the command line.
        console: Where results and progress go.
        kind: What is done. If a product has to be built, it has the options of the
            command line; `jobs` are those of all products together.

    Returns:
        The exit code of the first product that failed, by name.
    """
    file = _file(args.workspace)
    looked = Looked()
    listing = read_listing(file, looked)
    products = in_shard(chosen(listing.products, args.products), args.shard)
    before = None
    if args.base is not None:
        before = sizes_at(args.base, products, file.parent)
    done = []
    known: dict[str, Outcome] = {}
    if kind is Kind.BUILD and not args.locked and not args.frozen:
        # Products with nothing to do are told apart here by their stamps: no worker is
        # started for them.
        known = unchanged(products, file.parent, looked, uses_lock=not args.no_lock)
    rest = [product for product in products if product.name not in known]
    outcomes: Iterable[Outcome] = known.values()
    if rest:
        outcomes = chain(outcomes, _worked(rest, file, console, kind, args))
    # As they come, so that a line of progress appears at once; the table has the order
    # of the workspace.
    for outcome in outcomes:
        _say(console, outcome)
        then = outcome.before if before is None else before.get(outcome.product.name)
        done.append(replace(outcome, before=then))
    ordered = in_order(done)
    what = str(kind) if isinstance(kind, Kind) else args.command
    _report(args, console, what, ordered, file)
    # By name, not by time: the exit code is the same each time.
    first = min(
        (one for one in ordered if one.failed), key=lambda one: one.product.name, default=None
    )
    return ExitCode.OK if first is None else first.exit_code


def _file(named: Path | None) -> Path:
    """The `orchestrator.toml` of the command."""
    if named is not None:
        return named / WORKSPACE_FILE if named.is_dir() else named
    found = find_workspace(Path())
    if found is None:
        raise UsageError.of(
            "no-workspace",
            f"there is no {WORKSPACE_FILE} here or in a folder above",
            expected="PROFILE, or a workspace",
            hint="name the profile of a product, or see docs/workspaces.md",
        )
    return found


def _worked(
    products: Sequence[Product], file: Path, console: Console, kind: Kind | Work, args: Namespace
) -> Iterator[Outcome]:
    """Outcomes of what is not known yet, as they are known."""
    options = build_options(args)
    with console.progress() as reporter:
        shell = console.shell()
        results = run_tasks(products, file, kind, options, shell=shell, scheduler=args.scheduler)
        for number, outcome in enumerate(results, 1):
            reporter.progress(number, len(products), outcome.product.name)
            yield outcome


def _say(console: Console, outcome: Outcome) -> None:
    """A line about an outcome that took time, and its warnings."""
    name = outcome.product.name
    if outcome.seconds:
        text = "failed, see below" if outcome.failed else outcome.done
        console.status(f"{name}: {text}, {outcome.seconds:.1f} s")
    for note in outcome.notes:
        console.status("\n".join(f"{name}: {line}" for line in note.splitlines()))


def _report(
    args: Namespace, console: Console, what: str, outcomes: Sequence[Outcome], file: Path
) -> None:
    if args.junit is not None or args.markdown is not None:
        _write_reports(args, what, outcomes)
    if console.json:
        found = document(str(file), outcomes)
        for one, entry in zip(outcomes, found["products"], strict=True):  # type: ignore[call-overload]  # a list of our own
            entry["diagnostics"] = [diagnostic_to_json(d) for d in one.problems]
        console.document(found)
    console.data(table_text(outcomes) if outcomes else counts(outcomes))
    for names, problems in by_cause(outcomes):
        console.problems(problems, of=names)


def _write_reports(args: Namespace, what: str, outcomes: Sequence[Outcome]) -> None:
    if args.junit is not None:
        text = junit_text(
            what, outcomes, shown=lambda problems: render_diagnostics(problems, color=False)
        )
        write_atomic(args.junit, text.encode())
    if args.markdown is not None:
        write_atomic(args.markdown, markdown_text(what, outcomes).encode())
