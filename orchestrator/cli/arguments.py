"""The command line's arguments."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, NoReturn

import orchestrator
from orchestrator.cli.manual import GROUP_OF, GROUPS, PLUMBING, epilog
from orchestrator.cli.measuring_arguments import add_measuring
from orchestrator.cli.shared_arguments import (
    PROFILE,
    WORKERS,
    CommandParser,
    add_deny_float,
    add_jobs,
    add_lock_file,
    add_locking,
    add_out,
    add_workspace,
    byte_count,
    flag,
    memory_size,
    option,
    path,
    prim_op_count,
    several,
)
from orchestrator.core.spelling import packed_version
from orchestrator.targets.cores import BOARDS, CPUS, TOOLCHAINS
from orchestrator.update import MOST


class _CMakeFolder(argparse.Action):
    """Prints the folder of the CMake package; argparse would wrap a long path."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        from orchestrator.shell.sources import native_root  # noqa: PLC0415

        sys.stdout.write(f"{native_root() / 'cmake'}\n")
        parser.exit()


def parser() -> argparse.ArgumentParser:
    """All commands and their arguments."""
    # No abbreviated options: a new option could break scripts that use them.
    top = CommandParser(
        prog="orchestrator",
        usage="orchestrator [OPTIONS] COMMAND ...",
        epilog="`orchestrator help COMMAND` shows the arguments of a command, with\n"
        "examples and exit codes.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    top.add_argument(
        "--version", action="version", version=f"orchestrator {orchestrator.__version__}"
    )
    what = "print the folder of the CMake package and exit"
    flag(top, "--cmakedir", what, action=_CMakeFolder, nargs=0)
    _add_common(top, is_top=True)
    commands = top.add_subparsers(
        dest="command",
        metavar="COMMAND",
        required=True,
        parser_class=CommandParser,
        prog="orchestrator",
        help=argparse.SUPPRESS,  # the description lists them by group
    )
    plumbing = commands.add_parser(
        PLUMBING,
        help="for build systems, editors and packagers",
        description="Commands for build systems, editors and packagers.",
        allow_abbrev=False,
    )
    _add_common(plumbing)
    below = plumbing.add_subparsers(
        title="commands", dest="command", metavar="COMMAND", required=True
    )
    texts = {PLUMBING: ", ".join(GROUPS[PLUMBING])}

    def command(
        name: str, text: str, *, profile: bool = True, workspace: bool = False
    ) -> CommandParser:
        texts[name] = text
        sub: CommandParser = (below if GROUP_OF[name] == PLUMBING else commands).add_parser(
            name,
            help=text,
            description=f"{text[0].upper()}{text[1:]}.",
            epilog=epilog(name),
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        _add_common(sub)
        if profile:
            nargs = "?" if workspace else None
            path(sub, "profile", "PROFILE", PROFILE, nargs=nargs)
            add_out(sub)
        if workspace:
            add_workspace(sub)
        return sub

    _add_starting(command)
    _add_build(command)

    watch = command("watch", "build whenever a file changes; show what it costs")
    what = "run it after each build, and show the instructions that it executes"
    path(watch, "--scenario", "FILE", what)
    add_jobs(watch)

    command("plan", "show what would be built and why; needs no compiler")
    what = "check profile, models, kernels and memory; needs no compiler"
    check = command("check", what, workspace=True)
    add_jobs(check, WORKERS)
    add_deny_float(check)

    _add_memory(command)
    _add_export(command)

    inspect = command("inspect", "show what is in a .pte or .ptd file", profile=False)
    path(inspect, "model", "MODEL", "the file")

    _add_memory_plan(command)
    _add_executorch_tools(command)

    add_measuring(command)

    _add_why(command)
    _add_compat(command)
    add_update(command)
    add_package(command)
    add_provenance(command)

    _add_lock_commands(command)
    _add_help(command)
    top.description = _described(texts)
    return top


def _described(texts: Mapping[str, str]) -> str:
    """What Orchestrator is, and every command by group with its text."""
    lines = [(orchestrator.__doc__ or "").strip()]
    for title, names in GROUPS.items():
        shown = (PLUMBING,) if title == PLUMBING else names
        lines += ["", f"{title}:", *(f"  {name:<12}{texts[name]}" for name in shown)]
    return "\n".join(lines)


def _add_why(command: Callable[..., CommandParser]) -> None:
    what = "show why something is in the product and what it costs, or why not"
    why = command("why", what)
    what = "operator, kernel function, source or symbol to look for"
    option(why, "name", "NAME", what)
    flag(why, "--not", "show why it is not in the product", dest="absent")
    what = "with --not: a dtype that the kernel lacks, such as Half"
    option(why, "--dtype", "DTYPE", what)
    # `why-not PROFILE NAME DTYPE` of older versions.
    off = argparse.SUPPRESS
    option(why, "dtype", "DTYPE", off, nargs="?", default=off)


def _add_help(command: Callable[..., CommandParser]) -> None:
    """Commands about Orchestrator itself, and what remains."""
    _add_cleaning(command)
    what = "list cores, toolchains, boards and operators"
    targets = command("targets", what, profile=False)
    what = "list the operators that have a kernel, with dtypes and dim orders"
    flag(targets, "--operators", what)
    command("doctor", "list compilers and emulators, found and missing", profile=False)
    schema = command("schema", "print the JSON Schema of profiles", profile=False)
    what = "that of orchestrator.toml instead"
    flag(schema, "--workspace", what, dest="of_workspace")
    _add_texts(command)


def _add_texts(command: Callable[..., CommandParser]) -> None:
    """Commands that print a text about all commands."""
    what = "print a completion script for a shell"
    completion = command("completion", what, profile=False)
    shells = ("bash", "zsh", "fish")
    option(completion, "shell", None, "the shell that reads it", choices=shells)
    man = command("man", "print or write man pages", profile=False)
    what = "default: the page of orchestrator"
    option(man, "page", "COMMAND", what, nargs="*")
    what = "write the pages of all commands into this folder"
    path(man, "--output-dir", "DIR", what)


def _add_common(command: argparse.ArgumentParser, *, is_top: bool = False) -> None:
    """Options that every command has, and that may stand before it too."""
    # A default of the command would overwrite what stands before it.
    off, auto = (False, "auto") if is_top else (argparse.SUPPRESS, argparse.SUPPRESS)
    much = command.add_mutually_exclusive_group()
    flag(much, "-q --quiet", "print results and errors only", default=off)
    flag(much, "-v --verbose", "print every step as a line", default=off)
    flag(command, "--json", "print results as JSON", default=off)
    what = "colours on stderr; auto: on a terminal, unless NO_COLOR is set"
    colors = ("auto", "always", "never")
    option(command, "--color", None, what, choices=colors, default=auto)


def _add_build(command: Callable[..., CommandParser]) -> None:
    what = "build firmware, library and lock file"
    build = command("build", what, profile=False, workspace=True)
    what = "profiles to build, one after the other; - for stdin"
    path(build, "profiles", "PROFILE", what, nargs="*")
    add_out(build)
    add_jobs(build)
    what = "build the other profiles although one failed"
    flag(build, "-k --keep-going", what)
    add_locking(build)
    add_deny_float(build)
    flag(build, "--explain", "show why each stage ran, or did not")
    _add_depfile(build)


def _add_target(command: argparse.ArgumentParser) -> None:
    what = "core, as `orchestrator targets` lists them; default: host"
    option(command, "--cpu", "CORE", what, choices=tuple(CPUS))
    what = "board, likewise; default: that of the core"
    option(command, "--board", "BOARD", what, choices=tuple(BOARDS))
    what = "compiler; default: the first that is installed"
    option(command, "--toolchain", None, what, choices=TOOLCHAINS)


def _add_cleaning(command: Callable[..., CommandParser]) -> None:
    add_jobs(command("clean", "remove the build folder", workspace=True), WORKERS)
    what = "show, shrink, check or publish the objects that builds share"
    cache = command("cache", what, profile=False)
    option(
        cache,
        "action",
        "ACTION",
        "size: show how much there is; prune: remove damaged objects, and those"
        " that were not used for the longest time; verify: compare all digests;"
        " publish: give all of them to other machines, with a signed list",
        choices=("size", "prune", "verify", "publish"),
    )
    flag(
        cache,
        "--list-only",
        "with publish: only the list of objects, where others have the objects"
        " from ccache's remote storage",
    )
    flag(
        cache,
        "--exports",
        "with publish: programs made from Python code as well, with their inputs and outputs",
    )
    what = "where publish writes: a folder, or a URL that fsspec can write to"
    option(cache, "url", "URL", what, nargs="?")
    path(cache, "--key", "KEY", "private key that publish signs with, in PEM")
    what = "what prune leaves at most, such as 256 MiB; default: nothing"
    option(cache, "--to", "SIZE", what, type=memory_size, default=0, dest="limit_bytes")


def _add_starting(command: Callable[..., CommandParser]) -> None:
    """Commands that write the first files of a project."""
    init = command("init", "write a profile and a scenario for models", profile=False)
    option(
        init,
        "models",
        "MODEL",
        "model.pte, model.pt2, or FILE.py:function that returns one;"
        " default: the .pte and .pt2 files of the folder",
        nargs="*",
    )
    option(init, "--name", "NAME", "name of the product; default: that of the model")
    what = "folder of the new files; default: the current one"
    path(init, "--dir", "DIR", what, default=Path())
    _add_target(init)
    what = "pte (default): the device loads them; prelinked: the build"
    option(init, "--load", None, what, choices=("pte", "prelinked"))
    what = "for .pt2 and .py models: what to lower for; default: portable"
    option(init, "--lowering", "NAME", what)
    flag(init, "--quantize", "make .pt2 and .py models int8")
    option(init, "--flash", "SIZE", 'flash budget, such as "256 KiB"')
    option(init, "--ram", "SIZE", 'RAM budget, such as "64 KiB"')
    flag(init, "--yes", "ask nothing, take the defaults")
    new = command("new", "write an example firmware with a small model", profile=False)
    path(new, "folder", "DIR", "new or empty folder")
    _add_target(new)


def _add_lock_commands(command: Callable[..., CommandParser]) -> None:
    """Commands for the lock and its outputs."""
    lock = command("lock", "write the lock file", workspace=True)
    add_jobs(lock)
    add_lock_file(lock)
    flag(lock, "--check", "compare, change nothing")
    what = "with --check: compare the published outputs with the lock"
    flag(lock, "--outputs", what)
    what = "rebuild and compare every byte, or one file with the lock"
    verify = command("verify", what, workspace=True)
    add_jobs(verify)
    what = "identify this file as an output of the lock; build nothing"
    path(verify, "--artefact --artifact", "FILE", what)
    add_lock_file(verify)


def _add_export(command: Callable[..., CommandParser]) -> None:
    export = command("export", "export models given as Python to programs")
    flag(export, "--again", "export even if nothing changed")
    add_deny_float(export)
    what = "use ExecuTorch's lowering unchanged"
    flag(export, "--no-accelerate", what, action="store_false", dest="accelerate")
    flag(export, "--verify", "lower both ways, and compare every graph and the program")
    flag(export, "--explain", "show what each pass of lowering did")


def _add_memory(command: Callable[..., CommandParser]) -> None:
    memory = command("memory", "show arenas, and what less RAM costs")
    flag(memory, "--pareto", "list plans by rows: bytes against instructions")
    path(memory, "--svg", "F.svg", "draw what --pareto lists")


def _add_memory_plan(command: Callable[..., CommandParser]) -> None:
    """The memory planner as a command of its own."""
    what = "give each block of a CSV file an offset"
    plan = command("memory-plan", what, profile=False)
    path(plan, "file", "FILE", "CSV with id,lower,upper,size")
    what = "accept any plan of at most N bytes"
    option(plan, "--capacity", "N", what, type=byte_count)
    path(plan, "--output", "F.csv", "write the blocks with offsets")
    path(plan, "--svg", "F.svg", "draw the plan")


def _add_compat(command: Callable[..., CommandParser]) -> None:
    what = "check whether built firmware can run new programs"
    compat = command("compat", what, profile=False)
    path(compat, "firmware", "FIRMWARE", "lock or build folder")
    path(compat, "programs", "PROGRAM", "new .pte programs", nargs="+")
    option(compat, "--model", "NAME", "the model they replace")


def _add_executorch_tools(command: Callable[..., CommandParser]) -> None:
    """Commands for a user who keeps ExecuTorch's own build."""
    what = "write an operator list for ExecuTorch's own build"
    oplist = command("oplist", what, profile=False)
    what = "a .pte program whose operators to list"
    several(oplist, "--model", "FILE", what, type=Path)
    several(oplist, "--ops", "LIST", "operator names")
    several(oplist, "--ops-dict", "JSON", "operators with dtypes or kernel keys")
    what = "functions.yaml or selected_operators.yaml"
    several(oplist, "--yaml", "FILE", what, type=Path)
    flag(oplist, "--all", "list every operator", dest="every")
    path(oplist, "--output", "FILE", "where to write", required=True)
    _add_depfile(oplist)
    what = "write headers of an operator list for ExecuTorch's own build"
    headers = command("headers", what, profile=False)
    what = "an operator list; several are merged"
    path(headers, "--oplist", "FILE", what, action="append", required=True)
    path(headers, "--output-dir", "DIR", "folder of the headers", required=True)
    option(
        headers,
        "--prim-ops",
        "N",
        "prim ops that ExecuTorch registers, or `listed` for those of the list;"
        " default: 28, as in 1.5",
        type=prim_op_count,
    )


def _add_depfile(command: CommandParser) -> None:
    what = "write the files that were read, as a rule for make"
    path(command, "--depfile", "FILE", what)
    option(command, "--depfile-target", "NAME", "name of the target in the depfile")


_TIMEOUT_S: Final = 600.0
_VERSION: Final = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)")


