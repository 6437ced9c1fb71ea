# Compiler and flags of everything native, in one place. Included only where the native recorder is built.

include(CheckLanguage)
foreach(language C CXX)
  check_language(${language})
  if(NOT CMAKE_${language}_COMPILER)
    message(FATAL_ERROR
      "The recorder needs a C and a C++ compiler (g++ or clang++) and none was found. Install one, or build the "
      "analyzer alone: pip install . -C cmake.define.TACHOGRAPH_NATIVE=OFF")
  endif()
  enable_language(${language})
endforeach()

# Function names and line numbers for whoever debugs a crash, but not the five megabytes of types that -g2 adds.
set(CMAKE_C_FLAGS_RELWITHDEBINFO "-O2 -g1 -DNDEBUG")
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O2 -g1 -DNDEBUG")
set(CMAKE_C_STANDARD 17)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

# Unwind tables everywhere: a signal may arrive at any instruction, and other people's profilers unwind through us.
add_compile_options(-Wall -Wextra -fasynchronous-unwind-tables)
# GCC 16 guesses which function a pointer has and copies it in front of the call: the hooks, which cost a load and a
# jump, would hold a slow way of copying that is meant for the program's first instants.
include(CheckCXXCompilerFlag)
check_cxx_compiler_flag(-fno-speculatively-call-stored-functions TACHOGRAPH_CALLS_AS_WRITTEN)
if(TACHOGRAPH_CALLS_AS_WRITTEN)
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fno-speculatively-call-stored-functions>)
endif()
if(TACHOGRAPH_WERROR)
  add_compile_options(-Werror)
endif()
if(TACHOGRAPH_SANITIZE)
  add_compile_options(-fsanitize=${TACHOGRAPH_SANITIZE} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${TACHOGRAPH_SANITIZE})
endif()
