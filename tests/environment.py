"""Variables of an environment that must not reach a compiler."""

HOSTILE = (
    "CCC_OVERRIDE_OPTIONS",
    "CFLAGS",
    "COLLECT_GCC",
    "COMPILER_PATH",
    "CPATH",
    "CPLUS_INCLUDE_PATH",
    "CXXFLAGS",
    "C_INCLUDE_PATH",
    "DEPENDENCIES_OUTPUT",
    "GCC_COMPARE_DEBUG",
    "GCC_EXEC_PREFIX",
    "GNUTARGET",
    "LDEMULATION",
    "LDFLAGS",
    "LD_RUN_PATH",
    "LIBRARY_PATH",
    "LLVM_PROFILE_FILE",
    "NINJAFLAGS",
    "SOURCE_DATE_EPOCH",
    "ZIG_GLOBAL_CACHE_DIR",
    "ZIG_LIB_DIR",
    "ZIG_LOCAL_CACHE_DIR",
)
"""Each changes what some compiler, assembler, linker or ninja does."""
