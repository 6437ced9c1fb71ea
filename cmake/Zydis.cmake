# The decoder of instructions, as an object library of its own: `zydis`. From an archive in third_party, so that a build
# needs no network.

set(zydis_archive ${PROJECT_SOURCE_DIR}/third_party/zydis/zydis-4.0.0.tar.gz)
set(zydis_hash e990107f80c62afc1deb51de230023a1098db801b8ea6bf483e296d45459e234)
set(zydis_source ${PROJECT_BINARY_DIR}/zydis/zyantific-zydis-1ba75ae)

file(SHA256 ${zydis_archive} hash)
if(NOT hash STREQUAL zydis_hash)
  message(FATAL_ERROR "${zydis_archive} is damaged: its SHA-256 is ${hash}, and should be ${zydis_hash}.")
endif()
if(NOT EXISTS ${zydis_source}/src/Decoder.c)
  file(ARCHIVE_EXTRACT INPUT ${zydis_archive} DESTINATION ${PROJECT_BINARY_DIR}/zydis
    PATTERNS "*/src/*" "*/include/*" "*/LICENSE")
endif()

add_library(zydis OBJECT
  ${zydis_source}/src/Decoder.c ${zydis_source}/src/DecoderData.c ${zydis_source}/src/Register.c
  ${zydis_source}/src/SharedData.c)
target_include_directories(zydis SYSTEM PUBLIC ${zydis_source}/include ${PROJECT_SOURCE_DIR}/third_party/zycore/include)
target_include_directories(zydis SYSTEM PRIVATE ${zydis_source}/src)
# Knights Corner never ran Python.
target_compile_definitions(zydis PUBLIC
  ZYDIS_STATIC_BUILD ZYCORE_STATIC_BUILD ZYDIS_DISABLE_ENCODER ZYDIS_DISABLE_FORMATTER ZYDIS_DISABLE_KNC
  ZYDIS_DISABLE_SEGMENT)
target_compile_options(zydis PRIVATE -w)
