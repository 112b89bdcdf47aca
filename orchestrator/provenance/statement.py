"""How a build was made: an in-toto statement with SLSA's predicate of provenance.

Source: in-toto.io/Statement/v1, slsa.dev/spec/v1.0/provenance. It has no times and no
name of an invocation: the same build on any machine makes the same statement.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Final

from orchestrator.provenance.documents import DISTRIBUTION, PROJECT

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
                "externalParameters": {"name": profile["name"], "profile": _files(profile)},
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


def _files(profile: Mapping[str, str]) -> list[str]:
    return [n.removeprefix(_FILE) for n in sorted(profile) if n.startswith(_FILE)]


def _dependencies(
    profile: Mapping[str, str],
    models: Mapping[str, str],
    exports: Mapping[str, str],
    toolchain: Mapping[str, str],
    python: Mapping[str, str],
) -> Iterator[dict[str, object]]:
    """Everything that the build read, each with its digest or its package URL."""
    for name in _files(profile):
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
