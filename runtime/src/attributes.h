// Build attributes of our objects for Arm; each source is compiled with
// `-include` of this file.
//
// The sizes of wchar_t and of enums are a choice of the program that the
// library is linked into. Nothing we declare has either type, or an enum
// without a fixed type, so our objects fit every choice. Compilers note theirs,
// and linkers warn where two differ.
// Source: Addenda to, and errata in, the ABI for the Arm architecture, 3.3.
#pragma once

#if defined(__arm__)
__asm__(".eabi_attribute 18, 0");  // Tag_ABI_PCS_wchar_t: not used
__asm__(".eabi_attribute 26, 0");  // Tag_ABI_enum_size: not used
#endif
