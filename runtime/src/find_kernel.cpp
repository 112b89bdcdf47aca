#include "find_kernel.h"

/// 0 if no kernel of the product is specialised for a kernel key: then each
/// operator has one.
#ifndef ORCH_KERNEL_KEYS
#define ORCH_KERNEL_KEYS 1
#endif

namespace orch {
namespace {

constexpr bool kKernelKeys = ORCH_KERNEL_KEYS != 0;

/// Letter of a kernel signature for each tag.
constexpr char kLetters[] = "NTIDBCJEAL";

constexpr bool has_letter(Tag tag, char letter) {
  return kLetters[static_cast<size_t>(tag)] == letter;
}
static_assert(has_letter(Tag::Tensor, 'T') && has_letter(Tag::Int, 'I') &&
                  has_letter(Tag::Double, 'D') && has_letter(Tag::Bool, 'B') &&
                  has_letter(Tag::String, 'C') &&
                  has_letter(Tag::IntList, 'J') &&
                  has_letter(Tag::DoubleList, 'E') &&
                  has_letter(Tag::BoolList, 'A') &&
                  has_letter(Tag::TensorList, 'L'),
              "letters are in the order of the tags");

constexpr char kSmall = 'a' - 'A';

[[maybe_unused]] bool same_text(const char* a, const char* b) {
  for (; *a == *b; ++a, ++b) {
    if (*a == '\0') return true;
  }
  return false;
}

/// What follows `text` in `name`; null if that does not begin with it.
const char* behind(const char* name, Span<const char> text) {
  const char* at = text.begin();
  while (at != text.end()) {
    const char c = *at++;
    if (c == '\0' || c != *name++) return nullptr;
  }
  return name;
}

/// Compares "namespace::base" and overload of a program with
/// "namespace::base.out".
bool same_name(const char* name, Span<const char> base,
               Span<const char> overload) {
  name = behind(name, base);
  if (name != nullptr && !overload.empty()) {
    name = *name == '.' ? behind(name + 1, overload) : nullptr;
  }
  return name != nullptr && *name == '\0';
}

/// Consumes the kernel key entry of one tensor, "6;0,1"; null if it differs.
const char* match_key_entry(const char* key, const Tensor& tensor) {
  unsigned dtype = 0;
  while (*key >= '0' && *key <= '9') {
    dtype = dtype * 10 + static_cast<unsigned>(*key++ - '0');
  }
  if (dtype != static_cast<unsigned>(tensor.dtype) || *key++ != ';')
    return nullptr;
  for (int i = 0; i < tensor.dim; ++i) {
    // Ranks are below 10: one digit for each dimension.
    if (i != 0 && *key++ != ',') return nullptr;
    if (*key++ != static_cast<char>('0' + tensor.order()[i])) return nullptr;
  }
  return key;
}

/// Compares a kernel key with the tensors of a call: `v1/6;0,1|6;0,1`. A tensor
/// list counts as the first tensor in it, a missing tensor not at all.
[[maybe_unused]] bool matches_key(const char* key, const Args& args) {
  key += 2;  // "v1"
  bool first = true;
  for (uint32_t i = 0; i < args.count(); ++i) {
    const Value& value = args.value(static_cast<int>(i));
    const Tensor* tensor = nullptr;
    if (value.is_tensor()) {
      tensor = &value.tensor();
    } else if (value.tag() == Tag::TensorList) {
      const TensorList list = args.tensor_list(static_cast<int>(i));
      for (int k = 0; k < list.size() && tensor == nullptr; ++k)
        tensor = list[k];
    }
    if (tensor == nullptr) continue;
    if (*key++ != (first ? '/' : '|')) return false;
    key = match_key_entry(key, *tensor);
    if (key == nullptr) return false;
    first = false;
  }
  return *key == '\0';
}

/// Whether a kernel of the right name serves a call: kinds, dtypes and kernel
/// key.
bool matches(const Kernel& kernel, const Args& args, Error& why) {
  why = Error::InvalidProgram;
  bool selected = true;
  uint32_t index = 0;
  for (const char* letter = kernel.signature; *letter != '\0'; ++letter) {
    if (*letter == '>' || *letter == '?') continue;
    if (index == args.count()) return false;
    const int at = static_cast<int>(index++);
    const Value& value = args.value(at);
    // Numbers and their lists: letters below L.
    if (*letter < 'L' && has_letter(value.tag(), *letter)) continue;
    const bool writes = *letter >= 'a';
    char kind = *letter;
    if (writes) kind = static_cast<char>(kind - kSmall);
    if (!has_letter(value.tag(), kind == 'O' ? 'L' : kind)) {
      if (letter[1] == '?' && value.is_none()) continue;
      if (kind != 'S' || !value.is_scalar()) return false;
    }
    const bool is_list = value.tag() == Tag::TensorList;
    const uint32_t count = is_list ? value.list().count : value.is_tensor();
    for (uint32_t k = 0; k < count; ++k) {
      const Tensor* const tensor =
          is_list ? args.tensor_list(at)[static_cast<int>(k)] : &value.tensor();
      if (tensor == nullptr) {
        if (*letter != 'O') return false;
        continue;
      }
      if (writes && (tensor->flags & Tensor::kReadOnly) != 0) return false;
      selected &= kernel.dtypes.has(tensor->dtype);
    }
  }
  why = Error::DtypeNotSelected;
  return selected && (!kKernelKeys || kernel.key == nullptr ||
                      matches_key(kernel.key, args));
}

/// What a value is as a number; a tensor, what its items are.
Tag number_kind(const Value& value) {
  if (!value.is_tensor()) return value.tag();
  const ScalarType dtype = value.tensor().dtype;
  if (kFloating.has(dtype)) return Tag::Double;
  return dtype == ScalarType::Bool ? Tag::Bool : Tag::Int;
}

/// The kind of the number that a kernel returns for these arguments, of which
/// the last one is for it; Int if it returns none.
Tag result_kind(const char* letter, const Args& args) {
  const int last = static_cast<int>(args.count()) - 1;
  constexpr unsigned kDouble = 1U << static_cast<unsigned>(Tag::Double);
  constexpr unsigned kBool = 1U << static_cast<unsigned>(Tag::Bool);
  unsigned kinds = 0;
  int index = 0;
  for (; *letter != '>'; ++letter) {
    if (*letter == '\0' || index > last) return Tag::Int;
    if (*letter == '?') continue;
    if (*letter == 'S' || *letter == 'T') {
      kinds |= 1U << static_cast<unsigned>(number_kind(args.value(index)));
    }
    ++index;
  }
  if (index != last) return Tag::Int;
  if (letter[1] == 'D') return Tag::Double;
  if (letter[1] == 'B') return Tag::Bool;
  if (letter[1] != 'S') return Tag::Int;
  if ((kinds & kDouble) != 0) return Tag::Double;
  return kinds == kBool ? Tag::Bool : Tag::Int;
}

}  // namespace

size_t find_operator(KernelTable kernels, Span<const char> base,
                     Span<const char> overload) {
  size_t place = 0;
  while (place < kernels.size() &&
         !same_name(kernels[place].name, base, overload)) {
    ++place;
  }
  return place;
}

void settle_result(const Kernel& kernel, const Args& args) {
  Value& result = args.value(static_cast<int>(args.count()) - 1);
  if (result.tag() != Tag::Int) return;
  const Tag kind = result_kind(kernel.signature, args);
  if (kind == Tag::Bool) result.set_bool(false);
  if (kind == Tag::Double) result.set_double(0);
}

Error find_kernel(KernelTable kernels, size_t first, const Args& args,
                  KernelFn& function) {
  Error why = Error::OperatorMissing;
  while (first < kernels.size()) {
    const Kernel& kernel = kernels[first];
    if (matches(kernel, args, why)) {
      function = kernel.function;
      return Error::Ok;
    }
    // Kernels of one operator follow one another.
    ++first;
    if (!kKernelKeys || first == kernels.size() ||
        !same_text(kernels[first].name, kernel.name)) {
      break;
    }
  }
  return why;
}

}  // namespace orch
