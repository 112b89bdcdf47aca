"""Notes of a build in its work folder for the next one: stages' inputs and results.

If notes are damaged, or from another program, stages just run again.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Final

from orchestrator.shell.files import read_file, write_atomic, write_if_changed

_OUTPUTS: Final = "outputs"


class BuildNotes:
    """Notes of the last finished build.

    Args:
        work: Work folder of the build.
    """

    def __init__(self, work: Path) -> None:
        self._stages = work / "stages.json"
        self._results = work / "results"

    @cached_property
    def _noted(self) -> dict[str, dict[str, str]]:
        from pydantic import TypeAdapter, ValidationError  # noqa: PLC0415  # slow

        with suppress(OSError, ValidationError):
            adapter = TypeAdapter(dict[str, dict[str, str]])
            return adapter.validate_json(read_file(self._stages), strict=True)
        return {}

    @property
    def outputs(self) -> str | None:
        """Identity of the outputs; None if unknown."""
        return self._noted.get(_OUTPUTS, {}).get("identity")

    def inputs(self, label: str) -> Mapping[str, str] | None:
        """Digests by label of what a stage depended on; None if it did not run."""
        return self._noted.get(label)

    def result(self, label: str, key: str) -> object | None:
        """The value that a stage made, if it was recorded under this key."""
        # If a file is damaged or not ours, the stage just runs again.
        with suppress(Exception):
            data = self._result_file(label).read_bytes()
            known, result = pickle.loads(data)  # noqa: S301  # ours
            return result if known == key else None
        return None

    def write(
        self,
        inputs: Mapping[str, Mapping[str, str]],
        results: Iterable[tuple[str, str, object]],
        *,
        outputs: str,
    ) -> None:
        """Replace the notes.

        Args:
            inputs: By label of a stage: digests by label.
            results: Label and key of a stage with its value.
            outputs: Identity of the outputs.

        Raises:
            OSError: They cannot be written.
        """
        for label, key, result in results:
            write_if_changed(self._result_file(label), pickle.dumps((key, result)))
        noted = {**inputs, _OUTPUTS: {"identity": outputs}}
        text = json.dumps(noted, indent=1, sort_keys=True, default=dict)
        write_atomic(self._stages, text.encode())

    def _result_file(self, label: str) -> Path:
        return self._results / f"{label.replace(' ', '-')}.pickle"
