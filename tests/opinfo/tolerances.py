"""Errors that results may have, by operator."""

from __future__ import annotations

from typing import Final

_MOVES: Final = (0.0, 0.0)
_ONCE: Final = (1.0, 0.0)
"""Rounded once."""

EXACT: Final = frozenset(
    {
        *(
            "abs",
            "alias_copy",
            "amax",
            "amin",
            "argmax",
            "argmin",
            "arange",
            "as_strided",
        ),
        *("bitwise_and", "bitwise_not", "bitwise_or", "bitwise_xor", "cat", "ceil"),
        *("clamp", "clone", "constant_pad_nd", "copy", "detach_copy", "diagonal_copy"),
        *("embedding", "expand_copy", "fill", "flip", "floor", "full", "full_like"),
        *(
            "gather",
            "hardtanh",
            "index",
            "index_put",
            "index_select",
            "lift_fresh_copy",
        ),
        *("masked_fill", "masked_scatter", "masked_select", "max", "maximum", "min"),
        *("minimum", "narrow_copy", "neg", "nonzero", "ones", "permute_copy"),
        *("pixel_shuffle", "pixel_unshuffle", "reflection_pad1d", "reflection_pad2d"),
        *("reflection_pad3d", "relu", "repeat", "repeat_interleave", "roll", "round"),
        *("replication_pad1d", "replication_pad2d", "replication_pad3d", "scatter"),
        *("scalar_tensor", "select_copy", "select_scatter", "sign", "slice_copy"),
        *(
            "slice_scatter",
            "sort",
            "split_copy",
            "split_with_sizes_copy",
            "squeeze_copy",
        ),
        *("stack", "t_copy", "topk", "transpose_copy", "tril", "trunc", "unbind_copy"),
        *("unfold_copy", "unsqueeze_copy", "upsample_nearest2d", "view_copy", "where"),
        *("zeros", "max_pool2d_with_indices", "as_strided_copy", "median"),
    }
)
"""Base names of operators that give items or whole numbers as they are."""

SUMS: Final = frozenset(
    {
        *("_adaptive_avg_pool2d", "_cdist_forward", "_native_batch_norm_legit"),
        *("_native_batch_norm_legit_no_training", "_pdist_forward", "addmm"),
        *(
            "_trilinear",
            "_upsample_bilinear2d_aa",
            "avg_pool2d",
            "bmm",
            "convolution",
            "linear",
        ),
        *("convolution_backward", "cumsum", "grid_sampler_2d", "mean", "mixed_linear"),
        *("max_pool2d_with_indices_backward", "mixed_mm", "mm", "native_group_norm"),
        *("native_layer_norm", "prod", "rms_norm", "scatter_add", "sum", "var"),
        *("upsample_bilinear2d", "var_mean", "gelu", "add", "sub", "rsub"),
    }
)
"""Base names of operators whose result may be much smaller than what they sum."""


def tolerance_of(operator: str) -> tuple[float, float]:
    """Units in the last place, and steps of Float at the size of what is summed."""
    base = operator.partition("::")[2].partition(".")[0]
    if base in EXACT:
        return _MOVES
    if base in SUMS:
        return 4.0, 16.0
    return _ULPS.get(base, 2.0), 0.0


_ULPS: Final = dict.fromkeys(
    ("add", "div", "mul", "reciprocal", "sqrt", "leaky_relu"), 1.0
) | {"_softmax": 4.0, "_log_softmax": 4.0, "pow": 4.0, "gelu": 4.0, "logit": 4.0}
