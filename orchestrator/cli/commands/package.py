"""`orchestrator package`: a product as a package of another build system."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path

from orchestrator.build import Project, inputs, open_build, table
from orchestrator.build.firmware import Answer, carry_out, need_runnable
from orchestrator.build.generating import GENERATOR
from orchestrator.build.judging import product_of, scenario_of
from orchestrator.build.report_file import last_report
from orchestrator.cli.commands.current import make_current
from orchestrator.cli.commands.measuring import running
from orchestrator.cli.commands.options import project_of
from orchestrator.cli.console import Console
from orchestrator.emit.compile import SOURCES
from orchestrator.emit.generate.ports import api_methods
from orchestrator.errors import ExitCode, MismatchError
from orchestrator.package.case import case_of, first_is_fresh, random_calls
from orchestrator.package.ecosystem import check_fit, ecosystem_of
from orchestrator.package.example import example_calls
from orchestrator.package.product import Built, Sizes
from orchestrator.package.render import package_files
from orchestrator.package.rust import rust_methods
from orchestrator.package.typed_test import typed_test
from orchestrator.profile.choices import Load
from orchestrator.program.program import Program
from orchestrator.provenance.sbom import SBOM, STATEMENT
from orchestrator.running.report import Ran
from orchestrator.shell.files import read_file
from orchestrator.shell.package_folder import check_package_folder, write_package
from orchestrator.shell.sources import licence

_FACTS = ("firmware.json", "memory_plan.json", "product.json", SBOM, STATEMENT)
# As of `run`.
_TIMEOUT_S = 600.0
"""Most time for the calls of the self test."""


def run(args: Namespace, console: Console) -> ExitCode:
    """Build if anything changed, run the case, and write the folder of the package."""
    ecosystem = ecosystem_of(args.ecosystem)
    project = project_of(args)
    target = open_build(project)[inputs.TARGET]
    check_fit(ecosystem, target, has_library=args.binary)
    name = project.profile.name
    folder = args.package_folder or Path("packages", ecosystem.name, name)
    # Before the build: it may take minutes, and a folder that is not ours is refused
    # anyway.
    check_package_folder(folder)
    make_current(project, console)
    answered = _case(args, project, console)
    version = args.package_version or project.profile.version
    built = _built(project, console, version=version, answered=answered)
    files = package_files(ecosystem, built, has_library=args.binary)
    changed = write_package(folder, files)
    console.document({"folder": str(folder), "files": sorted(files)})
    what = f"{len(files)} files" if changed else f"{len(files)} files, unchanged"
    console.status(f"{name}: package for {ecosystem.title} in {folder}, {what}")
    return ExitCode.OK


def _case(args: Namespace, project: Project, console: Console) -> Answer | None:
    """What the firmware makes of the scenario, or of random inputs.

    None if nothing here can run it, and no scenario was given.
    """
    product = product_of(project)
    scenario = None
    if args.scenario is not None:
        need_runnable(product)
        scenario = scenario_of(args.scenario, product)
    elif product.board and not product.emulator:
        console.status(
            f"{product.profile}: no self test, as firmware for {product.board} cannot be run here"
        )
        return None
    # The first call begins with initial state, as the self test on a device does.
    calls = first_is_fresh(scenario.calls if scenario else random_calls(product))
    firmware = (project.folder / product.firmware).resolve()
    with running(console, product):
        answer = carry_out(product, firmware, calls, timeout_s=_TIMEOUT_S)
    results = answer.results
    if scenario is not None:
        ran = Ran(calls=calls, results=results, tolerance=scenario.tolerance)
        MismatchError.raise_if(ran.problems)
    return answer


def _built(project: Project, console: Console, *, version: str, answered: Answer | None) -> Built:
    """Everything of the build that goes into packages."""
    build = open_build(project, console.shell())
    name = project.profile.name
    folder = project.folder
    commands = build[table.COMMANDS]
    native = build[inputs.NATIVE]
    generated = {f.path: f.text.encode() for f in build[table.GENERATE]}
    programs = build[table.REPLAN].programs
    examples = example_calls(name, programs)
    libraries = build[inputs.LIBRARIES]
    headers = sorted((folder / "include").resolve().rglob("*.h"))
    top = (folder / "include").resolve()
    published = {f"include/{path.relative_to(top).as_posix()}": read_file(path) for path in headers}
    facts = {file: read_file(folder / file) for file in _FACTS}
    if project.lock_file.is_file():
        facts[f"{name}.lock"] = read_file(project.lock_file)
    report = last_report(project)[1]
    totals = report.totals
    return Built(
        name=name,
        generator=GENERATOR,
        version=version,
        description=project.profile.description or "",
        target=build[inputs.TARGET],
        commands=commands,
        files={f"{SOURCES}/{path}": data for path, data in native.items()} | generated,
        models=build[table.REPLAN].files,
        published=published | {commands.library: read_file(folder / commands.library)},
        facts=facts,
        licence=read_file(licence()),
        case=case_of(answered.calls, answered.response) if answered else None,
        typed_test=_typed_test(name, programs, build[inputs.LOADS], answered),
        example="\n".join(examples.values()),
        example_functions=tuple(examples),
        rust_methods=rust_methods(name, programs),
        sizes=Sizes(
            flash=totals.flash_bytes,
            models=totals.flash_bytes - totals.flash_bytes_without_models,
            ram=totals.arena_bytes + totals.state_bytes,
            stack=max(
                (
                    entry.stack_bytes
                    for method in report.methods
                    if method.stack is not None
                    for entry in method.stack.entries
                ),
                default=0,
            ),
        ),
        user_code=(*libraries.custom, *libraries.delegates),
    )


def _typed_test(
    name: str, programs: Mapping[str, Program], loads: Mapping[str, Load], answered: Answer | None
) -> str:
    """The self test beside the library; "" if there is none."""
    if answered is None:
        return ""
    return typed_test(
        name,
        api_methods(name, programs),
        answered.calls,
        answered.results,
        prelinked={model for model, load in loads.items() if load is Load.PRELINKED},
    )
