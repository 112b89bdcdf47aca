"""Inputs and outputs as int8, and inputs that a run leaves as they are."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.core.border import Border, IoDtype, IoPort, ModelIo, Quantization
from orchestrator.core.dtype import ScalarType
from orchestrator.method.effects import effects_of_linked
from orchestrator.method.linked import LinkedCall
from orchestrator.method.passes import BorderError
from orchestrator.method.passes.border import keep_inputs, quantized_io
from orchestrator.method.passes.dataflow import Dataflow
from orchestrator.program.program import JumpFalseCall, MoveCall
from orchestrator.program.values import (
    Allocation,
    BoolValue,
    DoubleValue,
    Dynamism,
    IntValue,
    TensorValue,
)
from tests.unit.method.methods import Builder

if TYPE_CHECKING:
    from orchestrator.method.linked import LinkedMethod

ALL: Final = ModelIo(quantized=True)
FIRST: Final = Quantization(scale=0.5, zero_point=3, low=-128, high=127)
KEPT: Final = ModelIo(ports=(IoPort(is_input=True, index=0, reuse=False),))


class Net(Builder):
    """A method of int8 tensors between floats."""

    def floats(self, place: int | None, sizes: tuple[int, ...] = (2, 4)) -> int:
        """The slot of a tensor of floats."""
        return self._of(ScalarType.Float, place, sizes)

    def bytes(self, place: int | None, sizes: tuple[int, ...] = (2, 4)) -> int:
        """The slot of a tensor of int8."""
        return self._of(ScalarType.Char, place, sizes)

    def _of(self, dtype: ScalarType, place: int | None, sizes: tuple[int, ...]) -> int:
        return self.value(
            TensorValue(
                dtype=dtype,
                sizes=sizes,
                dim_order=tuple(range(len(sizes))),
                dynamism=Dynamism.STATIC,
                data_buffer_index=0,
                allocation=None if place is None else Allocation(memory_id=1, offset_bytes=place),
                extra=None,
                requires_grad=False,
            )
        )

    def parameters(self, q: Quantization = FIRST) -> tuple[int, ...]:
        """Slots of scale, zero point, limits, and dtype."""
        numbers = (q.zero_point, q.low, q.high, int(ScalarType.Char))
        scale = self.value(DoubleValue(q.scale))
        return (scale, *(self.value(IntValue(n)) for n in numbers))

    def quantize(self, source: int, target: int, q: Quantization = FIRST) -> None:
        """Add a call that quantizes."""
        name = "cortex_m::quantize_per_tensor.out"
        self.call(name, source, *self.parameters(q), target)

    def dequantize(self, source: int, target: int, q: Quantization = FIRST) -> None:
        """Add a call that dequantizes."""
        name = "cortex_m::dequantize_per_tensor.out"
        self.call(name, source, *self.parameters(q), target)

    def relu(self, source: int, target: int) -> None:
        """Add a call of another kernel."""
        self.call("aten::relu.out", source, target)


def _chain(net: Net) -> LinkedMethod:
    x, q, r, y = net.floats(0), net.bytes(32), net.bytes(48), net.floats(64)
    net.quantize(x, q)
    net.relu(q, r)
    net.dequantize(r, y)
    return net.method((x,), (y,))


def _operators(method: LinkedMethod) -> list[str]:
    return [
        i.operator.base if isinstance(i, LinkedCall) else type(i).__name__
        for i in method.instructions
    ]


def _tensor(method: LinkedMethod, index: int) -> TensorValue:
    value = method.values[index]
    assert isinstance(value, TensorValue)
    return value


def _quantized(method: LinkedMethod, io: ModelIo = ALL) -> LinkedMethod:
    return quantized_io(replace(method, io=io))


def test_calls_at_the_ends_go() -> None:
    method = _chain(Net())
    found = _quantized(method)
    assert _operators(found) == ["relu"]
    assert found.origins == (1,)
    (call,) = found.instructions
    assert isinstance(call, LinkedCall)
    # The kernel reads what the caller writes, and writes what the caller reads.
    for port, arg in ((found.inputs[0], call.args[0]), (found.outputs[0], call.args[1])):
        assert _tensor(found, port).dtype is ScalarType.Char
        assert found.places[port] == found.places[arg]
    assert found.borders == (
        Border(is_input=True, index=0, quantization=FIRST),
        Border(is_input=False, index=0, quantization=FIRST),
    )


def test_nothing_wanted_changes_nothing() -> None:
    method = _chain(Net())
    assert quantized_io(method) is method
    assert keep_inputs(method) is method


def test_one_end_alone() -> None:
    port = IoPort(is_input=False, index=0, dtype=IoDtype.INT8)
    found = _quantized(_chain(Net()), ModelIo(ports=(port,)))
    assert _operators(found) == ["quantize_per_tensor", "relu"]
    own = IoPort(is_input=True, index=0, dtype=IoDtype.FLOAT32)
    found = _quantized(_chain(Net()), ModelIo(quantized=True, ports=(own,)))
    assert _operators(found) == ["quantize_per_tensor", "relu"]


def test_several_calls_with_the_same_scale() -> None:
    net = Net()
    x, q, r = net.floats(0), net.bytes(32), net.bytes(48)
    a, b = net.bytes(64), net.bytes(80)
    net.quantize(x, q)
    net.quantize(x, r)
    net.relu(q, a)
    net.relu(r, b)
    found = _quantized(net.method((x,), (a, b)))
    assert _operators(found) == ["relu", "relu"]
    reads = {found.places[i.args[0]] for i in found.instructions}  # type: ignore[union-attr]  # calls
    assert reads == {found.places[x]}


def test_uint8_is_larger_by_128() -> None:
    port = IoPort(is_input=True, index=0, dtype=IoDtype.UINT8)
    (border,) = _quantized(_chain(Net()), ModelIo(ports=(port,))).borders
    assert border.quantization == FIRST
    shifted = Quantization(scale=0.5, zero_point=131, low=0, high=255)
    assert border.caller_quantization == shifted


def test_what_is_int8_stays() -> None:
    net = Net()
    q, r = net.bytes(0), net.bytes(16)
    net.relu(q, r)
    port = IoPort(is_input=True, index=0, dtype=IoDtype.UINT8)
    method = net.method((q,), (r,))
    found = _quantized(method, ModelIo(ports=(port,)))
    assert found.values == method.values
    assert found.borders == (Border(is_input=True, index=0, is_unsigned=True),)
    assert _quantized(method).borders == ()


def _refused(method: LinkedMethod, io: ModelIo = ALL) -> str:
    with pytest.raises(BorderError) as error:
        keep_inputs(quantized_io(replace(method, io=io)))
    return f"{error.value.port.name}: {error.value.found}"


def test_what_else_reads_the_input() -> None:
    net = Net()
    x, q, r = net.floats(0), net.bytes(32), net.floats(64)
    net.quantize(x, q)
    net.relu(x, r)
    assert _refused(net.method((x,), (q,))) == ("input0: instruction 1, aten::relu.out, reads it")


def test_two_scales() -> None:
    net = Net()
    x, q, r = net.floats(0), net.bytes(32), net.bytes(48)
    net.quantize(x, q)
    net.quantize(x, r, replace(FIRST, zero_point=4))
    assert _refused(net.method((x,), (q, r))) == (
        "input0: 2 calls quantize it, each with another scale"
    )


def test_no_call_quantizes() -> None:
    net = Net()
    x, y = net.floats(0), net.floats(32)
    net.relu(x, y)
    method = net.method((x,), (y,))
    assert _refused(method) == "input0: instruction 0, aten::relu.out, reads it"
    own = IoPort(is_input=True, index=0, dtype=IoDtype.FLOAT32)
    assert _refused(method, ModelIo(quantized=True, ports=(own,))) == (
        "output0: instruction 0, aten::relu.out, touches it"
    )


def test_a_scale_that_changes() -> None:
    net = Net()
    x, q = net.floats(0), net.bytes(32)
    net.quantize(x, q)
    (call,) = net.code
    assert isinstance(call, LinkedCall)
    net.code.insert(0, MoveCall(source=net.value(DoubleValue(2.0)), target=call.args[1]))
    assert _refused(net.method((x,), (q,))) == ("input0: its scale changes at run time")


def test_an_output_that_is_its_input() -> None:
    net = Net()
    x, q, y = net.floats(0), net.bytes(32), net.floats(64)
    net.quantize(x, q)
    net.dequantize(q, y)
    assert _refused(net.method((x,), (y,))).startswith("output0: its int8 numbers")


def test_a_dim_order_that_changes() -> None:
    net = Net()
    x, q, r = net.floats(0), net.bytes(32), net.bytes(48)
    net.values[q] = replace(_of(net, q), dim_order=(1, 0))
    net.quantize(x, q)
    net.relu(q, r)
    assert _refused(net.method((x,), (r,))) == (
        "input0: instruction 0, cortex_m::quantize_per_tensor.out, changes its dim order"
    )


def _of(net: Net, index: int) -> TensorValue:
    value = net.values[index]
    assert isinstance(value, TensorValue)
    return value


@pytest.mark.parametrize(
    ("place", "found"), [(None, "it lies in memory of the caller"), (0, "its sizes may change")]
)
def test_an_input_without_a_fixed_place(place: int | None, found: str) -> None:
    net = Net()
    x, q, r = net.floats(place), net.bytes(32), net.bytes(48)
    if place is not None:
        net.values[x] = replace(_of(net, x), dynamism=Dynamism.BOUNDED)
    net.quantize(x, q)
    net.relu(q, r)
    assert _refused(net.method((x,), (r,))) == f"input0: {found}"


def test_a_move_to_the_input() -> None:
    net = Net()
    x, q, r = net.bytes(0), net.bytes(16), net.bytes(32)
    net.relu(x, q)
    net.relu(q, r)
    net.code.append(MoveCall(source=q, target=x))
    found = _refused(net.method((x,), (r,)), KEPT)
    assert found == "input0: the program moves other memory there"


def test_a_number_is_no_tensor() -> None:
    net = Net()
    x, y = net.value(IntValue(1)), net.bytes(0)
    net.call("aten::fill.Scalar_out", y, x, y)
    port = IoPort(is_input=True, index=0, dtype=IoDtype.INT8)
    refused = _refused(net.method((x,), (y,)), ModelIo(ports=(port,)))
    assert refused == "input0: it is no tensor but Int"


def test_memory_that_the_input_shares_is_used_as_before() -> None:
    """The place of the input is written after it was quantized, before its last use."""
    net = Net()
    x, q, r, s = net.floats(0), net.bytes(32), net.bytes(0), net.bytes(48)
    net.quantize(x, q)
    net.relu(q, r)  # over the input
    net.call("aten::add.out", q, r, net.value(IntValue(1)), s)
    found = _quantized(net.method((x,), (s,)))
    assert _operators(found) == ["relu", "add"]
    places = found.places
    assert places[q] == places[x]
    assert not places[x].overlaps(places[r])


def test_stale_bytes_of_the_input_are_not_read() -> None:
    """A tensor that nothing writes shows bytes of the input: they must not change."""
    net = Net()
    x, q, stale, r = net.floats(0), net.bytes(32), net.bytes(4), net.bytes(48)
    net.quantize(x, q)
    net.relu(stale, r)
    assert _refused(net.method((x,), (q, r))).startswith("input0: other tensors")


def test_a_jump_keeps_the_change_right() -> None:
    net = Net()
    x, q, r, s = net.floats(0), net.bytes(32), net.bytes(48), net.bytes(64)
    condition = net.value(BoolValue(value=True))
    net.quantize(x, q)
    net.relu(q, r)
    net.code.append(JumpFalseCall(condition=condition, destination=1))
    net.relu(r, s)
    found = _quantized(net.method((x,), (s,)))
    assert _operators(found) == ["relu", "JumpFalseCall", "relu"]
    assert found.instructions[1] == JumpFalseCall(condition=condition, destination=0)
    assert found.places[q] == found.places[x]


def test_a_kept_input_is_read_after_the_run() -> None:
    net = Net()
    x, y, z = net.bytes(0), net.bytes(16), net.bytes(0)
    net.relu(x, y)
    net.relu(y, z)  # over the input, in the file
    method = net.method((x,), (z,))
    found = keep_inputs(replace(method, io=KEPT))
    assert found.borders == (Border(is_input=True, index=0, is_kept=True),)
    places = found.places
    assert not any(places[x].overlaps(places[other]) for other in (y, z))
    assert x in effects_of_linked(found).outputs
    assert x in found.returned


def test_a_run_that_writes_to_its_input() -> None:
    net = Net()
    x, y = net.bytes(0), net.bytes(16)
    net.relu(x, y)
    net.call("aten::relu_", x, outs=(x,))
    method = net.method((x,), (y,))
    assert _refused(method, KEPT) == "input0: instruction 1, aten::relu_, writes to it"


def test_kept_and_quantized() -> None:
    io = ModelIo(quantized=True, ports=KEPT.ports)
    found = quantized_io(keep_inputs(replace(_chain(Net()), io=io)))
    assert _operators(found) == ["relu"]
    border = next(b for b in found.borders if b.is_input)
    assert border == Border(is_input=True, index=0, quantization=FIRST, is_kept=True)


def test_a_kept_input_that_is_updated_once_it_is_int8() -> None:
    net = Net()
    x, q, r = net.floats(0), net.bytes(32), net.bytes(48)
    net.quantize(x, q)
    net.call("aten::relu_", q, outs=(q,))
    net.relu(q, r)
    method = net.method((x,), (r,))
    assert _operators(_quantized(method)) == ["relu_", "relu"]
    io = ModelIo(quantized=True, ports=KEPT.ports)
    with pytest.raises(BorderError):
        quantized_io(keep_inputs(replace(method, io=io)))


SPACE: Final = 96


def _bytes(count: int, seed: int) -> bytes:
    return bytes((seed * 31 + at * 7 + at * at) % 256 for at in range(count))


def _run(method: LinkedMethod, given: dict[int, bytes]) -> list[bytes]:
    """Outputs, then kept inputs, of a method whose floats are four int8 in a row."""
    arena = bytearray(range(64, 64 + SPACE)) * 4

    def span(index: int) -> slice:
        place = method.places[index]
        return slice(place.begin, place.end)

    for index, data in given.items():
        arena[span(index)] = data
    for number, call in enumerate(method.instructions):
        assert isinstance(call, LinkedCall)
        source, target = call.args[0], call.args[-1]
        data = bytes(arena[span(source)])
        if call.operator.base == "quantize_per_tensor":
            data = data[::4]
        elif call.operator.base == "dequantize_per_tensor":
            data = bytes(b for byte in data for b in (byte, 1, 2, 3))
        else:
            origin = method.origins[number]
            data = bytes((byte * 5 + origin) % 256 for byte in data)
        arena[span(target)] = data
    return [bytes(arena[span(i)]) for i in (*method.outputs, *method.kept)]


@st.composite
def _nets(draw: st.DrawFn) -> LinkedMethod:
    """Chains with skips, whose tensors overlap as they like."""
    net = Net()
    size = draw(st.sampled_from([(4,), (8,), (3, 2)]))
    places = st.integers(0, (SPACE - 32) // 4).map(lambda at: 4 * at)
    inputs = [net.floats(draw(places), size) for _ in range(draw(st.integers(1, 2)))]
    known = []
    for source in draw(st.permutations(inputs)):
        known.append(net.bytes(draw(places), size))
        net.quantize(source, known[-1])
    if draw(st.booleans()):
        known.append(net.bytes(draw(places), size))
        net.quantize(inputs[0], known[-1])
    for _ in range(draw(st.integers(1, 4))):
        new = net.bytes(draw(places), size)
        net.relu(draw(st.sampled_from(known)), new)
        known.append(new)
    outputs = []
    for _ in range(draw(st.integers(1, 2))):
        y = net.floats(draw(places), size)
        net.dequantize(draw(st.sampled_from(known[1:])), y)
        outputs.append(y)
    return net.method(tuple(inputs), tuple(outputs))


def _is_apart(method: LinkedMethod) -> bool:
    """Whether inputs lie apart, and every tensor until its last read."""
    flow, places = Dataflow(method), method.places
    made: dict[int, int] = dict.fromkeys(method.inputs, -1)
    steps = [(e.reads, e.fills) for e in flow.at]
    for number, (reads, fills) in enumerate([*steps, (method.outputs, ())]):
        for value in reads:
            between = [w for e in flow.at[made[value] + 1 : number] for w in e.fills]
            if any(places[w].overlaps(places[value]) for w in (*between, *fills)):
                return False
        made |= dict.fromkeys(fills, number)
    heads = [places[i] for i in method.inputs]
    return not any(a.overlaps(b) for a, b in combinations(heads, 2))


def test_random_methods_compute_the_same_bits() -> None:
    done = {"changed": 0, "kept": 0, "wild": 0}

    @settings(max_examples=8 * settings().max_examples)
    @given(method=_nets(), keeps=st.booleans(), seed=st.integers(0, 99))
    def check(method: LinkedMethod, seed: int, *, keeps: bool) -> None:
        io = ModelIo(quantized=True, ports=KEPT.ports if keeps else ())
        try:
            found = quantized_io(keep_inputs(replace(method, io=io)))
        except BorderError:
            return
        assert not any("quantize" in name for name in _operators(found))
        data = {
            index: _bytes(4 * _tensor(method, index).numel, seed + index) for index in method.inputs
        }
        heads = [method.places[index] for index in method.inputs]
        if any(a.overlaps(b) for a, b in combinations(heads, 2)):
            return  # what the caller writes last would count
        want = _run(method, data)
        pairs = zip(data.values(), found.inputs, strict=True)
        small = {new: floats[::4] for floats, new in pairs}
        got = _run(found, small)
        count = len(method.outputs)
        assert got[:count] == [floats[::4] for floats in want]
        assert got[count:] == ([small[found.inputs[0]]] if keeps else [])
        done["changed"] += 1
        done["kept"] += keeps
        done["wild"] += not _is_apart(method)

    check()
    assert min(done.values()) > 0, done
