# What holdfast is made of: the library, and components, which are libraries of their own with a target
# holdfast::<name>, a find_package component <name> and a pkg-config file holdfast-<name>.

# holdfast_find_modules(MISSING MODULE…): makes PkgConfig::<module> of each, and says which were not found. A
# module may have a version: libssl>=3.0.
function(holdfast_find_modules missing)
    find_package(PkgConfig QUIET)
    set(${missing} "")
    foreach(module IN LISTS ARGN)
        string(REGEX REPLACE "[<>=].*" "" name ${module})
        if(PkgConfig_FOUND)
            pkg_check_modules(${name} QUIET IMPORTED_TARGET GLOBAL ${module})
        endif()
        if(NOT ${name}_FOUND)
            list(APPEND ${missing} ${module})
        endif()
    endforeach()
    set(${missing} "${${missing}}" PARENT_SCOPE)
endfunction()

# holdfast_limit_exports(TARGET): a shared library exports what is marked. What it needs of another one and the
# other one does not export is noticed when it is linked, not by the application.
function(holdfast_limit_exports target)
    get_target_property(type ${target} TYPE)
    if(type STREQUAL "SHARED_LIBRARY")
        set(map ${PROJECT_SOURCE_DIR}/cmake/exports.map)
        target_link_options(${target} PRIVATE LINKER:--version-script=${map}
            $<$<NOT:$<BOOL:${HOLDFAST_SANITIZE}>>:LINKER:--no-undefined>)
        set_target_properties(${target} PROPERTIES LINK_DEPENDS ${map})
    endif()
endfunction()

# holdfast_add_component(NAME SOURCES… MODULES… SCOPE PUBLIC|PRIVATE): PUBLIC for client libraries whose
# headers the component's users need.
function(holdfast_add_component name)
    cmake_parse_arguments(PARSE_ARGV 1 part "" "SCOPE" "SOURCES;MODULES")
    set_property(GLOBAL PROPERTY HOLDFAST_MODULES_${name} "${part_MODULES}")
    set(target holdfast_${name})
    add_library(${target} ${part_SOURCES})
    add_library(holdfast::${name} ALIAS ${target})
    set_target_properties(${target} PROPERTIES EXPORT_NAME ${name} VERSION ${PROJECT_VERSION}
        SOVERSION ${HOLDFAST_SOVERSION} INSTALL_RPATH "$ORIGIN")
    list(TRANSFORM part_MODULES REPLACE "[<>=].*" "")
    list(TRANSFORM part_MODULES PREPEND PkgConfig::)
    target_link_libraries(${target} PUBLIC holdfast ${part_SCOPE} ${part_MODULES}
        PRIVATE $<BUILD_INTERFACE:holdfast_compiler>)
    holdfast_limit_exports(${target})
    set_property(GLOBAL APPEND PROPERTY HOLDFAST_COMPONENTS ${name})
    set_property(GLOBAL PROPERTY HOLDFAST_SCOPE_${name} ${part_SCOPE})
    set_property(GLOBAL PROPERTY HOLDFAST_PC_LIBS_${name} "-lholdfast_${name}")
endfunction()

# holdfast_add_builtin_engine(NAME SOURCE…): an engine that is a part of the library itself, and its scheme.
function(holdfast_add_builtin_engine name)
    target_sources(holdfast PRIVATE ${ARGN})
    set_property(GLOBAL APPEND PROPERTY HOLDFAST_ENGINES ${name})
    set_property(GLOBAL APPEND PROPERTY HOLDFAST_BUILTIN_ENGINES ${name})
endfunction()

# holdfast_add_engine(NAME SCHEMES… SOURCES… [MODULES…] [DEBIAN package…]): an engine that is a component. Its
# sources define
#     open_<name>(scheme, rest, identity) and summarise_<name>(scheme, rest)
# in namespace holdfast::engines. It is left out, with a message, where one of its pkg-config modules is missing.
function(holdfast_add_engine name)
    cmake_parse_arguments(PARSE_ARGV 1 engine "" "" "SCHEMES;SOURCES;MODULES;DEBIAN")
    # Known even where the engine is left out: an error can then say what is missing.
    set_property(GLOBAL APPEND PROPERTY HOLDFAST_KNOWN_ENGINES ${name})
    set_property(GLOBAL PROPERTY HOLDFAST_SCHEMES_${name} "${engine_SCHEMES}")
    set_property(GLOBAL PROPERTY HOLDFAST_MODULES_${name} "${engine_MODULES}")
    holdfast_find_modules(missing ${engine_MODULES})
    if(missing)
        list(JOIN missing ", " missing)
        list(JOIN engine_DEBIAN " " packages)
        message(STATUS "holdfast: the engine ${name} is left out, not found: ${missing} "
            "(Debian: ${packages} pkg-config)")
        return()
    endif()

    set(HOLDFAST_ENGINE ${name})
    set(HOLDFAST_ENGINE_ENTRIES "")
    foreach(scheme IN LISTS engine_SCHEMES)
        string(APPEND HOLDFAST_ENGINE_ENTRIES
            "    {\"${scheme}\",\n"
            "     [](std::string_view rest, const client_identity& identity) {\n"
            "         return open_${name}(\"${scheme}\", rest, identity);\n"
            "     },\n"
            "     [](std::string_view rest) { return summarise_${name}(\"${scheme}\", rest); }},\n")
    endforeach()
    configure_file(${PROJECT_SOURCE_DIR}/src/runtime/engine_module.cpp.in engine_module.cpp @ONLY)

    holdfast_add_component(${name} SCOPE PRIVATE MODULES ${engine_MODULES}
        SOURCES ${engine_SOURCES} ${CMAKE_CURRENT_BINARY_DIR}/engine_module.cpp)
    set(target holdfast_${name})
    target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/engines)
    holdfast_keep_engine(${name})
    set_property(GLOBAL APPEND PROPERTY HOLDFAST_ENGINES ${name})
    target_link_libraries(holdfast_all_engines INTERFACE ${target})
endfunction()

# An application names its engines when it is linked, and nowhere else: no symbol of theirs is used. So the
# linker is told to keep them. Out of an archive it takes the member with a symbol that is asked for; a shared
# library it keeps where --as-needed is off, for which one word says all: words of its own could be torn apart.
function(holdfast_keep_engine name)
    set(target holdfast_${name})
    get_target_property(type ${target} TYPE)
    if(type STREQUAL "STATIC_LIBRARY")
        set(keep "-Wl,--undefined=holdfast_engine_${name}")
        target_link_libraries(${target} INTERFACE ${keep})
        set(pc_keep "${keep} -lholdfast_${name}")
    else()
        # Its entries stay in the library's list of engines.
        target_link_options(${target} PRIVATE LINKER:-z,nodelete)
        set(before "-Wl,--push-state,--no-as-needed")
        set(after "--pop-state")
        target_link_options(${target} INTERFACE
            "$<BUILD_INTERFACE:${before},$<TARGET_FILE:${target}>,${after}>")
        cmake_path(ABSOLUTE_PATH CMAKE_INSTALL_LIBDIR BASE_DIRECTORY "$<INSTALL_PREFIX>" OUTPUT_VARIABLE directory)
        target_link_libraries(${target} INTERFACE
            "$<INSTALL_INTERFACE:${before},-L${directory},-lholdfast_${name},${after}>")
        set(pc_keep "${before},-lholdfast_${name},${after}")
    endif()
    set_property(GLOBAL PROPERTY HOLDFAST_PC_LIBS_${name} "${pc_keep}")
endfunction()
