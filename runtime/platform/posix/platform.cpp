// Platform of hosted builds: the C library.

#include "orch/platform.h"

#include <stdio.h>
#include <time.h>

namespace orch::platform {
namespace {

// The runner has at most its request and its response open.
constexpr File kFiles = 2;
FILE* files[kFiles];

File open(const char* path, const char* mode) {
  for (File i = 0; i < kFiles; ++i) {
    if (files[i] == nullptr) {
      files[i] = fopen(path, mode);
      return files[i] != nullptr ? i : -1;
    }
  }
  return -1;
}

}  // namespace

File open_for_reading(const char* path) { return open(path, "rb"); }
File open_for_writing(const char* path) { return open(path, "wb"); }

bool read(File file, void* data, size_t size) {
  return fread(data, 1, size, files[file]) == size;
}

bool write(File file, const void* data, size_t size) {
  return fwrite(data, 1, size, files[file]) == size;
}

void close(File file) {
  // A failed flush shows as a short response, which the host refuses.
  (void)fclose(files[file]);
  files[file] = nullptr;
}

void log(const char* text) { (void)fprintf(stderr, "%s\n", text); }

uint64_t ticks() {
  timespec now = {};
  (void)clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000000U +
         static_cast<uint64_t>(now.tv_nsec);
}

}  // namespace orch::platform

int main(int argc, char** argv) {
  if (argc != 3) {
    orch::platform::log("usage: firmware.elf REQUEST RESPONSE");
    return 2;
  }
  return orch_application(argv[1], argv[2]);
}
