/* What two slots need of a flash: it is read as memory, erased by sectors to
 * 0xff, and programmed by units, each once after an erase. */
#ifndef FLASH_H_
#define FLASH_H_

#include <stdbool.h>
#include <stdint.h>

typedef struct Flash {
  const uint8_t* memory; /* where it is read */
  uint32_t sector_bytes;
  uint32_t unit_bytes; /* at least 16, or a divisor of 16 */
  bool (*erase)(const struct Flash* flash, uint32_t sector_at);
  bool (*program)(const struct Flash* flash, uint32_t unit_at,
                  const uint8_t* bytes);
  void* context;
} Flash;

#endif
