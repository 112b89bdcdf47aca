"""`orchestrator update`: signed updates of models, made and shown."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from orchestrator.build.lockfile import Lock
from orchestrator.build.locking import needed_lock
from orchestrator.build.rewriting import rewritten
from orchestrator.cli.commands.compat import (
    firmware_of_facts,
    model_to_replace,
    replacement_problems,
)
from orchestrator.cli.commands.named_files import cryptography_needed, read_bytes, read_named
from orchestrator.cli.console import Console
from orchestrator.cli.render import diagnostic_to_json
from orchestrator.core.spelling import packed_version
from orchestrator.errors import ExitCode, LockError, SourceSpan, UsageError
from orchestrator.provenance.envelope import (
    device_signer,
    device_verifier,
    read_private_key,
    read_public_key,
)
from orchestrator.shell.files import write_if_changed
from orchestrator.update import (
    HEADER_BYTES,
    Update,
    read_fact,
    read_update,
    update_bytes,
    update_fact,
)


def run(args: Namespace, console: Console) -> ExitCode:
    """Pack an update, or show one."""
    _check(args)
    return _pack(args, console) if args.action == "pack" else _show(args, console)


def _check(args: Namespace) -> None:
    """Reject options that are missing, or would do nothing. Raises UsageError."""
    needed = {"--for": args.firmware, "--version": args.update_version}
    others = {"--model": args.model, "--needs": args.needs, "--output": args.output}
    if args.action == "pack":
        needed |= {"--key": args.key}
        wrong = [name for name, value in needed.items() if value is None]
        message = f"update pack needs {', '.join(wrong)}"
    else:
        wrong = [name for name, value in (needed | others).items() if value is not None]
        message = f"update show does not take {', '.join(wrong)}"
    if wrong:
        hint = "run `orchestrator update --help` to see its options"
        raise UsageError.wrong(message, hint)


def _pack(args: Namespace, console: Console) -> ExitCode:
    pem = read_named(args.key, wanted="a private key in PEM")
    with cryptography_needed():
        private = read_private_key(pem, file=str(args.key))
        sign = device_signer(private, file=str(args.key))
    lock = needed_lock(args.firmware)
    facts = dict(lock.firmware)
    firmware = firmware_of_facts(facts, file=str(args.firmware))
    model = model_to_replace(firmware, args.model)
    identity, version = _accepted(facts.get(update_fact(model)), model, args.firmware)
    program = _program(args.file, lock, model, console)
    # The proof comes before the signature: what is signed can be installed.
    problems = replacement_problems(firmware, program, model, file=str(args.file))
    if problems:
        console.document({"ok": False, "problems": [diagnostic_to_json(p) for p in problems]})
        console.problems(problems)
        return ExitCode.INCOMPATIBLE
    needs = version if args.needs is None else packed_version(args.needs)
    update = Update(
        identity=identity,
        model=model,
        version=args.update_version,
        firmware_version=needs or 0,
        program=program,
    )
    output = args.output or args.file.with_suffix(".update")
    data = update_bytes(update, sign)
    write_if_changed(output, data)
    return console.result(
        {"ok": True, "update": str(output), **_facts(update)},
        f"{output}: {_sentence(update)}, {len(data):,} bytes",
    )


def _accepted(fact: str | None, model: str, lock: Path) -> tuple[bytes, int]:
    """Identity and version of the firmware. Raises UsageError."""
    try:
        if fact is not None:
            return read_fact(fact)
        found = "nothing about updates in the lock"
    except ValueError as error:
        found = str(error)
    raise UsageError.of(
        "no-updates",
        f"the firmware takes no signed updates of {model}",
        where=SourceSpan(file=str(lock)),
        found=found,
        hint="write update = true below [[models]], and build firmware with it",
    )


def _program(path: Path, lock: Lock, model: str, console: Console) -> bytes:
    """The program as a build would write it; as it is where that is not possible."""
    data = bytes(read_bytes(path))
    found = rewritten(path, lock, model, console.shell())
    if found is None:
        console.status(f"{path}: packed as it is; a build of the profile adapts it")
        return data
    return found


def _show(args: Namespace, console: Console) -> ExitCode:
    data = read_named(args.file, wanted="a file of `orchestrator update pack`")
    update = read_update(data, file=str(args.file))
    signature = "not checked"
    if args.key is not None:
        pem = read_named(args.key, wanted="a public key in PEM")
        with cryptography_needed():
            public = read_public_key(pem, file=str(args.key))
            verify = device_verifier(public, file=str(args.key))
        if not verify(update.signed, update.signature):
            raise LockError.of(
                "wrong-signature",
                f"{args.file} was not signed with this key, or it changed since",
                where=SourceSpan(file=str(args.file)),
                key=str(args.key),
                hint="do not trust it; ask who signed it for the right key",
            )
        signature = f"by {args.key}"
    console.document({**_facts(update), "signature": signature})
    rows = [
        ("model", update.model),
        ("version", str(update.version)),
        ("needs firmware", update.firmware),
        ("for", update.identity.hex()),
        ("program", f"{len(update.program):,} bytes, after {HEADER_BYTES}"),
        ("signature", signature),
    ]
    console.data("\n".join(f"{name:<14}  {text}" for name, text in rows))
    return ExitCode.OK


def _facts(update: Update) -> dict[str, object]:
    return {
        "model": update.model,
        "version": update.version,
        "firmware": update.firmware,
        "identity": update.identity.hex(),
        "program_bytes": len(update.program),
    }


def _sentence(update: Update) -> str:
    return (
        f"model {update.model}, version {update.version}, for firmware {update.firmware} or newer"
    )
