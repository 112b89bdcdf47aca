"""`orchestrator init`: a profile, a scenario and what belongs to them, for models."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from orchestrator.build import Build, BuildOptions, Project, inputs, load, open_build
from orchestrator.cli.commands.check import examine
from orchestrator.cli.commands.new_files import (
    GITIGNORE,
    GivenModel,
    NewTarget,
    ask,
    can_ask,
    choose_target,
    create,
    given_models,
    needed_libraries,
    new_models,
    write_files,
)
from orchestrator.cli.commands.new_scenario import new_scenario
from orchestrator.cli.console import Console
from orchestrator.cli.render import diagnostic_to_json
from orchestrator.core.spelling import parse_size
from orchestrator.errors import Diagnostic, ExitCode, OrchestratorError, UsageError, did_you_mean
from orchestrator.profile.lowering import CORTEX_M, LOWERINGS, PORTABLE
from orchestrator.profile.reference import schema_text
from orchestrator.profile.starter import SCHEMA_FILE, NewProfile, product_name, profile_text

_LOADS = ("pte", "prelinked")


def run(args: Namespace, console: Console) -> ExitCode:
    """Write the files, check the profile, and say what to do next."""
    asks = can_ask() and not args.yes and not console.json
    _check(args)
    texts = args.models or _found_models(args.dir, asks=asks)
    given = given_models(texts, asks=asks)
    target = choose_target(args, console.shell().toolchains, asks=asks)
    new, code = _chosen(args, given, target, asks=asks)
    profile = args.dir / f"{new.name}.toml"
    scenario = args.dir / "scenarios" / f"{new.name}.json"
    # Written before it is checked: the check reads files, and a profile with errors
    # stays, to be corrected.
    done = write_files(
        args.dir,
        create={profile.name: profile_text(new), **code},
        keep={SCHEMA_FILE: schema_text(), ".gitignore": GITIGNORE},
        absent=[scenario, scenario.with_suffix("")],
    )
    checked = _checked(profile, console)
    made = None
    if checked.build is not None:
        with console.progress() as reporter:
            made = new_scenario(new.name, checked.build, console.shell().processes, reporter)
        for name, data in made.files.items():
            create(scenario.parent / name, data)
    written = [str(path) for path in done.created]
    if made and made.files:
        written.append(str(scenario))
    next_commands = [
        f"orchestrator build {profile}",
        f"orchestrator run {profile}"
        + (f" --scenario {scenario}" if made and made.files else " --input FILE.npy"),
        f"orchestrator test {profile}",
        f"orchestrator size {profile}",
    ]
    error = checked.error
    console.document(
        {
            "profile": str(profile),
            "written": written,
            "kept": list(map(str, done.kept)),
            "has_expected_outputs": bool(made and made.has_outputs),
            "check": checked.document,
            "diagnostics": [diagnostic_to_json(d) for d in error.diagnostics] if error else [],
            "next": next_commands,
        }
    )
    lines = [f"wrote {path}" for path in written]
    lines += [f"kept  {path}, which was there" for path in done.kept]
    console.data("\n".join(lines))
    if made and made.note:
        console.status(f"{made.note}; `orchestrator test` needs none")
    if error:
        console.problems(error.diagnostics)
        console.data(f"\nthen check it again: orchestrator check {profile}")
        return error.exit_code
    console.data(checked.text)
    console.data("\nnext:\n" + "\n".join(f"  {line}" for line in next_commands))
    return ExitCode.OK


def _check(args: Namespace) -> None:
    """Check what the parser cannot. Raises UsageError with every problem."""
    problems = []
    if args.lowering is not None and args.lowering not in LOWERINGS:
        problems.append(
            Diagnostic.of(
                "usage",
                f'argument --lowering: there is no lowering "{args.lowering}"',
                hint=did_you_mean(args.lowering, LOWERINGS)
                or "docs/export.md#lowerings lists them",
            )
        )
    for option, value in (("--flash", args.flash), ("--ram", args.ram)):
        if value and (problem := _size_problem(value)):
            problems.append(
                Diagnostic(
                    code="usage",
                    message=f'argument {option}: "{value}" is not a size',
                    hint=problem,
                )
            )
    if args.name is not None and product_name(args.name) != args.name:
        problems.append(
            Diagnostic.of(
                "usage",
                f'argument --name: a product cannot be named "{args.name}"',
                expected="a small letter, then small letters, digits and -",
                hint=f'write "{product_name(args.name)}"',
            )
        )
    UsageError.raise_if(problems)


def _size_problem(text: str) -> str:
    return "" if not text or parse_size(text) else 'write it as "256 KiB" or "2 MiB"'


def _found_models(folder: Path, *, asks: bool) -> list[str]:
    """The programs of a folder, where the command line names no model."""
    found = [str(p) for p in sorted(folder.glob("*.pte")) + sorted(folder.glob("*.pt2"))]
    if asks:
        answer = ask("Models, separated by spaces", default=" ".join(found))
        found = answer.split()
    if not found:
        raise UsageError.wrong(
            "no model is named",
            "name one: `orchestrator init model.pte`; or begin with"
            " `orchestrator new DIR`, an example with a model",
            found=f"no .pte or .pt2 file in {folder.absolute()}",
        )
    return found


def _chosen(
    args: Namespace, given: Sequence[GivenModel], target: NewTarget, *, asks: bool
) -> tuple[NewProfile, dict[str, str]]:
    """What the profile says, and Python files that belong to it."""
    text = args.dir.absolute().name if len(given) > 1 else given[0].file.stem
    name = args.name or product_name(text)
    load_ = args.load or "pte"
    is_exported = any(one.file.suffix != ".pte" for one in given)
    quantize = args.quantize
    lowering = args.lowering or (CORTEX_M if quantize and target.board else PORTABLE)
    flash, ram = args.flash or "", args.ram or ""
    if asks:
        if args.name is None:
            name = ask("Name of the product", default=name, problem_of=_name_problem)
        if args.load is None:
            load_ = ask(
                "Load models on the device, or at build time", default=load_, choices=_LOADS
            )
        if is_exported and not quantize:
            answer = ask("Quantize to int8", default="no", choices=("yes", "no"))
            quantize = answer == "yes"
        if is_exported and args.lowering is None:
            default = CORTEX_M if quantize and target.board else PORTABLE
            lowering = ask("Lower the model for", default=default, choices=LOWERINGS)
        if args.flash is None:
            flash = ask("Most flash, as 256 KiB (empty: any)", problem_of=_size_problem)
        if args.ram is None:
            ram = ask("Most RAM, as 64 KiB (empty: any)", problem_of=_size_problem)
    models, code = new_models(given, args.dir, lowering=lowering, quantize=quantize)
    uses_cortex_m = any(m.source and m.lowering == CORTEX_M for m in models)
    new = NewProfile(
        name=name,
        cpu=target.cpu,
        board=target.board,
        toolchain=target.toolchain,
        load=load_,
        models=models,
        flash=flash,
        ram=ram,
        # A model that is lowered for Cortex-M brings them all by default.
        libraries=() if uses_cortex_m else needed_libraries(given),
    )
    return new, code


def _name_problem(text: str) -> str:
    near = product_name(text)
    return "" if near == text else f'that cannot be a name: write "{near}"'


@dataclass(frozen=True, slots=True, kw_only=True)
class _Checked:
    """What `check` says about the new profile.

    Args:
        build: Its values; None if the models cannot be read.
        document: The result as JSON; None after an error.
        text: The result for people.
        error: The problems.
    """

    build: Build | None = None
    document: dict[str, object] | None = None
    text: str = ""
    error: OrchestratorError | None = None


def _checked(profile: Path, console: Console) -> _Checked:
    build = None
    try:
        with console.progress() as reporter:
            project = Project(load(profile), BuildOptions())
            opened = open_build(project, console.shell(reporter))
            # Exports and reads the models: without programs there is no scenario
            # either.
            _ = opened[inputs.PROGRAMS]
            build = opened
            document, text = examine(project, build, reporter)
    except OrchestratorError as error:
        return _Checked(build=build, error=error)
    return _Checked(build=build, document=document, text=text)
