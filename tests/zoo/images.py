"""Models of torchvision and timm, with random weights."""
# mypy: ignore-errors

from __future__ import annotations

from contextlib import suppress
from typing import Any

import torch

from tests.zoo.net import add, only

_OPERATORS = torch.library.Library("torchvision", "FRAGMENT")
for _name in ("nms", "qnms"):
    # torchvision's own library may not load; no model here calls them.
    with suppress(RuntimeError):
        _OPERATORS.define(f"{_name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")

import timm  # noqa: E402
import timm.layers  # noqa: E402
import torchvision  # noqa: E402

SMALL = (1, 3, 64, 64)


def _vision(name: str, size: tuple[int, ...] = SMALL, **options: Any) -> None:
    add(
        f"torchvision/{name}",
        lambda: torchvision.models.get_model(name, weights=None, **options),
        size,
    )


for _name in (
    *("mobilenet_v2", "mobilenet_v3_small", "mobilenet_v3_large"),
    *("squeezenet1_1", "shufflenet_v2_x0_5", "efficientnet_b0"),
    *("mnasnet0_5", "regnet_y_400mf", "regnet_x_400mf"),
):
    _vision(_name, num_classes=10)
_vision("googlenet", num_classes=10, aux_logits=False, init_weights=False)


def _parts(name: str, make: Any, *inputs: Any, **fixed: Any) -> None:
    add(f"torchvision/{name}", make, *inputs, **fixed)


def _resnet() -> Any:
    """Without the last layers, which have most of the numbers."""
    net = torchvision.models.resnet18(weights=None)
    net.layer4 = torch.nn.Identity()
    net.fc = torch.nn.Linear(256, 10)
    return net


def _convnext() -> Any:
    from torchvision.models.convnext import CNBlockConfig, ConvNeXt  # noqa: PLC0415

    return ConvNeXt([CNBlockConfig(16, 32, 2), CNBlockConfig(32, None, 2)])


def _densenet() -> Any:
    return torchvision.models.DenseNet(8, (2, 2, 2, 2), 16, num_classes=10)


def _vit() -> Any:
    return torchvision.models.VisionTransformer(64, 16, 2, 2, 32, 64, num_classes=10)


def _swin(version: int) -> Any:
    module = torchvision.models.swin_transformer
    blocks = {1: module.SwinTransformerBlock, 2: module.SwinTransformerBlockV2}
    merge = {1: module.PatchMerging, 2: module.PatchMergingV2}
    return module.SwinTransformer(
        [4, 4], 16, [2, 2], [2, 4], [4, 4],
        num_classes=10, block=blocks[version], downsample_layer=merge[version],
    )  # fmt: skip


def _maxvit() -> Any:
    return torchvision.models.MaxVit((64, 64), 16, 4, [16, 32], [1, 1], 8, 0.0, num_classes=10)


_parts("resnet18", _resnet, SMALL)
_parts("convnext_small", _convnext, SMALL)
_parts("densenet_small", _densenet, SMALL)
_parts("vit_small", _vit, SMALL)
_parts("swin_small", lambda: _swin(1), SMALL)
_parts("swin_v2_small", lambda: _swin(2), SMALL)
_parts("maxvit_small", _maxvit, SMALL)


def _segmentation(name: str) -> Any:
    models = torchvision.models.segmentation
    return getattr(models, name)(weights=None, weights_backbone=None, num_classes=4, aux_loss=False)


def _deeplab() -> Any:
    """With a small backbone; that of the package is too large for a device."""
    models = torchvision.models
    from torchvision.models import segmentation  # noqa: PLC0415

    body = models._utils.IntermediateLayerGetter(
        models.mobilenet_v2(weights=None).features, {"13": "out"}
    )
    head = segmentation.deeplabv3.DeepLabHead(96, 4, (3, 6))
    return segmentation.DeepLabV3(body, head)


def _fcn() -> Any:
    models = torchvision.models
    from torchvision.models import segmentation  # noqa: PLC0415

    body = models._utils.IntermediateLayerGetter(
        models.mobilenet_v2(weights=None).features, {"13": "out"}
    )
    return segmentation.FCN(body, segmentation.fcn.FCNHead(96, 4))


_parts("lraspp", only(lambda: _segmentation("lraspp_mobilenet_v3_large"), "input"), SMALL)
_parts("deeplab", only(_deeplab, "x"), SMALL)
_parts("fcn", only(_fcn, "x"), SMALL)


