/* Trace hooks, for C and C++: types of what a product defines whose profile has
 * `[trace] enable = true`. Without that nothing here is compiled in.
 *
 * The executor reads the counter before and after every instruction and hands
 * both readings over. The header of the product declares the two functions,
 * <product>_trace_ticks and <product>_trace_record; a program without them does
 * not link. */
#ifndef ORCH_TRACE_H_
#define ORCH_TRACE_H_

#include <stdint.h>

/* Readings of a counter: 32 bits on a 32-bit core, as its cycle counters have,
 * else 64. Differences are right across one wrap. */
typedef uintptr_t orch_ticks;

/* Method of an image that is none of the product's. */
#define ORCH_TRACE_UNKNOWN_METHOD UINT32_MAX

#endif
