/* The secure side: gives memory to the other one, starts it, and catches it where it
 * leaves its memory.
 *
 * Sources: Armv8-M Architecture Reference Manual (SAU, coprocessor access, faults);
 * Arm Application Note AN505 (memory map, addresses of the protection controllers);
 * CoreLink SIE-200 Technical Reference Manual (memory protection controller); IoT Kit
 * User Guide (security controller). */
#include <arm_cmse.h>
#include <stdint.h>

#include "board.h"

#define REGISTER(address) (*(volatile uint32_t*)(uintptr_t)(address))
#define CPACR 0xe000ed88u
#define NSACR 0xe000ed8cu
#define CPACR_NS 0xe002ed88u
#define CP10_CP11_FULL (0xfu << 20)
#define CP10_CP11_NS (0x3u << 10)
#define FPCCR 0xe000ef34u
#define TREAT_AS_SECURE (1u << 26)
#define SHCSR 0xe000ed24u
#define SECUREFAULTENA (1u << 19)
#define SFSR 0xe000ede4u
#define AUVIOL (1u << 3)
#define VTOR_NS 0xe002ed08u
#define SAU_CTRL 0xe000edd0u
#define SAU_RNR 0xe000edd8u
#define SAU_RBAR 0xe000eddcu
#define SAU_RLAR 0xe000ede0u
#define ENABLE 1u
#define CALLABLE 2u
#define NSCCFG (SECURITY_CONTROLLER + 0x14)
#define CODENSC 1u
#define MPC_SSRAM1 0x58007000u
#define MPC_SSRAM3 0x58009000u
#define BLK_MAX 0x10
#define BLK_IDX 0x18
#define BLK_LUT 0x1c

extern uint32_t stack_top[];
extern char stubs_begin[], stubs_end[];
typedef void __attribute__((cmse_nonsecure_call)) nonsecure_function(void);

static uint32_t* const secret = (uint32_t*)SECRET;

static void say(const char* text) { semihosting(SEMIHOSTING_WRITE, text); }

/* Blocks of a memory from a word of the table on: only non-secure accesses pass. */
static void give(uint32_t controller, int is_upper_half) {
  const uint32_t count = REGISTER(controller + BLK_MAX) + 1;
  for (uint32_t i = is_upper_half ? count / 2 : 0; i < count; ++i) {
    REGISTER(controller + BLK_IDX) = i;
    REGISTER(controller + BLK_LUT) = UINT32_MAX;
  }
}

static void add_region(uint32_t number, uint32_t begin, uint32_t end, uint32_t flags) {
  REGISTER(SAU_RNR) = number;
  REGISTER(SAU_RBAR) = begin;
  REGISTER(SAU_RLAR) = ((end - 1) & ~31u) | flags;
}

void reset(void) {
  REGISTER(CPACR) |= CP10_CP11_FULL;
  REGISTER(NSACR) |= CP10_CP11_NS;
  REGISTER(CPACR_NS) |= CP10_CP11_FULL;
  /* Interrupts of the other side find no registers of a run in the FPU. */
  REGISTER(FPCCR) |= TREAT_AS_SECURE;
  REGISTER(SHCSR) |= SECUREFAULTENA;
  for (int i = 0; i < SECRET_WORDS; ++i) secret[i] = SECRET_WORD;
  give(MPC_SSRAM1, 1);
  give(MPC_SSRAM3, 0);
  REGISTER(NSCCFG) = CODENSC;
  add_region(0, NONSECURE_CODE, NONSECURE_CODE_END, ENABLE);
  add_region(1, NONSECURE_RAM, NONSECURE_RAM_END, ENABLE);
  add_region(2, (uint32_t)stubs_begin, (uint32_t)stubs_end, ENABLE | CALLABLE);
  REGISTER(SAU_CTRL) = ENABLE;
  __asm__ volatile("dsb\n isb" ::: "memory");
  const uint32_t* const vectors = (const uint32_t*)NONSECURE_CODE;
  REGISTER(VTOR_NS) = NONSECURE_CODE;
  __asm__ volatile("msr msp_ns, %0" ::"r"(vectors[0]));
  nonsecure_function* const start =
      (nonsecure_function*)cmse_nsfptr_create((nonsecure_function*)vectors[1]);
  start();
  leave(100);
}

static void fault(void) { leave(101); }

static void secure_fault(void) {
  int is_whole = 1;
  for (int i = 0; i < SECRET_WORDS; ++i) is_whole &= secret[i] == SECRET_WORD;
  say((REGISTER(SFSR) & AUVIOL) != 0 ? "SecureFault" : "another SecureFault");
  say(is_whole ? ", the secret is whole\n" : ", the secret is damaged\n");
  leave(0);
}

__attribute__((section(".vectors"), used)) static void* const vectors[16] = {
    stack_top, reset, fault, fault, fault, fault, fault, secure_fault,
    0,         0,     0,     fault, fault, 0,     fault, fault};
