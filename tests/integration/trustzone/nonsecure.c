/* The non-secure side: calls the models, then tries to reach what is not its own. */
#include <stdint.h>

#include "board.h"
#include "calls.h"
#include "net_nonsecure.h"

extern uint32_t stack_top[];

void say(const char* text) { semihosting(SEMIHOSTING_WRITE, text); }

typedef struct net_linear_softmax_forward_arguments arguments;

static void attack(const char* what, const arguments* given) {
  const orch_status status = net_linear_softmax_forward_entry(given);
  say(what);
  say(status == ORCH_INVALID_ARGUMENT ? ": refused\n" : ": taken\n");
}

void reset(void) {
  static float in[64], out[40];
  float* const secret = (float*)SECRET;
  call_models();
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
  attack("its own memory", &(arguments){in, out});
  leave((unsigned)*(volatile uint32_t*)secret);
}

static void fault(void) { leave(102); }

__attribute__((section(".vectors"), used)) static void* const vectors[16] = {
    stack_top, reset, fault, fault, fault, fault, fault, 0,
    0,         0,     0,     fault, fault, 0,     fault, fault};
