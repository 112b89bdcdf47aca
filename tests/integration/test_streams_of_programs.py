"""Streams of checked-in programs give the bits of their windows."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Final

import pytest

from tests.conftest import CORPUS
from tests.differential.windows import TOGETHER, checked_in, differences, streams_of
from tests.doc_blocks import ROOT
from tests.tools import need_toolchain

if TYPE_CHECKING:
    from pathlib import Path

    from tests.differential.windows import Streamed

pytestmark = pytest.mark.toolchain

HOST: Final = '[target]\ncpu = "host"\ntoolchain = "zig"\n'
SOME: Final = (
    ROOT / "examples" / "gestures" / "gestures.pte",
    ROOT / "examples" / "streaming" / "window.pte",
    *(CORPUS / name / "model.pte" for name in ("lstm_unrolled", "transformer_block")),
    CORPUS / "kws_dscnn_int8_m4" / "model.pte",
)


def _streams(paths: tuple[Path, ...]) -> list[Streamed]:
    return [s for path in paths for s in streams_of(str(path), path.read_bytes())]


def _check(streams: list[Streamed], load: str, folder: Path) -> None:
    need_toolchain("host", "zig")
    left = iter(streams)
    for number, part in enumerate(iter(lambda: [*islice(left, TOGETHER)], [])):
        assert differences(part, HOST, load, folder / f"{number}") == {}


def test_streams_of_lines_and_sequences(tmp_path: Path) -> None:
    streams = _streams(SOME)
    assert {s.name for s in streams} == {*map(str, SOME)}
    _check(streams[::2], "prelinked", tmp_path / "prelinked")
    _check(streams[1::4], "pte", tmp_path / "loaded")


@pytest.mark.nightly
def test_streams_of_every_program(tmp_path: Path) -> None:
    streams = _streams(tuple(checked_in()))
    assert len(streams) > 300
    _check(streams, "prelinked", tmp_path)
