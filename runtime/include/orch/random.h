/* The generator that kernels draw numbers from (rand, randn, native_dropout),
 * for C and C++. One for all methods of a program, which nothing locks. */
#ifndef ORCH_RANDOM_H_
#define ORCH_RANDOM_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The seed at start: the same numbers after every reset. */
#define ORCH_RANDOM_SEED 0

/* Begins the sequence of a seed. */
void orch_random_seed(uint64_t seed);

/* The next number; each of its bits is random.
 *
 * PCG32 (XSH RR 64/32, the variant with one sequence), seeded as its reference
 * code does it. Period 2^64; not for secrets. Source: M. E. O'Neill, "PCG: A
 * Family of Simple Fast Space-Efficient Statistically Good Algorithms for
 * Random Number Generation", https://www.pcg-random.org. */
uint32_t orch_random_next(void);

#ifdef __cplusplus
}
#endif

#endif
