"""Lists of published objects: which files a compile step gave, by key."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final

from orchestrator.provenance.documents import document_bytes

if TYPE_CHECKING:
    from collections.abc import Mapping

OBJECTS_TYPE: Final = "https://orchestrator.dev/objects/v1"
_DIGEST: Final = re.compile("[0-9a-f]{64}")


def object_list(objects: Mapping[str, Mapping[str, str]]) -> bytes:
    """A list to sign.

    Args:
        objects: By key: SHA-256 of each file that the step gave, by suffix.
    """
    return document_bytes({"_type": OBJECTS_TYPE, "objects": objects})


def read_object_list(payload: bytes) -> dict[str, dict[str, str]]:
    """What a list says. Raises ValueError: it is not one."""
    match json.loads(payload):
        case {"_type": t, "objects": dict(objects)} if t == OBJECTS_TYPE:
            if all(_is_entry(key, files) for key, files in objects.items()):
                return objects
    raise ValueError("not a list of objects")


def _is_entry(key: object, files: object) -> bool:
    return (
        isinstance(key, str)
        and bool(_DIGEST.fullmatch(key))
        and isinstance(files, dict)
        and ".o" in files
        and all(isinstance(d, str) and _DIGEST.fullmatch(d) for d in files.values())
    )
