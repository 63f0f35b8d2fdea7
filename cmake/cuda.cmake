# NVIDIA's CUDA toolkit, which is in no package of packages.txt. Without it, everything but the CUDA device is built.
# Sets RIDGELINE_WITH_CUDA and, if that is on, defines
#   cuda_toolkit                 its headers, cuDNN's and NCCL's, for code of the host
#   cudart                       its runtime, linked statically, so that a program with it starts on machines without a GPU
#   rl_cuda_objects(OUT SOURCES…)  kernels, by nvcc
# cuBLASLt, cuDNN and NCCL are loaded when a run asks for them, so nothing links them.
set(RIDGELINE_CUDA AUTO CACHE STRING "Build the CUDA device: AUTO (where the toolkit is), ON or OFF")
set(RIDGELINE_CUDA_ARCHITECTURES 80 89 90 100 120 CACHE STRING "What nvcc compiles each kernel for: sm_NAME")
set(RIDGELINE_CUDA_OLDEST 12080)  # the first release with headers for fp4, and with sm_100 and sm_120

if(NOT RIDGELINE_CUDA MATCHES "^(AUTO|ON|OFF)$")
  message(FATAL_ERROR "RIDGELINE_CUDA is '${RIDGELINE_CUDA}': use AUTO, ON or OFF")
endif()
set(RIDGELINE_WITH_CUDA OFF)
set(missing "")
if(NOT RIDGELINE_CUDA STREQUAL "OFF")
  find_program(RIDGELINE_NVCC nvcc PATHS /usr/local/cuda/bin)
  set(places /usr/local/cuda)
  if(RIDGELINE_NVCC)
    file(REAL_PATH ${RIDGELINE_NVCC} nvcc)
    cmake_path(GET nvcc PARENT_PATH folder)
    cmake_path(GET folder PARENT_PATH folder)
    list(PREPEND places ${folder})
  else()
    list(APPEND missing nvcc)
  endif()
  list(TRANSFORM places APPEND /include OUTPUT_VARIABLE include_places)
  list(TRANSFORM places APPEND /lib64 OUTPUT_VARIABLE library_places)
  find_path(RIDGELINE_CUDA_INCLUDE cuda_runtime_api.h HINTS ${include_places})
  find_path(RIDGELINE_CUDNN_INCLUDE cudnn.h HINTS ${include_places})
  find_path(RIDGELINE_NCCL_INCLUDE nccl.h HINTS ${include_places})
  find_library(RIDGELINE_CUDART cudart_static HINTS ${library_places})
  foreach(found RIDGELINE_CUDA_INCLUDE:cuda_runtime_api.h RIDGELINE_CUDNN_INCLUDE:cudnn.h RIDGELINE_NCCL_INCLUDE:nccl.h
                RIDGELINE_CUDART:libcudart_static.a)
    string(REGEX MATCH "^(.*):(.*)$" found ${found})
    if(NOT ${CMAKE_MATCH_1})
      list(APPEND missing ${CMAKE_MATCH_2})
    endif()
  endforeach()
  if(RIDGELINE_CUDA_INCLUDE)
    file(STRINGS ${RIDGELINE_CUDA_INCLUDE}/cuda_runtime_api.h version REGEX "^#define CUDART_VERSION +[0-9]+")
    string(REGEX REPLACE "[^0-9]" "" RIDGELINE_CUDART_VERSION "${version}")
    if(RIDGELINE_CUDART_VERSION LESS RIDGELINE_CUDA_OLDEST)
      list(APPEND missing
        "a toolkit of 12.8 or later (${RIDGELINE_CUDA_INCLUDE} is of version ${RIDGELINE_CUDART_VERSION})")
    endif()
  endif()
  list(JOIN missing ", " missing)
  if(NOT missing)
    set(RIDGELINE_WITH_CUDA ON)
  elseif(RIDGELINE_CUDA STREQUAL "ON")
    message(FATAL_ERROR "RIDGELINE_CUDA is ON, and not found: ${missing}. Install NVIDIA's CUDA toolkit, cuDNN and NCCL in "
                        "/usr/local/cuda, or put nvcc on the path and their folders into CMAKE_PREFIX_PATH.")
  endif()
endif()

