// <stddef.h> from the compiler's own macros, for toolchains that bring no
// headers.
#pragma once

typedef __SIZE_TYPE__ size_t;
typedef __PTRDIFF_TYPE__ ptrdiff_t;
#ifdef __cplusplus
typedef decltype(nullptr) nullptr_t;
#else
typedef __WCHAR_TYPE__ wchar_t;
#endif

#ifndef NULL
#ifdef __cplusplus
#define NULL __null
#else
#define NULL ((void*)0)
#endif
#endif
#define offsetof(type, member) __builtin_offsetof(type, member)
