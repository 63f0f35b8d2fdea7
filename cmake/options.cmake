# Flags for everything we compile, and one function per kind of target.
add_library(rl_flags INTERFACE)
target_compile_options(rl_flags INTERFACE -Wall -Wextra -Wpedantic -Werror)
# GCC 12 warns about std::string's own operator+ (GCC bug 105651).
target_compile_options(rl_flags INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>)
# GCC 14 warns of uninitialized objects in std::optional, because it sees a second destruction that never happens.
target_compile_options(rl_flags INTERFACE
  $<$<AND:$<CXX_COMPILER_ID:GNU>,$<VERSION_GREATER_EQUAL:$<CXX_COMPILER_VERSION>,14>>:-Wno-maybe-uninitialized>)
if(RIDGELINE_SANITIZE)
  # Tests of memory outside the plan, and of which code allocates, read this, because a sanitizer changes both.
  target_compile_definitions(rl_flags INTERFACE RIDGELINE_SANITIZED)
  # Under sanitizers GCC 12 warns that std::regex's own members are uninitialized.
  target_compile_options(rl_flags INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
  # Under sanitizers the kernels' vectors of plain C++, for any CPU, take minutes a file to compile. So AVX2 is required here.
  if(CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
    target_compile_options(rl_flags INTERFACE -march=skylake)
  endif()
endif()
# Precompiled headers without their date are the same each time, so ccache finds what was compiled with them (.ci/run).
target_compile_options(rl_flags INTERFACE "$<$<CXX_COMPILER_ID:Clang>:SHELL:-Xclang -fno-pch-timestamp>")
# RIDGELINE_QUICK_TO_COMPILE is a property of targets that compute little, and whose compilation takes longer than their runs.
if(RIDGELINE_SANITIZE STREQUAL "address")
  # AddressSanitizer finds the use of a pointer that is null or past its end, and no object is used as one of another class.
  # Checking these three before every access takes a third of the compiler's time, and two thirds for a kernel.
  # A launcher of an earlier ABI is called like a current one, and then refused. Its table has another type.
  target_compile_options(rl_flags INTERFACE -fsanitize=address,undefined -fno-sanitize=null,vptr,pointer-overflow -fno-sanitize-recover=all
                         $<$<CXX_COMPILER_ID:Clang>:-fno-sanitize=function>
                         -fno-omit-frame-pointer -g1
                         -O$<IF:$<BOOL:$<TARGET_PROPERTY:RIDGELINE_QUICK_TO_COMPILE>>,0,1>)
  # Programs run at the address that they were linked for. Relocating the sanitizers' records of every variable and check,
  # half a million addresses, took a fourth of a program's start.
  target_link_options(rl_flags INTERFACE -fsanitize=address,undefined
                      $<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:-no-pie>)
  # RIDGELINE_FUZZED is a property of targets: they report to a fuzzer which code it reached (tests/fuzz).
  target_compile_options(rl_flags INTERFACE
    $<$<BOOL:$<TARGET_PROPERTY:RIDGELINE_FUZZED>>:-fsanitize-coverage=inline-8bit-counters,pc-table,indirect-calls,trace-cmp>)
elseif(RIDGELINE_SANITIZE STREQUAL "thread")
  target_compile_options(rl_flags INTERFACE -fsanitize=thread -g1
                         -O$<IF:$<BOOL:$<TARGET_PROPERTY:RIDGELINE_QUICK_TO_COMPILE>>,0,1>)
  target_link_options(rl_flags INTERFACE -fsanitize=thread)
elseif(RIDGELINE_SANITIZE)
  message(FATAL_ERROR "RIDGELINE_SANITIZE is '${RIDGELINE_SANITIZE}': use address or thread")
else()
  # Programs read untrusted bytes, so the linker's tables become read-only once a program has started. Binding all functions
  # at the start costs no time that counts: there are a few hundred. Compilers make position-independent programs by default.
  # tests/install checks all of it.
  target_link_options(rl_flags INTERFACE -Wl,-z,relro,-z,now)
endif()

# The compiler's checks in rooms, launchers and programs have the same reason: stack canaries, the C library's checks of
# buffer sizes, and landing pads for indirect jumps. bench/hardening.py measures what they cost. Tests are not optimized, and
# the C library refuses its checks then.
add_library(rl_hardened_flags INTERFACE)
target_link_libraries(rl_hardened_flags INTERFACE rl_flags)
option(RIDGELINE_HARDEN "Compile with the checks of rl_hardened_flags, unless for debugging" ON)
if(RIDGELINE_HARDEN AND NOT RIDGELINE_SANITIZE)
  target_compile_options(rl_hardened_flags INTERFACE
    "$<$<NOT:$<CONFIG:Debug>>:-fstack-protector-strong;-U_FORTIFY_SOURCE;-D_FORTIFY_SOURCE=2>")
  if(CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
    target_compile_options(rl_hardened_flags INTERFACE "$<$<NOT:$<CONFIG:Debug>>:-fcf-protection>")
  endif()
endif()

# rl_precompile(target HEADERS…|REUSE_FROM TARGET): precompiles the headers that nearly every source of a target includes, as
# they take most of its compile time. Reusing another target's headers costs nothing. For a target with only a few
# sources, its own headers cost more than they save. `make lint` does not precompile, so it finds a missing include.
option(RIDGELINE_PRECOMPILE "Precompile the headers of libraries" ON)
function(rl_precompile target)
  get_target_property(sources ${target} SOURCES)
  list(LENGTH sources count)
  if(RIDGELINE_PRECOMPILE AND (count GREATER_EQUAL 5 OR ARGV1 STREQUAL "REUSE_FROM"))
    if(ARGV1 STREQUAL "REUSE_FROM")
      target_precompile_headers(${target} ${ARGN})
    else()
      target_precompile_headers(${target} PRIVATE ${ARGN})
    endif()
    # These warnings are also about std::string's operator+: GCC forgets that it lies in a system header once that is
    # precompiled.
    target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-stringop-overflow -Wno-array-bounds>)
    # GCC's garbage collector marks the precompiled headers again and again. This saves a tenth of the compiler's time, for
    # 0.3 GB.
    target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:--param=ggc-min-heapsize=1000000>)
  endif()
endfunction()

# The tests that ThreadSanitizer checks: those with several threads.
add_custom_target(thread_tests)

# rl_library(name SOURCES… LINK… PRECOMPILE…): one room as one static library. LINK names the rooms it may include. QUICK: it
# computes little, so builds with sanitizers do not optimize it and take two fifths of the time (RIDGELINE_QUICK_TO_COMPILE).
function(rl_library name)
  cmake_parse_arguments(arg "QUICK" "" "SOURCES;LINK;PRIVATE_LINK;PRECOMPILE" ${ARGN})
  add_library(${name} STATIC ${arg_SOURCES})
  target_include_directories(${name} PUBLIC ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
  target_link_libraries(${name} PUBLIC ${arg_LINK} PRIVATE rl_hardened_flags ${arg_PRIVATE_LINK})
  if(arg_QUICK)
    set_target_properties(${name} PROPERTIES RIDGELINE_QUICK_TO_COMPILE ON)
    if(RIDGELINE_SANITIZE)
      list(TRANSFORM arg_PRECOMPILE REPLACE "^rl_base$" rl_quick_headers)
    endif()
  endif()
  if(arg_PRECOMPILE)
    rl_precompile(${name} ${arg_PRECOMPILE})
  endif()
  list(GET arg_SOURCES 0 source)
  cmake_path(ABSOLUTE_PATH source NORMALIZE)
  cmake_path(GET source PARENT_PATH room)
  cmake_path(RELATIVE_PATH room BASE_DIRECTORY ${PROJECT_SOURCE_DIR}/src)
  set_property(GLOBAL APPEND_STRING PROPERTY RIDGELINE_LINKS "${name} ${room} ${arg_LINK}\n")
endfunction()

# rl_hide_libraries(target): no symbol of the static libraries in a launcher leaves it. The harness has its own src/base.
function(rl_hide_libraries target)
  target_link_options(${target} PRIVATE -Wl,--exclude-libs,ALL)
endfunction()

# rl_plugin(name SOURCES… LINK…): a launcher, ridgeline-launcher-NAME.so. It sees include/ and src/base, and nothing else of
# src/. For its tests, everything but its plugin.cc is also the library rl_launcher_NAME.
function(rl_plugin name)
  cmake_parse_arguments(arg "" "" "SOURCES;LINK" ${ARGN})
  add_library(rl_launcher_${name} STATIC ${arg_SOURCES})
  target_include_directories(rl_launcher_${name} PUBLIC ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/plugins)
  target_link_libraries(rl_launcher_${name} PUBLIC rl_plugin_common PRIVATE rl_hardened_flags fmt::fmt ${arg_LINK})
  set_target_properties(rl_launcher_${name} PROPERTIES CXX_VISIBILITY_PRESET hidden RIDGELINE_QUICK_TO_COMPILE ON)
  rl_precompile(rl_launcher_${name} <nlohmann/json.hpp>)
  add_library(ridgeline-launcher-${name} MODULE plugin.cc)
  target_link_libraries(ridgeline-launcher-${name} PRIVATE rl_hardened_flags rl_launcher_${name} fmt::fmt)
  set_target_properties(ridgeline-launcher-${name} PROPERTIES PREFIX "" CXX_VISIBILITY_PRESET hidden
                        LIBRARY_OUTPUT_DIRECTORY ${RIDGELINE_PLUGIN_DIR})
  rl_hide_libraries(ridgeline-launcher-${name})
  rl_brings_libraries(ridgeline-launcher-${name} ../libraries)
  set_property(GLOBAL APPEND PROPERTY RIDGELINE_PLUGINS ridgeline-launcher-${name})
endfunction()

set(RIDGELINE_TEST_HEADERS <gmock/gmock.h> <gtest/gtest.h> <nlohmann/json.hpp>)

# The flags of every test, and the headers that most tests precompile. Compiling tests takes longer than running them. So
# tests that compute much are optimized a little, the others not at all.
function(rl_test_flags)
  add_library(rl_test_flags INTERFACE)
  target_include_directories(rl_test_flags INTERFACE ${PROJECT_SOURCE_DIR})
  target_compile_definitions(rl_test_flags INTERFACE RIDGELINE_SOURCE_DIR="${PROJECT_SOURCE_DIR}"
                             RIDGELINE_BINARY_DIR="${PROJECT_BINARY_DIR}")
  target_compile_options(rl_test_flags INTERFACE -O$<IF:$<BOOL:$<TARGET_PROPERTY:RIDGELINE_QUICK_TO_COMPILE>>,0,1>)
  target_link_libraries(rl_test_flags INTERFACE rl_flags GTest::gtest_main GTest::gmock
                        nlohmann_json::nlohmann_json fmt::fmt)
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/tests/headers.cc CONTENT "int main() {}\n")
  add_executable(rl_test_headers ${PROJECT_BINARY_DIR}/tests/headers.cc)
  target_link_libraries(rl_test_headers PRIVATE rl_test_flags)
  set_target_properties(rl_test_headers PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests
                        RIDGELINE_QUICK_TO_COMPILE ON)
  target_precompile_headers(rl_test_headers PRIVATE ${RIDGELINE_TEST_HEADERS})
endfunction()

# rl_brings_libraries(target FOLDER): the program or launcher looks for its libraries where LD_LIBRARY_PATH says, then in
# FOLDER of its installation, named from its own (scripts/copy-libraries.sh puts them there), and then in the system. It has
# a RUNPATH, which LD_LIBRARY_PATH comes before: CUDA's libraries may need a newer libstdc++ than an installation brings. The
# build tree has the same RUNPATH and no such folder, so that nothing is patched when it is installed.
function(rl_brings_libraries target folder)
  set_target_properties(${target} PROPERTIES INSTALL_RPATH "$ORIGIN/${folder}" BUILD_WITH_INSTALL_RPATH ON)
  target_link_options(${target} PRIVATE -Wl,--enable-new-dtags)
endfunction()

# rl_test(room LINK…): tests/<room>/*_test.cc as one program, test_<room>, with every case a CTest test. Under sanitizers a
# program takes longer to start than most cases to run, so each CTest test has a fourth of its cases. LABEL threads: also
# run under ThreadSanitizer, which does not know OpenMP's runtime, so only for tests without OpenMP. TIMEOUT: of a case, in
# seconds. FIXTURE: a CTest fixture that each case requires. OPENMP: compiled with OpenMP, so it cannot reuse the other
# tests' precompiled headers. TOGETHER: the whole program is one CTest test, because all its cases share one long
# preparation. CUDA: only a build with the CUDA toolkit has this program, and CTest labels its cases cuda.
# EMULATED: GoogleTest's filter of the cases that only such a build has, since they run on the emulated machine
# (tests/cuda_on_cpu). They are also labelled cuda; sanitizers run them separately (rl_emulated_test).
# `make test-cuda` runs the cases labelled cuda.
function(rl_test room)
  cmake_parse_arguments(arg "OPENMP;TOGETHER;CUDA" "TIMEOUT;LABEL;FIXTURE;EMULATED" "SOURCES;LINK" ${ARGN})
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 600)
  endif()
  string(REPLACE "/" "_" target test_${room})
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/${room}/*_test.cc)
  if(NOT sources AND NOT arg_SOURCES)
    message(WARNING "tests/${room} has no *_test.cc")
    return()
  endif()
  add_executable(${target} ${sources} ${arg_SOURCES})
  target_link_libraries(${target} PRIVATE rl_test_flags ${arg_LINK})
  if(arg_OPENMP)
    rl_precompile(${target} ${RIDGELINE_TEST_HEADERS})
  else()
    set_target_properties(${target} PROPERTIES RIDGELINE_QUICK_TO_COMPILE ON)
    rl_precompile(${target} REUSE_FROM rl_test_headers)
  endif()
  set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  # Threads that spin while they wait would starve tests that run side by side.
  set(properties TIMEOUT ${arg_TIMEOUT} ENVIRONMENT OMP_WAIT_POLICY=passive)
  if(arg_LABEL)
    list(APPEND properties LABELS ${arg_LABEL})
  endif()
  if(arg_FIXTURE)
    list(APPEND properties FIXTURES_REQUIRED ${arg_FIXTURE})
  endif()
  if(arg_TOGETHER)
    add_test(NAME ${target} COMMAND ${target} --gtest_brief=1)
    set_tests_properties(${target} PROPERTIES ${properties})
  elseif(RIDGELINE_SANITIZE)
    foreach(shard RANGE 3)
      add_test(NAME ${target}.${shard} COMMAND ${target} "--gtest_filter=-${arg_EMULATED}")
      set_tests_properties(${target}.${shard} PROPERTIES ${properties} TIMEOUT 1800 ENVIRONMENT
        "OMP_WAIT_POLICY=passive;GTEST_BRIEF=1;GTEST_TOTAL_SHARDS=4;GTEST_SHARD_INDEX=${shard}")
    endforeach()
  else()
    set(discovery DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 120 PROPERTIES ${properties})
    if(arg_CUDA)
      gtest_discover_tests(${target} ${discovery} LABELS cuda)
    elseif(arg_EMULATED AND TARGET cuda_on_cpu)
      gtest_discover_tests(${target} TEST_FILTER "-${arg_EMULATED}" ${discovery})
      gtest_discover_tests(${target} TEST_FILTER "${arg_EMULATED}" ${discovery} LABELS cuda)
    else()
      gtest_discover_tests(${target} ${discovery})
    endif()
  endif()
  if(arg_LABEL STREQUAL "threads")
    add_dependencies(thread_tests ${target})
  endif()
  foreach(source IN LISTS sources arg_SOURCES)
    cmake_path(ABSOLUTE_PATH source)
    set_property(GLOBAL APPEND PROPERTY RIDGELINE_TEST_SOURCES "${source} $<TARGET_FILE:${target}>\n")
  endforeach()
endfunction()

# rl_emulated_test(name target filter): under sanitizers, the cases of a test program that run on the emulated machine: half
# in NAME.0 and half in NAME.1, since they have one thread and take the longest. The machine's threads are fibers. Making a
# fake stack for each would take AddressSanitizer ten times as long as everything else.
function(rl_emulated_test name target filter)
  if(RIDGELINE_SANITIZE)
    foreach(half RANGE 1)
      add_test(NAME ${name}.${half} COMMAND ${target} --gtest_brief=1 "--gtest_filter=${filter}")
      set_tests_properties(${name}.${half} PROPERTIES TIMEOUT 1800
        ENVIRONMENT "OMP_WAIT_POLICY=passive;GTEST_TOTAL_SHARDS=2;GTEST_SHARD_INDEX=${half}"
        ENVIRONMENT_MODIFICATION ASAN_OPTIONS=string_append::detect_stack_use_after_return=0)
    endforeach()
  endif()
endfunction()
