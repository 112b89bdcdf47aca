// Measures how deep the stack gets: fills what is below the stack pointer with
// a pattern before a call, and looks afterwards how far that was overwritten.
//
// Linked in front of the firmware's own code with --wrap: loading and running
// are measured while the application carries out its request, and after that
// each function of the API. Writes words to stack.bin: per method its load and
// run, then everything in `kEntries`.
#include "stack_painter.h"

#include "orch/model.h"
#include "orch/platform.h"

namespace orch {

extern const Span<const ModelMethod> kModelMethods;

RunStatus real_execute(const MethodImage&, uint32_t) __asm__("__real_" EXECUTE);
RunStatus wrap_execute(const MethodImage&, uint32_t) __asm__("__wrap_" EXECUTE);
Error real_prepare(const ModelMethod&) __asm__("__real_" PREPARE);
Error wrap_prepare(const ModelMethod&) __asm__("__wrap_" PREPARE);
int real_application(const char*, const char*) __asm__("__real_" APPLICATION);
int wrap_application(const char*, const char*) __asm__("__wrap_" APPLICATION);

namespace {

constexpr size_t kMaxMethods = 64;
bool measures_inside = true;
uint32_t loads[kMaxMethods];
uint32_t runs[kMaxMethods];

void note(uint32_t (&depths)[kMaxMethods], const MethodImage& image,
          uint32_t depth) {
  for (size_t i = 0; i < kModelMethods.size(); ++i) {
    if (&kModelMethods[i].loaded->image != &image) continue;
    if (depths[i] < depth) depths[i] = depth;
  }
}

__attribute__((noinline)) Error measured_prepare(const ModelMethod& method) {
  Error error;
  note(loads, method.loaded->image,
       stack::depth_of([&] { error = real_prepare(method); }));
  return error;
}

__attribute__((noinline)) RunStatus measured_execute(const MethodImage& image,
                                                     uint32_t limit) {
  RunStatus status;
  note(runs, image,
       stack::depth_of([&] { status = real_execute(image, limit); }));
  return status;
}

}  // namespace

// Both go on without a frame of their own, so that nothing of this file is in
// what is measured of the API.
Error wrap_prepare(const ModelMethod& method) {
  return measures_inside ? measured_prepare(method) : real_prepare(method);
}
RunStatus wrap_execute(const MethodImage& image, uint32_t limit) {
  return measures_inside ? measured_execute(image, limit)
                         : real_execute(image, limit);
}

int wrap_application(const char* request, const char* response) {
  const int code = real_application(request, response);
  if (code != 0) return code;
  const platform::File file = platform::open_for_writing("stack.bin");
  for (size_t i = 0; i < kModelMethods.size(); ++i) {
    platform::write(file, &loads[i], sizeof loads[i]);
    platform::write(file, &runs[i], sizeof runs[i]);
  }
  measures_inside = false;
  for (const auto& entry : stack::entries()) {
    for (const ModelMethod& method : kModelMethods) unload(method);
    const stack::Result result = entry();
    if (result.status != ORCH_OK) return 5;
    platform::write(file, &result.depth, sizeof result.depth);
  }
  platform::close(file);
  return 0;
}

}  // namespace orch
