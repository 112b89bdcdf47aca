"""What ExecuTorch costs on the same cores, measured before.

Source: ExecuTorch 1.5.0 (main, August 2026), real runtime and portable kernels, bare
metal under QEMU: arm-none-eabi-gcc 12.2 -Os (`fast`: kernels at -O2), newlib-nano,
--gc-sections, no exceptions, RTTI or logging, operators and prim ops selected, registry
sized by gen_max_kernel_num: the smallest that unmodified upstream gives. Instructions:
QEMU -icount and SysTick, good to 40. Models: plain float32 exports.

Flash: code, constants and load image of data, without the program; 2.4 KB of it are
the test harness. RAM: variables, method allocator, 512 bytes of temporary memory and
the deepest stack, without the planned arenas.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """ExecuTorch's figures for one model on one core; bytes and instructions.

    Instructions of models with other multiply-accumulates than the case of the corpus
    (`macs`) cannot be compared with it.
    """

    flash_bytes: int
    ram_bytes: int
    load: int
    inference: int
    fast_inference: int
    fast_flash_bytes: int
    macs: int


EXECUTORCH = {
    ("add_mul", "cortex-m55"): Reference(
        flash_bytes=40_136,
        ram_bytes=5_028 - 1_536,
        load=10_781,
        inference=9_156,
        fast_inference=6_781,
        fast_flash_bytes=48_512,
        macs=0,
    ),
    ("kws_dscnn_fp32", "cortex-m55"): Reference(
        flash_bytes=69_900,
        ram_bytes=74_916 - 64_000,
        load=131_438,
        inference=333_049_000,
        fast_inference=168_926_000,
        fast_flash_bytes=93_780,
        macs=2_656_768,
    ),
    ("ic_resnet8_fp32", "cortex-m55"): Reference(
        flash_bytes=77_752,
        ram_bytes=207_712 - 196_608,
        load=138_438,
        inference=1_273_724_000,
        fast_inference=513_804_000,
        fast_flash_bytes=106_192,
        macs=12_501_632,
    ),
    ("vww_mobilenetv1_fp32", "cortex-m55"): Reference(
        flash_bytes=69_900,
        ram_bytes=318_572 - 294_912,
        load=353_125,
        inference=967_775_000,
        fast_inference=494_465_000,
        fast_flash_bytes=93_780,
        macs=7_489_664,
    ),
    ("ad_autoencoder_fp32", "cortex-m55"): Reference(
        flash_bytes=43_300,
        ram_bytes=338_812 - 330_752,
        load=128_594,
        inference=43_288_000,
        fast_inference=18_351_000,
        fast_flash_bytes=52_452,
        macs=264_192,
    ),
    ("add_mul", "cortex-m4"): Reference(
        flash_bytes=41_888,
        ram_bytes=5_020 - 1_536,
        load=10_600,
        inference=8_840,
        fast_inference=6_600,
        fast_flash_bytes=49_832,
        macs=0,
    ),
    ("kws_dscnn_fp32", "cortex-m4"): Reference(
        flash_bytes=72_356,
        ram_bytes=74_952 - 64_000,
        load=129_720,
        inference=330_939_000,
        fast_inference=287_477_000,
        fast_flash_bytes=95_844,
        macs=2_656_768,
    ),
    ("ic_resnet8_fp32", "cortex-m4"): Reference(
        flash_bytes=80_232,
        ram_bytes=207_748 - 196_608,
        load=136_640,
        inference=1_272_048_000,
        fast_inference=1_032_780_000,
        fast_flash_bytes=108_072,
        macs=12_501_632,
    ),
    ("vww_mobilenetv1_fp32", "cortex-m4"): Reference(
        flash_bytes=72_356,
        ram_bytes=318_608 - 294_912,
        load=348_520,
        inference=961_406_000,
        fast_inference=837_605_000,
        fast_flash_bytes=95_844,
        macs=7_489_664,
    ),
    ("ad_autoencoder_fp32", "cortex-m4"): Reference(
        flash_bytes=44_900,
        ram_bytes=338_812 - 330_752,
        load=126_560,
        inference=41_701_000,
        fast_inference=18_355_000,
        fast_flash_bytes=53_860,
        macs=264_192,
    ),
}
"""By case and core. `add_mul` there adds and multiplies 128 numbers, the one of the
corpus multiplies 2 x 2 matrices. The ResNet there has its batch normalisations folded
into the convolutions, the one of the corpus runs them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Int8Reference:
    """A model on one core; bytes and instructions."""

    flash_bytes: int
    ram_kib: float
    load: int
    inference: int


def _int8(flash: int, ram: float, load: int, inference: float) -> Int8Reference:
    return Int8Reference(
        flash_bytes=flash, ram_kib=ram, load=load * 1000, inference=round(inference * 1_000_000)
    )


EXECUTORCH_INT8 = {
    ("kws", "cortex-m55"): _int8(38_860, 14.4, 171, 1.804),
    ("kws", "cortex-m4"): _int8(44_964, 14.3, 169, 8.479),
    ("resnet8", "cortex-m55"): _int8(33_260, 15.2, 189, 4.827),
    ("resnet8", "cortex-m4"): _int8(40_348, 15.1, 186, 30.02),
    ("vww", "cortex-m55"): _int8(38_860, 32.5, 438, 6.550),
    ("vww", "cortex-m4"): _int8(44_964, 32.5, 433, 26.09),
    ("autoencoder", "cortex-m55"): _int8(24_164, 8.5, 91, 0.155),
    ("autoencoder", "cortex-m4"): _int8(26_268, 8.0, 82, 0.632),
}
"""ExecuTorch 1.5 with CMSIS-NN, arm-none-eabi-gcc 12.2, its core at -Os and CMSIS-NN at
-Ofast. Flash as above, with 2.4 KB of test harness; RAM is method memory, stack and
data beside the planned arena. The models have the shapes of the corpus' int8 models."""

