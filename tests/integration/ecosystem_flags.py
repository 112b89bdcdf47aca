"""Flags with which ecosystems compile packages, each with the file that says so.

Flags that only name folders, outputs and macros of a board are left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

_SAMD: Final = (
    "-g -Os -w -ffunction-sections -fdata-sections -nostdlib --param max-inline-insns-single=500"
)
_CPP: Final = "-fno-rtti -fno-exceptions"


@dataclass(frozen=True, slots=True, kw_only=True)
class Flags:
    """How an ecosystem compiles the sources of a library.

    Args:
        name: Of the ecosystem, as `package --for` takes it, and of the core.
        source: File that has the flags.
        machine: Flags of the core, which linking needs, too.
        both: Of C and C++.
        c: Of C alone.
        cpp: Of C++ alone.
    """

    name: str
    source: str
    machine: str
    both: str
    c: str = ""
    cpp: str = _CPP

    @property
    def ecosystem(self) -> str:
        return self.name.partition(" ")[0]

    @property
    def has_cpp17(self) -> bool:
        """Whether sources compile; gcc's own default is C++17."""
        return not {"-std=gnu++11", "-std=gnu++14"} & {*self.cpp.split()}


def _mbed(board: str, variant: str, machine: str, *more: str) -> Flags:
    return Flags(
        name=f"arduino {board}",
        source=f"arduino/ArduinoCore-mbed: platform.txt, boards.txt,"
        f" variants/{variant}/cxxflags.txt and cflags.txt",
        machine=f"-mthumb {machine}",
        both=" ".join(
            (
                "-w -g3 -nostdlib -Os -Wno-missing-field-initializers -g",
                "-Wno-unused-parameter -fdata-sections -ffunction-sections",
                "-fmessage-length=0 -fomit-frame-pointer -funsigned-char",
                "-fno-exceptions",
                *more,
            )
        ),
        c="-std=gnu11",
        cpp="-Wvla -fno-rtti -std=gnu++14",
    )


