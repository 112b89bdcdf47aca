// Firmware that calls one function, whose instructions test_cycles.py counts.

#include <stdint.h>

#include "orch/platform.h"

extern "C" {
uint32_t counted_words[4];
__attribute__((naked, aligned(1024))) void counted();
}

#if defined(BYTES_BEFORE)
// The loop lies across a border of the emulator's pages of 1 KiB.
#define TEXT_OF(number) #number
#define SPACE_OF(number) "b 0f\n.space " TEXT_OF(number) "\n0:\n"
#define SPACE SPACE_OF(BYTES_BEFORE)
#else
#define SPACE
#endif

#if defined(__ARM_FEATURE_MVE)

__attribute__((naked)) void counted() {
  asm volatile(SPACE
               "push {r4, lr}\n"
               "ldr r0, =counted_words\n"
               "movs r1, #5\n"
               "movs r2, #0\n"
               "dls lr, r1\n"
               "1:\n"
               "vldrw.u32 q0, [r0]\n"
               "vmladava.s8 r2, q0, q0\n"
               "vadd.i32 q1, q0, q0\n"
               "vadd.i32 q2, q1, q0\n"
               "vstrw.32 q2, [r0]\n"
               "le lr, 1b\n"
               "pop {r4, pc}\n"
               ".ltorg\n");
}

#else

__attribute__((naked)) void counted() {
  asm volatile(SPACE
               "push {r4, r5, r6, lr}\n"
               "ldr r0, =counted_words\n"
               "movs r4, #7\n"
               "movs r5, #0\n"
               "1:\n"
               "ldr r1, [r0]\n"
               "ldr r2, [r0, #4]\n"
               "muls r1, r2, r1\n"
               "ldm r0!, {r2, r3}\n"
               "subs r0, #8\n"
               "str r1, [r0]\n"
               "subs r4, #1\n"
               "bne 1b\n"
               "pop {r4, r5, r6, pc}\n"
               ".ltorg\n");
}

#endif

int orch_application(const char*, const char*) {
  counted();
  return 0;
}
