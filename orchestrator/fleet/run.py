"""Do a command for many products: here, in worker processes, or on other machines."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from tempfile import TemporaryDirectory
from xml.sax.saxutils import escape, quoteattr

from orchestrator.build import BuildOptions, Shell
from orchestrator.errors import Diagnostic, UsageError, did_you_mean
from orchestrator.fleet.outcome import Costs, Kind, Outcome, sizes_in_lock
from orchestrator.fleet.pool import outcomes
from orchestrator.fleet.task import Task, Work
from orchestrator.shell.git import lines_at
from orchestrator.shell.stamp import STAMP_NAME, Looked, is_current
from orchestrator.workspace import Product
from orchestrator.workspace.product import names_text


def run_tasks(
    products: Sequence[Product],
    workspace: Path,
    kind: Kind | Work,
    options: BuildOptions,
    *,
    shell: Shell,
    scheduler: str | None = None,
) -> Iterator[Outcome]:
    """Outcomes of all products, as they are known.

    Args:
        products: They.
        workspace: Their `orchestrator.toml`.
        kind: What is done.
        options: Of builds; `jobs` are the processes of all products at a time, None
            for one per core.
        shell: Tools for what is done in this process.
        scheduler: Address of a Dask scheduler whose workers do it.
    """
    if scheduler is not None:
        from orchestrator.fleet.scheduler import scheduled_outcomes  # noqa: PLC0415

        # Workers of a scheduler share their machine; how many there are is not known
        # here.
        given = replace(options, jobs=options.jobs or 1)
        # Where all workers see it; /tmp is of one machine.
        shared = workspace.absolute().parent / "build"
        shared.mkdir(exist_ok=True)
    else:
        cores = options.jobs or _usable_cores()
        workers = min(cores, len(products))
        # ninja of each worker would start as many compilers as there are cores.
        given = replace(options, jobs=max(1, cores // workers))
        shared = None
    with TemporaryDirectory(prefix=".orchestrator-", dir=shared) as command:
        tasks = [
            Task(
                kind=kind,
                workspace=workspace,
                product=product,
                options=given,
                command=Path(command),
            )
            for product in products
        ]
        if scheduler is not None:
            yield from scheduled_outcomes(tasks, scheduler)
        else:
            yield from outcomes(tasks, workers=workers, shell=shell)


def _usable_cores() -> int:
    """Cores that this process may run on; where the system does not say, all."""
    if hasattr(os, "sched_getaffinity"):
        # Containers and `taskset` give fewer cores than the machine has.
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


# Sizes of products at a revision of git, from their locks.


def sizes_at(revision: str, products: Iterable[Product], root: Path) -> Mapping[str, Costs]:
    """By name: sizes of products that had a lock at the revision.

    Raises:
        UsageError: There is no such revision, or no repository (`no-history`).
    """
    # One process for all locks: one for each takes longer than an unchanged build.
    lines: dict[str, list[str]] = {}
    for path, line in lines_at(root, revision, '^"(flash|ram)" = "', "*.lock"):
        lines.setdefault(os.path.normpath(root / path), []).append(line)
    found = {}
    for product in products:
        text = "\n".join(lines.get(os.path.normpath(product.lock_file), ()))
        if sizes := sizes_in_lock(text):
            found[product.name] = sizes
    return found


# Outcomes as JUnit XML, which CI services show: a test case for each product.
#
# Source: the schema that Jenkins and GitLab read, github.com/testmoapp/junitxml.

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 cannot have, not even escaped."""


