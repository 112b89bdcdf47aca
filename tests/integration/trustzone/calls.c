#include "calls.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef NONSECURE
#include "net_nonsecure.h"
#else
#include "net.h"
#endif

static void say_bits(const void* bytes, size_t size) {
  for (size_t at = 0; at < size; at += sizeof(uint32_t)) {
    uint32_t word;
    char text[10] = "         ";
    memcpy(&word, (const char*)bytes + at, sizeof word);
    for (int i = 7; i >= 0; --i, word >>= 4) text[i] = "0123456789abcdef"[word & 15];
    say(text);
  }
}

static void say_result(const char* name, orch_status status) {
  say(name);
  say(status == ORCH_OK ? " ok " : " failed ");
}

#define CALL(name, ...) say_result(#name, net_##name(__VA_ARGS__))
#define SAY(value) say_bits(&(value), sizeof(value))

void call_models(void) {
  static float in[64], out[48], more[20], last[1];
  int32_t sizes[2] = {5, 3}, found[2];
  int64_t number;
  double scale;
  for (int i = 0; i < 64; ++i) in[i] = (float)(i * i % 29) / 8 - 1;
  CALL(linear_softmax_forward, in, out);
  say_bits(out, 40 * sizeof *out);
  CALL(scalar_sizes_forward, in, sizes, out, found, &number, last);
  say_bits(out, 15 * sizeof *out);
  SAY(found);
  SAY(number);
  SAY(last);
  CALL(multi_method_encode, in, out);
  say_bits(out, 12 * sizeof *out);
  CALL(multi_method_decode, out, more);
  SAY(more);
  CALL(multi_method_version, &number);
  SAY(number);
  CALL(multi_method_width, &number);
  SAY(number);
  CALL(multi_method_scale, &scale);
  SAY(scale);
  sizes[0] = 1000;
  CALL(scalar_sizes_forward, in, sizes, out, found, &number, last);
  say("\n");
}
