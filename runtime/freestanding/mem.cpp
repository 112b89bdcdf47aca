// Memory functions for builds without a C library: small first, four words at a
// time where both sides are aligned, or vectors. Compiled with -fno-builtin, or
// the loops would call themselves.

#include <stddef.h>
#include <stdint.h>
#include <string.h>

namespace {

// May alias any object.
using Word __attribute__((may_alias)) = uint32_t;

bool aligned(const void* a, const void* b) {
  return ((reinterpret_cast<uintptr_t>(a) | reinterpret_cast<uintptr_t>(b)) %
          sizeof(Word)) == 0;
}

// Vectors of bytes may lie anywhere. Start-up enables them together with
// floats.
#if defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 2) != 0
#define ORCH_VECTORS 1
#else
#define ORCH_VECTORS 0
#endif

}  // namespace

extern "C" {

__attribute__((weak)) void* memcpy(void* to, const void* from, size_t size) {
  uint8_t* t = static_cast<uint8_t*>(to);
  const uint8_t* f = static_cast<const uint8_t*>(from);
#if ORCH_VECTORS
  if (size >= 64 && aligned(to, from)) {
    // Several registers at once take words only.
    __asm__ volatile(
        "wls lr, %2, 2f\n"
        "1:\n"
        "vldmia %1!, {d0-d7}\n"
        "vstmia %0!, {d0-d7}\n"
        "le lr, 1b\n"
        "2:\n"
        : "+r"(t), "+r"(f)
        : "r"(size / 64)
        : "lr", "q0", "q1", "q2", "q3", "memory");
    size %= 64;
  }
  __asm__ volatile(
      "wlstp.8 lr, %2, 2f\n"
      "1:\n"
      "vldrb.8 q0, [%1], #16\n"
      "vstrb.8 q0, [%0], #16\n"
      "letp lr, 1b\n"
      "2:\n"
      : "+r"(t), "+r"(f)
      : "r"(size)
      : "lr", "q0", "memory");
  return to;
#endif
  if (aligned(to, from)) {
#ifdef __arm__
    __asm__ volatile(
        ".syntax unified\n"
        "subs %2, %2, #16\n"
        "blo 2f\n"
        "1:\n"
        "ldmia %1!, {r3, r4, r5, r6}\n"
        "stmia %0!, {r3, r4, r5, r6}\n"
        "subs %2, %2, #16\n"
        "bhs 1b\n"
        "2:\n"
        "adds %2, %2, #16\n"
        : "+l"(t), "+l"(f), "+l"(size)
        :
        : "r3", "r4", "r5", "r6", "cc", "memory");
#endif
    for (; size >= sizeof(Word); size -= sizeof(Word)) {
      *reinterpret_cast<Word*>(t) = *reinterpret_cast<const Word*>(f);
      t += sizeof(Word);
      f += sizeof(Word);
    }
  }
  while (size-- != 0) *t++ = *f++;
  return to;
}

__attribute__((weak)) void* memmove(void* to, const void* from, size_t size) {
  uint8_t* t = static_cast<uint8_t*>(to);
  const uint8_t* f = static_cast<const uint8_t*>(from);
  // One comparison also covers `to` before `from`: the difference wraps around.
  if (reinterpret_cast<uintptr_t>(t) - reinterpret_cast<uintptr_t>(f) >= size) {
    return memcpy(to, from, size);
  }
  while (size-- != 0) t[size] = f[size];
  return to;
}

#if defined(__arm__) && defined(__clang__)
// What clang calls on Arm. Defined here, so that the stack of functions that a
// firmware for `run` does not link is known as well.
#define ORCH_ALIAS(name, of)                                              \
  __attribute__((weak, alias(of))) void* name(void* to, const void* from, \
                                              size_t size);
ORCH_ALIAS(__aeabi_memcpy, "memcpy")
ORCH_ALIAS(__aeabi_memcpy4, "memcpy")
ORCH_ALIAS(__aeabi_memcpy8, "memcpy")
ORCH_ALIAS(__aeabi_memmove, "memmove")
ORCH_ALIAS(__aeabi_memmove4, "memmove")
ORCH_ALIAS(__aeabi_memmove8, "memmove")
#undef ORCH_ALIAS
#endif

__attribute__((weak)) void* memset(void* to, int byte, size_t size) {
  uint8_t* t = static_cast<uint8_t*>(to);
  const uint8_t value = static_cast<uint8_t>(byte);
#if ORCH_VECTORS
  __asm__ volatile(
      "vdup.8 q0, %2\n"
      "wlstp.8 lr, %1, 2f\n"
      "1:\n"
      "vstrb.8 q0, [%0], #16\n"
      "letp lr, 1b\n"
      "2:\n"
      : "+r"(t)
      : "r"(size), "r"(value)
      : "lr", "q0", "memory");
  return to;
#endif
  if (aligned(to, to)) {
    const uint32_t word = value * 0x01010101U;
    for (; size >= 4 * sizeof(Word); size -= 4 * sizeof(Word)) {
      Word* const words = reinterpret_cast<Word*>(t);
      words[0] = word;
      words[1] = word;
      words[2] = word;
      words[3] = word;
      t += 4 * sizeof(Word);
    }
    for (; size >= sizeof(Word); size -= sizeof(Word)) {
      *reinterpret_cast<Word*>(t) = word;
      t += sizeof(Word);
    }
  }
  while (size-- != 0) *t++ = value;
  return to;
}

__attribute__((weak)) int memcmp(const void* a, const void* b, size_t size) {
  const uint8_t* x = static_cast<const uint8_t*>(a);
  const uint8_t* y = static_cast<const uint8_t*>(b);
  for (; size != 0; --size, ++x, ++y) {
    if (*x != *y) return *x - *y;
  }
  return 0;
}

__attribute__((weak)) size_t strlen(const char* text) {
  size_t size = 0;
  while (text[size] != '\0') ++size;
  return size;
}

}  // extern "C"
