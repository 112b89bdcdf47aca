/* Results of the generated functions, for C and C++. The numbers are those of
 * orch::Error, which error.h documents. */
#ifndef ORCH_STATUS_H_
#define ORCH_STATUS_H_

#ifdef __cplusplus
extern "C" {
#endif

typedef enum orch_status {
  ORCH_OK = 0,
  ORCH_INVALID_PROGRAM,
  ORCH_UNSUPPORTED_PROGRAM,
  ORCH_OPERATOR_MISSING,
  ORCH_DTYPE_NOT_SELECTED,
  ORCH_DELEGATE_MISSING,
  ORCH_NOT_FOUND,
  ORCH_STATE_TOO_SMALL,
  ORCH_ARENA_TOO_SMALL,
  ORCH_MISALIGNED,
  ORCH_INVALID_ARGUMENT,
  ORCH_SHAPE_TOO_LARGE,
  ORCH_NOT_SUPPORTED,
  ORCH_INSTRUCTION_LIMIT,
  ORCH_IMAGE_DAMAGED,
  ORCH_MEMORY_NOT_SET,
  ORCH_SCRATCH_TOO_SMALL
} orch_status;

/* Name of a status, "InvalidProgram". Never null. */
const char* orch_status_text(orch_status status);

#ifdef __cplusplus
}
#endif

#endif
