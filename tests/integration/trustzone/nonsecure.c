/* The non-secure side: calls the models, then tries to reach what is not its own.
 *
 * Source: Armv8-M Architecture Reference Manual (MPU, SysTick). */
#include <stdint.h>

#include "board.h"
#include "calls.h"
#include "net_nonsecure.h"

#define REGISTER(address) (*(volatile uint32_t*)(uintptr_t)(address))
#define MPU_CTRL 0xe000ed94u
#define MPU_RNR 0xe000ed98u
#define MPU_RBAR 0xe000ed9cu
#define MPU_RLAR 0xe000eda0u
#define ENABLE 1u
#define DEFAULT_MAP 4u
#define PRIVILEGED_READ_ONLY (2u << 1)

#define SYST_CSR 0xe000e010u
#define SYST_RVR 0xe000e014u
#define SYST_CVR 0xe000e018u
#define CORE_CLOCK_AND_INTERRUPT 6u

extern uint32_t stack_top[];

void say(const char* text) { semihosting(SEMIHOSTING_WRITE, text); }

typedef struct net_linear_softmax_forward_arguments arguments;

static void attack(const char* what, const arguments* given) {
  const orch_status status = net_linear_softmax_forward_entry(given);
  say(what);
  say(status == ORCH_INVALID_ARGUMENT ? ": refused\n" : ": taken\n");
}

static float in[64], out[40];
static volatile uint32_t not_done, left_in_fpu;

/* Calls a method while another call runs, and looks for what that has in the FPU. */
static void tick(void) {
  static float late[40];
  uint32_t found = 0, word;
#define LOOK(n) __asm__ volatile("vmov %0, s" #n : "=r"(word)); found |= word
  LOOK(0); LOOK(1); LOOK(2); LOOK(3); LOOK(4); LOOK(5); LOOK(6); LOOK(7);
  LOOK(8); LOOK(9); LOOK(10); LOOK(11); LOOK(12); LOOK(13); LOOK(14); LOOK(15);
  LOOK(16); LOOK(17); LOOK(18); LOOK(19); LOOK(20); LOOK(21); LOOK(22); LOOK(23);
  LOOK(24); LOOK(25); LOOK(26); LOOK(27); LOOK(28); LOOK(29); LOOK(30); LOOK(31);
  if (net_linear_softmax_forward_entry(&(arguments){in, late}) != ORCH_NOT_DONE) return;
  not_done = not_done + 1;
  left_in_fpu |= found;
}

/* Runs until an interrupt came while the secure side computed. */
static void interrupt_a_call(void) {
  REGISTER(SYST_RVR) = 100;
  REGISTER(SYST_CVR) = 0;
  REGISTER(SYST_CSR) = CORE_CLOCK_AND_INTERRUPT | ENABLE;
  for (int i = 0; i < 100 && not_done < 10; ++i) {
    if (net_linear_softmax_forward(in, out) != ORCH_OK) leave(103);
  }
  REGISTER(SYST_CSR) = 0;
  say(not_done < 10 ? "no call was interrupted\n" : "a call in a call: not done\n");
  say(left_in_fpu == 0 ? "its FPU: empty\n" : "its FPU: was read\n");
}

static void make_read_only(const void* begin, uint32_t bytes) {
  REGISTER(MPU_RNR) = 0;
  REGISTER(MPU_RBAR) = (uint32_t)begin | PRIVILEGED_READ_ONLY;
  REGISTER(MPU_RLAR) = (((uint32_t)begin + bytes - 1) & ~31u) | ENABLE;
  REGISTER(MPU_CTRL) = ENABLE | DEFAULT_MAP;
  __asm__ volatile("dsb\n isb" ::: "memory");
}

void reset(void) {
  static float rom[64] __attribute__((aligned(32)));
  float* const secret = (float*)SECRET;
  call_models();
  interrupt_a_call();
  attack("arguments in secure memory", (arguments*)SECRET);
  attack("input in secure memory", &(arguments){secret, out});
  attack("output in secure memory", &(arguments){in, secret});
  attack("output at the other address of secure memory",
         &(arguments){in, (float*)(SECRET - 0x10000000u)});
  attack("output that ends in secure memory",
         &(arguments){in, (float*)(NONSECURE_RAM_END - 8)});
  attack("output that ends after the last address", &(arguments){in, (float*)~31u});
  attack("output in the security controller",
         &(arguments){in, (float*)SECURITY_CONTROLLER});
  attack("input in the entry functions",
         &(arguments){(float*)((uintptr_t)net_linear_softmax_forward_entry & ~3u), out});
  make_read_only(rom, sizeof rom);
  attack("output in memory to read only", &(arguments){in, rom});
  attack("input in memory to read only", &(arguments){rom, out});
  attack("its own memory", &(arguments){in, out});
  leave((unsigned)*(volatile uint32_t*)secret);
}

static void fault(void) { leave(102); }

__attribute__((section(".vectors"), used)) static void* const vectors[16] = {
    stack_top, reset, fault, fault, fault, fault, fault, 0,
    0,         0,     0,     fault, fault, 0,     fault, tick};
