// Opening a program: identifier, extended header, names of its methods.

#include <string.h>

#include "flatbuffer.h"
#include "orch/loader.h"
#include "switches.h"

namespace orch {
namespace {

// Source: ExecuTorch schema/extended_header.h. All numbers are little endian.
constexpr uint32_t kIdentifierAt = 4;
constexpr uint32_t kHeaderAt = 8;
constexpr uint32_t kHeaderBytes =
    24;  // magic, length, program size, segment base
constexpr uint32_t kHeaderBytesWithSize = 32;  // and the size of all segments

bool same_text(Span<const char> text, const char* name) {
  for (const char c : text) {
    if (*name == '\0' || *name != c) return false;
    ++name;
  }
  return *name == '\0';
}

}  // namespace

Error Program::open(Span<const uint8_t> bytes, Program& program) {
  ORCH_CHECK(reinterpret_cast<uintptr_t>(bytes.data()) % kProgramAlignment == 0,
             Error::Misaligned);
  ORCH_CHECK(bytes.size() >= kHeaderAt && bytes.size() <= INT32_MAX,
             Error::InvalidProgram);
  ORCH_CHECK(memcmp(bytes.data() + kIdentifierAt, "ET12", 4) == 0,
             Error::UnsupportedProgram);

  const uint32_t file_bytes = static_cast<uint32_t>(bytes.size());
  FbReader file(bytes.data(), file_bytes);
  uint32_t flatbuffer_bytes = file_bytes;
  uint32_t segment_base = 0;
  uint32_t segment_bytes = 0;
  if (file_bytes >= kHeaderAt + kHeaderBytes &&
      memcmp(bytes.data() + kHeaderAt, "eh00", 4) == 0) {
    const uint32_t header_bytes = file.read<uint32_t>(kHeaderAt + 4);
    const uint64_t program_bytes = file.read<uint64_t>(kHeaderAt + 8);
    const uint64_t base = file.read<uint64_t>(kHeaderAt + 16);
    ORCH_CHECK(program_bytes <= file_bytes && header_bytes >= kHeaderBytes &&
                   program_bytes >= kHeaderAt + uint64_t{header_bytes},
               Error::InvalidProgram);
    flatbuffer_bytes = static_cast<uint32_t>(program_bytes);
    if (base != 0) {
      ORCH_CHECK(base >= program_bytes && base <= file_bytes,
                 Error::InvalidProgram);
      segment_base = static_cast<uint32_t>(base);
      uint64_t size = file_bytes - base;
      if (header_bytes >= kHeaderBytesWithSize) {
        size = file.read<uint64_t>(kHeaderAt + 24);
        ORCH_CHECK(size <= file_bytes - base, Error::InvalidProgram);
      }
      segment_bytes = static_cast<uint32_t>(size);
    }
  }

  FbReader reader(bytes.data(), flatbuffer_bytes);
  const FbTable root = reader.root();
  const FbVector plans = reader.vector(root, slot::kExecutionPlan, 4);
  ORCH_CHECK(!reader.newer(), Error::UnsupportedProgram);
  ORCH_CHECK(!reader.failed() && plans.count != 0, Error::InvalidProgram);
  if constexpr (!kInlineConstants) {
    const FbVector inside = reader.vector(root, slot::kConstantBuffer, 4);
    ORCH_CHECK(!reader.failed(), Error::InvalidProgram);
    ORCH_CHECK(inside.count == 0, Error::UnsupportedProgram);
  }
  ORCH_CHECK(reader.scalar<uint32_t>(root, slot::kVersion) == 0,
             Error::UnsupportedProgram);

  program.bytes_ = bytes;
  program.flatbuffer_size_ = flatbuffer_bytes;
  program.segment_base_ = segment_base;
  program.segment_bytes_ = segment_bytes;
  return Error::Ok;
}

uint32_t Program::method_count() const {
  FbReader reader(bytes_.data(), flatbuffer_size_);
  return reader.vector(reader.root(), slot::kExecutionPlan, 4).count;
}

Span<const char> Program::method_name(uint32_t index) const {
  FbReader reader(bytes_.data(), flatbuffer_size_);
  const FbVector plans = reader.vector(reader.root(), slot::kExecutionPlan, 4);
  if (index >= plans.count) return {};
  const Span<const char> name =
      reader.text(reader.item(plans, index, slot::kExecutionPlan), slot::kName);
  return reader.failed() ? Span<const char>() : name;
}

Error Program::find_method(const char* name, uint32_t& index) const {
  const uint32_t count = method_count();
  for (index = 0; index < count; ++index) {
    if (same_text(method_name(index), name)) return Error::Ok;
  }
  return Error::NotFound;
}

}  // namespace orch
