// The assembly of tile_mve.h.
#include "isa.h"

#if ORCH_ISA == ORCH_ISA_MVE

#include <stddef.h>

#include "assembly.h"
#include "tile_mve.h"

namespace orch::cortex_m {

static_assert(offsetof(Line, begin) == 16 && offsetof(Line, count) == 32 &&
                  offsetof(Line, items) == 36 && offsetof(Line, x_skip) == 40 &&
                  offsetof(Line, w_skip) == 44 &&
                  offsetof(Line, x_column) == 48 &&
                  offsetof(Line, y_column) == 52 &&
                  offsetof(Line, y_end) == 56 && offsetof(Line, lanes) == 60 &&
                  offsetof(Line, offset) == 64 && offsetof(Line, low) == 68 &&
                  offsetof(Line, high) == 72 && offsetof(Line, sums) == 76 &&
                  offsetof(Line, multipliers) == 92 &&
                  offsetof(Line, shifts) == 108,
              "the assembly knows where things are");

}  // namespace orch::cortex_m

asm(ORCH_FUNCTION("orch_compute_line") ORCH_SAVE_VECTORS R"(
  mov r3, r2
  ldr lr, [r0, #60]
  vctp.32 lr
  ldr lr, [r0, #68]
  vdup.32 q3, lr
  ldr lr, [r0, #64]
  vdup.32 q4, lr
  ldr lr, [r0, #72]
  vdup.32 q5, lr
  vldrw.32 q6, [r0, #92]
  vldrw.32 q7, [r0, #108]
1:  @ a pixel
  ldrd r2, r4, [r0, #16]
  ldrd r6, r8, [r0, #24]
  ldr r12, [r0, #32]
  ldrd r5, r9, [r0]
  ldrd r10, r11, [r0, #8]
2:  @ a run
  ldr lr, [r0, #36]
  wlstp.8 lr, lr, 4f
3:  @ sixteen items
  vldrb.8 q0, [r1], #16
  vldrb.8 q1, [r5], #16
  vmladava.s8 r2, q0, q1
  vldrb.8 q2, [r9], #16
  vmladava.s8 r4, q0, q2
  vldrb.8 q1, [r10], #16
  vmladava.s8 r6, q0, q1
  vldrb.8 q2, [r11], #16
  vmladava.s8 r8, q0, q2
  letp lr, 3b
4:
  subs r12, r12, #2
  bgt 5f
  vmov q0[2], q0[0], r2, r6
  vmov q0[3], q0[1], r4, r8
  bmi 6f
  vqrdmulh.s32 q0, q0, q6
  @ Ties of negative numbers go down, for which they are made smaller.
  vand q1, q0, q7
  vshr.s32 q1, q1, #31
  vadd.i32 q0, q0, q1
  vrshl.s32 q0, q0, q7
  vadd.i32 q0, q0, q4
  vmax.s32 q0, q0, q3
  vmin.s32 q0, q0, q5
  vpst
  vstrbt.32 q0, [r3]
  ldrd r2, r4, [r0, #48]
  add r1, r1, r2
  add r3, r3, r4
  ldr lr, [r0, #56]
  cmp r3, lr
  bne 1b
  b 7f
5:  @ to the next run
  ldr lr, [r0, #44]
  add r5, r5, lr
  add r9, r9, lr
  add r10, r10, lr
  add r11, r11, lr
  ldr lr, [r0, #40]
  add r1, r1, lr
  b 2b
6:
  vstrw.32 q0, [r0, #76]
7:
)" ORCH_RETURN_VECTORS ORCH_END("orch_compute_line"));

#endif
