"""Lists of what is published: files that a step gave, by what it was made from."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from orchestrator.provenance.documents import document_bytes

OBJECTS_TYPE: Final = "https://orchestrator.dev/objects/v1"
_DIGEST: Final = re.compile("[0-9a-f]{64}")
_KEY: Final = re.compile("[0-9a-f]{32,64}")
_NAME: Final = re.compile("[a-z][a-z0-9_]*[.][a-z]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedList:
    """What is published.

    Args:
        objects: By key of a compile step: SHA-256 of each file that it gave, by suffix.
        exports: By key of a request: of each export, SHA-256 by name of its files; the
            newest first.
        sizes: Of each file, in bytes, by SHA-256.
    """

    objects: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    exports: Mapping[str, Sequence[Mapping[str, str]]] = field(default_factory=dict)
    sizes: Mapping[str, int] = field(default_factory=dict)


def object_list(found: PublishedList) -> bytes:
    """A list to sign."""
    document = {"_type": OBJECTS_TYPE, "objects": found.objects, "sizes": found.sizes}
    return document_bytes(document | ({"exports": found.exports} if found.exports else {}))


def read_object_list(payload: bytes) -> PublishedList:
    """What a list says. Raises ValueError: it is not one.

    What has a file without a size, as in lists of older versions, is left out: nothing
    says how much of it to read.
    """
    match json.loads(payload):
        case {"_type": t, "objects": dict(objects), **more} if t == OBJECTS_TYPE:
            exports, sizes = more.get("exports", {}), more.get("sizes", {})
            if (
                isinstance(exports, dict)
                and isinstance(sizes, dict)
                and all(_is_object(*entry) for entry in objects.items())
                and all(_is_export(*entry) for entry in exports.items())
                and all(type(size) is int and size >= 0 for size in sizes.values())
            ):
                known = sizes.keys()
                return PublishedList(
                    objects={k: f for k, f in objects.items() if known >= {*f.values()}},
                    exports={
                        key: [files for files in found if known >= {*files.values()}]
                        for key, found in exports.items()
                    },
                    sizes=sizes,
                )
    raise ValueError("not a list of objects")


def _is_object(key: str, files: object) -> bool:
    return (
        bool(_DIGEST.fullmatch(key))
        and isinstance(files, dict)
        and ".o" in files
        and _are_digests(files)
    )


def _is_export(key: str, found: object) -> bool:
    return (
        bool(_KEY.fullmatch(key))
        and isinstance(found, list)
        and all(
            isinstance(files, dict) and all(map(_NAME.fullmatch, files)) and _are_digests(files)
            for files in found
        )
    )


def _are_digests(files: Mapping[str, object]) -> bool:
    return all(isinstance(d, str) and _DIGEST.fullmatch(d) for d in files.values())
