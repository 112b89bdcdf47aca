"""Which tests are left to the night, as others say the same."""

import re
from pathlib import Path

from tests.together import said_by_others

TESTS = Path(__file__).parents[1]


def test_one_toolchain_and_one_core_of_a_kind_are_for_every_change() -> None:
    tests = [
        *("t.py::a[host-zig]", "t.py::a[host-gnu]", "t.py::b[host-gnu]"),
        *("t.py::a[cortex-m4-zig]", "t.py::a[cortex-m7-gnu]", "t.py::b[cortex-m7-gnu]"),
        *("t.py::d[cortex-m4-gnu]", "t.py::d[cortex-m33-zig]"),
        *("t.py::a[cortex-m0plus-zig]", "t.py::a[rv32imac-zig]", "t.py::c"),
    ]
    left = {"t.py::a[host-gnu]", "t.py::a[cortex-m7-gnu]", "t.py::d[cortex-m33-zig]"}
    assert said_by_others(tests) == left


def test_each_line_of_nightly_names_a_test() -> None:
    lines = (TESTS / "nightly.txt").read_text().splitlines()
    for name in (line for line in lines if line and not line.startswith("#")):
        file, _, rest = name.partition("::")
        function = re.compile(rf"^def {re.escape(rest.partition('[')[0])}\(", re.MULTILINE)
        assert any(function.search(path.read_text()) for path in TESTS.rglob(file)), name
        assert said_by_others([f"tests/integration/{name}"]), name