def _version(text: str) -> str:
    if _VERSION.fullmatch(text):
        return text
    raise argparse.ArgumentTypeError(f"{text!r} is not MAJOR.MINOR.PATCH")


def add_package(command: Callable[..., CommandParser]) -> None:
    """The package command."""
    what = "make a package for another build system"
    package = command("package", what, profile=False)
    path(package, "profile", "PROFILE", PROFILE)
    option(
        package,
        "--for",
        "TARGET",
        "cmake, conan, meson, zephyr, esp-idf, arduino, platformio, cmsis, bazel or rust",
        required=True,
        dest="ecosystem",
    )
    what = "folder of the package; default: packages/TARGET/NAME"
    path(package, "--out", "DIR", what, dest="package_folder")
    flag(package, "--binary", "the library as built, instead of its sources")
    what = "calls of the self test; default: one of each method, random inputs"
    path(package, "--scenario", "FILE", what)
    what = "version of the package; default: that of the profile"
    option(package, "--version", "X.Y.Z", what, type=_version, dest="package_version")
    add_jobs(package)
    add_locking(package)
    package.set_defaults(out=None, timeout=_TIMEOUT_S)


def add_provenance(command: Callable[..., CommandParser]) -> None:
    """The commands `sbom`, `provenance` and `signature`."""
    for name, text in (
        ("sbom", "print what the product consists of, as CycloneDX"),
        ("provenance", "print how the product was made, as an in-toto statement"),
    ):
        document = command(name, text, workspace=True)
        path(document, "--output", "FILE", "where to write it; default: stdout")
        add_jobs(document)
        add_locking(document)
    signature = command("signature", "sign a file, or check who signed it", profile=False)
    what = "create: put a file into a signed DSSE envelope; verify: check an envelope"
    option(signature, "action", "ACTION", what, choices=("create", "verify"))
    path(signature, "file", "FILE", "what to sign; or an envelope")
    what = "create: private key, PEM; verify: public key"
    path(signature, "--key", "KEY", what, required=True)
    what = "create: the envelope, default: FILE.dsse.json; verify: write what is in it"
    path(signature, "--output", "FILE", what)


