"""The command that a failure of the model's code suggests."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from orchestrator.export.failure import ExportError
from orchestrator.export.source import load_source

if TYPE_CHECKING:
    from pathlib import Path


def run_in(folder: Path, command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["/bin/sh", "-c", command], cwd=folder, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(
    "file", ["net.py", "my-net.py", "with space/net.py", "package/inner/net.py"]
)
def test_a_failure_is_repeated_anywhere(
    file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / file
    path.parent.mkdir(parents=True, exist_ok=True)
    if file.startswith("package"):
        for folder in ("package", "package/inner"):
            (tmp_path / folder / "__init__.py").touch()
    beside = "from . import here" if "package" in file else "import here"
    path.write_text(f"{beside}\ndef build():\n    open('weights.pt')\n")
    (path.parent / "here.py").touch()
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [])
    with pytest.raises(ExportError) as caught:
        load_source(str(path), "build")
    start = "run it by itself first: "
    assert caught.value.hint.startswith(start)
    command = caught.value.hint.removeprefix(start)
    for place in (tmp_path, tmp_path / "elsewhere"):
        assert run_in(place, command).stderr.endswith("No such file or directory: 'weights.pt'\n")
    (tmp_path / "weights.pt").touch()
    done = run_in(tmp_path, command)
    assert (done.returncode, done.stderr) == (0, "")
