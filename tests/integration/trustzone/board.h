/* Memories of an MPS2 board with the image AN505 that both sides agree on.
 * Source: Arm Application Note AN505, memory map. */
#ifndef BOARD_H_
#define BOARD_H_

/* The upper half of SSRAM 1, and SSRAM 3. */
#define NONSECURE_CODE 0x00200000u
#define NONSECURE_CODE_END 0x00400000u
#define NONSECURE_RAM 0x28200000u
#define NONSECURE_RAM_END 0x28400000u

/* What the attacker is after: in SSRAM 2, which stays secure. */
#define SECRET 0x381f0000u
#define SECRET_WORDS 64
#define SECRET_WORD 0x5ec2e700u

#define SECURITY_CONTROLLER 0x50080000u

enum { SEMIHOSTING_WRITE = 0x04, SEMIHOSTING_EXIT = 0x20 };

static inline void semihosting(int operation, const void* argument) {
  register int r0 __asm__("r0") = operation;
  register const void* r1 __asm__("r1") = argument;
  __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
}

static inline void leave(unsigned code) {
  const unsigned block[2] = {0x20026u, code};
  semihosting(SEMIHOSTING_EXIT, block);
  for (;;) {
  }
}

#endif
