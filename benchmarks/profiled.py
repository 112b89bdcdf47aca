"""What `run --profile` says of a product: instructions and estimated cycles."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING, Any

from benchmarks.clock import environment, orchestrator
from benchmarks.table import NotMeasuredError, short

if TYPE_CHECKING:
    from pathlib import Path


def profiled(profile: Path, *arguments: str) -> dict[str, Any]:
    """The part `profile` of the document; the product is built if it is not current.

    Args:
        profile: Of the product.
        arguments: Options of `run`: inputs, or a scenario.

    Raises:
        NotMeasuredError: It cannot be built or run here.
    """
    done = subprocess.run(
        orchestrator("run", "--profile", "--json", profile.name, *arguments),
        cwd=profile.parent,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise NotMeasuredError(short(done.stderr or done.stdout))
    costs: dict[str, Any] = json.loads(done.stdout)["profile"]
    return costs
