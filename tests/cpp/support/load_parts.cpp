// Loads and runs programs with delegates, in exactly the memory they ask for.
//
//   load_parts any|example FILE...
//     Per file a line `open ERROR`, then per method a line `load ERROR STATE
//     RUN`. The backend Elementwise has a delegate that takes any bytes and
//     reads all of them, or that of examples/delegate, Named that of
//     tests/data/delegate/named; operators have stand-ins for kernels.
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "orch/delegate.h"
#include "orch/loader.h"
#include "orch/model.h"
#include "support/method_blocks.h"
#include "support/stand_ins.h"

namespace elementwise {
orch::Error init(const orch::DelegateHandle& handle,
                 const orch::CompileSpecs& specs);
orch::Error execute(const orch::DelegateHandle& handle, const orch::Args& args);
}  // namespace elementwise

namespace named {
orch::Error init(const orch::DelegateHandle& handle,
                 const orch::CompileSpecs& specs);
orch::Error execute(const orch::DelegateHandle& handle, const orch::Args& args);
}  // namespace named

namespace orch {
namespace test {
namespace {

constexpr uint32_t kInstructionLimit = 1000;
constexpr size_t kArenaLimit = size_t{1} << 26;

bool takes_any = false;
volatile uint32_t checksum = 0;

template <typename T>
void read(Span<T> items) {
  for (const T item : items) checksum = checksum * 31 + uint8_t(item);
}

Error init(const DelegateHandle& handle, const CompileSpecs& specs) {
  if (!takes_any) return elementwise::init(handle, specs);
  read(handle.processed);
  for (uint32_t i = 0; i < specs.count(); ++i) {
    read(specs[i].key);
    read(specs[i].value);
  }
  Span<const uint8_t> value;
  (void)(specs.find("negative_slope", value) == Error::Ok);
  return Error::Ok;
}

Error run(const DelegateHandle& handle, const Args& args) {
  if (!takes_any) return elementwise::execute(handle, args);
  for (uint32_t i = 0; i < args.count(); ++i) {
    Tensor* const tensor = writable_argument(args, i, ScalarType::Float);
    if (tensor == nullptr) continue;
    for (int32_t k = 0; k < tensor->numel(); ++k) {
      tensor->mutable_data<float>()[k] += 1;
    }
  }
  return Error::Ok;
}

constexpr Delegate kTable[] = {
    {"Elementwise", ORCH_DELEGATE_STATE_BYTES, init, run},
    {"Named", ORCH_DELEGATE_STATE_BYTES, named::init, named::execute, true}};

void load(const char* path) {
  std::ifstream stream(path, std::ios::binary);
  const std::vector<char> bytes(std::istreambuf_iterator<char>(stream), {});
  const Block file(reinterpret_cast<const uint8_t*>(bytes.data()),
                   bytes.size());
  Program program;
  const Error opened = Program::open(file.bytes(), program);
  std::printf("open %s\n", to_string(opened));
  if (opened != Error::Ok) return;
  const StandIns kernels(file.bytes(), {});
  for (uint32_t m = 0; m < program.method_count(); ++m) {
    const Arenas arenas(arena_sizes(file.bytes(), m), kArenaLimit);
    arenas.fill(0);
    MethodImage image;
    size_t needed = 0;
    Error error = load_method(program, m, kernels.table(), {{}, arenas.spans()},
                              image, needed);
    const Block state(needed);
    if (error == Error::StateTooSmall) {
      error = load_method(program, m, kernels.table(),
                          {state.span(), arenas.spans()}, image, needed);
    }
    std::printf("load %s %zu", to_string(error), needed);
    if (error == Error::Ok) {
      std::printf(" %s", to_string(execute(image, kInstructionLimit).error));
    }
    std::printf("\n");
  }
}

}  // namespace
}  // namespace test

const DelegateTable kRegisteredDelegates{test::kTable};
const KernelTable kRegisteredKernels{};

}  // namespace orch

int main(int count, char** arguments) {
  orch::test::takes_any = count > 1 && std::string(arguments[1]) == "any";
  for (int i = 2; i < count; ++i) orch::test::load(arguments[i]);
  return count > 2 ? 0 : 2;
}
