"""Groups, examples and exit codes of the commands: for `--help` and for man pages.

docs/README.md has the groups, docs/commands.md the details, docs/errors.md the exit
codes; tests hold them equal.
"""

from __future__ import annotations

from typing import Final

from orchestrator.errors import ExitCode as Exit

PLUMBING: Final = "plumbing"
"""The group whose commands stand after its name: `orchestrator plumbing man`."""

GROUPS: Final = {
    title: tuple(names.split())
    for title, names in {
        "daily work": "init new check build flash run profile test evaluate size report",
        "development": "watch plan why memory scratch inspect decode export targets doctor clean",
        "team": "lock compat package cache",
        "supply chain": "update sbom provenance signature verify",
        PLUMBING: "memory-plan oplist headers schema completion man",
    }.items()
}
"""Every command by group, in the order of help, man page and documentation."""

GROUP_OF: Final = {name: title for title, names in GROUPS.items() for name in names}

# Scripts use them: a former name works as long as nobody else has it.
RENAMED: Final = {
    "why-not": "why --not",
    "sign": "signature create",
    "verify-signature": "signature verify",
    **{name: f"{PLUMBING} {name}" for name in GROUPS[PLUMBING]},
}
"""What is typed now instead of a command of older versions, which still works."""

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

_EXAMPLES: Final = """\
init model.pte  # ask, then write profile, scenario and schema
init net.py:build --board mps3-an547 --yes  # ask nothing
new sine  # an example firmware for this machine
new sine --board mps3-an547  # the same for a board, run in QEMU
build doorbell.toml  # build what changed, and write the lock
build --locked *.toml  # in CI: fail if a lock would change
watch doorbell.toml  # build again whenever a file changes
watch doorbell.toml --scenario scenarios/doorbell.json\
  # show the change of instructions
plan doorbell.toml  # what a build would do, and why
plan doorbell.toml --json  # the same as JSON
memory doorbell.toml  # arenas of all methods
memory doorbell.toml --pareto --svg ram.svg  # RAM against time, drawn
check doorbell.toml  # kernels, dtypes, memory; needs no compiler
sed s/m55/m4/ doorbell.toml | orchestrator check -  # on another core
export doorbell.toml  # export what changed
export doorbell.toml --verify  # compare with ExecuTorch's lowering
inspect model.pte  # methods, operators, memory, what is unsupported
inspect model.ptd  # tensors and named data of a data file
plumbing memory-plan blocks.csv --svg plan.svg  # the smallest plan, drawn
plumbing memory-plan blocks.csv --capacity 65536  # any plan that fits
plumbing oplist --model a.pte --output ops.yaml  # operators of a program
plumbing oplist --ops aten::add.out --output ops.yaml  # operators by name
plumbing headers --oplist ops.yaml --output-dir gen  # for ExecuTorch 1.5
plumbing headers --oplist a.yaml --oplist b.yaml --output-dir gen\
  # the union
flash doorbell.toml --on probe  # write it with a debug probe, and compare
flash doorbell.toml --on gdb:localhost:3333 --yes  # through a GDB server
run doorbell.toml --scenario scenarios/doorbell.json  # compare outputs
run doorbell.toml --input image.npy --profile  # cost per operator
run doorbell.toml --on probe --profile --json > after.json\
  # cycles of the board itself
profile diff before.json after.json  # what a change of the model gains
profile diff before.json after.json --json  # the same as JSON
test doorbell.toml  # random inputs, all methods, several runs
test doorbell.toml --on uart:/dev/ttyACM0  # on the board itself
test doorbell.toml --bisect  # which pass makes a difference
decode 11 --profile doorbell.toml  # what a status means
decode 10 --instruction 12 --profile doorbell.toml  # which operator
evaluate digits.toml --data digits.npz  # accuracy, on this machine
evaluate digits.toml --data digits.npz --reference float.pte\
  # compare with the float model
size doorbell.toml  # a summary; --full has everything
size doorbell.toml --diff main/report.json  # against another build
report doorbell.toml --open  # build, and open the page in the browser
report doorbell.toml --diff build/main  # show what changed
scratch doorbell.toml  # scratch memory of each call
scratch --check sizes.csv  # compare with your CMSIS-NN
why doorbell.toml add.out  # who needs an operator, and its cost
why --not doorbell.toml relu.out --dtype Half  # why a kernel lacks a dtype
compat releases/1.4/doorbell.lock new.pte  # for an update over the air
compat build/doorbell new.pte --model person  # against a build
update pack new.pte --for fw.lock --version 7 --key key.pem\
  # prove that the firmware runs it, and sign
update show new.update --key key.pub  # what is in it, and who signed
package doorbell.toml --for zephyr  # sources as a Zephyr module
package doorbell.toml --for arduino --binary  # the library instead of its sources
sbom doorbell.toml --output sbom.cdx.json  # write the SBOM
sbom doorbell.toml --locked  # print that of the locked product
provenance doorbell.toml  # inputs, parameters and outputs
provenance doorbell.toml --locked  # of the locked product
signature create fw.bin --key key.pem --output fw.sig  # sign any file
signature verify fw.sig --key key.pub --output fw.bin\
  # check it, and take the file out
lock doorbell.toml  # write the lock
lock doorbell.toml --check  # in CI: is the lock current?
verify doorbell.toml  # build twice, compare every byte
verify --lock doorbell.lock --artefact fw.bin  # check a file against the lock
clean doorbell.toml  # remove what builds made
clean doorbell.toml --out out  # in another build folder
cache prune --to '256 MiB'  # keep what was used last
cache publish ../objects --key ci.key  # give them to other machines
targets  # cores, toolchains and boards
targets --operators  # operators that have a kernel
doctor  # what is missing, and how to install it
doctor --json  # every compiler and emulator that was found
plumbing schema > profile.schema.json  # for editors
plumbing schema | python -m json.tool --compact  # on one line
eval "$(orchestrator plumbing completion bash)"  # in ~/.bashrc
orchestrator plumbing completion fish | source  # in config.fish
plumbing man build | man -l -  # read the page of a command
plumbing man --output-dir ~/.local/share/man/man1  # install all pages
"""
"""Two for each command: what is typed, and what it does."""
_EXITS: Final = {
    command: codes
    for commands, codes in {
        "init plan memory check scratch why": _CHECKS,
        "build size report sbom provenance lock": _BUILDS,
        "watch": (Exit.PROFILE, Exit.TOOLCHAIN),
        "export": (*_CHECKS[:3], Exit.TOOLCHAIN, Exit.NOT_REPRODUCIBLE),
        "inspect": (Exit.MODEL,),
        "memory-plan": (Exit.MEMORY,),
        "oplist decode": (Exit.PROFILE, Exit.MODEL),
        "headers clean": (Exit.PROFILE,),
        "flash run test evaluate package": (*_BUILDS, Exit.MISMATCH),
        "compat": (Exit.MODEL, Exit.LOCK, Exit.INCOMPATIBLE),
        "update": (Exit.MODEL, Exit.TOOLCHAIN, Exit.LOCK, Exit.INCOMPATIBLE),
        "completion": (Exit.TOOLCHAIN,),
        "signature": (Exit.TOOLCHAIN, Exit.LOCK),
        "verify": (*_BUILDS, Exit.NOT_REPRODUCIBLE),
        "cache": (Exit.TOOLCHAIN, Exit.LOCK, Exit.MISMATCH),
    }.items()
    for command in commands.split()
}
"""Exit codes besides 0, 2 and 70, which every command has."""


