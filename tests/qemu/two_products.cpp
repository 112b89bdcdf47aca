// An application of two products, or of one of them: runs their methods in turn
// and writes words of 32 bits: statuses, and outputs of each.

#include <stdint.h>
#include <string.h>

#include "first.h"
#include "orch/platform.h"
#include "second.h"

#ifndef HAS_FIRST
#define HAS_FIRST 1
#endif
#ifndef HAS_SECOND
#define HAS_SECOND 1
#endif

namespace {

uint32_t first_traced[1];  // instructions by method
uint32_t second_traced[3];
float input[FIRST_NET_FORWARD_INPUT0_COUNT];
uint32_t words[256];
uint32_t* at = words;

void write(const void* data, size_t count, bool is_there) {
  if (is_there) memcpy(at, data, count * sizeof *at);
  at += count;
}

void write_status(orch_status status, bool is_there) {
  const uint32_t word = status;
  write(&word, 1, is_there);
}

void run_first() {
  float scores[40] = {};
  orch_status status = ORCH_OK;
#if HAS_FIRST
  status = first_net_forward(input, scores);
#endif
  write_status(status, HAS_FIRST);
  write(scores, 40, HAS_FIRST);
}

void run_second() {
  float scores[40] = {};
  int64_t count[1] = {};
  float sums[2] = {};
  float rows[32] = {};
  orch_status statuses[3] = {ORCH_OK, ORCH_OK, ORCH_OK};
#if HAS_SECOND
  statuses[0] = second_net_forward(input, scores);
  statuses[1] = second_counter_forward(input, count, sums);
  int32_t sizes[2] = {2, 6};
  statuses[2] = second_batch_forward(input, sizes, rows, sizes);
#endif
  for (const orch_status status : statuses) write_status(status, HAS_SECOND);
  write(scores, 40, HAS_SECOND);
  write(count, 2, HAS_SECOND);
  write(sums, 2, HAS_SECOND);
  write(rows, 8, HAS_SECOND);
}

}  // namespace

orch_ticks first_trace_ticks() { return 0; }
orch_ticks second_trace_ticks() { return 0; }

void first_trace_record(uint32_t method, uint32_t, orch_ticks, orch_ticks) {
  ++first_traced[method - FIRST_NET_FORWARD_METHOD];
}

void second_trace_record(uint32_t method, uint32_t, orch_ticks, orch_ticks) {
  ++second_traced[method - SECOND_NET_FORWARD_METHOD];
}

int orch_application(const char* request_path, const char* response_path) {
  const orch::platform::File request =
      orch::platform::open_for_reading(request_path);
  if (!orch::platform::read(request, input, sizeof input)) return 1;
  orch::platform::close(request);
  for (int i = 0; i < 2; ++i) {
    run_first();
    run_second();
  }
  write(first_traced, 1, HAS_FIRST);
  write(second_traced, 3, HAS_SECOND);
  const orch::platform::File response =
      orch::platform::open_for_writing(response_path);
  if (!orch::platform::write(response, words, sizeof words)) return 2;
  orch::platform::close(response);
  return orch_status_text(ORCH_MEMORY_NOT_SET)[0] == 'M' ? 0 : 3;
}