def _video() -> Any:
    from torchvision.models.video import resnet  # noqa: PLC0415

    class Stem(torch.nn.Sequential):
        def __init__(self) -> None:
            super().__init__(
                torch.nn.Conv3d(3, 64, (3, 7, 7), (1, 2, 2), (1, 3, 3), bias=False),
                torch.nn.BatchNorm3d(64),
                torch.nn.ReLU(),
            )

    net = resnet.VideoResNet(resnet.BasicBlock, [resnet.Conv2Plus1D] * 4, [1, 1, 1, 1], Stem, 5)
    net.layer3 = net.layer4 = torch.nn.Identity()
    net.fc = torch.nn.Linear(128, 5)
    return net


def _mvit() -> Any:
    from torchvision.models.video.mvit import MSBlockConfig, MViT  # noqa: PLC0415

    blocks = [
        MSBlockConfig(1, 16, 32, [3, 3, 3], [1, 2, 2], [1, 1, 1], [1, 1, 1]),
        MSBlockConfig(2, 32, 32, [3, 3, 3], [1, 2, 2], [1, 2, 2], [1, 1, 1]),
    ]
    return MViT((32, 32), 4, blocks, True, True, True, 5)  # noqa: FBT003


_parts("video_resnet", _video, (1, 3, 4, 32, 32))
_parts("video_mvit", _mvit, (1, 3, 4, 32, 32))
_parts(
    "fpn",
    lambda: only(lambda: torchvision.ops.FeaturePyramidNetwork([8, 16, 32], 8), "x")(),
    lambda: {str(i): torch.randn(1, 8 << i, 16 >> i, 16 >> i) for i in range(3)},
)

TIMM: dict[str, dict[str, Any]] = {
    "mobilenetv3_small_050": {},
    "mobilenetv4_conv_small_050": {},
    "lcnet_050": {},
    "tinynet_e": {},
    "mixnet_s": {},
    "fbnetc_100": {},
    "mnasnet_050": {},
    "efficientnet_lite0": {},
    "ghostnet_050": {},
    "hardcorenas_a": {},
    "rexnet_100": {},
    "regnetx_002": {},
    "regnety_002": {},
    "resnet10t": {},
    "resnetv2_18": {"channels": (16, 32, 64, 128)},
    "convnext_atto": {},
    "convnextv2_atto": {},
    "edgenext_xx_small": {},
    "mobilevit_xxs": {},
    "mobilevitv2_050": {},
    "repvit_m0_9": {},
    "repghostnet_050": {},
    "fastvit_t8": {},
    "efficientvit_b0": {},
    "efficientvit_m0": {"img_size": 224},
    "efficientformerv2_s0": {"img_size": 224},
    "starnet_s1": {},
    "fasternet_t0": {},
    "shvit_s1": {},
    "lcnetv2_base": {},
    "hgnetv2_b0": {},
    "vovnet39a": {"stage_conv_chs": [16, 16, 32, 32], "stage_out_chs": [32, 48, 64, 64]},
    "dla46x_c": {},
    "semnasnet_075": {},
    "legacy_seresnet18": {},
    "resnest14d": {},
    "hrnet_w18_small": {},
    "levit_128s": {"img_size": 224},
    "vit_tiny_patch16_224": {"img_size": 64, "depth": 2},
    "deit_tiny_distilled_patch16_224": {"img_size": 64, "depth": 2},
    "vit_relpos_small_patch16_224": {"img_size": 64, "depth": 2, "embed_dim": 96, "num_heads": 3},
    "beit_base_patch16_224": {"img_size": 64, "depth": 2, "embed_dim": 96, "num_heads": 3},
    "eva02_tiny_patch14_224": {"img_size": 56, "depth": 2},
    "swin_tiny_patch4_window7_224": {
        "img_size": 56,
        "window_size": 7,
        "embed_dim": 24,
        "depths": (2, 2),
        "num_heads": (2, 4),
    },
    "swinv2_tiny_window8_256": {
        "img_size": 64,
        "embed_dim": 24,
        "depths": (2, 2),
        "num_heads": (2, 4),
    },
    "pvt_v2_b0": {},
    "coat_tiny": {"img_size": 64, "embed_dims": (32, 32, 32, 32)},
    "convit_tiny": {"img_size": 64, "depth": 3, "local_up_to_layer": 2},
    "cait_xxs24_224": {"img_size": 64, "depth": 2},
    "crossvit_tiny_240": {},
    "visformer_tiny": {"img_size": 64},
    "xcit_nano_12_p16_224": {"depth": 2},
    "twins_pcpvt_small": {
        "img_size": 64,
        "depths": (1, 1, 1, 1),
        "embed_dims": (16, 32, 64, 128),
        "num_heads": (1, 2, 4, 8),
    },
    "pit_ti_224": {"img_size": 64, "depth": (1, 1, 1)},
    "davit_tiny": {
        "depths": (1, 1, 1, 1),
        "embed_dims": (16, 32, 64, 128),
        "num_heads": (1, 2, 4, 8),
    },
    "hiera_tiny_224": {"img_size": (64, 64), "embed_dim": 24, "stages": (1, 1, 1, 1)},
    "sequencer2d_s": {
        "img_size": 64,
        "layers": (1, 1, 1, 1),
        "embed_dims": (24, 48, 48, 48),
        "hidden_sizes": (6, 12, 12, 12),
    },
    "inception_next_atto": {},
    "swiftformer_xs": {},
    "mambaout_femto": {},
    "eca_botnext26ts_256": {"img_size": 128},
    "lambda_resnet26t": {"img_size": 128},
    "efficientvim_m1": {},
}
"""What makes them small."""
SIZES = {"crossvit_tiny_240": 240, "efficientvit_m0": 224, "levit_128s": 224}


