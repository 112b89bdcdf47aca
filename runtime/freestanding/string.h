// The part of <string.h> that runtime and kernels use, for builds without a C
// library. The compiler expands most calls; the rest is in mem.cpp.
#pragma once

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

void* memcpy(void* to, const void* from, size_t size);
void* memmove(void* to, const void* from, size_t size);
void* memset(void* to, int byte, size_t size);
int memcmp(const void* a, const void* b, size_t size);
size_t strlen(const char* text);

#ifdef __cplusplus
}
#endif
