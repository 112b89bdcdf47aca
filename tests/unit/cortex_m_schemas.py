"""Op schemas of ExecuTorch's operators with scratch arguments, by base name.

Source: ExecuTorch 1.5.1, `backends/cortex_m/ops/operators.yaml`.
"""

from __future__ import annotations

from typing import Final

_QUANTIZED: Final = (
    "int input_offset, int output_offset, Tensor requantize_multipliers,"
    " Tensor requantize_shifts, int activation_min, int activation_max,"
)
_OUT: Final = "*, Tensor(a!) out) -> Tensor(a!)"
_IMAGE: Final = "Tensor input, Tensor weight, Tensor? bias, int[] stride, int[] padding,"

SCHEMAS: Final = {
    base: f"cortex_m::{base}.out({arguments} {_OUT}"
    for base, arguments in {
        "quantized_conv2d": f"{_IMAGE} int[] dilation, {_QUANTIZED} Tensor scratch,",
        "quantized_depthwise_conv2d": (
            f"{_IMAGE} int[] dilation, int depth_multiplier, {_QUANTIZED} Tensor scratch,"
        ),
        "quantized_transpose_conv2d": (
            f"{_IMAGE} int[] output_padding, int[] dilation, {_QUANTIZED}"
            " Tensor scratch, Tensor output_scratch,"
        ),
        "quantized_avg_pool2d": (
            "Tensor input, int[] kernel_size, int[] stride, int[] padding,"
            " bool ceil_mode, int zero_point, int multiplier, int shift,"
            " Tensor scratch,"
        ),
        "quantized_batch_matmul": (
            "Tensor lhs, int lhs_zero_point, Tensor rhs_transposed,"
            " int rhs_zero_point, int output_zero_point, int output_multiplier,"
            " int output_shift, Tensor scratch,"
        ),
    }.items()
}
