// Measures how deep the stack gets: fills what is below the stack pointer with
// a pattern before a call, and looks afterwards how far that was overwritten.
//
// Linked in front of the firmware's own code with --wrap: loading and running
// are measured while the application carries out its request, and after that
// each function of the API. Writes words to stack.bin: per method its load and
// run, then everything in `kEntries`.
#include "stack_painter.h"

#include <string.h>

#include "orch/model.h"
#include "orch/platform.h"

namespace orch {

extern const Span<const ModelMethod* const> kModelMethods;

RunStatus real_execute(const MethodImage&, uint32_t) __asm__("__real_" EXECUTE);
RunStatus wrap_execute(const MethodImage&, uint32_t) __asm__("__wrap_" EXECUTE);
Error real_load_linked(const ModelMethod&) __asm__("__real_" LOAD_LINKED);
Error wrap_load_linked(const ModelMethod&) __asm__("__wrap_" LOAD_LINKED);
int real_application(const char*, const char*) __asm__("__real_" APPLICATION);
int wrap_application(const char*, const char*) __asm__("__wrap_" APPLICATION);

namespace {

constexpr size_t kMaxMethods = 64;
uint32_t loads[kMaxMethods];
uint32_t runs[kMaxMethods];

void note(uint32_t (&depths)[kMaxMethods], const MethodImage& image,
          uint32_t depth) {
  for (size_t i = 0; i < kModelMethods.size(); ++i) {
    if (&image_of(*kModelMethods[i]) != &image) continue;
    if (depths[i] < depth) depths[i] = depth;
  }
}

__attribute__((noinline)) Error measured_load_linked(
    const ModelMethod& method) {
  Error error;
  note(loads, image_of(method),
       stack::depth_of([&] { error = real_load_linked(method); }));
  return error;
}

__attribute__((noinline)) RunStatus measured_execute(const MethodImage& image,
                                                     uint32_t limit) {
  RunStatus status;
  note(runs, image,
       stack::depth_of([&] { status = real_execute(image, limit); }));
  return status;
}

/// Inputs that are not written before a run are zeros: indices that every
/// tensor has.
void forget(const ModelMethod& method) {
  unload(method);
  for (const Span<uint8_t>& arena : method.arenas) {
    memset(arena.data(), 0, arena.size());
  }
}

}  // namespace

// Both jump to what these point to, so that nothing of this file is in what is
// measured of the API: a compiler would give them a frame to hand on a result.
extern "C" {
RunStatus (*stack_execute)(const MethodImage&, uint32_t) = measured_execute;
Error (*stack_load_linked)(const ModelMethod&) = measured_load_linked;
}
#if defined(__riscv)
#define JUMP_THROUGH(pointer)                             \
  asm("lui t0, %hi(" #pointer ")\n\tlw t0, %lo(" #pointer \
      ")"                                                 \
      "(t0)\n\tjr t0")
#else
// Armv6-M has no movw.
#define JUMP_THROUGH(pointer)                                      \
  asm(".syntax unified\n\tldr r3, 1f\n\tldr r3, [r3]\n\tbx r3\n\t" \
      ".balign 4\n1:\n\t.word " #pointer)
#endif

__attribute__((naked)) RunStatus wrap_execute(const MethodImage&, uint32_t) {
  JUMP_THROUGH(stack_execute);
}
__attribute__((naked)) Error wrap_load_linked(const ModelMethod&) {
  JUMP_THROUGH(stack_load_linked);
}

int wrap_application(const char* request, const char* response) {
  const int code = real_application(request, response);
  if (code != 0) return code;
  const platform::File file = platform::open_for_writing("stack.bin");
  for (size_t i = 0; i < kModelMethods.size(); ++i) {
    platform::write(file, &loads[i], sizeof loads[i]);
    platform::write(file, &runs[i], sizeof runs[i]);
  }
  stack_execute = real_execute;
  stack_load_linked = real_load_linked;
  for (const auto& entry : stack::entries()) {
    for (const ModelMethod* method : kModelMethods) forget(*method);
    const stack::Result result = entry();
    if (result.status != ORCH_OK) return 5;
    platform::write(file, &result.depth, sizeof result.depth);
  }
  platform::close(file);
  return 0;
}

}  // namespace orch
