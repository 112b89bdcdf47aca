// Turns the bytes of a .pte program into methods that can run.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "orch/error.h"
#include "orch/kernel.h"
#include "orch/method.h"
#include "orch/span.h"

namespace orch {

class FbReader;
struct FbTable;

/// Programs must lie at a multiple of this address, as their constants do
/// within.
inline constexpr size_t kProgramAlignment = 16;
/// Arenas must lie at a multiple of this address.
inline constexpr size_t kArenaAlignment = 16;
/// The method state must lie at a multiple of this address.
inline constexpr size_t kStateAlignment = 8;

/// A program in memory; its bytes are used in place and must stay there.
///
/// The bytes are not trusted. Every offset, index and size is checked before
/// use.
class Program {
 public:
  /// Checks header, identifier and segment table.
  /// Errors: Misaligned, InvalidProgram, UnsupportedProgram.
  static Error open(Span<const uint8_t> bytes, Program& program);

  uint32_t method_count() const;
  /// Name of a method, not terminated; empty if `index` is out of range.
  Span<const char> method_name(uint32_t index) const;
  /// Index of the method with this name. Errors: NotFound.
  Error find_method(const char* name, uint32_t& index) const;
  /// Key, not terminated, and bytes of a block of data that delegates find by
  /// name. Products with delegates have it. Errors: NotFound if `index` is out
  /// of range, InvalidProgram, UnsupportedProgram.
  Error named_data(uint32_t index, Span<const char>& key,
                   Span<const uint8_t>& data) const;

 private:
  friend class MethodLoader;
  Error segment(FbReader& reader, const FbTable& root, uint32_t index,
                Span<const uint8_t>& data) const;
  Span<const uint8_t> bytes_;     // the whole file
  uint32_t flatbuffer_size_ = 0;  // bytes before the first segment
  uint32_t segment_base_ = 0;     // where segments begin
  uint32_t segment_bytes_ = 0;    // from there to the end of the last segment
};

/// 1 for products with programs that leave constants outside.
#ifndef ORCH_EXTERNAL_DATA
#define ORCH_EXTERNAL_DATA 0
#endif

/// A constant that lies outside of the program, at a multiple of
/// kProgramAlignment. Data that is no tensor has the type Byte.
struct ExternalData {
  const char* name;
  const uint8_t* data;
  uint32_t bytes;
  ScalarType dtype;
};

/// RAM a method is given. Every block is the caller's and must outlive the
/// method.
struct MethodMemory {
  /// Values, instructions and sizes of dynamic tensors.
  Span<uint8_t> state;
  /// arenas[n] serves memory id n + 1.
  Span<const Span<uint8_t>> arenas;
#if ORCH_EXTERNAL_DATA
  /// Constants of the product that the program may name.
  Span<const ExternalData> external = {};
#endif
  /// Other methods have state in the arena with memory id 2: it begins anew.
  bool shares_state = false;
};

/// Loads a method: checks all of it, resolves its kernels, lays its values out
/// in `memory.state`, and copies the initial state of mutable buffers to the
/// arenas.
///
/// On return `state_used` is the number of bytes of `memory.state` that the
/// method needs (also with StateTooSmall, unless the program is damaged).
///
/// Errors: InvalidProgram, UnsupportedProgram, OperatorMissing,
/// DtypeNotSelected, DelegateMissing, NotFound, StateTooSmall, ArenaTooSmall,
/// Misaligned. Nothing outside `memory` is written.
Error load_method(const Program& program, uint32_t method, KernelTable kernels,
                  const MethodMemory& memory, MethodImage& image,
                  size_t& state_used);

}  // namespace orch
