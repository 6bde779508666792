# Makes C++ of the Lua scripts, with what they use of the preludes they include.
#
# Included, it offers holdfast_embed_scripts(TARGET): adds the generated source to the target, and makes
# it again whenever a script changes. Run as a script (cmake -P), it writes the source:
#     cmake -DSCRIPTS=directory -DOUTPUT=file.cpp -P embed_scripts.cmake

cmake_minimum_required(VERSION 3.25)

# In the order of scripts::all().
set(HOLDFAST_REDIS_SCRIPTS
    lock_acquire lock_acquire_all lock_release lock_renew
    fair_acquire fair_release
    read_acquire read_renew
    write_acquire read_write_release
    permit_acquire permit_release permit_renew
    moving_extend moving_release moving_permits
    latch
    revoke inspect)
set(HOLDFAST_REDIS_PRELUDES
    clock exclusive giving holds leases line looks numbers others permits places readers
    renewal requests shape telling tokens turns
    writing)

# Replaces each line `-- include: name` by scripts/prelude/name.lua, the first time it is met.
function(holdfast_expand_script file result)
    file(READ ${file} text)
    set(included "")
    while(text MATCHES "(^|\n)-- include: ([a-z_]+)\n")
        set(name ${CMAKE_MATCH_2})
        set(prelude "")
        if(NOT name IN_LIST included)
            file(READ ${SCRIPTS}/prelude/${name}.lua prelude)
            list(APPEND included ${name})
        endif()
        set(line "-- include: ${name}\n")
        string(FIND "${text}" "${line}" start)
        string(LENGTH "${line}" length)
        math(EXPR end "${start} + ${length}")
        string(SUBSTRING "${text}" 0 ${start} before)
        string(SUBSTRING "${text}" ${end} -1 after)
        set(text "${before}${prelude}${after}")
    endwhile()
    set(${result} "${text}" PARENT_SCOPE)
endfunction()

# Removes the functions that nothing calls: a server makes all functions of a script anew for each run.
function(holdfast_drop_unused text result)
    set(dropped TRUE)
    while(dropped)
        set(dropped FALSE)
        string(REGEX MATCHALL "\nlocal function [a-z_]+" definitions "${text}")
        foreach(definition IN LISTS definitions)
            string(REPLACE "\nlocal function " "" name "${definition}")
            string(REGEX REPLACE "[^a-z_]${name}[^a-z_]" "" without "${text}")
            string(LENGTH "${text}" length)
            string(LENGTH "${without}" length_without)
            string(LENGTH " ${name} " length_once)
            math(EXPR uses "(${length} - ${length_without}) / ${length_once}")
            if(uses EQUAL 1)
                string(FIND "${text}" "${definition}(" start)
                string(SUBSTRING "${text}" 0 ${start} before)
                string(SUBSTRING "${text}" ${start} -1 rest)
                string(FIND "${rest}" "\nend\n" end)
                math(EXPR end "${end} + 4")
                string(SUBSTRING "${rest}" ${end} -1 after)
                set(text "${before}${after}")
                set(dropped TRUE)
            endif()
        endforeach()
    endwhile()
    set(${result} "${text}" PARENT_SCOPE)
endfunction()

function(holdfast_write_scripts)
    set(entries "")
    set(functions "")
    set(index 0)
    foreach(name IN LISTS HOLDFAST_REDIS_SCRIPTS)
        holdfast_expand_script(${SCRIPTS}/${name}.lua text)
        holdfast_drop_unused("${text}" text)
        string(APPEND entries "        make_script(\"${name}\", R\"lua(${text})lua\"),\n")
        string(APPEND functions "const script& ${name}() {\n    return all()[${index}];\n}\n\n")
        math(EXPR index "${index} + 1")
    endforeach()
    file(WRITE ${OUTPUT}
        "// Made from the .lua files by embed_scripts.cmake.\n"
        "#include <array>\n"
        "#include <redis/scripts.hpp>\n\n"
        "namespace holdfast::engines::redis::scripts {\n\n"
        "std::span<const script> all() {\n"
        "    static const std::array<script, ${index}> embedded{\n${entries}    };\n"
        "    return embedded;\n"
        "}\n\n"
        "${functions}"
        "}  // namespace holdfast::engines::redis::scripts\n")
endfunction()

function(holdfast_embed_scripts target)
    set(here ${CMAKE_CURRENT_FUNCTION_LIST_DIR})
    set(output ${CMAKE_CURRENT_BINARY_DIR}/redis_scripts.cpp)
    list(TRANSFORM HOLDFAST_REDIS_SCRIPTS APPEND .lua OUTPUT_VARIABLE files)
    list(TRANSFORM HOLDFAST_REDIS_PRELUDES PREPEND prelude/ OUTPUT_VARIABLE preludes)
    list(TRANSFORM preludes APPEND .lua)
    list(APPEND files ${preludes})
    list(TRANSFORM files PREPEND ${here}/scripts/)
    add_custom_command(
        OUTPUT ${output}
        COMMAND ${CMAKE_COMMAND} -DSCRIPTS=${here}/scripts -DOUTPUT=${output}
                -P ${CMAKE_CURRENT_FUNCTION_LIST_FILE}
        DEPENDS ${files} ${CMAKE_CURRENT_FUNCTION_LIST_FILE}
        COMMENT "Embedding the Redis scripts"
        VERBATIM)
    # The target belongs to another directory, which knows nothing of the command above.
    add_custom_target(${target}_redis_scripts DEPENDS ${output})
    add_dependencies(${target} ${target}_redis_scripts)
    set_source_files_properties(${output} TARGET_DIRECTORY ${target} PROPERTIES GENERATED TRUE)
    target_sources(${target} PRIVATE ${output} ${here}/scripts.cpp)
endfunction()

if(CMAKE_SCRIPT_MODE_FILE STREQUAL CMAKE_CURRENT_LIST_FILE)
    holdfast_write_scripts()
endif()
