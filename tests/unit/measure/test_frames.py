"""Frame sizes from the compilers' `.su` files."""

from __future__ import annotations

from orchestrator.measure.call_graph import Frame, read_frames


def test_frames_of_both_compilers() -> None:
    """gcc writes declarations, clang symbols; a bound counts as a size."""
    text = (
        "util/dot.h:46:32:void orch::dot(T*) [with T = float]\t80\tstatic\n"
        "op_mm.cpp:11:_ZN4orch6mm_outE.part.0\t16\tstatic\n"
        "op.cpp:1:1:void fancy(int)\t16\tdynamic\n"
        "op.cpp:2:1:void aligned(int)\t32\tdynamic,bounded\n"
        "not a line of frames\n"
        "op.cpp:3:1:void broken(int)\tmany\tstatic\n"
        "memcpy\t8\tstatic\n"
    )
    assert list(read_frames(text)) == [
        Frame("void orch::dot(T*) [with T = float]", 80, is_dynamic=False),
        Frame("_ZN4orch6mm_outE.part.0", 16, is_dynamic=False),
        Frame("void fancy(int)", 16, is_dynamic=True),
        Frame("void aligned(int)", 32, is_dynamic=False),
        Frame("memcpy", 8, is_dynamic=False),
    ]
