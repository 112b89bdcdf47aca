// Assembler macros that the loops of packed kernels with vectors share.
//
// Loops have eight sums, in the even registers, which are those that vmladava
// adds to: of two pixels and four channels, of one and eight, or of four and
// two. Sums become items the same way everywhere.
#pragma once

#include "assembly.h"

/// A function begins with `room` bytes on the stack, and `vectors`, which have
/// `saved` bytes, on top of the registers.
#define ORCH_LOOP_FRAMES                                                       \
  "  .macro orch_begin name, room, vectors, saved=0\n" ORCH_FUNCTION("\\name") \
      ORCH_SAVE                                                                \
      "  .ifnb \\vectors\n"                                                    \
      "  vpush {\\vectors}\n"                                                  \
      "  .endif\n"                                                             \
      "  sub sp, #\\room\n"                                                    \
      "  .cfi_adjust_cfa_offset \\room + \\saved\n"                            \
      "  .endm\n"                                                              \
      "  .macro orch_return room, vectors\n"                                   \
      "  add sp, #\\room\n"                                                    \
      "  .ifnb \\vectors\n"                                                    \
      "  vpop {\\vectors}\n"                                                   \
      "  .endif\n" ORCH_RETURN                                                 \
      "  .endm\n"                                                              \
      "  .macro orch_end name\n" ORCH_END("\\name") "  .endm\n"

/// Adds products to sums: each is a sum and two vectors. A load comes first;
/// the products are mostly of vectors that were loaded before it, as a core
/// loads while it multiplies.
#define ORCH_LOOP_PRODUCTS                                   \
  "  .macro orch_sum to, x, weights, more:vararg\n"          \
  "  vmladava.s8 \\to, \\x, \\weights\n"                     \
  "  .ifnb \\more\n"                                         \
  "  orch_sum \\more\n"                                      \
  "  .endif\n"                                               \
  "  .endm\n"                                                \
  "  .macro orch_load size, vector, from, products:vararg\n" \
  "  vldr\\size \\vector, \\from\n"                          \
  "  orch_sum \\products\n"                                  \
  "  .endm\n"

/// Multiplies sums, which are stored at `sums`: q0 has the first four, q1 the
/// others. Multipliers are loaded from `first`, and from `second` if the others
/// have their own; or all are in q2.
#define ORCH_LOOP_MULTIPLY                             \
  "  .macro orch_multiply first, second, sums=sp\n"    \
  "  stm \\sums, {r0, r2, r4, r6, r8, r10, r12, lr}\n" \
  "  .ifnb \\first\n"                                  \
  "  vldrw.32 q2, \\first\n"                           \
  "  .endif\n"                                         \
  "  vldrw.32 q0, [\\sums]\n"                          \
  "  vqrdmulh.s32 q0, q0, q2\n"                        \
  "  .ifnb \\second\n"                                 \
  "  vldrw.32 q3, \\second\n"                          \
  "  vldrw.32 q1, [\\sums, #16]\n"                     \
  "  vqrdmulh.s32 q1, q1, q3\n"                        \
  "  .else\n"                                          \
  "  vldrw.32 q1, [\\sums, #16]\n"                     \
  "  vqrdmulh.s32 q1, q1, q2\n"                        \
  "  .endif\n"                                         \
  "  .endm\n"

/// Ties of negative numbers go down, for which they are made smaller by one.
/// Without a shift there are none; where outputs begin at the lowest item, they
/// saturate, and nothing of this is needed. `less` becomes -1 where there is a
/// shift; it is that already if no shifts are given.
#define ORCH_LOOP_TIES                       \
  "  .macro orch_ties less, first, second\n" \
  "  .ifnb \\first\n"                        \
  "  vshr.s32 \\less, \\first, #31\n"        \
  "  .endif\n"                               \
  "  vpt.s32 lt, q0, zr\n"                   \
  "  vaddt.i32 q0, q0, \\less\n"             \
  "  .ifnb \\second\n"                       \
  "  vshr.s32 \\less, \\second, #31\n"       \
  "  .endif\n"                               \
  "  vpt.s32 lt, q1, zr\n"                   \
  "  vaddt.i32 q1, q1, \\less\n"             \
  "  .endm\n"

/// From results to items in turn, in the 16-bit lanes of q0, of which as many
/// are stored as there are.
#define ORCH_LOOP_ITEMS                                \
  "  .macro orch_narrow offset, first=q0, second=q1\n" \
  "  vqmovnb.s32 q0, \\first\n"                        \
  "  vqmovnt.s32 q0, \\second\n"                       \
  "  vqadd.s16 q0, q0, \\offset\n"                     \
  "  vqmovnb.s16 q0, q0\n"                             \
  "  .endm\n"                                          \
  "  .macro orch_shift offset, first, second\n"        \
  "  vrshl.s32 q0, q0, \\first\n"                      \
  "  vrshl.s32 q1, q1, \\second\n"                     \
  "  orch_narrow \\offset\n"                           \
  "  .endm\n"                                          \
  "  .macro orch_store to, left\n"                     \
  "  vctp.16 \\left\n"                                 \
  "  vpst\n"                                           \
  "  vstrbt.16 q0, \\to\n"                             \
  "  .endm\n"

/// In front of functions.
#define ORCH_LOOP_MACROS                                                \
  ORCH_LOOP_FRAMES ORCH_LOOP_PRODUCTS ORCH_LOOP_MULTIPLY ORCH_LOOP_TIES \
      ORCH_LOOP_ITEMS
/// Behind them: with -flto all assembly is one text.
#define ORCH_LOOP_MACROS_END                                       \
  "  .purgem orch_begin; .purgem orch_return; .purgem orch_end\n"  \
  "  .purgem orch_sum; .purgem orch_load; .purgem orch_multiply\n" \
  "  .purgem orch_ties; .purgem orch_narrow; .purgem orch_shift\n" \
  "  .purgem orch_store\n"
