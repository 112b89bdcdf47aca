/* Times a method of a product on the host: nanoseconds of processor time of
 * the first call, which loads it, and of one call after that. The names come
 * from the command line of the compiler:
 *
 *   cc -DHEADER='"p.h"' -DRUN=p_m_forward_run -DINPUT=p_m_forward_input0
 *     -DCOUNT=4 calls.c libp.a
 */
#include <stdio.h>
#include <time.h>

#include HEADER

#define CALLS 200

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int call(void) {
  float* input = INPUT();
  for (int i = 0; input && i < COUNT; ++i) input[i] = 1;
  return (int)RUN();
}

int main(void) {
  const double start = now();
  float* const input = INPUT(); /* loads the method */
  const double loaded = now();
  if (!input || call() != 0) return 1;
  double first = 0;
  for (int i = 0; i < 2 * CALLS; ++i) {
    if (i == CALLS) first = now(); /* the first half warms up */
    if (call() != 0) return 1;
  }
  printf("{\"load\": %.0f, \"run\": %.1f}\n", loaded - start,
         (now() - first) / CALLS);
  return 0;
}
