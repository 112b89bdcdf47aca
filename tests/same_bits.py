"""Outputs of a case are the same to the bit wherever it runs in a session."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from tests.together import published_once

if TYPE_CHECKING:
    from collections.abc import Mapping


def check_same_bits(case: str, outputs: Mapping[str, bytes], here: str) -> None:
    """Compare with the first target that ran this case.

    Args:
        case: What ran.
        outputs: Content by file name.
        here: Name of the target.
    """
    assert outputs
    digest = hashlib.sha256()
    for name in sorted(outputs):
        digest.update(name.encode() + outputs[name])
    found = digest.hexdigest()
    expected, _, first = published_once(case, f"{found} {here}").partition(" ")
    assert found == expected, f"{here} and {first} give other bits"
