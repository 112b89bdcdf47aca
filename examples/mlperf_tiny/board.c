/* MPS2 with a Cortex-M4 (mps2-an386) and MPS3 with a Cortex-M55 (mps3-an547):
 * start-up, CMSDK UART, SysTick. For a board of yours, replace this file.
 * Source: Arm CMSDK TRM (UART registers), Armv7-M and Armv8-M manuals. */

#include "th.h"

#if __ARM_ARCH >= 8
#define UART 0x59303000u /* secure alias of UART0 */
#define CLOCK_HZ 32000000u
#else
#define UART 0x40004000u
#define CLOCK_HZ 25000000u
#endif
#ifndef BAUD
#define BAUD 115200u
#endif

#define REGISTER(address) (*(volatile uint32_t*)(uintptr_t)(address))
#define UART_DATA REGISTER(UART)
#define UART_STATE REGISTER(UART + 0x4u) /* 1: output full, 2: input there */
#define UART_CONTROL REGISTER(UART + 0x8u)
#define UART_DIVIDER REGISTER(UART + 0x10u)
#define SYSTICK_CONTROL REGISTER(0xE000E010u)
#define SYSTICK_RELOAD REGISTER(0xE000E014u)
#define SYSTICK_VALUE REGISTER(0xE000E018u)
#define CCR REGISTER(0xE000ED14u)
#define CPACR REGISTER(0xE000ED88u)
#define SYSTICK_TICKS 0x1000000u /* from one interrupt to the next */

static volatile uint32_t rounds;

void th_serialport_initialize(void) {
  UART_DIVIDER = CLOCK_HZ / BAUD;
  UART_CONTROL = 3;
}

char th_getchar(void) {
  while ((UART_STATE & 2u) == 0) {
  }
  return (char)UART_DATA;
}

void th_putchar(char c) {
  while ((UART_STATE & 1u) != 0) {
  }
  UART_DATA = (unsigned char)c;
}

void th_timestamp_initialize(void) {
  SYSTICK_RELOAD = SYSTICK_TICKS - 1;
  SYSTICK_VALUE = 0;
  SYSTICK_CONTROL = 7; /* the core's clock, with interrupt */
}

uint64_t th_microseconds(void) {
  uint32_t before;
  uint32_t ticks;
  do { /* again if the counter wrapped in between */
    before = rounds;
    ticks = SYSTICK_TICKS - 1 - SYSTICK_VALUE;
  } while (before != rounds);
  return ((uint64_t)before * SYSTICK_TICKS + ticks) / (CLOCK_HZ / 1000000u);
}

/* Of the generated linker script: only the addresses mean something. */
extern uint8_t orch_stack_base[], orch_stack_top[], orch_data_load[],
    orch_data_begin[], orch_data_end[], orch_bss_begin[], orch_bss_end[];

static void systick(void) { rounds = rounds + 1; }

static void fault(void) {
  th_printf("e-[fault]\r\n");
  for (;;) {
  }
}

void orch_reset(void) {
  CPACR |= 0xFu << 20; /* FPU, and MVE where there is one */
#if __ARM_ARCH >= 8
  CCR |= 1u << 19; /* low-overhead loops */
#endif
  __asm__ volatile("dsb\n isb" ::: "memory");
#if __ARM_ARCH >= 8
  __asm__ volatile("msr msplim, %0" ::"r"(orch_stack_base));
#endif
  const uint8_t* from = orch_data_load;
  for (uint8_t* to = orch_data_begin; to != orch_data_end;) *to++ = *from++;
  for (uint8_t* to = orch_bss_begin; to != orch_bss_end;) *to++ = 0;
  th_monitor();
}

typedef union {
  uint8_t* stack;
  void (*handler)(void);
} vector;

__attribute__((section(".vectors"), used)) static const vector kVectors[16] = {
    {.stack = orch_stack_top}, {.handler = orch_reset}, {.handler = fault},
    {.handler = fault},        {.handler = fault},      {.handler = fault},
    {.handler = fault},        {.handler = fault},      {.handler = fault},
    {.handler = fault},        {.handler = fault},      {.handler = fault},
    {.handler = fault},        {.handler = fault},      {.handler = fault},
    {.handler = systick},
};