SMALL_TIMM: dict[str, tuple[str, dict[str, Any]]] = {
    "poolformer": ("metaformer.MetaFormer", {"depths": (1, 1, 1, 1), "dims": (16, 32, 64, 128)}),
    "mixer": ("mlp_mixer.MlpMixer", {"img_size": 64, "num_blocks": 2, "embed_dim": 64}),
    "gmlp": (
        "mlp_mixer.MlpMixer",
        {
            "img_size": 64,
            "num_blocks": 2,
            "embed_dim": 64,
            "mlp_ratio": 4,
            "block_layer": timm.models.mlp_mixer.SpatialGatingBlock,
            "mlp_layer": timm.layers.GatedMlp,
        },
    ),
    "resmlp": (
        "mlp_mixer.MlpMixer",
        {
            "img_size": 64,
            "num_blocks": 2,
            "embed_dim": 64,
            "mlp_ratio": 4,
            "block_layer": timm.models.mlp_mixer.ResBlock,
            "norm_layer": timm.models.mlp_mixer.Affine,
        },
    ),
    "convmixer": ("convmixer.ConvMixer", {"dim": 48, "depth": 3}),
    "volo": (
        "volo.VOLO",
        {
            "img_size": 64,
            "layers": (1, 1, 1, 1),
            "embed_dims": (24, 48, 48, 48),
            "num_heads": (2, 4, 4, 4),
        },
    ),
    "nest": (
        "nest.Nest",
        {"img_size": 64, "embed_dims": (24, 48, 96), "num_heads": (1, 2, 4), "depths": (1, 1, 2)},
    ),
    "focalnet": ("focalnet.FocalNet", {"embed_dim": 16, "depths": (1, 1, 1, 1)}),
    "mvitv2": (
        "mvitv2.MultiScaleVit",
        {
            "cfg": timm.models.mvitv2.MultiScaleVitCfg(
                depths=(1, 1, 1, 1), embed_dim=24, num_heads=1
            ),
            "img_size": (64, 64),
        },
    ),
    "res2net": (
        "resnet.ResNet",
        {
            "block": timm.models.res2net.Bottle2neck,
            "layers": [1, 1, 1, 1],
            "base_width": 8,
            "block_args": {"scale": 4},
            "channels": (16, 32, 64, 128),
        },
    ),
    "tnt": (
        "tnt.TNT",
        {"img_size": 64, "depth": 2, "embed_dim": 96, "inner_dim": 24, "num_heads_outer": 3},
    ),
}
"""Classes, where the functions that make the models leave no choice."""


def _class(path: str, options: dict[str, Any]) -> Any:
    module, _, name = path.partition(".")
    return getattr(getattr(timm.models, module), name)(num_classes=10, **options)


for _name, (_path, _options) in SMALL_TIMM.items():
    add(f"timm/{_name}", lambda path=_path, options=_options: _class(path, options), SMALL)


def _timm(name: str, options: dict[str, Any]) -> None:
    size = options.get("img_size", SIZES.get(name, 64))
    size = size[0] if isinstance(size, tuple) else size
    add(
        f"timm/{name}",
        lambda: timm.create_model(name, num_classes=10, **options),
        (1, 3, size, size),
    )


for _name, _options in TIMM.items():
    _timm(_name, _options)
