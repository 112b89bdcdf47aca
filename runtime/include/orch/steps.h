// Methods whose calls compute some rows of what operators compute: as steps,
// since one for each band would take much flash.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "orch/method_switches.h"
#include "orch/prepared.h"
#include "orch/span.h"

namespace orch {

/// What the steps of a layer share: a prepared call, and what a step changes in
/// a copy of it.
struct StepTemplate {
  const PreparedCall* call;
  /// For each address that changes: which one of the struct's it is, and bytes
  /// from an index to the next one. Then the words that change.
  const uint16_t* layout;
  const int32_t* shapes;  // what these words become, by number of the shape
                          // from 1
  uint8_t addresses;      // that change
  uint8_t words;          // that change
  uint8_t call_addresses;
  uint8_t call_numbers;
  uint8_t header;        // which address is that of the header whose words
                         // change; 0: these are numbers of the struct
  uint8_t header_words;  // 0 likewise
};

/// How far a run is whose input comes by rows. Between rows the run has
/// stopped.
struct RowRun {
  const uint8_t* next;  // step; null before the first run
  uint32_t number;      // of that step
  uint8_t* to;          // where the next bytes of rows belong
  uint32_t room;        // how many the run waits for before it goes on
  uint32_t missing;     // how many the whole input still lacks
};

/// The steps of a method. Trusted.
///
/// A step is the number of its template, the index of each address that
/// changes, and, if the template has words, the number of a shape: 0 where they
/// stay. Each is 7 bits in a byte, the lowest first, and 128 more if others
/// follow.
struct StepTable {
  Span<const uint8_t> steps;
  const StepTemplate* templates;
  uint8_t* copy;  // `step_bytes` of the templates, for the struct of a step
#if ORCH_GIVEN_ROWS
  RowRun* run;        // null if the input is whole
  uint32_t given;     // template that is a move of rows from the caller
  uint32_t in_bytes;  // of the whole input
#endif
};

/// Bytes of the largest struct of some templates, with its header.
template <size_t kCount>
constexpr size_t step_bytes(const StepTemplate (&templates)[kCount]) {
  size_t most = 0;
  for (const StepTemplate& of : templates) {
    const size_t bytes =
        (1U + of.call_addresses) * sizeof(void*) +
        (size_t{of.call_numbers} + of.header_words) * sizeof(int32_t);
    if (bytes > most) most = bytes;
  }
  return most;
}

}  // namespace orch
