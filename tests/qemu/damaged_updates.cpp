// The application of a firmware that gets a thousand damaged updates.
//
// Takes the place of runner.cpp. The response has the results of what is right
// (the update, one that is too old, a program that is signed and cannot be
// loaded, the update again), the status of a run with it, then how often each
// result was given to the damaged ones, and whether the model ran as before
// after all of them.
#include "orch/platform.h"
#include "product.h"
#include "support/test_trust.h"

// The two updates, from the folder of the test.
asm(".section .rodata\n"
    ".balign 16\n"
    ".globl test_update\n"
    "test_update: .incbin \"update.bin\"\n"
    ".globl test_update_end\n"
    "test_update_end:\n"
    ".balign 16\n"
    ".globl test_rubbish\n"
    "test_rubbish: .incbin \"rubbish.bin\"\n"
    ".globl test_rubbish_end\n"
    "test_rubbish_end:\n"
    ".text\n");

extern "C" {
extern const uint8_t test_update[], test_update_end[];
extern const uint8_t test_rubbish[], test_rubbish_end[];
}

namespace {

constexpr uint32_t kMost = 8192;
constexpr uint32_t kLowest = 5;  // the update has version 7
constexpr int kDamages = 1000;
constexpr uint32_t kResults = ORCH_UPDATE_NOT_LOADED + 1;

alignas(16) uint8_t bytes[kMost];
uint32_t random_state = 20261126;

uint32_t random_below(uint32_t end) {
  // Source: numbers of Numerical Recipes; the upper bits are the better ones.
  random_state = random_state * 1664525U + 1013904223U;
  return (random_state >> 8) % end;
}

orch_update_result load(const void* update, uint32_t size, uint32_t lowest) {
  return product_model_load_update(update, size, lowest, &test_trust::kTrust);
}

/// Where damage begins: half of it hits the header.
uint32_t place(uint32_t size) {
  return random_below(random_below(2) == 0 ? ORCH_UPDATE_HEADER_BYTES : size);
}

/// Damages the bytes, and returns their size now.
uint32_t damage(uint32_t size) {
  const uint32_t at = place(size);
  const uint32_t count = 1 + random_below(size - at < 64 ? size - at : 64);
  switch (random_below(8)) {
    case 0:  // a bit
    case 1:
      bytes[at] = static_cast<uint8_t>(bytes[at] ^ 1U << random_below(8));
      return size;
    case 2:  // a byte
      bytes[at] = static_cast<uint8_t>(random_below(256));
      return size;
    case 3:  // erased flash
      memset(bytes + at, 0xff, count);
      return size;
    case 4:
      memset(bytes + at, 0, count);
      return size;
    case 5:  // cut off
      return at;
    case 6:  // longer
      return size + 1 + random_below(64);
    default:  // another version, with all the rest in place
      bytes[88] = static_cast<uint8_t>(random_below(256));
      return size;
  }
}

bool put(orch::platform::File to, uint32_t word) {
  return orch::platform::write(to, &word, sizeof word);
}

uint32_t run() {
  static float x[PRODUCT_MODEL_FORWARD_INPUT0_COUNT];
  static float y[PRODUCT_MODEL_FORWARD_INPUT1_COUNT];
  static float out[PRODUCT_MODEL_FORWARD_OUTPUT0_COUNT];
  static float first[PRODUCT_MODEL_FORWARD_OUTPUT0_COUNT];
  static bool has_run = false;
  for (float& value : x) value = 3;
  for (float& value : y) value = 2;
  if (product_model_forward(x, y, x, out) != ORCH_OK) return 1;
  if (!has_run) memcpy(first, out, sizeof first);
  has_run = true;
  return memcmp(first, out, sizeof first) == 0 ? 0 : 2;
}

}  // namespace

int orch_application(const char*, const char* response_path) {
  const orch::platform::File to =
      orch::platform::open_for_writing(response_path);
  if (to < 0) return 4;
  const uint32_t size = static_cast<uint32_t>(test_update_end - test_update);
  const uint32_t rubbish =
      static_cast<uint32_t>(test_rubbish_end - test_rubbish);
  if (size + 64 > kMost) return 4;
  bool good = put(to, run());
  good = good && put(to, load(test_update, size, kLowest));
  good = good && put(to, load(test_update, size, 8));
  good = good && put(to, load(test_rubbish, rubbish, kLowest));
  good = good && put(to, run());
  good = good && put(to, load(test_update, size, kLowest));
  good = good && put(to, load(test_update + 1, size - 1, kLowest));
  good = good && put(to, run());
  uint32_t counts[kResults] = {};
  for (int i = 0; i < kDamages;) {
    memcpy(bytes, test_update, size);
    const uint32_t size_now = damage(size);
    if (size_now == size && memcmp(bytes, test_update, size) == 0) continue;
    const orch_update_result found = load(bytes, size_now, kLowest);
    if (found >= kResults) return 4;
    ++counts[found];
    ++i;
  }
  for (const uint32_t count : counts) good = good && put(to, count);
  good = good && put(to, run());
  orch::platform::close(to);
  return good ? 0 : 4;
}
