// The application of a firmware that damages itself: flips each bit of what
// carries a checksum, asks the product whether it notices, and flips it back.
//
// Takes the place of runner.cpp. It includes the generated source, whose tables
// are known nowhere else, so that this is linked and not the library's copy.
// The response has a word each for the check of the whole product before, of
// the method before, and of the product after; then per region its kind, its
// bytes, and a bit per bit, set if the damage was refused by product and method
// alike.
#include GENERATED_SOURCE

#include "orch/platform.h"

namespace {

using orch::platform::File;

enum Kind : uint32_t { kBytes = 0, kValues = 1, kInstructions = 2 };

/// The emulated boards have memory where devices have flash; a host protects.
void make_writable(const void* from, uint32_t count) {
#ifdef __linux__
  constexpr long kPage = 4096, kReadWriteExecute = 7;
  const long at = reinterpret_cast<long>(from) / kPage * kPage;
  const long size =
      reinterpret_cast<long>(from) + static_cast<long>(count) - at;
  // The C library of the system is not there: the call mprotect.
#if defined(__x86_64__)
  long result = 10;
  asm volatile("syscall"
               : "+a"(result)
               : "D"(at), "S"(size), "d"(kReadWriteExecute)
               : "rcx", "r11", "memory");
#elif defined(__aarch64__)
  register long x0 asm("x0") = at;
  register long x1 asm("x1") = size;
  register long x2 asm("x2") = kReadWriteExecute;
  register long x8 asm("x8") = 226;
  asm volatile("svc 0" : "+r"(x0) : "r"(x1), "r"(x2), "r"(x8) : "memory");
#endif
#else
  (void)from;
  (void)count;
#endif
}

bool refused() {
  return PRODUCT_CHECK() == ORCH_IMAGE_DAMAGED &&
         METHOD_CHECK() == ORCH_IMAGE_DAMAGED;
}

bool put(File to, uint32_t word) {
  return orch::platform::write(to, &word, sizeof word);
}

bool flip(File to, Kind kind, const void* from, uint32_t count) {
  make_writable(from, count);
  if (!put(to, kind) || !put(to, count)) return false;
  volatile uint8_t* const bytes =
      const_cast<uint8_t*>(static_cast<const uint8_t*>(from));
  for (uint32_t i = 0; i < count; ++i) {
    uint8_t found = 0;
    for (unsigned bit = 0; bit < 8; ++bit) {
      const uint8_t mask = static_cast<uint8_t>(1U << bit);
      bytes[i] = static_cast<uint8_t>(bytes[i] ^ mask);
      if (refused()) found = static_cast<uint8_t>(found | mask);
      bytes[i] = static_cast<uint8_t>(bytes[i] ^ mask);
    }
    if (!orch::platform::write(to, &found, 1)) return false;
  }
  return true;
}

}  // namespace

int orch_application(const char*, const char* response_path) {
  const File to = orch::platform::open_for_writing(response_path);
  if (to < 0) return 4;
  bool good = put(to, PRODUCT_CHECK()) && put(to, METHOD_CHECK());
  for (const orch::CheckedBytes& block : orch::CHECKED) {
    good = good && flip(to, kBytes, block.at, block.count);
  }
#ifdef VALUES
  good = good && flip(to, kValues, orch::VALUES, sizeof orch::VALUES);
  good = good &&
         flip(to, kInstructions, orch::INSTRUCTIONS, sizeof orch::INSTRUCTIONS);
#endif
  good = good && put(to, PRODUCT_CHECK());
  orch::platform::close(to);
  return good ? 0 : 4;
}