EXECUTORCH_FOLDED = {
    "cortex-m55": _int8(40_632, 6.3, 87, 9.42),
    "cortex-m4": _int8(42_304, 6.3, 85, 9.42),
}
"""ExecuTorch 1.5 with the fp32 autoencoder, whose constants were folded when it was
exported, by core; measured as EXECUTORCH_INT8."""

TFLITE_MICRO_INT8 = {
    ("kws", "cortex-m55"): _int8(39_412, 0, 267, 1.791),
    ("kws", "cortex-m4"): _int8(49_908, 0, 800, 7.870),
    ("resnet8", "cortex-m55"): _int8(34_576, 0, 224, 4.863),
    ("resnet8", "cortex-m4"): _int8(46_144, 0, 548, 30.03),
    ("vww", "cortex-m55"): _int8(39_412, 0, 1_058, 6.929),
    ("vww", "cortex-m4"): _int8(49_908, 0, 3_523, 26.18),
    ("autoencoder", "cortex-m55"): _int8(23_476, 0, 518, 0.175),
    ("autoencoder", "cortex-m4"): _int8(31_684, 0, 1_955, 0.698),
}
"""TFLite Micro on the same shapes, float inputs and outputs, CMSIS-NN at -Ofast, error
strings stripped. Its RAM is not split in the same way and left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """The best closed result of MLPerf Tiny for a net on a core, in million cycles."""

    million_cycles: float
    by: str


_PUBLISHED_BOARDS = {
    "M4": "STM32L4R5",
    "M33": "STM32U575",
    "M7": "STM32H7A3",
    "M85": "RA8D1, TFLite Micro with CMSIS-NN",
}
_PUBLISHED = {
    "autoencoder": ("0.486 Plumerai", "0.495 Bosch", "0.303 Bosch", "0.255"),
    "resnet8": ("19.8 ST", "16.7 Plumerai", "11.4 ST", "4.07"),
    "kws": ("5.19 ST", "4.64 ST", "3.17 ST", "1.66"),
    "vww": ("10.7 ST", "9.48 ST", "6.67 ST", "6.43"),
}
PUBLISHED = {
    (net, core): Published(
        million_cycles=float(text.split()[0]),
        by=" ".join((*text.split()[1:], _PUBLISHED_BOARDS[core])),
    )
    for net, texts in _PUBLISHED.items()
    for core, text in zip(_PUBLISHED_BOARDS, texts, strict=True)
}
"""The best of the closed division of MLPerf Tiny on devices, by net and core: latency
times clock, as MLCommons publishes them (https://mlcommons.org/benchmarks/inference-tiny).
The nets have the shapes of the corpus' int8 models."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a net may take at most, prelinked.

    Args:
        m4_speed: Million instructions on M4 with `speed`.
        m4_size: The same with `size`.
        m4_cycles: Million estimated cycles on M4 with `speed`.
        m55_speed: Million instructions on M55 with `speed`.
        m55_size: The same with `size`.
        m55_flash: Bytes without the model on M55 with `size`.
        m4_flash: The same on M4.
        ram: Bytes beside the arena, pixels that are widened included.
        arena: Bytes of the arena without such pixels.
    """

    m4_speed: float
    m4_size: float
    m4_cycles: float
    m55_speed: float
    m55_size: float
    m55_flash: int
    m4_flash: int
    ram: int
    arena: int


GOALS = {
    "autoencoder": Wanted(0.24, 0.25, 0.35, 0.05, 0.06, 4_000, 4_200, 1_000, 3_200),
    "resnet8": Wanted(11.0, 12.5, 16.0, 1.8, 2.2, 8_000, 8_000, 1_600, 49_152),
    "kws": Wanted(2.8, 3.2, 4.2, 0.70, 0.85, 8_000, 8_300, 1_200, 16_000),
    "vww": Wanted(8.0, 9.5, 10.5, 1.9, 2.3, 9_000, 9_000, 1_600, 138_240),
}
LOAD_GOAL = 60_000
"""Instructions to load DS-CNN from its `.pte` file."""

CMSIS_NN_HELD_OUT = {
    ("unet", "cortex-m4"): 15_059_251,
    ("head10", "cortex-m4"): 686_085,
    ("rgb", "cortex-m4"): 7_084_989,
    ("groups", "cortex-m4"): 1_864_362,
    ("lstm", "cortex-m4"): 340_247,
    ("attention", "cortex-m4"): 653_051,
    ("unet", "cortex-m55"): 3_323_751,
    ("head10", "cortex-m55"): 234_020,
    ("rgb", "cortex-m55"): 2_032_139,
    ("groups", "cortex-m55"): 598_665,
    ("lstm", "cortex-m55"): 140_472,
    ("attention", "cortex-m55"): 220_329,
}
"""Instructions of an inference with CMSIS-NN 19.1.0, by net and core: its kernels, by
examples/cmsis_nn, arm-none-eabi-gcc 12.2, `optimize = "speed"`. Benchmark `held_out`
measures them again if the environment variable CMSIS_NN names a checkout. CMSIS-NN
refuses the first convolution of `waves`."""
