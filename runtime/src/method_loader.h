// The loader of one method: what its parts share.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "flatbuffer.h"
#include "orch/loader.h"
#include "switches.h"

/// 1 for products that link delegates; else nothing of them is compiled. All
/// sources of the loader, and the executor, must have the same.
#ifndef ORCH_DELEGATES
#define ORCH_DELEGATES 0
#endif

#if ORCH_DELEGATES
#include "orch/delegate.h"
#endif

namespace orch {

/// Whether a place is in a block that other methods use as well.
bool is_common(const void* place);

/// Of values, and of instructions: their size in bytes fits 32 bits.
inline constexpr uint32_t kMaxCount = 1U << 24;

/// Hands out parts of a block, and counts on when the block is full.
class Bump {
 public:
  explicit Bump(Span<uint8_t> block) : block_(block) {}

  template <typename T>
  T* take(size_t count) {
    static_assert(alignof(T) <= kStateAlignment, "state alignment");
    used_ = (used_ + alignof(T) - 1) / alignof(T) * alignof(T);
    const size_t at = used_;
    used_ += count * sizeof(T);
    return fits() ? reinterpret_cast<T*>(block_.data() + at) : nullptr;
  }
  size_t used() const { return used_; }
  bool fits() const { return used_ <= block_.size(); }

 private:
  Span<uint8_t> block_;
  size_t used_ = 0;
};

/// Loads one method. Every index it stores was checked first.
class MethodLoader {
 public:
  MethodLoader(const Program& program, KernelTable kernels,
               const MethodMemory& memory)
      : program_(program),
        kernels_(kernels),
        memory_(memory),
        state_(memory.state),
        reader_(program.bytes_.data(), program.flatbuffer_size_),
        items_left_(2 * program.flatbuffer_size_) {}

  Error load(uint32_t method, MethodImage& image, size_t& state_used);
  /// Whether the program is newer than this loader, whatever `load` gave.
  bool found_newer() const { return reader_.newer(); }

 private:
  Error count_dynamic(size_t& words);
  Error load_value(uint32_t index);
  Error load_tensor(const FbTable& table, Tensor& tensor);
  Error locate(const FbTable& table, Tensor& tensor, size_t bytes);
#if ORCH_EXTERNAL_DATA
  Error external(const FbTable& extra, Tensor& tensor, size_t bytes);
#endif
  Error constant(uint32_t buffer, size_t bytes, const uint8_t*& data);
  /// A segment that is cut into pieces by a list of offsets.
  struct Pieces {
    FbVector starts;
    uint32_t base = 0;
    uint32_t size = 0;
  };
  Error find_pieces(const FbTable& offsets, Pieces& pieces);
  Error piece(const Pieces& pieces, uint32_t index, size_t bytes,
              const uint8_t*& data);
  Error check_lists();
  Error check_callers(const FbTable& plan);
  /// The instructions are gone through several times, see `load`.
  enum class Pass { Results, Control, Calls };
  void clear_state();
  Error load_shared_state(const FbVector& plans);
  Error load_instructions(Pass pass);
  Error load_instruction(uint32_t index, Pass pass);
  Error load_call(const FbTable& table, Pass pass, Instruction& instruction);
  Error indices(const FbTable& plan, uint32_t slot,
                Span<const int32_t>& result);
#if ORCH_DELEGATES
  Error count_delegates(const FbTable& plan);
  Error count_delegate_states(Bump& sizes);
  Error find_handle(uint32_t index, DelegateHandle& handle,
                    CompileSpecs& specs);
  Error start_delegates();
  Error load_delegate_call(const FbTable& table, Instruction& instruction);
#endif
  /// Counts items of vectors that are gone through for one value, call or
  /// delegate. Offsets may share what they lead to: without a bound, a small
  /// file would keep the loader busy for as long as the square of its size.
  Error spend(uint32_t items) {
    ORCH_CHECK(items <= items_left_, Error::InvalidProgram);
    items_left_ -= items;
    return Error::Ok;
  }
  bool valid(int32_t value) const {
    return static_cast<uint32_t>(value) < values_count_;
  }

  const Program& program_;
  const KernelTable kernels_;
  const MethodMemory& memory_;
  Bump state_;
  FbReader reader_;
  uint32_t items_left_;
  FbTable root_;
  FbVector values_at_;
  FbVector operators_;
  FbVector instructions_at_;
  FbVector buffer_sizes_;
  Pieces constants_;  // found when the first constant is
  /// By operator, for as many as there is room: one more than the place of the
  /// first kernel with its name in the table; 0 if that is not known.
  uint8_t first_kernels_[16] = {};
  Value* values_ = nullptr;
  uint32_t values_count_ = 0;
  Instruction* instructions_ = nullptr;
#if ORCH_DELEGATES
  FbVector delegates_at_;
  DelegateHandle* handles_ = nullptr;
#endif
};

}  // namespace orch
