# Which build this is (native/core/build.h). Included, it names in DF_BUILD_SOURCES what the digest
# is made of; as a script, cmake -DRELEASE=... -DOUT=... -P build.cmake, it writes the C file.
#
# The whole of the rooms, not only their headers: what a field of shared memory means lies in
# functions as well. No path of this machine and no time goes in.

set(df_native ${CMAKE_CURRENT_LIST_DIR}/../native)
set(DF_BUILD_SOURCES)
foreach(room include core channel
             segment ledger process workers writeback watch server
             intercept client shadows ways shown syscalls)
  file(GLOB files RELATIVE ${df_native} ${df_native}/${room}/*.[chS] ${df_native}/${room}/*.def)
  list(APPEND DF_BUILD_SOURCES ${files})
endforeach()
list(SORT DF_BUILD_SOURCES)

if(CMAKE_SCRIPT_MODE_FILE STREQUAL CMAKE_CURRENT_LIST_FILE)
  set(lines "${RELEASE}\n")
  foreach(file ${DF_BUILD_SOURCES})
    file(SHA256 ${df_native}/${file} digest)
    string(APPEND lines "${file} ${digest}\n")
  endforeach()
  string(SHA256 digest "${lines}")
  string(SUBSTRING "${digest}" 0 16 digest)
  file(WRITE ${OUT} "/* Made by cmake/build.cmake. */\n#include \"core/build.h\"\n\n"
                    "const char df_build[DF_BUILD_SIZE] = \"${RELEASE}-${digest}\";\n"
                    "_Static_assert(sizeof(\"${RELEASE}-${digest}\") <= DF_BUILD_SIZE, \"core/build.h\");\n")
endif()
