"""All models of the zoo; those of packages only where the packages are.

A group is what stands before the `/` of a name.
"""
# mypy: ignore-errors

from __future__ import annotations

from contextlib import suppress

from tests.zoo import functions, handwritten  # noqa: F401  # they register models
from tests.zoo.net import MODELS, add_int8

with suppress(ModuleNotFoundError):
    from tests.zoo import audio  # noqa: F401
with suppress(ModuleNotFoundError):
    from tests.zoo import images  # noqa: F401
with suppress(ModuleNotFoundError):
    from tests.zoo import language  # noqa: F401

INT8 = (
    *("mlp/relu", "mlp/gelu", "mlp/autoencoder", "mlp/silu", "mlp/softmax"),
    *("cnn/small", "cnn/ds_cnn", "cnn/unet_transposed", "cnn/unet_nearest"),
    *("cnn/unet_bilinear", "cnn/super_resolution", "cnn/squeeze_excite_hard"),
    *("cnn/norm_batch", "cnn/conv1d", "sequence/tcn", "sequence/gru", "sequence/lstm"),
    *("sequence/wavenet", "sequence/pointnet", "attention/encoder", "attention/rotary"),
    *("torchvision/mobilenet_v2", "torchvision/resnet18", "timm/mobilenetv3_small_050"),
)
"""Networks that XNNPACK's quantizer makes int8, for portable kernels."""
CORTEX_M = (
    *("mlp/relu", "mlp/autoencoder", "mlp/softmax", "cnn/small", "cnn/ds_cnn"),
    *("cnn/unet_transposed", "cnn/unet_nearest", "cnn/unet_bilinear"),
    *("cnn/squeeze_excite", "cnn/squeeze_excite_hard", "cnn/norm_batch"),
    *("cnn/super_resolution", "cnn/edsr", "cnn/grouped", "cnn/fpn", "cnn/resnet8"),
    *("cnn/mobilenet_v1", "cnn/vae", "cnn/conv1d", "cnn/activations"),
    *("sequence/crnn", "sequence/tcn", "sequence/wavenet", "sequence/pointnet"),
    *("sequence/lstm", "sequence/gru", "sequence/lstm_cell", "sequence/gru_cell"),
    *("attention/encoder", "attention/multihead", "attention/rotary"),
    *("torchvision/mobilenet_v2", "torchvision/mobilenet_v3_small"),
    *("torchvision/resnet18", "torchvision/squeezenet1_1", "torchvision/mnasnet0_5"),
    *("torchvision/shufflenet_v2_x0_5", "torchvision/efficientnet_b0"),
    *("torchvision/convnext_small", "torchvision/densenet_small"),
    *("torchvision/regnet_x_400mf", "torchvision/vit_small"),
    *("torchvision/googlenet", "torchvision/regnet_y_400mf"),
    *("timm/mobilenetv3_small_050", "timm/mobilenetv4_conv_small_050"),
    *("timm/lcnet_050", "timm/efficientnet_lite0", "timm/mnasnet_050"),
    *("timm/tinynet_e", "timm/resnet10t"),
    *("transformers/mobilenet_v1", "transformers/mobilenet_v2", "transformers/resnet"),
)
"""Networks that become int8 for the kernels of Cortex-M."""

for _group, _lowering, _names in (("int8", "portable", INT8), ("cortex-m", "cortex-m", CORTEX_M)):
    for _name in _names:
        if _name in MODELS:
            add_int8(f"{_group}/{_name.replace('/', '_')}", _lowering, _name)

__all__ = ["MODELS"]
