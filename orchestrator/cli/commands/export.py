"""`orchestrator export`: programs from models given as Python."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from orchestrator.build import BuildOptions, ExportChoice, Project, inputs, load, open_build
from orchestrator.build.exporting import Exported, named_calls, published
from orchestrator.cli.console import Console
from orchestrator.errors import ExitCode, SourceSpan, UsageError
from orchestrator.profile.tables import Profile
from orchestrator.shell.build_folder import exclusive


def run(args: Namespace, console: Console) -> ExitCode:
    """Export every model that the profile gives as Python; nothing else is built."""
    profile = load(args.profile)
    if all(model.source is None for model in profile.models):
        raise UsageError.of(
            "nothing-to-export",
            f"{profile.name} has no models given as Python",
            where=SourceSpan(file=str(profile.file)),
            expected="[[models]] with `source`",
            hint="see docs/export.md",
        )
    if args.verify and not args.accelerate:
        raise UsageError.wrong(
            "--verify cannot be used with --no-accelerate", "leave one of them out"
        )
    # Kept exports are those of the accelerated lowering.
    again = args.again or args.verify or not args.accelerate
    choice = ExportChoice(
        accelerate=args.accelerate, verify=args.verify, again=again, deny_float=args.deny_float
    )
    project = Project(profile, BuildOptions(out=args.out, export=choice))
    with console.progress() as reporter, exclusive(project.folder):
        build = open_build(project, console.shell(reporter))
        found = build[inputs.EXPORTED]
        paths = published(found, project.folder)
    for name, exported in found.items():
        for code, text in exported.facts.warnings:
            console.status(f"warning[{code}]: model {name}: {text}")
    return console.result(
        {
            "profile": profile.name,
            "models": [_document(n, e, paths[n], args) for n, e in found.items()],
        },
        "\n".join(_lines(profile, found, paths, explain=args.explain)),
    )


def _document(name: str, exported: Exported, path: Path, args: Namespace) -> dict[str, object]:
    facts = exported.facts
    found: dict[str, object] = {
        "model": name,
        "program": str(path),
        "sha256": facts.program,
        "size_bytes": len(exported.program),
        "reason": exported.reason,
        "cpu_seconds": facts.seconds,
        "arrays": facts.arrays,
        "files": sorted(facts.files),
        "folders": sorted(facts.folders),
        "distributions": facts.distributions,
        "warnings": [text for _, text in facts.warnings],
        "decomposed": facts.decomposed,
        "verified": asdict(facts.verified) if facts.verified else None,
    }
    if args.explain:
        found["ledger"] = facts.ledger
    return found


def _lines(
    profile: Profile, found: Mapping[str, Exported], paths: Mapping[str, Path], *, explain: bool
) -> Iterator[str]:
    lowerings = {model.name: model.lowering for model in profile.models}
    for name, exported in found.items():
        facts = exported.facts
        how = f"exported ({exported.reason})" if exported.reason else "up to date"
        if facts.fetched:
            how = "exported by another machine"
        yield (
            f"{name}: {how}, {len(exported.program):,} bytes for {lowerings[name]}; {paths[name]}"
        )
        if facts.decomposed:
            yield f"  decomposed for want of a kernel: {named_calls(facts.decomposed)}"
        if verified := facts.verified:
            tosa = verified.tosa_flatbuffers
            more = f", {tosa} TOSA flatbuffer{'s' * (tosa > 1)}" if tosa else ""
            yield (
                f"  {verified.stages} graphs{more} and the program are the same"
                f" without acceleration: {verified.seconds_plain:.1f} s of processor"
                f" time, {facts.seconds:.1f} s with it"
            )
        if explain:
            yield from _ledger_lines(facts.ledger)


def _ledger_lines(ledger: Mapping[str, Any] | None) -> Iterator[str]:
    """One line per pass with all its runs, in the order of first runs."""
    passes = ledger.get("passes") if ledger else None
    if not isinstance(passes, list):
        yield "  no information on passes: lowered elsewhere, or without acceleration"
        return
    heads = ("copied", "known", "dispatched", "ms")
    yield f"  {'pass':44} {'runs':>5}" + "".join(f" {head:>10}" for head in heads)
    for name, runs in _by_pass(passes).items():
        counts = [
            sum(int(run[key]) for run in runs) for key in ("copied", "remembered", "dispatched")
        ]
        cpu_ms = 1000 * sum(float(run["cpu_s"]) for run in runs)
        skipped = [str(run["skipped"]) for run in runs if run["skipped"]]
        why = f"  skipped {len(skipped)}: {skipped[0]}" if skipped else ""
        yield (
            f"  {name:44} {len(runs):5}"
            + "".join(f" {count:10,}" for count in counts)
            + f" {cpu_ms:10.1f}{why}"
        )


def _by_pass(passes: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for one in passes:
        manager = f"{one['manager']}: " if one["manager"] else ""
        found.setdefault(f"{manager}{one['name']}", []).append(one)
    return found
