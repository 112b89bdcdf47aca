#include "support/stand_ins.h"

#include <cstring>

#include "flatbuffer.h"

namespace orch::test {
namespace {

/// Keeps reads from being left out, and decides what a stand-in does.
volatile uint32_t checksum = 0;

void read(const void* bytes, size_t count) {
  uint32_t sum = checksum;
  for (size_t i = 0; i < count; ++i) {
    sum = sum * 31 + static_cast<const uint8_t*>(bytes)[i];
  }
  checksum = sum;
}

Error use_tensor(Tensor& tensor) {
  read(tensor.memory, tensor.nbytes());
  for (const int32_t size : tensor.sizes()) read(&size, sizeof size);
  read(tensor.order(), tensor.dim);
  if ((tensor.flags & Tensor::kReadOnly) != 0) return Error::Ok;
  if ((tensor.flags & Tensor::kDynamic) != 0) {
    // Sometimes half as large, sometimes larger: perhaps more than there is
    // room for.
    int32_t sizes[kMaxDim];
    for (int i = 0; i < tensor.dim; ++i) sizes[i] = tensor.size(i);
    if (tensor.dim != 0) {
      const bool grow = sizes[0] < 1000 && (checksum & 1) != 0;
      sizes[0] = grow ? 2 * sizes[0] + 1 : sizes[0] / 2;
    }
    const Error error = resize(tensor, {sizes, tensor.dim});
    if (error != Error::Ok && error != Error::ShapeTooLarge) return error;
  }
  uint8_t* const items = tensor.mutable_data<uint8_t>();
  for (size_t i = 0; i < tensor.nbytes(); ++i) {
    // Truth values change every time, so that loops end.
    const uint8_t changed = static_cast<uint8_t>(items[i] + 1);
    items[i] = tensor.dtype == ScalarType::Bool ? changed & 1 : changed;
  }
  return Error::Ok;
}

Error use_value(const Args& args, int index) {
  Value& value = args.value(index);
  switch (value.tag()) {
    case Tag::None:
      return Error::Ok;
    case Tag::Tensor:
      return use_tensor(value.tensor());
    case Tag::Int:
      value.set_int(
          static_cast<int64_t>(static_cast<uint64_t>(value.to_int()) + 1));
      return Error::Ok;
    case Tag::Double:
      value.set_double(value.to_double() / 2);
      return Error::Ok;
    case Tag::Bool:
      value.set_bool(!value.to_bool());
      return Error::Ok;
    case Tag::String:
    case Tag::BoolList:
      read(value.list().items, value.list().count);
      return Error::Ok;
    case Tag::DoubleList:
      for (uint32_t i = 0; i < value.list().count; ++i) {
        const double item = static_cast<const double*>(value.list().items)[i];
        read(&item, sizeof item);
      }
      return Error::Ok;
    case Tag::IntList: {
      const IntList list = args.int_list(index);
      for (int i = 0; i < list.size(); ++i) {
        const int64_t item = list[i];
        read(&item, sizeof item);
      }
      return Error::Ok;
    }
    case Tag::TensorList: {
      const TensorList list = args.tensor_list(index);
      for (int i = 0; i < list.size(); ++i) {
        if (list[i] != nullptr) ORCH_TRY(use_tensor(*list[i]));
      }
      return Error::Ok;
    }
  }
  return Error::InvalidArgument;
}

Error stand_in(const Args& args) {
  for (uint32_t i = 0; i < args.count(); ++i) {
    ORCH_TRY(use_value(args, static_cast<int>(i)));
  }
  return Error::Ok;
}

std::string text(Span<const char> chars) {
  return {chars.data(), chars.size()};
}

}  // namespace

StandIns::StandIns(Span<const uint8_t> program, KernelTable known)
    : kernels_(known.begin(), known.end()) {
  checksum = 0;
  FbReader reader(program.data(), static_cast<uint32_t>(program.size()));
  const FbTable root = reader.root();
  const FbVector plans = reader.vector(root, slot::kExecutionPlan, 4);
  for (uint32_t m = 0; m < plans.count && !reader.failed(); ++m) {
    const FbVector operators = reader.vector(
        reader.item(plans, m, slot::kExecutionPlan), slot::kOperators, 4);
    for (uint32_t i = 0; i < operators.count && !reader.failed(); ++i) {
      const FbTable op = reader.item(operators, i, slot::kOperators);
      std::string name = text(reader.text(op, slot::kOpName));
      const std::string overload = text(reader.text(op, slot::kOverload));
      if (!overload.empty()) name += "." + overload;
      if (reader.failed() || name.find('\0') != std::string::npos) continue;
      bool found = false;
      for (const Kernel& kernel : kernels_) found |= kernel.name == name;
      if (found) continue;
      names_.push_back(name);
      kernels_.push_back(
          {names_.back().c_str(), "", nullptr, stand_in, DtypeSet{UINT32_MAX}});
    }
  }
}

}  // namespace orch::test