if(NOT RIDGELINE_WITH_CUDA)
  if(missing)
    message(STATUS "CUDA device: left out, for want of ${missing}")
  else()
    message(STATUS "CUDA device: left out, as RIDGELINE_CUDA says")
  endif()
  return()
endif()
list(JOIN RIDGELINE_CUDA_ARCHITECTURES ", sm_" architectures)
message(STATUS "CUDA device: built, for sm_${architectures}")

add_library(cuda_toolkit INTERFACE)
target_include_directories(cuda_toolkit SYSTEM INTERFACE
  ${RIDGELINE_CUDA_INCLUDE} ${RIDGELINE_CUDNN_INCLUDE} ${RIDGELINE_NCCL_INCLUDE})
add_library(cudart INTERFACE)
target_link_libraries(cudart INTERFACE ${RIDGELINE_CUDART} Threads::Threads ${CMAKE_DL_LIBS} rt)

# rl_cuda_objects(OUT SOURCES…): the report of ptxas on each kernel (registers, shared memory) is beside its object, in
# NAME.ptxas. Only quantize_nv.cu depends on whether it is compiled for sm_100 or sm_120. So all other sources have the same
# PTX for both, and it is made once. quantize_nv.cu uses an instruction that needs one of these families. Its code runs on
# the whole family, like that of the other sources. nvcc supports families since 12.9.
# nvcc may contract products and sums differently in different forms of a kernel, which must not change results. So it fuses
# only those that are written as fmaf, like every other compiler of these sources.
# nvcc hashes the path of a source into its kernels' names. Each source gets a path that is the same in every clone, so that
# two builds of a commit have the same bytes. If CMake starts compilers by ccache, ccache keeps these objects and reports.
function(rl_cuda_objects out)
  set(codes_of_any "")
  set(codes_of_families "")
  foreach(architecture IN LISTS RIDGELINE_CUDA_ARCHITECTURES)
    set(ptx ${architecture})
    set(family ${architecture})
    if(architecture EQUAL 120 AND 100 IN_LIST RIDGELINE_CUDA_ARCHITECTURES)
      set(ptx 100)
    endif()
    if(architecture GREATER_EQUAL 100)
      set(family ${architecture}f)
    endif()
    list(APPEND codes_of_any -gencode arch=compute_${ptx},code=sm_${architecture})
    list(APPEND codes_of_families -gencode arch=compute_${family},code=sm_${family})
  endforeach()
  set(ccache "")
  if(CMAKE_CXX_COMPILER_LAUNCHER MATCHES "ccache$")
    set(ccache ${CMAKE_CXX_COMPILER_LAUNCHER})
  endif()
  set(objects "")
  foreach(source IN LISTS ARGN)
    cmake_path(GET source STEM name)
    set(codes ${codes_of_any})
    if(name STREQUAL quantize_nv AND RIDGELINE_CUDART_VERSION GREATER_EQUAL 12090)
      set(codes ${codes_of_families})
    endif()
    cmake_path(ABSOLUTE_PATH source)
    cmake_path(RELATIVE_PATH source BASE_DIRECTORY ${PROJECT_SOURCE_DIR} OUTPUT_VARIABLE named)
    set(object ${CMAKE_CURRENT_BINARY_DIR}/cuda/${name}.o)
    set(report ${CMAKE_CURRENT_BINARY_DIR}/cuda/${name}.ptxas)
    file(MAKE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/cuda)
    add_custom_command(OUTPUT ${object} BYPRODUCTS ${report}
      COMMAND ${PROJECT_SOURCE_DIR}/cmake/nvcc.sh ${report} "${ccache}"
              ${RIDGELINE_NVCC} -std=c++20 -O3 --fmad=false -Xcompiler=-fPIC --Werror all-warnings ${codes}
              -frandom-seed=${named} -Xcudafe=--orig_src_path_name=/${named}
              -Xcicc=--orig_src_path_name -Xcicc=/${named}
              -I ${PROJECT_SOURCE_DIR}/src -I ${PROJECT_SOURCE_DIR}/include -MD -MF ${object}.d
              -c ${source} -o ${object}
      DEPENDS ${source} ${PROJECT_SOURCE_DIR}/cmake/nvcc.sh DEPFILE ${object}.d COMMENT "Compiling ${name}.cu by nvcc" VERBATIM)
    list(APPEND objects ${object})
  endforeach()
  set(${out} ${objects} PARENT_SCOPE)
endfunction()
