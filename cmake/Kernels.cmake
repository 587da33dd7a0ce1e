# Kernels: for each program one text for OpenCL and one fatbin for CUDA, embedded by the assembler's
# .incbin under hidden symbols. A fatbin does not depend on the host, so any nvcc can build it; without
# nvcc the CUDA kernels are left out, and CMake reports it.
#
#   IRON_CUDA         AUTO (where nvcc works), ON (an error without it), OFF
#   IRON_CUDA_ARCHS   machine code for these (80;90;100;120)
#   IRON_CUDA_PTX     and PTX of these levels for the driver to compile on others (75;90); empty: none
set(IRON_CUDA "AUTO" CACHE STRING "CUDA kernels: AUTO, ON or OFF")
set(IRON_CUDA_ARCHS "80;90;100;120" CACHE STRING "compute capabilities to make machine code for")
set(IRON_CUDA_PTX "75;90" CACHE STRING "compute capabilities of the PTX for all others; empty: none")

set(IRON_CUDA_KERNELS 0)
set(cuda_targets "")
foreach(arch IN LISTS IRON_CUDA_ARCHS)
  list(APPEND cuda_targets "-gencode=arch=compute_${arch},code=sm_${arch}")
endforeach()
foreach(level IN LISTS IRON_CUDA_PTX)
  list(APPEND cuda_targets "-gencode=arch=compute_${level},code=compute_${level}")
endforeach()

# Checks that nvcc supports all requested architectures and 128-bit loads (12.3 and later). It also needs a
# C++ compiler.
function(iron_check_nvcc result)
  set(probe "${CMAKE_CURRENT_BINARY_DIR}/nvcc-probe")
  file(WRITE "${probe}.cu" [[
extern "C" __global__ void probe(void *p) {
    asm volatile("{ .reg .b128 v; ld.relaxed.gpu.global.b128 v, [%0]; }" ::"l"(p) : "memory");
}
]])
  execute_process(
    COMMAND "${IRON_NVCC}" -fatbin ${cuda_targets} "${probe}.cu" -o "${probe}.fatbin"
    RESULT_VARIABLE code OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(code EQUAL 0)
    set(${result} "" PARENT_SCOPE)
  else()
    string(STRIP "${output}" output)
    string(REGEX REPLACE "\n.*" "" output "${output}")
    set(${result} "${IRON_NVCC} does not work: ${output}" PARENT_SCOPE)
  endif()
endfunction()

if(NOT IRON_CUDA STREQUAL "OFF" AND EXISTS "${CMAKE_CURRENT_SOURCE_DIR}/src/gpu/cuda")
  find_program(IRON_NVCC nvcc HINTS ENV CUDA_HOME ENV CUDA_PATH PATHS /usr/local/cuda PATH_SUFFIXES bin)
  if(IRON_NVCC)
    iron_check_nvcc(nvcc_fault)
  else()
    set(nvcc_fault "nvcc was not found")
  endif()
  if(nvcc_fault AND IRON_CUDA STREQUAL "ON")
    message(FATAL_ERROR "CUDA kernels: ${nvcc_fault}; install CUDA 12.8 or later (12.3 for IRON_CUDA_ARCHS up to 90), or use IRON_CUDA=OFF")
  elseif(nvcc_fault)
    message(STATUS "CUDA kernels: left out, since ${nvcc_fault}")
  else()
    set(IRON_CUDA_KERNELS 1)
  endif()
endif()

# iron_kernels(NAME SOURCES a.k ... [CUDA_ONLY b.cu ...]): sets NAME_kernels to the source to compile.
# Source paths are relative to the project's root, in any calling directory.
function(iron_kernels name)
  cmake_parse_arguments(KERNELS "" "" "SOURCES;CUDA_ONLY" ${ARGN})
  set(folder "${PROJECT_BINARY_DIR}/generated/kernels")
  set(text "${folder}/${name}.cl")
  set(fatbin "${folder}/${name}.fatbin")
  set(assembly "${folder}/${name}.S")
  set(sources src/gpu/kernel_words.h ${KERNELS_SOURCES})
  list(TRANSFORM sources PREPEND "${PROJECT_SOURCE_DIR}/")
  file(MAKE_DIRECTORY "${folder}")
  add_custom_command(
    OUTPUT "${text}" COMMAND ${CMAKE_COMMAND} -E cat ${sources} > "${text}" DEPENDS ${sources}
    COMMENT "Kernels of ${name}, as OpenCL text")

  set(includes "")
  foreach(source IN LISTS KERNELS_SOURCES KERNELS_CUDA_ONLY)
    string(REGEX REPLACE "^src/" "" source "${source}")
    string(APPEND includes "#include \"${source}\"\n")
  endforeach()
  file(CONFIGURE OUTPUT "${folder}/${name}.cu" CONTENT "#include \"gpu/kernel_words.h\"\n${includes}")

  set(embedded "${text}")
  set(code "")
  if(IRON_CUDA_KERNELS)
    set(cuda_sources ${KERNELS_CUDA_ONLY})
    list(TRANSFORM cuda_sources PREPEND "${PROJECT_SOURCE_DIR}/")
    # -fmad=false: each operation rounds once. 550: scratch memory that only OpenCL needs.
    add_custom_command(
      OUTPUT "${fatbin}"
      COMMAND "${IRON_NVCC}" -fatbin -std=c++17 -O3 -fmad=false -diag-suppress 550
              ${cuda_targets} -I "${PROJECT_SOURCE_DIR}/src" -I "${PROJECT_SOURCE_DIR}" "${folder}/${name}.cu" -o "${fatbin}"
      DEPENDS ${sources} ${cuda_sources} "${folder}/${name}.cu"
      COMMENT "Kernels of ${name}, as CUDA machine code")
    list(APPEND embedded "${fatbin}")
    set(code "  .incbin \"${fatbin}\"")
  endif()
  file(CONFIGURE OUTPUT "${assembly}" CONTENT [[
/* Kernels of @name@: OpenCL text, ended by a zero, and a CUDA fatbin. */
  .section .rodata
  .global iron__@name@_kernels_text, iron__@name@_kernels_code, iron__@name@_kernels_code_end
  .hidden iron__@name@_kernels_text, iron__@name@_kernels_code, iron__@name@_kernels_code_end
  .balign 16
iron__@name@_kernels_text:
  .incbin "@text@"
  .byte 0
  .balign 16
iron__@name@_kernels_code:
@code@
iron__@name@_kernels_code_end:
  .byte 0
  .section .note.GNU-stack,"",%progbits
]] @ONLY)
  set_source_files_properties("${assembly}" PROPERTIES OBJECT_DEPENDS "${embedded}")
  set(${name}_kernels "${assembly}" PARENT_SCOPE)
endfunction()
