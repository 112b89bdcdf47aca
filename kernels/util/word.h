// Strings among the arguments of an operator.
#pragma once

#include <string.h>

#include "orch/value.h"

namespace orch {

/// Whether a string of the program is `word`.
inline bool is_word(const List& text, const char* word) {
  const size_t length = strlen(word);
  return text.count == length && memcmp(text.items, word, length) == 0;
}

}  // namespace orch
