"""Configurations of transformers, small and with random weights."""
# mypy: ignore-errors

from __future__ import annotations

from typing import Any

import torch
import transformers
from torch.export import Dim

from tests.zoo.net import add, ids, only

WORDS = 99
TOKENS = ids(WORDS, 1, 8)
TEXT = {
    "vocab_size": WORDS,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "max_position_embeddings": 64,
}
VIEW = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "image_size": 32,
    "patch_size": 8,
}
GROUPED = TEXT | {"num_key_value_heads": 2, "pad_token_id": 0, "head_dim": 8}
STEPS = Dim("steps", min=2, max=32)


def _net(
    name: str,
    kind: str,
    config: dict[str, Any],
    inputs: dict[str, Any],
    *,
    dynamic: Any = None,
    others: tuple[Any, ...] = (),
    **fixed: Any,
) -> None:
    """A model of `kind`: its prefix, or `Config:Model`."""
    settings, _, model = kind.partition(":")

    def make() -> Any:
        own = getattr(transformers, f"{settings}Config")(**config)
        own._attn_implementation = "eager"
        own._experts_implementation = "eager"
        return getattr(transformers, model or f"{settings}Model")(own)

    add(
        f"transformers/{name}",
        only(make, *inputs, **fixed),
        *inputs.values(),
        dynamic=dynamic,
        others=others,
    )


def _text(name: str, kind: str, config: dict[str, Any] = TEXT, **fixed: Any) -> None:
    _net(name, kind, config, {"input_ids": TOKENS}, **fixed)


def _causal(name: str, kind: str, config: dict[str, Any] = GROUPED) -> None:
    _text(name, kind, config, use_cache=False)


def _image(name: str, kind: str, config: dict[str, Any] = VIEW, size: int = 32) -> None:
    _net(name, kind, config, {"pixel_values": (1, 3, size, size)})


