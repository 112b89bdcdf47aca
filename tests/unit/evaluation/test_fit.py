"""Samples as inputs of a method: shapes, dtypes and quantization."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from PIL import Image

from orchestrator.core.dtype import ScalarType
from orchestrator.core.operator import OperatorName
from orchestrator.errors import UsageError
from orchestrator.evaluation.fit import (
    Quantization,
    input_quantizations,
    inputs_of,
    output_numbers,
    output_quantizations,
)
from orchestrator.evaluation.samples import Sample
from orchestrator.program.program import KernelCall, Method
from orchestrator.program.reader import read_program
from orchestrator.program.values import (
    Allocation,
    DoubleValue,
    Dynamism,
    IntValue,
    TensorValue,
    ValueKind,
)
from orchestrator.running.npy import Array
from orchestrator.running.product import Port, ProductMethod
from tests.conftest import CORPUS

if TYPE_CHECKING:
    from orchestrator.running.values import RunValue

HALF = Quantization(scale=0.5, zero_point=-3)


def tensor(dtype: ScalarType, *sizes: int, dynamic: bool = False) -> Port:
    return Port(
        kind=ValueKind.TENSOR,
        dtype=dtype,
        sizes=sizes,
        dim_order=tuple(range(len(sizes))),
        is_dynamic=dynamic,
    )


def fitted(
    ports: list[Port],
    *inputs: Any,
    scale: Quantization | None = None,
    pixels: tuple[float, float] | None = None,
) -> tuple[RunValue, ...]:
    method = ProductMethod(
        index=0, model="m", name="forward", state_bytes=0, inputs=tuple(ports), outputs=()
    )
    sample = Sample(name="0", inputs=tuple(np.asarray(i) for i in inputs), pixels=pixels)
    scales = {} if scale is None else dict.fromkeys(range(len(ports)), scale)
    return inputs_of(sample, method, scales, "data, sample 0")


def array(port: Port, value: Any, scale: Quantization | None = None) -> Any:
    (found,) = fitted([port], value, scale=scale)
    assert isinstance(found, Array)
    return found.numpy


def message(port: Port, value: Any) -> tuple[str, str]:
    with pytest.raises(UsageError) as error:
        fitted([port], value)
    (found,) = error.value.diagnostics
    assert found.code == "bad-data"
    assert str(found.where) == "data, sample 0"
    return found.message, found.hint


def test_leading_sizes_of_one_do_not_count() -> None:
    port = tensor(ScalarType.Float, 1, 1, 2, 3)
    for shape in ((2, 3), (1, 2, 3), (1, 1, 2, 3), (1, 1, 1, 2, 3)):
        assert array(port, np.zeros(shape, np.float32)).shape == (1, 1, 2, 3)
    wrong: list[tuple[int, ...]] = [(3, 2), (5,), (2, 2, 3), (2, 3, 1)]
    for other in wrong:
        text, _ = message(port, np.zeros(other, np.float32))
        assert text == "the sample has the wrong shape for the method"


def test_a_line_of_numbers_fills_an_input() -> None:
    port = tensor(ScalarType.Float, 1, 1, 2, 3)
    assert array(port, np.arange(6)).tolist() == [[[[0, 1, 2], [3, 4, 5]]]]
    with pytest.raises(UsageError) as error:
        fitted([port], np.arange(5))
    (found,) = error.value.diagnostics
    assert dict(found.notes) == {
        "found": "int64 [5]",
        "expected": "float32 [1, 1, 2, 3], 6 numbers",
    }
    assert found.hint.startswith("nothing is resized, padded or cut; --inputs")


def test_a_line_of_numbers_fills_several_inputs() -> None:
    ports = [
        tensor(ScalarType.Float, 2, 2),
        Port(kind=ValueKind.INT, fixed=7),
        tensor(ScalarType.Long, 2),
        Port(kind=ValueKind.DOUBLE),
    ]
    line = np.array([0.5, 1, 2, 3, 4, 5, 6.5])
    for inputs in ([line], [line[:1], line[1:]], [*line]):
        found = fitted(ports, *inputs)
        whole, _, several, number = found
        assert isinstance(whole, Array)
        assert isinstance(several, Array)
        assert whole.numpy.tolist() == [[0.5, 1], [2, 3]]
        assert several.numpy.tolist() == [4, 5]
        assert several.dtype == "<i8"
        assert number == 6.5
    with pytest.raises(UsageError) as error:
        fitted(ports, line[1:])
    (problem,) = error.value.diagnostics
    assert problem.message == "the sample has the wrong number of inputs for the method"
    assert dict(problem.notes) == {
        "found": "1, with 6 numbers",
        "expected": "3, with 7 numbers: float32 [2, 2], int64 [2], double",
    }
    with pytest.raises(UsageError, match="wrong number of inputs"):
        fitted(ports)
    # As many inputs as the method has: each fills its own.
    with pytest.raises(UsageError, match="wrong shape"):
        fitted(ports[:1] + ports[2:3], line[:3], line[3:6])


IMAGE = np.array([[[0, 0, 0], [255, 255, 255]], [[255, 0, 0], [0, 0, 255]]], np.uint8)
GREY = [[0, 255], [76, 29]]


def seen(port: Port, scale: Quantization | None = None, *pixels: float) -> Any:
    low, high = pixels or (0, 1)
    (found,) = fitted([port], IMAGE, scale=scale, pixels=(low, high))
    assert isinstance(found, Array)
    return found.numpy


def test_images_are_colour_or_grey_channels_first_or_last() -> None:
    for sizes, expected in (
        ((1, 3, 2, 2), np.moveaxis(IMAGE, -1, 0)[np.newaxis]),
        ((3, 2, 2), np.moveaxis(IMAGE, -1, 0)),
        ((1, 2, 2, 3), IMAGE[np.newaxis]),
        ((1, 1, 2, 2), [[GREY]]),
        ((2, 2), GREY),
        ((1, 2, 2, 1), np.array(GREY)[np.newaxis, ..., np.newaxis]),
    ):
        found = seen(tensor(ScalarType.Byte, *sizes))
        np.testing.assert_array_equal(found, expected)


def test_the_grey_of_an_image_is_that_of_pillow() -> None:
    random = np.random.default_rng(1)
    image = random.integers(0, 256, (64, 64, 3), dtype=np.uint8)
    (found,) = fitted([tensor(ScalarType.Byte, 64, 64)], image, pixels=(0, 1))
    assert isinstance(found, Array)
    expected = np.asarray(Image.fromarray(image).convert("L"))
    np.testing.assert_array_equal(found.numpy, expected)


def test_what_bytes_of_images_become() -> None:
    grey = np.array(GREY)
    real = tensor(ScalarType.Float, 2, 2)
    np.testing.assert_array_equal(seen(real), grey.astype(np.float32) / 255)
    np.testing.assert_array_equal(seen(real, None, 0, 255), grey)
    assert seen(real, None, -1, 1)[0].tolist() == [-1, 1]
    # With a scale, integers are these real numbers.
    char = tensor(ScalarType.Char, 2, 2)
    scale = Quantization(scale=1 / 255, zero_point=-128)
    np.testing.assert_array_equal(seen(char, scale), grey - 128)
    byte = tensor(ScalarType.Byte, 2, 2)
    np.testing.assert_array_equal(seen(byte, scale), np.clip(grey - 128, 0, 255))
    # uint8 without one takes the bytes; int8 is told what it lacks.
    np.testing.assert_array_equal(seen(byte, None, -1, 1), grey)
    with pytest.raises(UsageError) as error:
        seen(char)
    assert "--input-quant" in error.value.diagnostics[0].hint
    # Other integers have no numbers from 0 to 1.
    np.testing.assert_array_equal(seen(tensor(ScalarType.Long, 2, 2), None, 0, 255), grey)
    with pytest.raises(UsageError, match="wrong dtype"):
        seen(tensor(ScalarType.Long, 2, 2))
    # Bytes that are no image stay as they are.
    plain = array(tensor(ScalarType.Float, 2, 2, 3), IMAGE)
    np.testing.assert_array_equal(plain, IMAGE)


def test_images_are_not_resized() -> None:
    with pytest.raises(UsageError) as error:
        seen(tensor(ScalarType.Float, 1, 3, 4, 2))
    (found,) = error.value.diagnostics
    assert found.message == "the sample has the wrong shape for the method"
    assert dict(found.notes) == {
        "found": "float32 [2, 2, 3]",
        "expected": "float32 [1, 3, 4, 2], 24 numbers",
    }
    assert "nothing is resized" in found.hint


def test_dynamic_sizes_may_be_smaller() -> None:
    port = tensor(ScalarType.Float, 1, 5, dynamic=True)
    assert array(port, np.zeros(3, np.float32)).shape == (1, 3)
    assert "wrong shape" in message(port, np.zeros(6, np.float32))[0]


@pytest.mark.parametrize("dtype", ["uint8", "int64", "float64", "float16", "bool", ">f4"])
def test_numbers_keep_their_values_as_floats(dtype: str) -> None:
    found = array(tensor(ScalarType.Float, 3), np.array([0, 1, 1], dtype))
    assert found.dtype == np.float32
    assert list(found) == [0, 1, 1]


def test_floats_become_bfloat16_by_rounding_to_even() -> None:
    values = np.array([1.0, 1.00390625, 1.01171875, -2.5], np.float32)
    found = array(tensor(ScalarType.BFloat16, 4), values)
    assert [hex(bits) for bits in found] == ["0x3f80", "0x3f80", "0x3f82", "0xc020"]


def test_integers_go_where_they_fit() -> None:
    port = tensor(ScalarType.Int, 2)
    assert list(array(port, np.array([-5, 2**31 - 1], np.int64))) == [-5, 2**31 - 1]
    text, hint = message(port, np.array([0, 2**31]))
    assert text == "the sample has the wrong dtype for the method"
    assert hint == 'convert the data with astype("int32")'


def test_whole_floats_are_integers_and_truth_values() -> None:
    port = tensor(ScalarType.Long, 2)
    assert list(array(port, np.array([-5.0, 3.0]))) == [-5, 3]
    for value in (0.5, np.inf, 2.0**63):
        assert "wrong dtype" in message(port, np.array([1.0, value]))[0]
    truth = tensor(ScalarType.Bool, 2)
    for dtype in ("bool", "uint8", "float32"):
        assert array(truth, np.array([0, 1], dtype)).tolist() == [False, True]
    assert "wrong dtype" in message(truth, np.array([1, 2]))[0]


def test_integers_of_a_few_bits_may_be_real_numbers() -> None:
    port = tensor(ScalarType.Char, 2)
    assert list(array(port, np.array([-5, 3], np.int8))) == [-5, 3]
    text, hint = message(port, np.array([0, 3], np.uint8))
    assert text == "the sample has the wrong dtype for the method"
    assert "--input-quant SCALE,ZERO_POINT" in hint


def test_real_numbers_are_quantized_with_the_scale_of_the_input() -> None:
    port = tensor(ScalarType.Char, 5)
    values = np.array([0.0, 0.25, 0.75, 100.0, -100.0], np.float32)
    # Ties to even, then limits.
    assert list(array(port, values, HALF)) == [-3, -3, -1, 127, -128]
    # Data of the very dtype are quantized already.
    ready = np.array([1, 2, 3, 4, 5], np.int8)
    assert list(array(port, ready, HALF)) == [1, 2, 3, 4, 5]
    assert "--input-quant" in message(port, values)[1]


def test_samples_that_are_not_numbers_are_refused() -> None:
    port = tensor(ScalarType.Float, 2)
    text, hint = message(port, np.array([np.nan, 1.0], np.float32))
    assert text == "the sample has values that are not a number (NaN)"
    assert hint == "repair the sample, or leave it out with --samples"
    assert array(port, np.array([np.inf, 1], np.float32))[0] == np.inf


def test_inputs_that_are_fixed_are_not_part_of_a_sample() -> None:
    ports = [
        tensor(ScalarType.Float, 1),
        Port(kind=ValueKind.INT, fixed=7),
        Port(kind=ValueKind.INT),
        Port(kind=ValueKind.DOUBLE),
    ]
    found = fitted(ports, np.float32(1), np.int64(3), 2)
    assert found[1:] == (7, 3, 2.0)
    with pytest.raises(UsageError, match="the wrong number of inputs"):
        fitted(ports, np.float32(1))
    with pytest.raises(UsageError, match="the input is an integer"):
        fitted(ports, np.float32(1), 2.5, 2)


def test_outputs_as_real_numbers() -> None:
    char = tensor(ScalarType.Char, 2)
    value = Array(dtype="|i1", shape=(2,), data=b"\xfd\x01")
    assert list(output_numbers(value, char, HALF)) == [0.0, 2.0]
    assert list(output_numbers(value, char, None)) == [-3.0, 1.0]
    bfloat = Array(dtype="<u2", shape=(1,), data=b"\x80\x3f")
    assert list(output_numbers(bfloat, tensor(ScalarType.BFloat16, 1), None)) == [1.0]
    assert list(output_numbers(2.5, Port(kind=ValueKind.DOUBLE), None)) == [2.5]
    assert not output_numbers("text", Port(kind=ValueKind.STRING), None).size


def tensor_value(dtype: ScalarType) -> TensorValue:
    return TensorValue(
        dtype=dtype,
        sizes=(2,),
        dim_order=(0,),
        dynamism=Dynamism.STATIC,
        data_buffer_index=0,
        allocation=Allocation(memory_id=1, offset_bytes=0),
        extra=None,
        requires_grad=False,
    )


def test_scales_are_read_from_the_program() -> None:
    method = Method(
        name="forward",
        values=(
            *map(tensor_value, (ScalarType.Char, ScalarType.Float, ScalarType.Char)),
            *(DoubleValue(0.5), IntValue(-3), DoubleValue(0.25), IntValue(4)),
            IntValue(0),
        ),
        inputs=(0,),
        outputs=(1, 2),
        instructions=(
            KernelCall(operator=0, args=(0, 3, 4, 7, 7, 7, 1, 1)),
            KernelCall(operator=1, args=(1, 5, 6, 7, 7, 7, 2, 2)),
        ),
        operators=(
            OperatorName.parse("quantized_decomposed::dequantize_per_tensor.out"),
            OperatorName.parse("quantized_decomposed::quantize_per_tensor.out"),
        ),
        delegates=(),
        arena_bytes=(0, 64),
    )
    assert input_quantizations(method) == {0: HALF}
    assert output_quantizations(method) == {1: Quantization(scale=0.25, zero_point=4)}


def test_scales_of_a_program_that_executorch_exported() -> None:
    data = (CORPUS / "quantize_dequantize" / "model.pte").read_bytes()
    (method,) = read_program(data, file="model.pte").methods
    assert input_quantizations(method) == {}
    assert output_quantizations(method) == {
        0: Quantization(scale=0.05, zero_point=-3),
        1: Quantization(scale=0.02, zero_point=131),
    }
