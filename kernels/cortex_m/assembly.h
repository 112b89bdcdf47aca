// How functions in assembly begin and end. Compilers call them as the AAPCS
// says, whatever flags leave of the registers: a frame pointer, the base of
// static data, or none of them for inline assembly.
#pragma once

/// Begins the function `name`, in a section of its own.
#define ORCH_FUNCTION(name)                              \
  "  .section .text." name                               \
  ", \"ax\", %progbits\n"                                \
  "  .syntax unified\n  .thumb\n  .balign 4\n"           \
  "  .globl " name "\n  .hidden " name "\n  .type " name \
  ", %function\n"                                        \
  "  .thumb_func\n" name                                 \
  ":\n"                                                  \
  "  .cfi_sections .debug_frame\n  .cfi_startproc\n"
#define ORCH_END(name) \
  "  .cfi_endproc\n  .size " name ", . - " name "\n  .text\n"

/// Saves registers, which are 36 bytes then; vectors are 64 more.
#define ORCH_SAVE                                          \
  "  push {r4-r11, lr}\n  .cfi_def_cfa_offset 36\n"        \
  "  .cfi_rel_offset r4, 0\n  .cfi_rel_offset r5, 4\n"     \
  "  .cfi_rel_offset r6, 8\n  .cfi_rel_offset r7, 12\n"    \
  "  .cfi_rel_offset r8, 16\n  .cfi_rel_offset r9, 20\n"   \
  "  .cfi_rel_offset r10, 24\n  .cfi_rel_offset r11, 28\n" \
  "  .cfi_rel_offset lr, 32\n"
#define ORCH_SAVE_VECTORS \
  ORCH_SAVE "  vpush {d8-d15}\n  .cfi_adjust_cfa_offset 64\n"
#define ORCH_RETURN "  pop {r4-r11, pc}\n"
/// The same with four registers.
#define ORCH_SAVE_FEW                                   \
  "  push {r4-r7, lr}\n  .cfi_def_cfa_offset 20\n"      \
  "  .cfi_rel_offset r4, 0\n  .cfi_rel_offset r5, 4\n"  \
  "  .cfi_rel_offset r6, 8\n  .cfi_rel_offset r7, 12\n" \
  "  .cfi_rel_offset lr, 16\n"
#define ORCH_RETURN_FEW "  pop {r4-r7, pc}\n"
#define ORCH_RETURN_VECTORS "  vpop {d8-d15}\n" ORCH_RETURN

/// A function of such a body, which may use all registers.
#define ORCH_WHOLE(name, body) \
  ORCH_FUNCTION(name) ORCH_SAVE "  " body "\n" ORCH_RETURN ORCH_END(name)
