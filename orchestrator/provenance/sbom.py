"""What a firmware consists of: an SBOM in CycloneDX 1.6.

Written here and not by CycloneDX's library, which has no model cards; tests hold the
documents against its schema. The serial number follows from the content, and there are
no times.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import Final

from orchestrator.profile.lowering_tables import CardTable

# How a build was made: an in-toto statement with SLSA's predicate of provenance.
#
# Source: in-toto.io/Statement/v1, slsa.dev/spec/v1.0/provenance. It has no times and no name of
# an invocation: the same build on any machine makes the same statement.

# Names of the documents, and their canonical form.

SBOM: Final = "sbom.cdx.json"
STATEMENT: Final = "provenance.intoto.json"
DOCUMENTS: Final = frozenset({SBOM, STATEMENT})
"""Published files that describe the others."""

PROJECT: Final = "https://github.com/orchestrator-dev/orchestrator"
DISTRIBUTION: Final = "pte-orchestrator"


def document_bytes(document: object) -> bytes:
    """JSON, the same bytes for equal documents."""
    # Insertion order, not sorted: the order of the specification is easier to read, and
    # it is always the same.
    return (json.dumps(document, indent=2, ensure_ascii=False) + "\n").encode()


STATEMENT_TYPE: Final = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE: Final = "https://slsa.dev/provenance/v1"
BUILD_TYPE: Final = f"{PROJECT}/blob/main/docs/provenance.md#build-type"
_DIGEST: Final = "sha256 "
_FILE: Final = "file "


def statement(
    *,
    profile: Mapping[str, str],
    models: Mapping[str, str],
    exports: Mapping[str, str],
    sources: Mapping[str, str],
    target: Mapping[str, str],
    toolchain: Mapping[str, str],
    python: Mapping[str, str],
    outputs: Mapping[str, str],
) -> dict[str, object]:
    """The statement of a build.

    Args:
        profile: Section of the lock, as the others.
        models: Digests of programs and data files.
        exports: Of models given as Python.
        sources: Digests by path.
        target: Core, board, optimization.
        toolchain: Name, version, flags, digests of programs.
        python: Versions of distributions.
        outputs: Digests of what was published, by path.
    """
    # Settings decide how a model was exported; files are among the dependencies.
    settings = {k: v for k, v in exports.items() if f" {_FILE}" not in k}
    return {
        "_type": STATEMENT_TYPE,
        "subject": [
            {"name": path, "digest": {"sha256": found}} for path, found in sorted(outputs.items())
        ],
        "predicateType": PREDICATE_TYPE,
        "predicate": {
            "buildDefinition": {
                "buildType": BUILD_TYPE,
                "externalParameters": {"name": profile["name"], "profile": _profile_files(profile)},
                "internalParameters": {
                    "target": dict(target),
                    "toolchain": {
                        name: value
                        for name, value in toolchain.items()
                        if not name.startswith(_DIGEST)
                    },
                    "exports": settings,
                },
                "resolvedDependencies": [
                    *_dependencies(profile, models, exports, toolchain, python),
                    {"name": "sources", "digest": {"sha256": tree_digest(sources)}},
                ],
            },
            "runDetails": {
                "builder": {"id": PROJECT, "version": {DISTRIBUTION: python[DISTRIBUTION]}}
            },
        },
    }


def tree_digest(files: Mapping[str, str]) -> str:
    """Digest of many files: of what `sha256sum` prints for them, sorted by path."""
    lines = "".join(f"{found}  {path}\n" for path, found in sorted(files.items()))
    return hashlib.sha256(lines.encode()).hexdigest()


def _profile_files(profile: Mapping[str, str]) -> list[str]:
    return [n.removeprefix(_FILE) for n in sorted(profile) if n.startswith(_FILE)]


def _dependencies(
    profile: Mapping[str, str],
    models: Mapping[str, str],
    exports: Mapping[str, str],
    toolchain: Mapping[str, str],
    python: Mapping[str, str],
) -> Iterator[dict[str, object]]:
    """Everything that the build read, each with its digest or its package URL."""
    for name in _profile_files(profile):
        yield _named(name, profile[f"{_FILE}{name}"])
    for name, found in sorted(models.items()):
        yield _named(f"model {name}", found)
    for name, found in sorted(exports.items()):
        if f" {_FILE}" in name:  # files elsewhere may share a name
            yield from (_named(f"model {name}", one) for one in found.split())
    for name, found in sorted(toolchain.items()):
        if name.startswith(_DIGEST):
            yield _named(f"toolchain {name.removeprefix(_DIGEST)}", found)
    for name, found in sorted(python.items()):
        yield {"name": name, "uri": package_url(name, found)}


def _named(name: str, sha256: str) -> dict[str, object]:
    return {"name": name, "digest": {"sha256": sha256}}


def package_url(name: str, version: str) -> str:
    """Package URL of a distribution of PyPI."""
    return f"pkg:pypi/{name.lower().replace('_', '-')}@{version}"


_OWN_LICENCE: Final = "Apache-2.0"
_LICENCES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "compiler_rt": "MIT",  # zig's own, not that of LLVM
        "libgcc": "GPL-3.0-or-later WITH GCC-exception-3.1",
    }
)
"""Components that toolchains add to a firmware, by the name in reports."""
_PREFIX: Final = "orchestrator"


@dataclass(frozen=True, slots=True, kw_only=True)
class SbomModel:
    """A model of the product.

    Args:
        name: Of the model.
        sha256: Of the program.
        files: (path, digest) of data files, or of the code and what it read.
        inputs: Dtype and sizes of each, by method and number.
        outputs: Likewise.
        dtypes: Of its tensors; sorted.
        facts: More of it by name: how it was lowered and quantized, how it is loaded.
        card: What the user says.
    """

    name: str
    sha256: str
    files: tuple[tuple[str, str], ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    dtypes: tuple[str, ...]
    facts: tuple[tuple[str, str], ...]
    card: CardTable


@dataclass(frozen=True, slots=True, kw_only=True)
class SbomProduct:
    """A firmware and its parts.

    Args:
        name: Of the profile.
        version: Of the profile.
        description: Of the profile; may be "".
        sha256: Of the ELF.
        models: In the profile's order.
        sources: (path, digest) of sources of Orchestrator that are linked.
        user_sources: Likewise, of libraries and delegates of the user, by their folder.
        toolchain_parts: Names of what the toolchain added: `libgcc`.
        toolchain: (name, version) of the compiler.
        programs: (role, digest) of its programs.
        python: Versions of the distributions that took part in the build.
    """

    name: str
    version: str
    description: str
    sha256: str
    models: tuple[SbomModel, ...]
    sources: tuple[tuple[str, str], ...]
    user_sources: tuple[tuple[str, tuple[tuple[str, str], ...]], ...]
    toolchain_parts: tuple[str, ...]
    toolchain: tuple[str, str]
    programs: tuple[tuple[str, str], ...]
    python: Mapping[str, str]


def sbom(product: SbomProduct) -> dict[str, object]:
    """The document."""
    parts = [*_parts(product)]
    tool = {
        "type": "application",
        "name": DISTRIBUTION,
        "version": product.python[DISTRIBUTION],
        "licenses": _licences(_OWN_LICENCE),
    }
    content: dict[str, object] = {
        "metadata": {
            "tools": {"components": [tool]},
            "component": _without_empty(
                {
                    "type": "firmware",
                    "bom-ref": "firmware",
                    "name": product.name,
                    "version": product.version,
                    "description": product.description,
                    "hashes": _hashes(product.sha256),
                }
            ),
        },
        "components": parts,
        "dependencies": [
            {"ref": "firmware", "dependsOn": [part["bom-ref"] for part in parts]},
            *({"ref": part["bom-ref"]} for part in parts),
        ],
        "formulation": [{"components": [*_formulation(product)]}],
    }
    # CycloneDX wants a serial number for each document; a random one would change the
    # lock with each build.
    serial = uuid.uuid5(uuid.NAMESPACE_URL, f"{PROJECT}#{document_bytes(content).decode()}")
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        # Model cards came with CycloneDX 1.5; decision 0033.
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{serial}",
        "version": 1,
        **content,
    }


def _parts(product: SbomProduct) -> Iterator[dict[str, object]]:
    """What the firmware consists of."""
    for model in product.models:
        yield _model(model)
    version = product.python[DISTRIBUTION]
    if product.sources:
        yield {
            "type": "library",
            "bom-ref": DISTRIBUTION,
            "name": DISTRIBUTION,
            "version": version,
            "description": "runtime and kernels, of which these sources are linked",
            "licenses": _licences(_OWN_LICENCE),
            "purl": package_url(DISTRIBUTION, version),
            "components": _files(DISTRIBUTION, product.sources, _OWN_LICENCE),
        }
    for name, files in product.user_sources:
        yield {
            "type": "library",
            "bom-ref": f"library {name}",
            "name": name,
            "components": _files(f"library {name}", files),
        }
    for name in product.toolchain_parts:
        yield _without_empty(
            {
                "type": "library",
                "bom-ref": f"toolchain {name}",
                "name": name,
                "version": product.toolchain[1],
                "licenses": _licences(_LICENCES.get(name)),
            }
        )


def _model(model: SbomModel) -> dict[str, object]:
    card, ref = model.card, f"model {model.name}"
    datasets = [
        # Optional in the schema; lib4sbom reads no document without it.
        {"type": "dataset", "name": name, "classification": "not stated"}
        for name in card.datasets
    ]
    considerations: dict[str, object] = {
        "useCases": [card.intended_use] if card.intended_use else [],
        "technicalLimitations": [card.limitations] if card.limitations else [],
    }
    return _without_empty(
        {
            "type": "machine-learning-model",
            "bom-ref": ref,
            "authors": [{"name": name} for name in card.authors],
            "name": model.name,
            "hashes": _hashes(model.sha256),
            "licenses": _licences(card.license),
            "components": _files(ref, model.files),
            "modelCard": _without_empty(
                {
                    "modelParameters": _without_empty(
                        {
                            "datasets": datasets,
                            "inputs": [{"format": text} for text in model.inputs],
                            "outputs": [{"format": text} for text in model.outputs],
                        }
                    ),
                    "considerations": _without_empty(considerations),
                }
            ),
            "properties": [
                {"name": f"{_PREFIX}:{name}", "value": value}
                for name, value in (*model.facts, ("dtypes", " ".join(model.dtypes)))
            ],
        }
    )


def _formulation(product: SbomProduct) -> Iterator[dict[str, object]]:
    """What made the firmware, and is not in it."""
    name, version = product.toolchain
    ref = f"compiler {name}"
    yield {
        "type": "application",
        "bom-ref": ref,
        "name": name,
        "version": version,
        "components": _files(ref, product.programs),
    }
    for package, found in sorted(product.python.items()):
        yield {
            "type": "library",
            "bom-ref": f"python {package}",
            "name": package,
            "version": found,
            "purl": package_url(package, found),
        }


def _files(
    owner: str, files: Iterable[tuple[str, str]], licence: str | None = None
) -> list[dict[str, object]]:
    return [
        _without_empty(
            {
                "type": "file",
                # `bom-ref` must be unique in the document, and files of users may have
                # one name.
                "bom-ref": f"{owner}: {PurePosixPath(path)} {sha256[:12]}",
                "name": path,
                "hashes": _hashes(sha256),
                "licenses": _licences(licence),
            }
        )
        for path, sha256 in files
    ]


def _hashes(sha256: str) -> list[dict[str, str]]:
    return [{"alg": "SHA-256", "content": sha256}]


def _licences(expression: str | None) -> list[dict[str, str]]:
    return [{"expression": expression}] if expression else []


def _without_empty(document: dict[str, object]) -> dict[str, object]:
    return {key: value for key, value in document.items() if value not in ("", [], {})}
