"""What this Python has installed: LOWERING NAME...

As a program: writes to stdout whether it can export for the lowering, and facts of
those of the named distributions that it has.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import sys
from contextlib import suppress
from importlib import metadata
from pathlib import Path

from orchestrator.profile.lowering import CORTEX_M, ETHOS_U

_FOLDERS = ("site-packages", "dist-packages")


def missing_packages(lowering: str) -> list[str]:
    """Missing distributions of the extra that the lowering needs."""
    needed = ["torch", "executorch"]
    if lowering in ETHOS_U or lowering == CORTEX_M:
        # The extra `export` of pyproject.toml has both; ExecuTorch itself does not
        # require them.
        needed.append("tosa-tools")  # its quantizer imports that of the others of Arm
    if lowering in ETHOS_U:
        needed.append("ethos-u-vela")
    found = []
    for name in needed:
        try:
            metadata.version(name)
        except metadata.PackageNotFoundError:
            found.append(name)
    return found


def facts_of(distribution: metadata.Distribution) -> dict[str, str]:
    """Version, metadata file and its digest; "" where there is none."""
    # Private in importlib.metadata, but the only way to the folder; the public files()
    # reads all of RECORD.
    path = str(getattr(distribution, "_path", ""))
    record = next(
        (
            file
            # RECORD has digests of all files. An editable or old-style installation has
            # no RECORD; PKG-INFO is that of an egg.
            for part in ("RECORD", "METADATA", "PKG-INFO")
            if path and os.path.isfile(file := f"{path}/{part}")  # noqa: PTH113
        ),
        "",
    )
    digest = hashlib.sha256(Path(record).read_bytes()) if record else None
    return {
        "version": distribution.version,
        "record": record,
        "sha256": digest.hexdigest() if digest else "",
    }


def main(lowering: str, *names: str) -> None:
    """Write what is installed, as JSON."""
    found = {}
    for name in names:
        with suppress(metadata.PackageNotFoundError):
            found[name] = facts_of(metadata.distribution(name))
    document = {
        "python": platform.python_version(),
        "can_export": not missing_packages(lowering),
        "distributions": found,
        "folders": [p for p in sys.path if Path(p).name in _FOLDERS],
    }
    sys.stdout.write(json.dumps(document))


if __name__ == "__main__":
    main(*sys.argv[1:])