def add_update(command: Callable[..., CommandParser]) -> None:
    """The command `update`."""
    update = command("update", "make or show a signed update of a model", profile=False)
    what = "pack: make one of a program; show: what is in one"
    option(update, "action", "ACTION", what, choices=("pack", "show"))
    path(update, "file", "FILE", "the new .pte program; or an update")
    what = "pack: lock of the firmware in the field"
    path(update, "--for", "LOCK", what, dest="firmware")
    option(update, "--model", "NAME", "pack: the model it replaces, if several")
    what = "pack: version of the model; devices refuse lower ones"
    option(update, "--version", "N", what, type=_model_version, dest="update_version")
    what = "pack: oldest firmware that runs it; default: that of the lock"
    option(update, "--needs", "X.Y.Z", what, type=_firmware_version)
    what = "pack: private key, PEM; show: public key, to check the signature"
    path(update, "--key", "KEY", what)
    path(update, "--output", "FILE", "pack: the update; default: FILE.update")


def _model_version(text: str) -> int:
    if text.isascii() and text.isdigit() and int(text) <= MOST:
        return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0 to {MOST}")


def _firmware_version(text: str) -> str:
    if packed_version(text) is not None:
        return text
    raise argparse.ArgumentTypeError(f"{text!r} is not MAJOR.MINOR.PATCH")
