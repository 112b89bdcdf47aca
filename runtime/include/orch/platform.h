// What the runner application needs of its surroundings: files and an exit.
// Implemented once per platform in runtime/platform/<platform>/.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace orch::platform {

/// An open file; negative if it could not be opened.
using File = int32_t;

File open_for_reading(const char* path);
File open_for_writing(const char* path);
/// Whether all `size` bytes were read.
bool read(File file, void* data, size_t size);
/// Whether all `size` bytes were written.
bool write(File file, const void* data, size_t size);
void close(File file);

/// Writes a line of text for the developer (standard error or debug console).
void log(const char* text);

/// Ticks of a steady clock: nanoseconds on hosts; on boards cycles of the core,
/// of products with trace hooks only.
uint64_t ticks();

}  // namespace orch::platform

/// The application, called by the platform's start-up code; its result becomes
/// the exit code of the process or the emulator. The two paths come from its
/// command line.
int orch_application(const char* request_path, const char* response_path);