def junit_text(
    command: str, outcomes: Sequence[Outcome], *, shown: Callable[[Sequence[Diagnostic]], str]
) -> str:
    """The text of the file.

    Args:
        command: `build`.
        outcomes: A test case for each.
        shown: Problems as the command line shows them.
    """
    failed = sum(one.failed for one in outcomes)
    seconds = sum(one.seconds for one in outcomes)
    numbers = f'tests="{len(outcomes)}" failures="{failed}" time="{seconds:.3f}"'
    name = _attribute(f"orchestrator {command}")
    lines = ['<?xml version="1.0" encoding="UTF-8"?>']
    lines += [f"<testsuites {numbers}>", f"<testsuite name={name} {numbers}>"]
    for one in outcomes:
        cpu = one.target["cpu"] if one.target else "unknown"
        lines.append(
            f"<testcase name={_attribute(one.product.name)}"
            f" classname={_attribute(cpu)}"
            f" file={_attribute(str(one.product.profile))}"
            f' time="{one.seconds:.3f}">'
        )
        sizes = (("flash", one.costs.flash_bytes), ("ram", one.costs.ram_bytes))
        properties = [
            f'<property name="{key}_bytes" value="{value}"/>'
            for key, value in sizes
            if value is not None
        ]
        if properties:
            lines += ["<properties>", *properties, "</properties>"]
        if one.failed:
            message = "; ".join(problem.message for problem in one.problems)
            kind = one.problems[0].code if one.problems else "failed"
            lines.append(
                f"<failure type={_attribute(kind)} message={_attribute(message)}>"
                f"{escape(_xml(shown(one.problems)))}</failure>"
            )
        if one.notes:
            lines.append(f"<system-out>{escape(_xml(chr(10).join(one.notes)))}</system-out>")
        lines.append("</testcase>")
    return "\n".join([*lines, "</testsuite>", "</testsuites>"]) + "\n"


def _xml(text: str) -> str:
    # Messages have names out of programs; one such character makes a CI service refuse
    # the whole file.
    return _NOT_XML.sub("\ufffd", text)


def _attribute(text: str) -> str:
    # Line ends in an attribute would be read as spaces.
    return quoteattr(_xml(text), {"\n": "&#10;", "\t": "&#9;", "\r": "&#13;"})


# Which products a command is about, and which of them have nothing to do.


def chosen(products: Sequence[Product], patterns: Sequence[str]) -> tuple[Product, ...]:
    """Products whose names match one of the patterns; all if there are none.

    Raises:
        UsageError: A pattern matches no product.
    """
    if not patterns:
        return tuple(products)
    names = [product.name for product in products]
    problems = [
        Diagnostic.of(
            "no-product",
            f'the workspace has no product "{pattern}"',
            found=names_text(names),
            hint=_repeated(pattern) or did_you_mean(pattern, names) or "`*` stands for any text",
        )
        for pattern in dict.fromkeys(patterns)
        if not any(fnmatchcase(name, pattern) for name in names)
    ]
    UsageError.raise_if(problems)
    return tuple(
        product
        for product in products
        if any(fnmatchcase(product.name, pattern) for pattern in patterns)
    )


def _repeated(pattern: str) -> str:
    """The hint for several names in one, as other programs take them."""
    names = pattern.split(",")
    return f"repeat the option: -p {' -p '.join(names)}" if len(names) > 1 and all(names) else ""


def unchanged(
    products: Iterable[Product], root: Path, looked: Looked, *, uses_lock: bool
) -> dict[str, Outcome]:
    """Outcomes of products whose last build is as one would be now, by name.

    Args:
        products: They; files that several of them share are looked at once.
        root: Folder of the workspace.
        looked: File states that this command has read; new ones are added.
        uses_lock: Whether builds write locks.
    """
    found = {}
    for product in products:
        outcome = _unchanged(product, root, looked, uses_lock=uses_lock)
        if outcome is not None:
            found[product.name] = outcome
    return found


def _unchanged(product: Product, root: Path, looked: Looked, *, uses_lock: bool) -> Outcome | None:
    file = f"{root}/build/{product.name}/.work/{STAMP_NAME}"
    stamp = is_current(file, profile=str(product.profile), looked=looked)
    if stamp is None:
        return None
    lock = os.path.abspath(product.lock_file)  # noqa: PTH100  # keeps links
    if uses_lock and stamp.get("lock") != lock:
        return None
    match stamp.get("costs"), stamp.get("warnings"):
        case {
            "product": product.name,
            "cpu": str(cpu),
            "toolchain": str(toolchain),
            "optimize": str(optimize),
            "flash_bytes": int(flash),
            "ram_bytes": int(ram),
        }, list(warnings):
            now = Costs(flash_bytes=flash, ram_bytes=ram)
            return Outcome(
                product=product,
                done="up to date",
                target={"cpu": cpu, "toolchain": toolchain, "optimize": optimize},
                costs=now,
                before=now,
                notes=tuple(map(str, warnings)),
            )
    return None
