# What every target of ours is compiled with; never part of the installed interface.
add_library(holdfast_compiler INTERFACE)
target_compile_options(holdfast_compiler INTERFACE -Wall -Wextra -Wconversion -Wshadow)
if(HOLDFAST_WERROR)
    target_compile_options(holdfast_compiler INTERFACE -Werror)
endif()
if(HOLDFAST_SANITIZE)
    add_compile_options(-fsanitize=${HOLDFAST_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
    add_link_options(-fsanitize=${HOLDFAST_SANITIZE})
endif()

find_program(HOLDFAST_CCACHE ccache)
if(HOLDFAST_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
    # Without this it gives up on precompiled headers.
    set(CMAKE_CXX_COMPILER_LAUNCHER
        ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros ${HOLDFAST_CCACHE})
endif()
