/* Trace hooks, for C and C++: what a product defines whose profile has
 * `[trace] enable = true`. Without that nothing here is compiled in.
 *
 * The executor reads the counter before and after every instruction and hands
 * both readings over. A product without these two functions does not link. */
#ifndef ORCH_TRACE_H_
#define ORCH_TRACE_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Readings of a counter: 32 bits on a 32-bit core, as its cycle counters have,
 * else 64. Differences are right across one wrap. */
typedef uintptr_t orch_ticks;

/* Method of an image that is none of the product's. */
#define ORCH_TRACE_UNKNOWN_METHOD UINT32_MAX

/* The counter, in any unit that suits the product. */
orch_ticks orch_trace_ticks(void);

/* Called after every instruction, one that failed included.
 *
 * method:      ..._METHOD of the product's header
 * instruction: index in the method
 * begin, end:  readings before and after
 *
 * Called within the run: it must not call the product's functions. */
void orch_trace_record(uint32_t method, uint32_t instruction, orch_ticks begin,
                       orch_ticks end);

#ifdef __cplusplus
}
#endif

#endif
