"""Examples and exit codes of every command: for `--help` and for man pages.

docs/commands.md has the details, docs/errors.md the exit codes; tests hold them equal.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from orchestrator.errors import ExitCode as Exit


@dataclass(frozen=True, slots=True)
class Manual:
    """What the help of a command says besides its arguments.

    Args:
        examples: Command lines without the program, each with what it does.
        exits: Exit codes besides 0, 2 and 70, which every command has.
    """

    examples: tuple[tuple[str, str], tuple[str, str]]
    exits: tuple[Exit, ...] = ()


MEANINGS: Final = {
    Exit.OK: "success",
    Exit.USAGE: "invalid command line, or a file that it names",
    Exit.PROFILE: "invalid profile",
    Exit.MODEL: "a model cannot be read, is damaged, or cannot be exported",
    Exit.KERNEL: "an operator has no kernel",
    Exit.MEMORY: "a memory or a budget is exceeded",
    Exit.TOOLCHAIN: "a compiler, emulator or package is missing",
    Exit.LOCK: "a lock is damaged, missing or would change; or a signature is wrong",
    Exit.COMPILE: "compiling or linking failed",
    Exit.MISMATCH: "outputs differ, or the run failed on the device",
    Exit.NOT_REPRODUCIBLE: "a second build or lowering gives different bytes",
    Exit.INCOMPATIBLE: "the firmware cannot run a program",
    Exit.INTERNAL: "internal error, please report it",
}

_CHECKS = (Exit.PROFILE, Exit.MODEL, Exit.KERNEL, Exit.MEMORY, Exit.TOOLCHAIN)
_BUILDS = (*_CHECKS, Exit.LOCK, Exit.COMPILE)

MANUALS: Final = {
    "init": Manual(
        (
            ("init model.pte", "ask, then write profile, scenario and schema"),
            ("init net.py:build --board mps3-an547 --yes", "ask nothing"),
        ),
        _CHECKS,
    ),
    "new": Manual(
        (
            ("new sine", "an example firmware for this machine"),
            ("new sine --board mps3-an547", "the same for a board, run in QEMU"),
        ),
    ),
    "build": Manual(
        (
            ("build doorbell.toml", "build what changed, and write the lock"),
            ("build --locked *.toml", "in CI: fail if a lock would change"),
        ),
        _BUILDS,
    ),
    "watch": Manual(
        (
            ("watch doorbell.toml", "build again whenever a file changes"),
            (
                "watch doorbell.toml --scenario scenarios/doorbell.json",
                "show the change of instructions",
            ),
        ),
        (Exit.PROFILE, Exit.TOOLCHAIN),
    ),
    "plan": Manual(
        (
            ("plan doorbell.toml", "what a build would do, and why"),
            ("plan doorbell.toml --json", "the same as JSON"),
        ),
        _CHECKS,
    ),
    "memory": Manual(
        (
            ("memory doorbell.toml", "arenas of all methods"),
            ("memory doorbell.toml --pareto --svg ram.svg", "RAM against time, drawn"),
        ),
        _CHECKS,
    ),
    "check": Manual(
        (
            ("check doorbell.toml", "kernels, dtypes, memory; needs no compiler"),
            ("sed s/m55/m4/ doorbell.toml | orchestrator check -", "on another core"),
        ),
        _CHECKS,
    ),
    "export": Manual(
        (
            ("export doorbell.toml", "export what changed"),
            ("export doorbell.toml --verify", "compare with ExecuTorch's lowering"),
        ),
        (*_CHECKS[:3], Exit.TOOLCHAIN, Exit.NOT_REPRODUCIBLE),
    ),
    "inspect": Manual(
        (
            ("inspect model.pte", "methods, operators, memory, what is unsupported"),
            ("inspect model.ptd", "tensors and named data of a data file"),
        ),
        (Exit.MODEL,),
    ),
    "memory-plan": Manual(
        (
            ("memory-plan blocks.csv --svg plan.svg", "the smallest plan, drawn"),
            ("memory-plan blocks.csv --capacity 65536", "any plan that fits"),
        ),
        (Exit.MEMORY,),
    ),
    "oplist": Manual(
        (
            ("oplist --model a.pte --output ops.yaml", "operators of a program"),
            ("oplist --ops aten::add.out --output ops.yaml", "operators by name"),
        ),
        (Exit.PROFILE, Exit.MODEL),
    ),
    "headers": Manual(
        (
            ("headers --oplist ops.yaml --output-dir gen", "for ExecuTorch 1.5"),
            ("headers --oplist a.yaml --oplist b.yaml --output-dir gen", "the union"),
        ),
        (Exit.PROFILE,),
    ),
    "run": Manual(
        (
            ("run doorbell.toml --scenario scenarios/doorbell.json", "compare outputs"),
            ("run doorbell.toml --input image.npy --profile", "cost per operator"),
        ),
        (*_BUILDS, Exit.MISMATCH),
    ),
    "test": Manual(
        (
            ("test doorbell.toml", "random inputs, all methods, several runs"),
            ("test doorbell.toml --bisect", "which pass makes a difference"),
        ),
        (*_BUILDS, Exit.MISMATCH),
    ),
    "decode": Manual(
        (
            ("decode 11 --profile doorbell.toml", "what a status means"),
            ("decode 10 --instruction 12 --profile doorbell.toml", "which operator"),
        ),
        (Exit.PROFILE, Exit.MODEL),
    ),
    "evaluate": Manual(
        (
            ("evaluate digits.toml --data digits.npz", "accuracy, on this machine"),
            (
                "evaluate digits.toml --data digits.npz --reference float.pte",
                "compare with the float model",
            ),
        ),
        (*_BUILDS, Exit.MISMATCH),
    ),
    "size": Manual(
        (
            ("size doorbell.toml", "a summary; --full has everything"),
            ("size doorbell.toml --diff main/report.json", "against another build"),
        ),
        _BUILDS,
    ),
    "report": Manual(
        (
            ("report doorbell.toml --open", "build, and open the page in the browser"),
            ("report doorbell.toml --diff build/main", "show what changed"),
        ),
        _BUILDS,
    ),
    "scratch": Manual(
        (
            ("scratch doorbell.toml", "scratch memory of each call"),
            ("scratch --check sizes.csv", "compare with your CMSIS-NN"),
        ),
        (*_CHECKS,),
    ),
    "why": Manual(
        (
            ("why doorbell.toml add.out", "who needs an operator, and its cost"),
            ("why doorbell.toml load_method", "the same for a part of the runtime"),
        ),
        _CHECKS,
    ),
    "why-not": Manual(
        (
            ("why-not doorbell.toml relu.out", "why an operator is not linked"),
            ("why-not doorbell.toml relu.out Half", "why a kernel lacks a dtype"),
        ),
        _CHECKS,
    ),
    "compat": Manual(
        (
            ("compat releases/1.4/doorbell.lock new.pte", "for an update over the air"),
            ("compat build/doorbell new.pte --model person", "against a build"),
        ),
        (Exit.MODEL, Exit.LOCK, Exit.INCOMPATIBLE),
    ),
    "update": Manual(
        (
            (
                "update pack new.pte --for fw.lock --version 7 --key key.pem",
                "prove that the firmware runs it, and sign",
            ),
            ("update show new.update --key key.pub", "what is in it, and who signed"),
        ),
        (Exit.MODEL, Exit.TOOLCHAIN, Exit.LOCK, Exit.INCOMPATIBLE),
    ),
    "package": Manual(
        (
            ("package doorbell.toml --for zephyr", "sources as a Zephyr module"),
            (
                "package doorbell.toml --for arduino --binary",
                "the library instead of its sources",
            ),
        ),
        (*_BUILDS, Exit.MISMATCH),
    ),
    "sbom": Manual(
        (
            ("sbom doorbell.toml --output sbom.cdx.json", "write the SBOM"),
            ("sbom doorbell.toml --locked", "print that of the locked product"),
        ),
        _BUILDS,
    ),
    "provenance": Manual(
        (
            ("provenance doorbell.toml", "inputs, parameters and outputs"),
            ("provenance doorbell.toml --locked", "of the locked product"),
        ),
        _BUILDS,
    ),
    "sign": Manual(
        (
            ("sign provenance.intoto.json --key key.pem", "for those who get it"),
            ("sign fw.bin --key key.pem --output fw.sig", "any other file"),
        ),
        (Exit.TOOLCHAIN,),
    ),
    "verify-signature": Manual(
        (
            ("verify-signature fw.bin.dsse.json --key key.pub", "who signed it?"),
            (
                "verify-signature fw.sig --key key.pub --output fw.bin",
                "check it, and take the file out",
            ),
        ),
        (Exit.TOOLCHAIN, Exit.LOCK),
    ),
    "lock": Manual(
        (
            ("lock doorbell.toml", "write the lock"),
            ("lock doorbell.toml --check", "in CI: is the lock current?"),
        ),
        _BUILDS,
    ),
    "verify": Manual(
        (
            ("verify doorbell.toml", "build twice, compare every byte"),
            (
                "verify --lock doorbell.lock --artefact fw.bin",
                "check a file against the lock",
            ),
        ),
        (*_BUILDS, Exit.NOT_REPRODUCIBLE),
    ),
    "clean": Manual(
        (
            ("clean doorbell.toml", "remove what builds made"),
            ("clean doorbell.toml --out out", "in another build folder"),
        ),
        (Exit.PROFILE,),
    ),
    "cache": Manual(
        (
            ("cache prune --to '256 MiB'", "keep what was used last"),
            ("cache publish ../objects --key ci.key", "give them to other machines"),
        ),
        (Exit.TOOLCHAIN, Exit.LOCK, Exit.MISMATCH),
    ),
    "targets": Manual(
        (
            ("targets", "cores, toolchains and boards"),
            ("targets --operators", "operators that have a kernel"),
        ),
    ),
    "doctor": Manual(
        (
            ("doctor", "what is missing, and how to install it"),
            ("doctor --json", "every compiler and emulator that was found"),
        ),
    ),
    "schema": Manual(
        (
            ("schema > profile.schema.json", "for editors"),
            ("schema | python -m json.tool --compact", "on one line"),
        ),
    ),
    "completion": Manual(
        (
            ('eval "$(orchestrator completion bash)"', "in ~/.bashrc"),
            ("orchestrator completion fish | source", "in config.fish"),
        ),
        (Exit.TOOLCHAIN,),
    ),
    "man": Manual(
        (
            ("man build | man -l -", "read the page of a command"),
            ("man --output-dir ~/.local/share/man/man1", "install all pages"),
        ),
    ),
}

SYNONYMS: Final = {
    "autocomplete": "completion",
    "completions": "completion",
    "compile": "build",
    "make": "build",
    "dev": "watch",
    "serve": "watch",
    "rebuild": "watch",
    "create": "new",
    "start": "init",
    "add": "init",
    "setup": "init",
    "lint": "check",
    "validate": "check",
    "show": "inspect",
    "info": "inspect",
    "dump": "inspect",
    "ls": "targets",
    "list": "targets",
    "boards": "targets",
    "operators": "targets",
    "ops": "targets",
    "exec": "run",
    "infer": "run",
    "simulate": "run",
    "explain": "why",
    "error": "decode",
    "status": "plan",
    "diff": "size",
    "bloat": "size",
    "footprint": "size",
    "rm": "clean",
    "remove": "clean",
    "install": "doctor",
    "env": "doctor",
    "convert": "export",
    "quantize": "export",
    "lower": "export",
    "ota": "update",
    "pack": "update",
    "reproduce": "verify",
    "bom": "sbom",
    "cyclonedx": "sbom",
    "slsa": "provenance",
    "attest": "provenance",
    "manual": "man",
    "docs": "man",
}
"""Commands by another word for what they do."""


def epilog(command: str) -> str:
    """The end of a command's help: examples and exit codes."""
    manual = MANUALS.get(command)
    if manual is None:
        return ""
    lines = ["examples:"]
    for text, what in manual.examples:
        lines += [f"  {command_line(text)}", f"      {what}"]
    lines += ["", "exit codes:"]
    lines += [f"  {code.value:>2}  {MEANINGS[code]}" for code in exit_codes(command)]
    return "\n".join(lines)


def command_line(example: str) -> str:
    """An example as it is typed."""
    return example if "orchestrator " in example else f"orchestrator {example}"


def exit_codes(command: str) -> tuple[Exit, ...]:
    """The exit codes of a command that has a manual, ascending."""
    always = (Exit.OK, Exit.USAGE, Exit.INTERNAL)
    return tuple(sorted({*always, *MANUALS[command].exits}))
