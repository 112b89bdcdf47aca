"""`orchestrator report`: the last build as a page, and its pictures."""

from __future__ import annotations

import json
import os
import signal
import webbrowser
from argparse import Namespace
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from orchestrator.build import Project, Shell, build_product, load, open_build, table
from orchestrator.build.lockfile import Lock, differences, parse_lock
from orchestrator.build.locking import needed_lock, sizes_of
from orchestrator.build.project import project_at
from orchestrator.build.report_file import last_report
from orchestrator.cli.commands.current import make_current, need_current, note_if_stale
from orchestrator.cli.commands.named_files import read_text
from orchestrator.cli.commands.options import build_options
from orchestrator.cli.commands.workspace import needs_profile, run_workspace
from orchestrator.cli.console import Console
from orchestrator.errors import ExitCode, LockError, OverBudgetError, ToolchainError, UsageError
from orchestrator.fleet.task import costs_of
from orchestrator.measure import read_report
from orchestrator.plain_table import table_lines
from orchestrator.report import ReportFacts
from orchestrator.report.history import Change, History, Point, change_of_locks, change_of_reports
from orchestrator.report.page import Accuracy, page
from orchestrator.report.pictures import MOST_DRAWN, NoFontsError, pictures, png
from orchestrator.report.svg import NOTHING
from orchestrator.shell.distribution import extra_needed
from orchestrator.shell.files import write_if_changed
from orchestrator.shell.git import revisions
from orchestrator.shell.page_server import PageServer
from orchestrator.shell.signals import Ended

_PAGE = "report.html"
# Each is a file out of git that is parsed. Chosen by hand.
_MOST_REVISIONS = 500
_MOST_ROWS = 20
"""Rows of the history on the terminal; the page has all."""
_ADDITIONS = "--diff, --history, --costs or --accuracy"


def run(args: Namespace, console: Console) -> ExitCode:
    """Build if anything changed, then print the path of the page, or write another."""
    _check(args)
    if not needs_profile(args, args.profile):
        return run_workspace(args, console, _written)
    project = Project(load(args.profile), build_options(args))
    try:
        (need_current if args.no_build else make_current)(project, console)
    # A build over its budget has a page all the same: it shows what to make smaller.
    except OverBudgetError:
        note_if_stale(project, console, "sizes")
    if args.svg or args.png:
        _write_pictures(args, project, console)
        return ExitCode.OK
    file = project.reports / _PAGE
    history = None
    if _adds(args):
        file = args.output or project.work / _PAGE
        facts = _facts(args, project, console)
        changes = [_change(path, project, facts) for path in args.diff]
        if args.history or args.history_of:
            with console.progress() as reporter:
                reporter.working("reading the history of locks")
                history = _history(args, project)
        accuracies = [_accuracy(path, project, facts) for path in args.accuracy]
        text = page(facts, changes=changes, history=history, accuracies=accuracies)
        write_if_changed(file, text.encode())
    if args.serve:
        _serve(args, file, console)
        return ExitCode.OK
    document: dict[str, object] = {"report": str(file)}
    if history:
        document["history"] = asdict(history)
        console.data(_history_table(history))
    console.document(document)
    console.data(str(file))
    if args.open:
        webbrowser.open(file.absolute().as_uri())
    return ExitCode.OK


def _written(project: Project, shell: Shell) -> dict[str, Any]:
    """Build a product, if only for the page; fields of the outcome."""
    try:
        build_product(project, shell)
    except OverBudgetError as error:
        shell.reporter.note(f"over budget: {error}")
    file = str(project.reports / _PAGE)
    return {
        "done": f"written: {file}",
        "costs": costs_of(last_report(project)[1]),
        "details": {"report": file},
    }


def _adds(args: Namespace) -> bool:
    """Whether the page shows more than the build."""
    return bool(args.diff or args.history or args.history_of or args.costs or args.accuracy)


def _check(args: Namespace) -> None:
    """Reject options that would do nothing."""
    adds = _adds(args)
    for given, option, allowed, needs in (
        (args.output, "--output", adds, _ADDITIONS),
        (args.output_dir, "--output-dir", args.svg or args.png, "--svg or --png"),
        (args.port is not None, "--port", args.serve, "--serve"),
    ):
        if given and not allowed:
            raise UsageError.wrong(f"{option} requires {needs}", f"add it, or leave out {option}")
    if adds and (args.svg or args.png or args.serve):
        other = "--svg" if args.svg else "--png" if args.png else "--serve"
        raise UsageError.wrong(
            f"{other} shows the build alone",
            f"leave out {other}, or the options that add to the page",
        )


