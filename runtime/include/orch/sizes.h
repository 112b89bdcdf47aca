/* What a method needs, for C and C++: the constants of a header as one value.
 */
#ifndef ORCH_SIZES_H_
#define ORCH_SIZES_H_

#include <stdint.h>

typedef struct {
  uint32_t arenas_bytes;    /* planned tensors */
  uint32_t state_bytes;     /* what the runtime keeps */
  uint32_t temporary_bytes; /* of the arenas: needed during a run only */
  uint32_t inputs_bytes;    /* all tensors; upper bounds where sizes change */
  uint32_t outputs_bytes;   /* likewise */
  uint32_t stack_bytes;     /* of a call in the worst case; 0 if not known */
} orch_sizes;

#endif
