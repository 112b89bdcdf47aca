/* A matrix product and a sum, on the library that CMake has built from a profile. */

#include <stdio.h>
#include <stdlib.h>

#include "add-mul-host.h"

enum { COUNT = ADD_MUL_HOST_ADD_MUL_FORWARD_OUTPUT0_COUNT };

int main(int argc, char** argv) {
  float inputs[3][COUNT];
  float output[COUNT];

  if (argc != 1 + 3 * COUNT) {
    fprintf(stderr, "usage: %s, and three matrices of %d numbers\n", argv[0], COUNT);
    return 2;
  }
  for (int i = 0; i < 3 * COUNT; ++i) {
    inputs[i / COUNT][i % COUNT] = strtof(argv[1 + i], NULL);
  }

  const orch_status status =
      add_mul_host_add_mul_forward(inputs[0], inputs[1], inputs[2], output);
  if (status != ORCH_OK) {
    fprintf(stderr, "%s\n", orch_status_text(status));
    return 1;
  }

  for (int i = 0; i < COUNT; ++i) printf("%.9g\n", (double)output[i]);
  return 0;
}