def _facts(args: Namespace, project: Project, console: Console) -> ReportFacts:
    """The facts of the last build, from what it remembers."""
    build = open_build(project, console.shell())
    if build.remembered(table.MEASURE) is None:
        raise UsageError.of(
            "stale-build",
            f"the results of {project.profile.file} are not at hand",
            found=f"no notes of the last build in {project.work}",
            hint=f"run `orchestrator build {project.profile.named}` again",
        )
    facts = build[table.REPORT_FACTS]
    if args.costs is None:
        return facts
    return _with_costs(facts, args.costs)


def _with_costs(facts: ReportFacts, path: Path) -> ReportFacts:
    """The facts with what a profile run measured."""
    methods = {(m.model, m.name) for m in facts.methods}
    text = read_text(path, wanted="what `orchestrator run --profile --json` prints")
    try:
        found: Any = json.loads(text)["profile"]
        unit = str(found["unit"])
        rows = {
            (str(i["model"]), str(i["method"]), int(i["instruction"])): i
            for i in found["instructions"]
        }
        costs = {key: int(i["total"]) for key, i in rows.items()}
        estimate = found.get("cycle_estimate", {})
        cycles = {key: int(i["cycles"]) for key, i in rows.items() if estimate}
        about = (estimate.get(key) for key in ("assumption", "accuracy"))
        assumption = "; ".join(str(text) for text in about if text)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise _bad_costs(path, f"{type(error).__name__}: {error}") from error
    unknown = sorted({key[:2] for key in costs} - methods)
    if unknown:
        raise _bad_costs(path, f"method {'.'.join(unknown[0])}, which is not built")
    return replace(facts, costs=costs, cost_unit=unit, cycles=cycles, cycle_assumption=assumption)


def _accuracy(path: Path, project: Project, facts: ReportFacts) -> Accuracy:
    """What an evaluation of this product found."""
    text = read_text(path, wanted="what `orchestrator evaluate --json` prints")
    try:
        found = Accuracy.model_validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"])) or "the file"
        raise _bad_accuracy(path, f"{place}: {first['msg']}") from error
    if found.profile != project.profile.name:
        raise _bad_accuracy(path, f'profile "{found.profile}"')
    if (found.model, found.method) not in {(m.model, m.name) for m in facts.methods}:
        raise _bad_accuracy(path, f"method {found.model}.{found.method}")
    return found


def _not_of_this(path: Path, code: str, what: str, found: str, command: str) -> UsageError:
    return UsageError.of(
        code,
        f"{path} is not {what} of this product",
        found=found,
        hint=f"write it with `orchestrator {command} --json`",
    )


def _bad_costs(path: Path, found: str) -> UsageError:
    return _not_of_this(path, "bad-costs", "a profile run", found, "run PROFILE --profile")


def _bad_accuracy(path: Path, found: str) -> UsageError:
    return _not_of_this(path, "bad-accuracy", "an evaluation", found, "evaluate PROFILE")


def _change(path: Path, project: Project, facts: ReportFacts) -> Change:
    """The change from what `--diff` names."""
    if path.suffix == ".lock":
        before, now = needed_lock(path), needed_lock(project.lock_file)
        return change_of_locks(
            str(path), lock_sizes(before), sizes_of(facts.size), differences(before, now)
        )
    other = project_at(path)
    folder = path if other is None else other.reports
    file = folder / "report.json" if other or path.is_dir() else path
    text = read_text(file, wanted="a build folder, report.json, profile or lock")
    return change_of_reports(str(path), read_report(text, file=str(file)), facts.size)


def lock_sizes(lock: Lock) -> dict[str, int]:
    """Sizes that a lock names; empty for locks of earlier versions."""
    found = {}
    for name, fact in lock.size:
        count = fact.removesuffix(" bytes")
        if count.isdecimal():
            found[name] = int(count)
    return found


