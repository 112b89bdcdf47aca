// Second-stage boot loader of an RP2040: the first 256 bytes of its flash, which the boot ROM copies
// to RAM, checks and calls. It has the flash read by the command 03h, which every serial flash knows,
// at a quarter of the core's clock, and starts the firmware behind it.
//
// No build compiles this: `boot` of board_files/rp2040.toml has the bytes, with the checksum that the
// ROM wants behind them, and a test compares the two.
// Source: RP2040 data sheet, 2.8.1 (boot sequence), 4.10.13 (registers of the SSI).
    .syntax unified
    .cpu cortex-m0plus
    .thumb

    .text
    .global orch_boot2
    .thumb_func
orch_boot2:
    adr   r0, settings
    ldr   r1, ssi
    movs  r4, #6
1:  ldmia r0!, {r2, r3}
    str   r3, [r1, r2]
    subs  r4, #1
    bne   1b
    // As a reset does: the stack pointer and the first instruction are in the vector table.
    ldmia r0!, {r2, r3}
    str   r3, [r2]
    ldmia r3!, {r0, r1}
    msr   msp, r0
    bx    r1

    .balign 4
ssi:
    .word 0x18000000
settings:
    // Offset of a register, and its value.
    .word 0x08, 0           // SSIENR: off, as the others are fixed else
    .word 0x14, 4           // BAUDR
    .word 0x00, 0x001F0300  // CTRLR0: frames of 32 bits, one line, a command and then data
    .word 0xF4, 0x03000218  // SPI_CTRLR0: command 03h of 8 bits, address of 24
    .word 0x04, 0           // CTRLR1: one frame for each read
    .word 0x08, 1           // SSIENR: on
    .word 0xE000ED08, 0x10000100  // VTOR
