# What is looked for on the system, and which Debian package brings it.

find_package(Threads REQUIRED)
find_package(PkgConfig)
if(NOT PkgConfig_FOUND)
  message(FATAL_ERROR "pkg-config is missing. Debian: apt install pkg-config")
endif()

pkg_check_modules(FUSE3 QUIET IMPORTED_TARGET fuse3>=3.14)
if(NOT FUSE3_FOUND)
  message(FATAL_ERROR "The headers of libfuse 3 (at least 3.14) are missing. "
                      "Debian: apt install libfuse3-dev")
endif()
if(FUSE3_VERSION VERSION_GREATER_EQUAL 3.19)
  message(FATAL_ERROR "The headers of libfuse are those of ${FUSE3_VERSION}. directfuse is built with "
                      "those of 3.14 to 3.18 (docs/libfuse-abi.md). Point PKG_CONFIG_PATH to older ones.")
endif()
# The library that what is compiled with these headers is linked to as a plugin.
if(FUSE3_VERSION VERSION_GREATER_EQUAL 3.17)
  set(DF_PLUGIN_ABI 4)
else()
  set(DF_PLUGIN_ABI 3)
endif()

if(DF_TESTS)
  pkg_check_modules(CMOCKA QUIET IMPORTED_TARGET cmocka)
  if(NOT CMOCKA_FOUND)
    message(STATUS "Native tests left out: cmocka is missing. Debian: apt install libcmocka-dev")
    set(DF_TESTS OFF)
  else() # cmocka 2 has other names for assertions that are all that cmocka 1 has
    target_compile_definitions(PkgConfig::CMOCKA INTERFACE CMOCKA_DISABLE_DEPRECATION_WARNINGS)
  endif()
endif()

if(DF_PYTHON)
  find_package(Python3 3.11 COMPONENTS Interpreter Development.Module)
  if(Python3_FOUND)
    execute_process(COMMAND ${Python3_EXECUTABLE} -c "import cffi" RESULT_VARIABLE no_cffi
                    ERROR_QUIET)
  endif()
  if(DF_PYTHON STREQUAL "AUTO")
    if(NOT Python3_FOUND OR no_cffi)
      message(STATUS "Python modules left out: they need Python's headers and cffi "
                     "(pass -DPython3_EXECUTABLE=...)")
      set(DF_PYTHON OFF)
    endif()
  elseif(NOT Python3_FOUND)
    message(FATAL_ERROR "The headers of Python 3.11 or later are missing. "
                        "Debian: apt install python3-dev")
  elseif(no_cffi)
    message(FATAL_ERROR "${Python3_EXECUTABLE} has no cffi: pip install cffi")
  endif()
endif()
