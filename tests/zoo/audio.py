"""Models of torchaudio, with random weights, and its front ends."""
# mypy: ignore-errors

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
from torch import nn

from tests.zoo.net import add

_glob = Path.glob


def _without_library(folder: Path, pattern: str, **more: Any) -> Any:
    """torchaudio's own library fits one PyTorch only; no model here calls it."""
    return () if "torchaudio" in pattern else _glob(folder, pattern, **more)


with patch.object(Path, "glob", _without_library):
    import torchaudio
    from torchaudio import models
    from torchaudio.models.conformer import ConformerLayer

LENGTHS = 20


class _First(nn.Module):
    """The first output only; lengths are fixed."""

    def __init__(self, net: nn.Module, *lengths: int) -> None:
        super().__init__()
        self.net = net
        self.lengths = [torch.tensor([n]) for n in lengths]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found = self.net(x, *self.lengths)
        return found[0] if isinstance(found, tuple | list) else found


class _Unmasked(nn.Module):
    """A layer whose mask is None."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x, None)


def _audio(name: str, make: Any, *inputs: Any) -> None:
    add(f"torchaudio/{name}", make, *inputs)


_audio("deepspeech", lambda: models.DeepSpeech(16, n_hidden=32, n_class=9), (1, 1, 20, 16))
_audio("conformer_layer", lambda: _Unmasked(ConformerLayer(16, 32, 2, 7)), (LENGTHS, 1, 16))
_audio(
    "emformer",
    lambda: _First(models.Emformer(16, 2, 32, 1, 4, right_context_length=2), LENGTHS),
    (1, LENGTHS + 2, 16),
)
_audio(
    "conv_tasnet",
    lambda: models.ConvTasNet(
        num_sources=2,
        enc_kernel_size=16,
        enc_num_feats=16,
        msk_kernel_size=3,
        msk_num_feats=8,
        msk_num_hidden_feats=16,
        msk_num_layers=2,
        msk_num_stacks=1,
    ),
    (1, 1, 256),
)
_audio(
    "wavernn",
    lambda: models.WaveRNN([2, 2], 8, 4, 1, 16, 16, 5, 8, 16, 8),
    (1, 1, 16),
    (1, 1, 8, 8),
)
for _name, _extractor, _first, _outputs in (
    ("wav2vec2", "group_norm", False, 9),
    ("hubert_layer_norm", "layer_norm", True, None),
):
    _audio(
        _name,
        lambda e=_extractor, f=_first, o=_outputs: _First(
            models.wav2vec2_model(
                extractor_mode=e,
                extractor_conv_layer_config=[(8, 10, 5), (8, 3, 2)],
                extractor_conv_bias=f,
                encoder_embed_dim=16,
                encoder_projection_dropout=0.0,
                encoder_pos_conv_kernel=8,
                encoder_pos_conv_groups=2,
                encoder_num_layers=1,
                encoder_num_heads=2,
                encoder_attention_dropout=0.0,
                encoder_ff_interm_features=32,
                encoder_ff_interm_dropout=0.0,
                encoder_dropout=0.0,
                encoder_layer_norm_first=f,
                encoder_layer_drop=0.0,
                aux_num_out=o,
            )
        ),
        (1, 400),
    )
for _name, _make in (
    ("spectrogram", lambda: torchaudio.transforms.Spectrogram(n_fft=64)),
    ("mel", lambda: torchaudio.transforms.MelSpectrogram(8000, n_fft=64, n_mels=8)),
    (
        "log_mel",
        lambda: nn.Sequential(
            torchaudio.transforms.MelSpectrogram(8000, n_fft=64, n_mels=8),
            torchaudio.transforms.AmplitudeToDB(),
        ),
    ),
    (
        "mfcc",
        lambda: torchaudio.transforms.MFCC(8000, n_mfcc=5, melkwargs={"n_fft": 64, "n_mels": 8}),
    ),
    ("mu_law", lambda: torchaudio.transforms.MuLawEncoding(32)),
    ("preemphasis", lambda: torchaudio.transforms.Preemphasis()),
    ("deltas", lambda: torchaudio.transforms.ComputeDeltas(5)),
):
    _audio(f"front_{_name}", _make, (1, 4, 40) if _name == "deltas" else (1, 512))
