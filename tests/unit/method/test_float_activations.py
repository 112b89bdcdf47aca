"""Float calls that compute sums also compute limits after them, where that pays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from orchestrator.core.dtype import ScalarType
from orchestrator.emit.compile import sums_flags
from orchestrator.method.linked import LinkedCall
from orchestrator.method.passes import run_passes, try_link
from orchestrator.program.reader import read_program
from orchestrator.selection.extract import extract
from tests.integration.joined_nets import NHWC, Net, T, program_bytes
from tests.unit.method.test_prelink_unlink import resolution_of_all

if TYPE_CHECKING:
    from collections.abc import Sequence

    from orchestrator.method.linked import LinkedMethod

FLOAT = ScalarType.Float
INF = float("inf")


def _convolution(net: Net, x: T, outputs: int = 3, *, transposed: bool = False) -> T:
    sizes = (x.sizes[1], outputs) if transposed else (outputs, x.sizes[1])
    weight = net.constant(np.ones((*sizes, 1, 1)), FLOAT)
    rest = (None, [1, 1], [0, 0], [1, 1], transposed, [0, 0], 1)
    y = net.tensor((1, outputs, 4, 4), FLOAT)
    return net.call("aten::convolution.out", x, weight, *rest, y)


def _relu(net: Net, x: T) -> T:
    return net.call("aten::relu.out", x, net.tensor(x.sizes, x.dtype))


def _hardtanh(net: Net, x: T, low: float = 0.0, high: float = 6.0) -> T:
    y = net.tensor(x.sizes, x.dtype)
    return net.call("aten::hardtanh.out", x, low, high, y)


def _method(net: Net, isa: str = "dsp") -> LinkedMethod:
    program = read_program(program_bytes([net]), file="")
    info, resolution = extract(program, model="m"), resolution_of_all(program)
    (linked,) = try_link(program, info, resolution).methods
    names = ["fuse_float_activations", "prepare_calls"]
    return run_passes(linked, names, isa=isa, plans=True, replans=True)


def _calls(net: Net, isa: str = "dsp") -> list[LinkedCall]:
    method = _method(net, isa)
    return [i for i in method.instructions if isinstance(i, LinkedCall)]


def _functions(net: Net, isa: str = "dsp") -> list[str]:
    return [c.function.removeprefix("orch::portable::") for c in _calls(net, isa)]


def _net() -> tuple[Net, T]:
    net = Net(name="forward")
    return net, net.given((1, 2, 4, 4), FLOAT)


def _limits(call: LinkedCall) -> Any:
    assert call.prepared is not None
    return dict(call.prepared.numbers).get("limits")


def _bits(number: float) -> int:
    return int(np.float32(number).view(np.int32))


@pytest.mark.parametrize("isa", ["scalar", "dsp", "mve"])
def test_every_convolution_has_a_relu(isa: str) -> None:
    net, x = _net()
    for _ in range(2):
        x = _relu(net, _convolution(net, x))
    one = "convolution_relu" if isa == "mve" else "convolution_one_relu"
    assert _functions(net.returns(x), isa) == [one] * 2


@pytest.mark.parametrize("isa", ["scalar", "dsp", "mve"])
def test_limits(isa: str) -> None:
    net, x = _net()
    x = _hardtanh(net, _convolution(net, x))
    y = net.tensor(x.sizes, FLOAT)
    x = net.call("aten::clamp.out", _convolution(net, x), None, 2, y)
    calls = _calls(net.returns(x), isa)
    one = "convolution_limited" if isa == "mve" else "convolution_one_limited"
    assert [c.function for c in calls] == [f"orch::portable::{one}"] * 2
    assert [*map(_limits, calls)] == [
        (("low", 0), ("high", _bits(6))),
        (("low", _bits(-INF)), ("high", _bits(2))),
    ]


def test_a_lower_limit_of_minus_0_is_no_relu() -> None:
    for isa, one in (("dsp", "convolution_one"), ("mve", "convolution")):
        net, x = _net()
        (call,) = _calls(net.returns(_hardtanh(net, _convolution(net, x), -0.0, INF)), isa)
        assert call.function == f"orch::portable::{one}_limited"
        assert _limits(call) == (("low", _bits(-0.0)), ("high", _bits(INF)))


def test_limits_that_limit_nothing() -> None:
    net, x = _net()
    y = net.tensor((1, 3, 4, 4), FLOAT)
    net.returns(net.call("aten::clamp.out", _convolution(net, x), None, INF, y))
    assert _functions(net, "mve") == ["convolution"]
    assert _functions(net) == ["convolution_one", "clamp"]


@pytest.mark.parametrize(
    ("low", "high"),
    [(0.5, 1.0), (-2.0, -1.0), (1.0, -1.0), (0.0, -0.0), (float("nan"), 1.0), (0.0, float("nan"))],
)
def test_limits_that_0_is_beyond_stay(low: float, high: float) -> None:
    for isa, one in (("dsp", "convolution_one"), ("mve", "convolution")):
        net, x = _net()
        x = _hardtanh(net, _convolution(net, x), low, high)
        assert _functions(net.returns(x), isa) == [one, "hardtanh"]


def test_with_vectors_each_has_its_own() -> None:
    net, x = _net()
    x = _convolution(net, _relu(net, _convolution(net, x)))
    x = _convolution(net, _hardtanh(net, x))
    assert _functions(net.returns(x), "mve") == [
        *("convolution_relu", "convolution_limited", "convolution")
    ]


def test_without_vectors_all_are_of_one_kind() -> None:
    net, x = _net()
    y = _convolution(net, _relu(net, _convolution(net, x)))
    assert _functions(net.returns(y)) == ["convolution_one", "relu", "convolution_one"]
    # Most have limits: the others get those that change nothing.
    net, x = _net()
    x = _convolution(net, _hardtanh(net, _convolution(net, x, 9)), 2)
    calls = _calls(net.returns(_relu(net, _convolution(net, x, 2))))
    assert all(c.function.endswith("_limited") for c in calls)
    assert [*map(_limits, calls)] == [
        (("low", 0), ("high", _bits(6))),
        (("low", 0), ("high", -1)),
        (("low", 0), ("high", _bits(INF))),
    ]
    # Few have them: as many items as have none.
    net, x = _net()
    x = _convolution(net, _hardtanh(net, _convolution(net, x)))
    assert _functions(net.returns(x)) == [*("convolution_one", "hardtanh", "convolution_one")]


def test_transposed_convolutions_stay() -> None:
    for isa in ("dsp", "mve"):
        net, x = _net()
        x = _relu(net, _convolution(net, x, transposed=True))
        found = _functions(net.returns(x), isa)
        assert found == ["convolution_transposed", "relu"]


def test_another_reader_or_the_caller_needs_the_sums() -> None:
    for isa, one in (("dsp", "convolution_one"), ("mve", "convolution")):
        net, x = _net()
        y = _convolution(net, x)
        found = _functions(net.returns(_relu(net, y), y), isa)
        assert found == [one, "relu"]
        net, x = _net()
        y = _convolution(net, x)
        z = _relu(net, y)
        total = net.tensor(y.sizes, FLOAT)
        net.returns(net.call("aten::add.out", y, z, 1, total))
        assert _functions(net, isa)[:2] == [one, "relu"]


def test_two_activations_of_the_same_sums_stay() -> None:
    net, x = _net()
    y = _convolution(net, x)
    found = _functions(net.returns(_relu(net, y), _hardtanh(net, y)), "mve")
    assert found == ["convolution", "relu", "hardtanh"]


def test_an_activation_after_an_activation_stays() -> None:
    net, x = _net()
    y = _hardtanh(net, _relu(net, _convolution(net, x)))
    assert _functions(net.returns(y), "mve") == ["convolution_relu", "hardtanh"]


def test_another_dim_order_stays() -> None:
    net, x = _net()
    y = _convolution(net, x)
    z = net.tensor(y.sizes, FLOAT, NHWC)
    net.returns(net.call("aten::relu.out", y, z))
    assert _functions(net, "mve") == ["convolution", "relu_out"]


@pytest.mark.parametrize("dtype", [ScalarType.Double, ScalarType.Int, ScalarType.Half])
def test_other_dtypes_stay(dtype: ScalarType) -> None:
    net = Net(name="forward")
    a, b = net.given((2, 3), dtype), net.given((3, 4), dtype)
    y = net.call("aten::mm.out", a, b, net.tensor((2, 4), dtype))
    assert _functions(net.returns(_relu(net, y)), "mve") == ["mm_out", "relu_out"]


def test_a_part_of_the_sums_stays() -> None:
    net, x = _net()
    y = _convolution(net, x)
    part = net.tensor((1, 3, 2, 4), FLOAT)
    net.call("aten::slice_copy.Tensor_out", y, 2, 0, 2, 1, part)
    found = _functions(net.returns(_relu(net, part)), "mve")
    assert (found[0], found[-1]) == ("convolution", "relu")


def _added(net: Net, sizes: Sequence[int]) -> T:
    return net.constant(np.ones(sizes), FLOAT)


@pytest.mark.parametrize(
    ("operator", "sizes", "scale", "function"),
    [
        ("mm", None, 1, "matrix_product"),
        ("linear", (4,), 1, "matrix_product"),
        ("addmm", (4,), 1, "matrix_product"),
        ("addmm", (1, 4), 1.0, "matrix_product"),
        ("addmm", (1,), 1, "matrix_product_rows"),
        ("addmm", (2, 1), 1, "matrix_product_rows"),
        ("addmm", (2, 4), 1, "matrix_product_rows"),
        ("addmm", (4,), 2, "matrix_product_scaled"),
    ],
)
def test_products(operator: str, sizes: Sequence[int] | None, scale: float, function: str) -> None:
    for isa, limit in (("mve", "relu"), ("mve", "limited"), ("dsp", "relu")):
        net = Net(name="forward")
        x, y = net.given((2, 3), FLOAT), net.tensor((2, 4), FLOAT)
        w = net.constant(np.ones((4, 3) if operator == "linear" else (3, 4)), FLOAT)
        added = () if sizes is None else (_added(net, sizes),)
        arguments = {"mm": (x, w), "linear": (x, w, *added), "addmm": (*added, x, w, 1, scale)}
        z = net.call(f"aten::{operator}.out", *arguments[operator], y)
        z = _relu(net, z) if limit == "relu" else _hardtanh(net, z)
        found = _functions(net.returns(z), isa)
        if isa == "dsp":
            assert found[1:] == ["relu"]
        elif function == "matrix_product":
            assert found == [f"matrix_product_{limit}"]
        else:
            assert found == [function, "relu" if limit == "relu" else "hardtanh"]


def test_batches_of_products() -> None:
    net = Net(name="forward")
    a, b = net.given((2, 2, 3), FLOAT), net.given((2, 3, 4), FLOAT)
    y = net.call("aten::bmm.out", a, b, net.tensor((2, 2, 4), FLOAT))
    assert _functions(net.returns(_relu(net, y)), "mve") == ["matrix_product_relu"]


def _product(*, relu: bool) -> Net:
    net = Net(name="forward")
    a, b = net.given((2, 3), FLOAT), net.given((3, 4), FLOAT)
    y = net.call("aten::mm.out", a, b, net.tensor((2, 4), FLOAT))
    return net.returns(_relu(net, y) if relu else y)


def test_vectors_have_what_some_call_needs() -> None:
    image, x = _net()
    image.returns(_convolution(image, x))
    limited, x = _net()
    limited.returns(_hardtanh(limited, _convolution(limited, x)))
    added, limits = "-DORCH_SUMS_ADDED=1", "-DORCH_SUMS_LIMITED=1"
    expected = [
        (image, ()),
        (limited, (limits,)),
        (_product(relu=False), (added,)),
        (_product(relu=True), (added, limits)),
    ]
    for net, flags in expected:
        assert sums_flags([_method(net, "mve")], "mve") == flags
        assert sums_flags([_method(net, "dsp")], "dsp") == ()
    methods = [_method(limited, "mve"), _method(_product(relu=False), "mve")]
    assert sums_flags(methods, "mve") == (added, limits)
