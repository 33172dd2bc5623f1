"""Native code: LLVM modules to object code, kept in the cache on disk, to functions. See ARCHITECTURE.md."""