NANO_33_BLE: Final = _mbed(
    "Nano 33 BLE",
    "ARDUINO_NANO33BLE",
    "-mcpu=cortex-m4 -mfloat-abi=softfp -mfpu=fpv4-sp-d16",
    "-fno-delete-null-pointer-checks",
)
ZERO: Final = Flags(
    name="arduino Zero, MKR, Nano 33 IoT",
    source="arduino/ArduinoCore-samd: platform.txt",
    machine="-mcpu=cortex-m0plus -mthumb",
    both=_SAMD,
    c="-std=gnu11",
    cpp=f"-std=gnu++11 -fno-threadsafe-statics {_CPP}",
)
UNO_R4: Final = Flags(
    name="arduino Uno R4",
    source="arduino/ArduinoCore-renesas: platform.txt, boards.txt",
    machine="-mcpu=cortex-m4 -mfloat-abi=hard -mfpu=fpv4-sp-d16",
    both="-w -Os -g3 -nostdlib -fsigned-char -ffunction-sections"
    " -fdata-sections -fmessage-length=0 -fno-builtin",
    c="-std=gnu11",
    cpp=f"-fno-use-cxa-atexit {_CPP} -std=gnu++17",
)
WITHOUT_FLOATS: Final = Flags(
    name="platformio without a framework",
    source="platformio/platform-ststm32: builder/frameworks/_bare.py",
    machine="-mcpu=cortex-m4 -mthumb",
    both="-Os -ffunction-sections -fdata-sections -Wall",
)
_ZEPHYR: Final = (
    "-Os -fno-common -g -gdwarf-4 -fdiagnostics-color=always -ffreestanding"
    " -fno-pic -fno-pie -fno-asynchronous-unwind-tables -fno-strict-overflow"
    " -fno-reorder-functions -fno-defer-pop -ffunction-sections -fdata-sections"
    " -Wall -Wformat -Wformat-security -Wno-format-zero-length -Wno-main"
    " -Wno-unused-but-set-variable -Wno-address-of-packed-member -Wpointer-arith"
    " -Wexpansion-to-defined -Werror"
)
_ZEPHYR_CPP: Final = f"-fcheck-new -std=c++17 -Wno-register {_CPP}"
_ZEPHYR_FILES: Final = (
    "zephyrproject-rtos/zephyr: CMakeLists.txt,"
    " cmake/compiler/gcc/compiler_flags.cmake and target_arm.cmake;"
    " CONFIG_STD_CPP17 is in the package's prj.conf; twister adds -Werror"
)
_ESP_IDF: Final = (
    "-ffunction-sections -fdata-sections -Wall -Werror -Wno-error=unused-function"
    " -Wno-error=unused-variable -Wno-error=unused-but-set-variable"
    " -Wno-error=deprecated-declarations -Wextra -Wno-error=extra"
    " -Wno-unused-parameter -Wno-sign-compare -Wno-enum-conversion -gdwarf-4 -ggdb"
    " -Og -fno-shrink-wrap -fstrict-volatile-bitfields -fno-jump-tables"
    " -fno-tree-switch-conversion"
)
_ESP_IDF_C: Final = "-std=gnu17 -Wno-old-style-declaration"
_ESP_IDF_CPP: Final = f"-std=gnu++2b {_CPP} -fuse-cxa-atexit"
_ESP_IDF_FILES: Final = "espressif/esp-idf 5: CMakeLists.txt, tools/cmake/build.cmake and"
ALL: Final = (
    NANO_33_BLE,
    _mbed(
        "Portenta H7, M7 core",
        "PORTENTA_H7_M7",
        "-mcpu=cortex-m7 -mfloat-abi=softfp -mfpu=fpv5-d16",
    ),
    _mbed("Nano RP2040 Connect", "NANO_RP2040_CONNECT", "-mcpu=cortex-m0plus"),
    ZERO,
    UNO_R4,
    Flags(
        name="arduino STM32duino, Cortex-M4",
        source="stm32duino/Arduino_Core_STM32 2.1: platform.txt",
        machine="-mcpu=cortex-m4 -mfpu=fpv4-sp-d16 -mfloat-abi=hard -mthumb",
        both=_SAMD,
        c="-std=gnu11",
        cpp=f"-std=gnu++14 -fno-threadsafe-statics {_CPP} -fno-use-cxa-atexit",
    ),
    Flags(
        name="arduino Pico (RP2040)",
        source="earlephilhower/arduino-pico: platform.txt",
        machine="-march=armv6-m -mcpu=cortex-m0plus -mthumb",
        both="-Werror=return-type -ffunction-sections -fdata-sections -fno-exceptions -g -Os",
        c="-std=gnu17",
        cpp="-fno-rtti -std=gnu++17",
    ),
    Flags(
        name="arduino Pico 2 (RP2350)",
        source="earlephilhower/arduino-pico: platform.txt; raspberrypi/pico-sdk:"
        " cmake/preload/toolchains/pico_arm_cortex_m33_gcc.cmake",
        machine="-mcpu=cortex-m33 -mthumb -march=armv8-m.main+fp+dsp -mfloat-abi=softfp -mcmse",
        both="-Werror=return-type -ffunction-sections -fdata-sections -fno-exceptions -g -Os",
        c="-std=gnu17",
        cpp="-fno-rtti -std=gnu++17",
    ),
    WITHOUT_FLOATS,
    Flags(
        name="zephyr CONFIG_FPU=y, FP_HARDABI",
        source=_ZEPHYR_FILES,
        machine="-mthumb -mcpu=cortex-m4 -mfpu=fpv4-sp-d16 -mfloat-abi=hard",
        both=_ZEPHYR,
        c="-std=c99",
        cpp=_ZEPHYR_CPP,
    ),
    Flags(
        name="zephyr CONFIG_FPU=y, FP_SOFTABI",
        source=_ZEPHYR_FILES,
        machine="-mthumb -mcpu=cortex-m4 -mfpu=fpv4-sp-d16 -mfloat-abi=softfp",
        both=_ZEPHYR,
        c="-std=c99",
        cpp=_ZEPHYR_CPP,
    ),
    Flags(
        name="zephyr CONFIG_FPU=n",
        source=_ZEPHYR_FILES,
        machine="-mthumb -mcpu=cortex-m4",
        both=_ZEPHYR,
        c="-std=c99",
        cpp=_ZEPHYR_CPP,
    ),
    Flags(
        name="cmsis GCC",
        source="Open-CMSIS-Pack/devtools:"
        " tools/buildmgr/cbuildgen/config/GCC.10.3.1.cmake;"
        " the standard is in the package's csolution.yml",
        machine="-mcpu=cortex-m4 -mfpu=fpv4-sp-d16 -mfloat-abi=hard -mlittle-endian",
        both="-Os -g3 -Wall -Werror -fno-exceptions",
        c="-std=c11",
        cpp="-std=c++17 -fno-rtti",
    ),
    Flags(
        name="esp-idf ESP32-C6",
        source=f"{_ESP_IDF_FILES} toolchain-esp32c6.cmake",
        machine="-march=rv32imac_zicsr_zifencei -mabi=ilp32",
        both=_ESP_IDF,
        c=_ESP_IDF_C,
        cpp=_ESP_IDF_CPP,
    ),
    Flags(
        name="esp-idf ESP32-P4",
        source=f"{_ESP_IDF_FILES} toolchain-esp32p4.cmake, without _xesppie, which"
        " only its own gcc knows",
        machine="-march=rv32imafc_zicsr_zifencei -mabi=ilp32f",
        both=_ESP_IDF,
        c=_ESP_IDF_C,
        cpp=_ESP_IDF_CPP,
    ),
)
