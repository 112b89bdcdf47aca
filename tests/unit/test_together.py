"""Which tests are left to the night, as others say the same."""

from tests.together import said_by_others


def test_one_toolchain_and_one_core_of_a_kind_are_for_every_change() -> None:
    tests = [
        *("t.py::a[host-zig]", "t.py::a[host-gnu]", "t.py::b[host-gnu]"),
        *("t.py::a[cortex-m4-zig]", "t.py::a[cortex-m7-gnu]", "t.py::b[cortex-m7-gnu]"),
        *("t.py::d[cortex-m4-gnu]", "t.py::d[cortex-m33-zig]"),
        *("t.py::a[cortex-m0plus-zig]", "t.py::a[rv32imac-zig]", "t.py::c"),
    ]
    left = {"t.py::a[host-gnu]", "t.py::a[cortex-m7-gnu]", "t.py::d[cortex-m33-zig]"}
    assert said_by_others(tests) == left