def _examples() -> dict[str, list[tuple[str, str]]]:
    found: dict[str, list[tuple[str, str]]] = {}
    for line in _EXAMPLES.splitlines():
        text, _, what = line.partition("  # ")
        typed = text if "orchestrator " in text else f"orchestrator {text}"
        words = typed.rpartition("orchestrator ")[2].removeprefix(f"{PLUMBING} ")
        found.setdefault(words.split()[0], []).append((typed, what))
    return found


EXAMPLES: Final = _examples()
"""Command lines of each command, each with what it does."""

# Only for hints: none of them runs anything.
SYNONYMS: Final = {
    word: command
    for command, words in {
        "completion": "autocomplete completions",
        "build": "compile make",
        "watch": "dev serve rebuild",
        "new": "create",
        "init": "start add setup",
        "check": "lint validate",
        "inspect": "show info dump",
        "flash": "program upload load burn",
        "targets": "ls list boards operators ops",
        "run": "exec infer simulate",
        "why": "explain",
        "decode": "error",
        "plan": "status",
        "size": "diff bloat footprint",
        "clean": "rm remove",
        "doctor": "install env",
        "export": "convert quantize lower",
        "update": "ota pack",
        "verify": "reproduce",
        "sbom": "bom cyclonedx",
        "provenance": "slsa attest",
        "man": "manual docs",
    }.items()
    for word in words.split()
}
"""Commands by another word for what they do."""


def epilog(command: str) -> str:
    """The end of a command's help: examples and exit codes."""
    if command not in EXAMPLES:
        return ""
    lines = ["examples:"]
    for text, what in EXAMPLES[command]:
        lines += [f"  {text}", f"      {what}"]
    lines += ["", "exit codes:"]
    lines += [f"  {code.value:>2}  {MEANINGS[code]}" for code in exit_codes(command)]
    return "\n".join(lines)


def exit_codes(command: str) -> list[Exit]:
    """The exit codes of a command, ascending."""
    return sorted({Exit.OK, Exit.USAGE, Exit.INTERNAL, *_EXITS.get(command, ())})