def _history(args: Namespace, project: Project) -> History:
    """Sizes of every commit of the locks that can be read."""
    files = list(dict.fromkeys([project.lock_file, *_locks(args.history_of)]))
    sizes: dict[Path, dict[str, int]] = {}
    found = []
    left_out = 0
    # One more, to know whether there are more.
    all_revisions = revisions(files, most=_MOST_REVISIONS + 1)
    for revision in all_revisions[-_MOST_REVISIONS:]:
        changed = []
        for file, text in revision.texts.items():
            sizes.pop(file, None)
            if not text:
                continue  # the commit removed it
            try:
                lock = parse_lock(text, file=f"{file} at {revision.commit}")
                now = lock_sizes(lock)
            except LockError:
                now = {}  # of another version, or something else had its name
            if now:
                sizes[file] = now
                changed.append(files.index(file))
            else:
                left_out += 1
        if changed:
            found.append((revision, dict(sizes), tuple(changed)))
    names = tuple(dict.fromkeys(n for _, now, _ in found for s in now.values() for n in s))
    labels = [os.path.relpath(file, files[0].parent) for file in files]
    return History(
        products=tuple(labels),
        names=names,
        points=tuple(
            Point(
                commit=revision.commit,
                date=revision.date,
                subject=revision.subject,
                values=tuple(
                    tuple(now[file].get(name) for name in names) if file in now else ()
                    for file in files
                ),
                changed=changed,
            )
            for revision, now, changed in found
        ),
        left_out=left_out,
        is_cut=len(all_revisions) > _MOST_REVISIONS,
    )


def _locks(given: Sequence[Path]) -> Iterator[Path]:
    """Locks of profiles; locks, and those of folders, as they are."""
    for path in given:
        if path.is_dir():
            inside = sorted(path.glob("*.lock"))
            if not inside:
                raise UsageError.wrong(f"{path} has no locks", "name a folder with *.lock files")
            yield from inside
        else:
            project = project_at(path)
            yield path if project is None else project.lock_file


def _history_table(history: History) -> str:
    """The last commits, the newest first, as aligned columns."""
    rows = [
        (point.commit, point.date, history.products[product], point, product)
        for point in reversed(history.points)
        for product in point.changed
    ]
    shown = [n for n in ("flash", "ram") if n in history.names]
    lines = [["commit", "date", "lock", *shown, "subject"]]
    for commit, date, lock, point, product in rows[:_MOST_ROWS]:
        values = (point.values[product][history.names.index(n)] for n in shown)
        cells = (NOTHING if v is None else f"{v:,}" for v in values)
        lines.append([commit, date, lock, *cells, point.subject])
    text = "\n".join(table_lines(lines, right=range(3, 3 + len(shown))))
    more = len(rows) - _MOST_ROWS
    return f"{text}\nand {more:,} more on the page\n" if more > 0 else f"{text}\n"


def _write_pictures(args: Namespace, project: Project, console: Console) -> None:
    facts = _facts(args, project, console)
    folder = args.output_dir or Path()
    suffix = "svg" if args.svg else "png"
    files = []
    needed = extra_needed("pictures", "for PNG, and for pictures of the graph")
    try:
        with needed, console.progress() as reporter:
            reporter.working("drawing")
            for picture in pictures(facts, args.svg or args.png):
                reporter.working(f"drawing {picture.name}")
                data = picture.text.encode() if args.svg else png(picture)
                file = folder / f"{project.profile.name}-{picture.name}.{suffix}"
                write_if_changed(file, data)
                files.append(str(file))
    except NoFontsError as error:
        raise ToolchainError.of(
            "no-fonts",
            "no font to draw text with is installed",
            hint="install one, such as fonts-dejavu-core, or use --svg",
        ) from error
    if "graph" in (args.svg, args.png):
        for method in facts.methods:
            if len(method.steps) > MOST_DRAWN:
                console.status(
                    f"{method.title} is not drawn: {len(method.steps):,} instructions,"
                    f" more than {MOST_DRAWN:,}"
                )
    console.document({"pictures": files})
    console.data("\n".join(files))


def _serve(args: Namespace, file: Path, console: Console) -> None:
    """Serve the page until the command is interrupted."""
    try:
        server = PageServer(file, args.port or 0)
    except OSError as error:
        raise UsageError.of(
            "port-taken",
            f"cannot listen on port {args.port}",
            found=error.strerror or str(error),
            hint="choose another port, or leave out --port",
        ) from error
    with server:
        console.document({"report": str(file), "url": server.url})
        console.data(server.url)
        console.status("serving until interrupted; the page reloads after each build")
        if args.open:
            webbrowser.open(server.url)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            console.status("stopped")
        except Ended as ended:
            # Ctrl-C is how one ends the server, no failure; SIGTERM stays one.
            if ended.number != signal.SIGINT:
                raise
            console.status("stopped")
