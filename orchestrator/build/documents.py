"""The documents of a build: what its outputs consist of, and how they were made."""

from __future__ import annotations

from collections.abc import Mapping

from orchestrator.build import lockfile
from orchestrator.build.libraries import Libraries
from orchestrator.measure.owner import contributor_of
from orchestrator.measure.size import ContributorKind, SizeReport
from orchestrator.profile.choices import Load
from orchestrator.profile.lowering_tables import CardTable
from orchestrator.program.program import Program
from orchestrator.program.values import TensorValue
from orchestrator.provenance.sbom import (
    SBOM,
    STATEMENT,
    SbomModel,
    SbomProduct,
    document_bytes,
    sbom,
    statement,
)

_FILE = "file "
_SETTINGS = ("source", "lowering", "quantize", "vela")


def write_documents(
    *,
    product: tuple[str, str, str],
    cards: Mapping[str, CardTable],
    loads: Mapping[str, Load],
    programs: Mapping[str, Program],
    libraries: Libraries,
    report: SizeReport,
    lock_inputs: lockfile.Lock,
    firmware_facts: lockfile.Facts,
    artefacts: lockfile.Facts,
) -> dict[str, bytes]:
    """The SBOM and the statement of provenance, by path.

    Args:
        product: Name, version and description.
        cards: What the user says of each model.
        loads: How each gets onto the device.
        programs: Models as they were given.
        libraries: Which kernels and delegates are the user's.
        report: Names what the linker took.
        lock_inputs: What the build read.
        firmware_facts: Inputs and outputs of models.
        artefacts: Everything else that is published, as the lock has it.
    """
    inputs = lock_inputs
    digests = {path: lockfile.digest_of(fact) for path, fact in artefacts}
    name, version, description = product
    # From the linker's map, not from the list of compiled sources: what was dropped by
    # --gc-sections is no component of the product.
    own, users = _linked(dict(inputs.sources), report, libraries)
    toolchain = dict(inputs.toolchain)
    bom = sbom(
        SbomProduct(
            name=name,
            version=version,
            description=description,
            sha256=digests["firmware.elf"],
            models=tuple(
                SbomModel(
                    name=model,
                    sha256=dict(inputs.models)[model],
                    files=_files_of(model, inputs),
                    inputs=_ports(model, "input", firmware_facts),
                    outputs=_ports(model, "output", firmware_facts),
                    dtypes=_dtypes(program),
                    facts=(
                        ("load", str(loads[model])),
                        *(
                            (key, value)
                            for key in _SETTINGS
                            for found, value in inputs.exports
                            if found == f"{model} {key}"
                        ),
                    ),
                    card=cards[model],
                )
                for model, program in programs.items()
            ),
            sources=own,
            user_sources=users,
            toolchain_parts=tuple(
                sorted(c.name for c in report.contributors if c.kind is ContributorKind.TOOLCHAIN)
            ),
            toolchain=(toolchain["name"], toolchain["version"]),
            programs=tuple(
                (key.removeprefix("sha256 "), value)
                for key, value in inputs.toolchain
                if key.startswith("sha256 ")
            ),
            python=dict(inputs.python),
        )
    )
    # The SBOM first: the statement has its digest among the outputs, but cannot have
    # its own.
    made = document_bytes(bom)
    lock = {section: dict(getattr(inputs, section)) for section in _SECTIONS}
    return {SBOM: made, STATEMENT: document_bytes(statement(**lock, outputs=digests))}


_SECTIONS = ("profile", "models", "exports", "sources", "target", "toolchain", "python")


def _linked(
    sources: Mapping[str, str], report: SizeReport, libraries: Libraries
) -> tuple[lockfile.Facts, tuple[tuple[str, lockfile.Facts], ...]]:
    """Sources that the linker's map shows: ours, and the user's by folder."""
    linked = {(c.kind, c.name) for c in report.contributors}
    found = {p: d for p, d in sources.items() if contributor_of(p) in linked}
    users: dict[str, dict[str, str]] = {}
    for folder in libraries.folders():
        inside = [path for path in found if path.startswith(f"{folder}/")]
        users |= {folder: {path: found.pop(path) for path in inside}} if inside else {}
    return lockfile.facts(found.items()), tuple(
        (folder, lockfile.facts(files.items())) for folder, files in sorted(users.items())
    )


def _files_of(model: str, inputs: lockfile.Lock) -> lockfile.Facts:
    """Data files of a program, or the code that made it."""
    start = f"{model} {_FILE}"
    return lockfile.facts(
        [
            *(
                (key.removeprefix(f"{model} "), value)
                for key, value in inputs.models
                if key.startswith(f"{model} ")
            ),
            *(
                (key.removeprefix(start), one)
                for key, value in inputs.exports
                if key.startswith(start)
                # Digests of several files of one name stand in one fact of the lock
                # (`list_export_facts`).
                for one in value.split()  # files elsewhere may share a name
            ),
        ]
    )


def _ports(model: str, side: str, firmware_facts: lockfile.Facts) -> tuple[str, ...]:
    start = f"{side} {model}."
    found = []
    for key, value in firmware_facts:
        if key.startswith(start):
            method, _, number = key.removeprefix(start).rpartition(" ")
            found.append(f"{method} {int(number)}: {value}")
    return tuple(found)


def _dtypes(program: Program) -> tuple[str, ...]:
    """Dtypes of all tensors."""
    return tuple(
        sorted(
            {
                value.dtype.name
                for method in program.methods
                for value in method.values
                if isinstance(value, TensorValue)
            }
        )
    )
