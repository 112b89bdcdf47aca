/* Keyword spotting in C99, without copies: write to the input, run, read the output.
 * Needs nothing but the header and the library that the build of profiles/kws-host.toml
 * made. */

#include <stdio.h>

#include "kws-host.h"

/* In a product, the features of the last second of sound. Here 49 * 10 floats from
 * standard input, as they lie in memory. Returns whether there were enough. */
static int get_features(float* features, size_t count) {
  return fread(features, sizeof *features, count, stdin) == count;
}

int main(void) {
  /* Both lie in the model's arena; null would mean that the model cannot be loaded,
   * and the status of the run tells why. */
  float* features = kws_host_kws_forward_input0();
  const float* scores = kws_host_kws_forward_output0();
  if (features != NULL &&
      !get_features(features, KWS_HOST_KWS_FORWARD_INPUT0_COUNT)) {
    fputs("too few features on standard input\n", stderr);
    return 2;
  }

  const orch_status status = kws_host_kws_forward_run();
  if (status != ORCH_OK) {
    fprintf(stderr, "%s\n", orch_status_text(status));
    return 1;
  }

  int best = 0;
  for (int i = 0; i < KWS_HOST_KWS_FORWARD_OUTPUT0_COUNT; ++i) {
    if (scores[i] > scores[best]) best = i;
    printf("%2d %.9g\n", i, (double)scores[i]);
  }
  printf("keyword %d\n", best);
  return 0;
}
