"""Float convolutions compute the relu after them, if each of a method has one."""

from __future__ import annotations

import numpy as np
import pytest

from orchestrator.core.dtype import ScalarType
from orchestrator.method.linked import LinkedCall
from orchestrator.method.passes import run_passes, try_link
from orchestrator.program.reader import read_program
from orchestrator.selection.extract import extract
from tests.integration.joined_nets import Net, T, program_bytes
from tests.unit.method.test_prelink_unlink import resolution_of_all

FLOAT = ScalarType.Float


def _convolution(net: Net, x: T) -> T:
    weight = net.constant(np.ones((3, x.sizes[1], 1, 1)), FLOAT)
    rest = (None, [1, 1], [0, 0], [1, 1], False, [0, 0], 1)
    y = net.tensor((1, 3, 4, 4), FLOAT)
    return net.call("aten::convolution.out", x, weight, *rest, y)


def _relu(net: Net, x: T) -> T:
    return net.call("aten::relu.out", x, net.tensor(x.sizes, FLOAT))


def _functions(net: Net, isa: str = "dsp") -> list[str]:
    program = read_program(program_bytes([net]), file="")
    info, resolution = extract(program, model="m"), resolution_of_all(program)
    (linked,) = try_link(program, info, resolution).methods
    names = ["fuse_float_activations", "prepare_calls"]
    after = run_passes(linked, names, isa=isa, plans=True, replans=True)
    calls = [i for i in after.instructions if isinstance(i, LinkedCall)]
    return [call.function.removeprefix("orch::portable::") for call in calls]


def _net() -> tuple[Net, T]:
    net = Net(name="forward")
    return net, net.given((1, 2, 4, 4), FLOAT)


@pytest.mark.parametrize("isa", ["scalar", "dsp", "mve"])
def test_every_convolution_has_a_relu(isa: str) -> None:
    net, x = _net()
    for _ in range(2):
        x = _relu(net, _convolution(net, x))
    found = _functions(net.returns(x), isa)
    if isa == "mve":
        assert found == ["convolution", "relu"] * 2
    else:
        assert found == ["convolution_one_relu"] * 2


def test_another_reader_or_the_caller_needs_the_sums() -> None:
    net, x = _net()
    y = _convolution(net, x)
    found = _functions(net.returns(_relu(net, y), y))
    assert found == ["convolution_one", "relu"]
    net, x = _net()
    y = _convolution(net, x)
    z = _relu(net, y)
    total = net.tensor(y.sizes, FLOAT)
    found = _functions(net.returns(net.call("aten::add.out", y, z, 1, total)))
    assert found[:2] == ["convolution_one", "relu"]


def test_one_convolution_without_relu_leaves_all_as_they_are() -> None:
    net, x = _net()
    y = _convolution(net, _relu(net, _convolution(net, x)))
    assert _functions(net.returns(y)) == ["convolution_one", "relu", "convolution_one"]


def test_other_activations_stay() -> None:
    net, x = _net()
    y = _convolution(net, x)
    z = net.tensor(y.sizes, FLOAT)
    net.returns(net.call("aten::hardtanh.out", y, 0.0, 6.0, z))
    assert _functions(net) == ["convolution_one", "hardtanh"]