_text("bert", "Bert")
_text("bert_classifier", "Bert:BertForSequenceClassification")
_net(
    "bert_mask", "Bert", TEXT,
    {"input_ids": TOKENS, "attention_mask": lambda: torch.tensor([[1] * 6 + [0] * 2])},
)  # fmt: skip
_net(
    "bert_dynamic",
    "Bert",
    TEXT,
    {"input_ids": TOKENS},
    dynamic=(({1: STEPS},),),
    others=(ids(WORDS, 1, 13),),
)
_text("roberta", "Roberta")
_text(
    "distilbert", "DistilBert",
    {"vocab_size": WORDS, "dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 64},
)  # fmt: skip
_text("albert", "Albert", TEXT | {"embedding_size": 16})
_text("electra", "Electra", TEXT | {"embedding_size": 16})
_text("mobilebert", "MobileBert", TEXT | {
    "embedding_size": 16, "intra_bottleneck_size": 16, "true_hidden_size": 16,
})  # fmt: skip
_text("squeezebert", "SqueezeBert", TEXT | {"embedding_size": 32})
_text(
    "deberta_v2", "DebertaV2", TEXT | {"relative_attention": True, "pos_att_type": ["p2c", "c2p"]}
)
_text("mpnet", "MPNet")
_text("fnet", "FNet", {k: v for k, v in TEXT.items() if k != "num_attention_heads"})
_text("modernbert", "ModernBert", TEXT | {"pad_token_id": 0})
_text("funnel", "Funnel:FunnelBaseModel", {
    "vocab_size": WORDS, "d_model": 32, "n_head": 4, "d_head": 8, "d_inner": 64,
    "block_sizes": [1, 1],
})  # fmt: skip
_text("xlm_roberta", "XLMRoberta")
_text("canine", "Canine", TEXT | {
    "num_hash_buckets": 32, "downsampling_rate": 4, "local_transformer_stride": 4,
    "max_position_embeddings": 64,
})  # fmt: skip
_causal("gpt2", "GPT2", {
    "vocab_size": WORDS, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64,
})  # fmt: skip
_causal("gpt_neo", "GPTNeo", {
    "vocab_size": WORDS, "hidden_size": 32, "num_layers": 2, "num_heads": 4,
    "attention_types": [[["global", "local"], 1]], "max_position_embeddings": 64,
})  # fmt: skip
_causal("gpt_neox", "GPTNeoX", TEXT)
_causal("opt", "OPT", {
    "vocab_size": WORDS, "hidden_size": 32, "num_hidden_layers": 2, "ffn_dim": 64,
    "num_attention_heads": 4, "max_position_embeddings": 64, "word_embed_proj_dim": 32,
})  # fmt: skip
_causal("bloom", "Bloom", {
    "vocab_size": WORDS, "hidden_size": 32, "n_layer": 2, "n_head": 4,
})  # fmt: skip
_causal("llama", "Llama")
_causal("llama_logits", "Llama:LlamaForCausalLM")
_net(
    "llama_dynamic", "Llama", GROUPED, {"input_ids": TOKENS},
    dynamic=(({1: STEPS},),), others=(ids(WORDS, 1, 13),), use_cache=False,
)  # fmt: skip
_causal("qwen2", "Qwen2")
_causal("qwen3", "Qwen3")
_causal("gemma", "Gemma")
_causal("gemma2", "Gemma2")
_causal("mistral", "Mistral")
_causal("phi", "Phi")
_causal("phi3", "Phi3")
_causal("stablelm", "StableLm")
_causal("cohere", "Cohere")
_causal("olmo", "Olmo")
_causal("granite", "Granite")
_causal("smollm3", "SmolLM3")
_causal("mixtral", "Mixtral", GROUPED | {"num_local_experts": 2})
_causal("mamba", "Mamba", {
    "vocab_size": WORDS, "hidden_size": 32, "state_size": 4, "num_hidden_layers": 2,
})  # fmt: skip
_causal("rwkv", "Rwkv", {
    "vocab_size": WORDS, "hidden_size": 32, "num_hidden_layers": 2,
    "attention_hidden_size": 32, "context_length": 32, "rescale_every": 0,
})  # fmt: skip
_T5 = {
    "vocab_size": WORDS, "d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2,
    "num_heads": 4,
}  # fmt: skip
_text("t5_encoder", "T5:T5EncoderModel", _T5)
_net(
    "t5", "T5", _T5, {"input_ids": TOKENS, "decoder_input_ids": ids(WORDS, 1, 5)},
    use_cache=False,
)  # fmt: skip
_BART = {
    "vocab_size": WORDS, "d_model": 32, "encoder_layers": 1, "decoder_layers": 1,
    "encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 64,
    "decoder_ffn_dim": 64, "max_position_embeddings": 64, "pad_token_id": 1,
}  # fmt: skip
for _name, _kind in {"bart": "Bart", "marian": "Marian", "pegasus": "Pegasus"}.items():
    _net(
        _name, _kind, _BART,
        {"input_ids": TOKENS, "decoder_input_ids": ids(WORDS, 1, 5)}, use_cache=False,
    )  # fmt: skip

_WHISPER = {
    "vocab_size": WORDS, "num_mel_bins": 8, "d_model": 32, "encoder_layers": 1,
    "decoder_layers": 1, "encoder_attention_heads": 4, "decoder_attention_heads": 4,
    "encoder_ffn_dim": 64, "decoder_ffn_dim": 64, "max_source_positions": 16,
    "max_target_positions": 16, "pad_token_id": 0, "bos_token_id": 1,
    "eos_token_id": 2, "decoder_start_token_id": 1,
}  # fmt: skip
_net("whisper", "Whisper", _WHISPER, {
    "input_features": (1, 8, 32), "decoder_input_ids": ids(WORDS, 1, 4),
}, use_cache=False)  # fmt: skip


def _whisper_encoder() -> Any:
    from transformers.models.whisper.modeling_whisper import WhisperEncoder  # noqa: PLC0415

    return WhisperEncoder(transformers.WhisperConfig(**_WHISPER))


add("transformers/whisper_encoder", only(_whisper_encoder, "input_features"), (1, 8, 32))
_SPEECH = {
    "hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 4,
    "intermediate_size": 64, "conv_dim": (16, 16), "conv_kernel": (5, 3),
    "conv_stride": (4, 2), "num_feat_extract_layers": 2,
    "num_conv_pos_embeddings": 8, "num_conv_pos_embedding_groups": 2,
}  # fmt: skip
for _name, _kind in {
    "wav2vec2": "Wav2Vec2", "hubert": "Hubert", "wavlm": "WavLM",
    "sew": "SEW", "unispeech": "UniSpeech", "data2vec_audio": "Data2VecAudio",
}.items():  # fmt: skip
    _net(_name, _kind, _SPEECH, {"input_values": (1, 400)})
_net("speech_to_text", "Speech2Text", _BART | {
    "input_feat_per_channel": 8, "input_channels": 1, "conv_channels": 16,
    "max_source_positions": 64, "max_target_positions": 64,
}, {
    "input_features": (1, 24, 8), "decoder_input_ids": ids(WORDS, 1, 4),
}, use_cache=False)  # fmt: skip
_net("spectrogram_transformer", "AST", VIEW | {
    "max_length": 32, "num_mel_bins": 16, "frequency_stride": 8, "time_stride": 8,
}, {"input_values": (1, 32, 16)})  # fmt: skip
_net("encodec", "Encodec", {
    "num_filters": 4, "hidden_size": 16, "codebook_size": 16, "codebook_dim": 16,
    "num_lstm_layers": 1, "upsampling_ratios": [4, 2], "num_residual_layers": 1,
}, {"input_values": (1, 1, 320)})  # fmt: skip
_net("vits_like_univnet", "UnivNet:UnivNetModel", {
    "model_in_channels": 8, "model_hidden_channels": 8, "num_mel_bins": 8,
    "kernel_predictor_hidden_channels": 8,
}, {"input_features": (1, 6, 8), "noise_sequence": (1, 6, 8)})  # fmt: skip

_image("vit", "ViT")
_image("deit", "DeiT")
_image("beit", "Beit", VIEW | {"use_relative_position_bias": True})
_image("dinov2", "Dinov2", {k: v for k, v in VIEW.items() if k != "intermediate_size"})
_image("clip_vision", "CLIPVision", VIEW)
_text("clip_text", "CLIPText", TEXT | {"eos_token_id": 98})
_image("siglip_vision", "SiglipVision", VIEW)
_text("siglip_text", "SiglipText", TEXT)
_image("mobilevit", "MobileViT", {
    "image_size": 32, "hidden_sizes": [16, 24, 32], "neck_hidden_sizes": [
        8, 8, 16, 16, 24, 24, 32], "num_attention_heads": 2,
})  # fmt: skip
_image("mobilevitv2", "MobileViTV2", {"image_size": 64, "width_multiplier": 0.25}, 64)
_image("mobilenet_v1", "MobileNetV1", {"depth_multiplier": 0.25})
_image("mobilenet_v2", "MobileNetV2", {"depth_multiplier": 0.35})
_SMALL = {"hidden_sizes": [8, 16, 32, 64], "depths": [1, 1, 1, 1]}
_image("segformer", "Segformer:SegformerForSemanticSegmentation", _SMALL | {
    "num_attention_heads": [1, 2, 4, 8], "decoder_hidden_size": 16,
})  # fmt: skip
_image("convnext", "ConvNext", _SMALL)
_image("convnextv2", "ConvNextV2", _SMALL)
_image("resnet", "ResNet", _SMALL | {"embedding_size": 8})
_image("regnet", "RegNet", _SMALL | {"embedding_size": 8, "groups_width": 8})
_image("poolformer", "PoolFormer", _SMALL)
_image("pvt_v2", "PvtV2", _SMALL | {"num_attention_heads": [1, 2, 4, 8], "image_size": 32})
_image("levit", "Levit", {
    "image_size": 32, "hidden_sizes": [16, 24, 32], "num_attention_heads": [2, 3, 4],
    "depths": [1, 1, 1], "key_dim": [8, 8, 8],
})  # fmt: skip
_image("swin", "Swin", {
    "image_size": 32, "patch_size": 4, "embed_dim": 8, "depths": [1, 1],
    "num_heads": [2, 4], "window_size": 4,
})  # fmt: skip
_image("swinv2", "Swinv2", {
    "image_size": 32, "patch_size": 4, "embed_dim": 8, "depths": [1, 1],
    "num_heads": [2, 4], "window_size": 4,
})  # fmt: skip
_image("dpt", "DPT:DPTForDepthEstimation", VIEW | {
    "backbone_out_indices": [0, 1, 2, 3], "num_hidden_layers": 4,
    "neck_hidden_sizes": [8, 8, 16, 16], "fusion_hidden_size": 8, "is_hybrid": False,
})  # fmt: skip
_image("glpn", "GLPN:GLPNForDepthEstimation", _SMALL | {
    "num_attention_heads": [1, 2, 4, 8], "decoder_hidden_size": 16,
})  # fmt: skip
_image("yolos", "Yolos:YolosForObjectDetection", VIEW | {
    "image_size": [32, 32], "num_detection_tokens": 5, "num_labels": 4,
})  # fmt: skip
_image("super_resolution", "Swin2SR:Swin2SRForImageSuperResolution", {
    "image_size": 16, "embed_dim": 12, "depths": [1, 1], "num_heads": [2, 2],
    "window_size": 4, "upscale": 2,
})  # fmt: skip
_net("patchtst", "PatchTST", {
    "num_input_channels": 3, "context_length": 32, "patch_length": 8,
    "patch_stride": 8, "d_model": 16, "num_hidden_layers": 2, "ffn_dim": 32,
    "num_attention_heads": 4,
}, {"past_values": (1, 32, 3)})  # fmt: skip
_net("patchtsmixer", "PatchTSMixer", {
    "num_input_channels": 3, "context_length": 32, "patch_length": 8,
    "patch_stride": 8, "d_model": 16, "num_layers": 2,
}, {"past_values": (1, 32, 3)})  # fmt: skip
