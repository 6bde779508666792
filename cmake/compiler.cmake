# What every target of ours is compiled with; never part of the installed interface.
add_library(holdfast_compiler INTERFACE)
target_compile_options(holdfast_compiler INTERFACE -Wall -Wextra -Wconversion -Wshadow)
# hiredis asks for this; where all have it, they can share precompiled headers.
target_compile_definitions(holdfast_compiler INTERFACE _FILE_OFFSET_BITS=64)
if(HOLDFAST_WERROR)
    target_compile_options(holdfast_compiler INTERFACE -Werror)
endif()
# The sanitizers' presets compile several files as one, which is twice as fast. Two warnings then speak of
# names in the file before; the other presets compile every file alone, with all warnings.
if(CMAKE_UNITY_BUILD)
    target_compile_options(holdfast_compiler INTERFACE -Wno-shadow
        $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
endif()
if(HOLDFAST_SANITIZE)
    if(HOLDFAST_SANITIZE MATCHES undefined)
        # It looks at objects through a pipe, and without a free descriptor it takes all of them for wrong.
        set(HOLDFAST_NO_VPTR -fno-sanitize=vptr)
    endif()
    add_compile_options(-fsanitize=${HOLDFAST_SANITIZE} ${HOLDFAST_NO_VPTR} -fno-omit-frame-pointer
        -fno-sanitize-recover=all)
    add_link_options(-fsanitize=${HOLDFAST_SANITIZE})
endif()

find_program(HOLDFAST_CCACHE ccache)
if(HOLDFAST_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
    # Without the sloppiness it gives up on precompiled headers. Paths below the project are relative for it, so
    # that a second checkout finds what the first one compiled.
    set(CMAKE_CXX_COMPILER_LAUNCHER
        ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros
        CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${HOLDFAST_CCACHE})
endif()

# The standard headers that most of our files include, read once for each way of compiling them. Only the
# presets for tests ask for this: the release preset shows that every file includes what it uses.
option(HOLDFAST_PRECOMPILED_HEADERS "Compile faster with precompiled headers" OFF)
set(HOLDFAST_COMMON_HEADERS <algorithm> <array> <atomic> <charconv> <chrono> <condition_variable> <cstddef>
    <cstdint> <functional> <future> <map> <memory> <mutex> <optional> <set> <stdexcept> <stop_token> <string>
    <string_view> <system_error> <thread> <unordered_map> <utility> <variant> <vector>)

# holdfast_precompile_headers(FIRST TARGET…): the headers that are precompiled for the first target serve the
# others, too, where they exist. All must have the same compiler options.
function(holdfast_precompile_headers first)
    if(NOT HOLDFAST_PRECOMPILED_HEADERS)
        return()
    endif()
    target_precompile_headers(${first} PRIVATE ${HOLDFAST_COMMON_HEADERS})
    foreach(target IN LISTS ARGN)
        if(TARGET ${target})
            target_precompile_headers(${target} REUSE_FROM ${first})
        endif()
    endforeach()
endfunction()
