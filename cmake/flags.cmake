# How all native code is compiled, and where things lie inside the installed package.
#
# Speed, with the reason for each:
#   -O2 -g              RelWithDebInfo; backtraces of a plugin's crash are worth their bytes.
#   hidden visibility   calls inside the library need no PLT and may be inlined.
#   -fno-plt            calls out of it (libc, a plugin's functions) jump through the GOT at once.
#   -fno-semantic-      nobody replaces what the library exports (it is linked -Bsymbolic-functions
#   interposition       as well), so the compiler may inline that, too.
#   initial-exec TLS    a thread variable is one load from %fs; the default dialect calls
#                       __tls_get_addr. The price is a few words of glibc's static TLS reserve when
#                       the library is dlopen'ed. TLS descriptors would cost an indirect call, and
#                       glibc before 2.39 may clobber vector registers in their slow path.
#   link-time           of libdirectfuse.so, across its rooms: measured in turn with and without,
#   optimisation        open+close 50 -> 45 ns, pread 9.7 -> 8.6, stat the same. The object files
#                       hold ordinary code too, which the unit tests link (-fno-lto: quicker).
# Not used: -D_FILE_OFFSET_BITS, -D_FORTIFY_SOURCE (both rename the very functions we define; off_t
# is 64 bits wide on every platform we build for).

set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS ON)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(THREADS_PREFER_PTHREAD_FLAG ON)

add_library(df_flags INTERFACE)
target_compile_definitions(df_flags INTERFACE _GNU_SOURCE)
target_compile_options(df_flags INTERFACE -Wall -Wextra -fno-plt -ftls-model=initial-exec
                                          -fno-semantic-interposition)
if(DF_WERROR)
  target_compile_options(df_flags INTERFACE -Werror)
endif()

if(DF_SANITIZE)
  target_compile_options(df_flags INTERFACE -fsanitize=${DF_SANITIZE} -fno-omit-frame-pointer
                                            -fno-sanitize-recover=all)
  target_link_options(df_flags INTERFACE -fsanitize=${DF_SANITIZE})
else()
  target_link_options(df_flags INTERFACE -Wl,-z,relro -Wl,-z,now)
endif()

# For shared libraries: a function that nobody defines is an error of the linker, not of the user's
# first call. A sanitizer's own functions come from the program or from a preload.
add_library(df_closed INTERFACE)
if(NOT DF_SANITIZE)
  target_link_options(df_closed INTERFACE -Wl,-z,defs)
endif()

add_library(df_lto INTERFACE)
if(DF_LTO AND CMAKE_C_COMPILER_ID STREQUAL "GNU" AND NOT DF_SANITIZE
   AND NOT CMAKE_BUILD_TYPE STREQUAL "Debug")
  target_compile_options(df_lto INTERFACE -flto=auto -ffat-lto-objects)
  # -fno-lto would win over any -flto, wherever it stands.
  target_link_options(df_flags INTERFACE $<IF:$<BOOL:$<TARGET_PROPERTY:DF_LINK_LTO>>,-flto=auto,-fno-lto>)
endif()

# ---- the package's own tree, the same below a build, a prefix and directfuse/_native ----
set(DF_LIB_DIR lib)           # libdirectfuse.so, libdf3.so.3, pkgconfig/
set(DF_BIN_DIR bin)           # backends as programs for the kernel, benchmark helper
set(DF_PLUGIN_DIR lib/backends) # the same backends as plugins, where df_mount() looks
set(DF_INCLUDE_DIR include)   # directfuse.h

if(SKBUILD)
  set(DF_PREFIX directfuse/_native)
  set(DF_MODULE_DIR directfuse)
else()
  set(DF_PREFIX .)
  set(DF_MODULE_DIR python)
endif()

# df_place(target dir rpath): builds into <build>/stage/dir and installs into dir, finding its
# libraries by a relative path, so that the tree can be moved.
function(df_place target dir rpath)
  set(stage ${PROJECT_BINARY_DIR}/stage/${dir})
  set_target_properties(${target} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY ${stage}
    LIBRARY_OUTPUT_DIRECTORY ${stage}
    BUILD_WITH_INSTALL_RPATH ON
    INSTALL_RPATH "$ORIGIN/${rpath}")
  install(TARGETS ${target}
    RUNTIME DESTINATION ${DF_PREFIX}/${dir}
    LIBRARY DESTINATION ${DF_PREFIX}/${dir})
endfunction()
