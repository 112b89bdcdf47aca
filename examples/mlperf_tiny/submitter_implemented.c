/* The benchmark's functions on the generated API. Sizes and types are those of
 * the generated header; the Makefile says what bytes a sample consists of. */

#include "mlperf-tiny.h"
#include "th.h"

#define COUNT MLPERF_TINY_NET_FORWARD_INPUT0_COUNT
#define BYTES MLPERF_TINY_NET_FORWARD_INPUT0_BYTES
#define RESULTS MLPERF_TINY_NET_FORWARD_OUTPUT0_COUNT

const size_t th_sample_bytes_max = BYTES;
uint8_t ee_sample[BYTES];
static orch_status status;

int th_sample_fits(size_t bytes) { return bytes == BYTES || bytes == COUNT; }

/* Nothing to do before the clock runs: a run uses up its input, so each
 * th_infer writes it. */
void th_load_tensor(void) { status = ORCH_OK; }

/* A sample is the input as it lies in memory, or one byte for each item, which
 * is (byte - SAMPLE_ZERO) * SAMPLE_SCALE. */
void th_infer(void) {
  unsigned char* const input = (unsigned char*)mlperf_tiny_net_forward_input0();
  if (input != NULL && ee_sample_size() == BYTES) {
    for (size_t at = 0; at < BYTES; ++at) input[at] = ee_sample[at];
  }
#if BYTES != COUNT
  float* const items = mlperf_tiny_net_forward_input0();
  if (items != NULL && ee_sample_size() == COUNT) {
    for (size_t at = 0; at < COUNT; ++at)
      items[at] = ((float)((SAMPLE_TYPE)ee_sample[at]) - (float)(SAMPLE_ZERO)) *
                  (float)(SAMPLE_SCALE);
  }
#endif
  const orch_status now = mlperf_tiny_net_forward_run();
  if (now != ORCH_OK) status = now;
}

void th_results(void) {
  if (status != ORCH_OK) {
    th_printf("e-[%s]\r\n", orch_status_text(status));
    return;
  }
  th_printf("m-results-[");
#ifdef RESULT_IS_ERROR
  /* Anomaly detection: the mean squared error of the reconstruction. */
  _Static_assert(COUNT == RESULTS && BYTES == COUNT * sizeof(float),
                 "an autoencoder of floats");
  float error = 0;
  for (size_t at = 0; at < COUNT; ++at) {
    float item = 0;
    if (ee_sample_size() == BYTES) {
      for (size_t byte = 0; byte < sizeof item; ++byte)
        ((unsigned char*)&item)[byte] = ee_sample[at * sizeof item + byte];
    } else {
      item = ((float)((SAMPLE_TYPE)ee_sample[at]) - (float)(SAMPLE_ZERO)) *
             (float)(SAMPLE_SCALE);
    }
    const float difference = mlperf_tiny_net_forward_output0()[at] - item;
    error += difference * difference;
  }
  th_print_float(error / COUNT);
#else
  for (size_t at = 0; at < RESULTS; ++at) {
    if (at != 0) th_putchar(',');
    th_print_float((float)mlperf_tiny_net_forward_output0()[at]);
  }
#endif
  th_printf("]\r\n");
}

/* For energy, raise and lower a pin here instead (the power monitor sees it).
 */
void th_timestamp(void) {
  const uint64_t now = th_microseconds();
  th_printf("m-lap-us-");
  /* 32 bits, which wrap after 71 minutes: differences stay right. */
  th_printf("%u\r\n", (size_t)now);
}

void th_pre(void) {}
void th_post(void) {}
void th_final_initialize(void) {}
