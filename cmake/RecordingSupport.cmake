# Where recording is supported: Linux on x86-64 with glibc, a supported CPython with the GIL.

# Sets `out` to the reason why the native recorder cannot be built here, one clause of text; empty if it can.
function(tachograph_recording_support out)
  set(${out} "" PARENT_SCOPE)
  if(NOT CMAKE_HOST_SYSTEM_NAME STREQUAL "Linux")
    set(${out} "recording needs Linux, this is ${CMAKE_HOST_SYSTEM_NAME}" PARENT_SCOPE)
    return()
  endif()
  find_package(Python REQUIRED COMPONENTS Interpreter)
  execute_process(
    COMMAND "${Python_EXECUTABLE}" -I -S "${PROJECT_SOURCE_DIR}/cmake/recording_support.py"
    OUTPUT_VARIABLE answer
    OUTPUT_STRIP_TRAILING_WHITESPACE
    RESULT_VARIABLE status
  )
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${Python_EXECUTABLE} could not run cmake/recording_support.py (${status})")
  endif()
  set(${out} "${answer}" PARENT_SCOPE)
endfunction()
