# What is installed, and how others find it: holdfast-config.cmake (find_package), holdfast.pc and, for
# each component, holdfast-<component>.pc.
include(CMakePackageConfigHelpers)

get_property(holdfast_engines GLOBAL PROPERTY HOLDFAST_BUILTIN_ENGINES)
get_property(holdfast_components GLOBAL PROPERTY HOLDFAST_COMPONENTS)
get_target_property(holdfast_type holdfast TYPE)
set(holdfast_is_static FALSE)
if(holdfast_type STREQUAL "STATIC_LIBRARY")
    set(holdfast_is_static TRUE)
endif()
# A shared library brings what it needs itself.
set(holdfast_needs_sqlite FALSE)
if(holdfast_is_static AND local IN_LIST holdfast_engines)
    set(holdfast_needs_sqlite TRUE)
endif()

install(TARGETS holdfast EXPORT holdfastTargets
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/holdfast
    DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.hpp")

set(config_directory ${CMAKE_INSTALL_LIBDIR}/cmake/holdfast)
install(EXPORT holdfastTargets NAMESPACE holdfast:: DESTINATION ${config_directory})

# holdfast::testing needs GoogleTest, so it is found only when asked for: COMPONENTS testing.
set(holdfast_has_testing FALSE)
if(TARGET holdfast_testing)
    set(holdfast_has_testing TRUE)
    install(TARGETS holdfast_testing EXPORT holdfastTestingTargets
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
    install(DIRECTORY ${PROJECT_SOURCE_DIR}/testing/include/holdfast
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.hpp")
    install(EXPORT holdfastTestingTargets NAMESPACE holdfast:: DESTINATION ${config_directory})
endif()

# A component needs the client library of its store, so it is found only when asked for.
set(holdfast_component_modules "")
foreach(component IN LISTS holdfast_components)
    install(TARGETS holdfast_${component} EXPORT holdfast_${component}Targets
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
    install(EXPORT holdfast_${component}Targets NAMESPACE holdfast:: DESTINATION ${config_directory})
    get_property(scope GLOBAL PROPERTY HOLDFAST_SCOPE_${component})
    get_property(modules GLOBAL PROPERTY HOLDFAST_MODULES_${component})
    if(holdfast_is_static OR scope STREQUAL "PUBLIC")
        string(APPEND holdfast_component_modules "set(holdfast_${component}_MODULES \"${modules}\")\n")
    endif()
endforeach()

configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/holdfast-config.cmake.in
    ${PROJECT_BINARY_DIR}/holdfast-config.cmake INSTALL_DESTINATION ${config_directory})
# Until 1.0 a minor version may change the interface.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/holdfast-config-version.cmake
    COMPATIBILITY SameMinorVersion)
install(FILES
    ${PROJECT_BINARY_DIR}/holdfast-config.cmake
    ${PROJECT_BINARY_DIR}/holdfast-config-version.cmake
    DESTINATION ${config_directory})

# pkg-config: paths relative to the file itself, so that the tree may be installed anywhere.
if(IS_ABSOLUTE ${CMAKE_INSTALL_LIBDIR})
    set(pc_prefix ${CMAKE_INSTALL_PREFIX})
else()
    file(RELATIVE_PATH up /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
    string(REGEX REPLACE "/$" "" up "${up}")
    set(pc_prefix "\${pcfiledir}/${up}")
endif()
foreach(part LIBDIR INCLUDEDIR)
    string(TOLOWER ${part} name)
    if(IS_ABSOLUTE ${CMAKE_INSTALL_${part}})
        set(pc_${name} ${CMAKE_INSTALL_${part}})
    else()
        set(pc_${name} "\${prefix}/${CMAKE_INSTALL_${part}}")
    endif()
endforeach()
set(pc_requires "")
if(holdfast_needs_sqlite)
    list(APPEND pc_requires sqlite3)
endif()
list(JOIN pc_requires " " pc_requires)
configure_file(${PROJECT_SOURCE_DIR}/packaging/holdfast.pc.in ${PROJECT_BINARY_DIR}/holdfast.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/holdfast.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# Each component has a file of its own: who uses one store need not have the others' libraries.
foreach(component IN LISTS holdfast_components)
    string(REPLACE "_" "-" pc_name "holdfast-${component}")
    set(pc_requires "holdfast = ${PROJECT_VERSION}")
    get_property(modules GLOBAL PROPERTY HOLDFAST_MODULES_${component})
    if(holdfast_is_static AND modules)
        list(TRANSFORM modules REPLACE ">=" " >= ")
        list(JOIN modules ", " modules)
        string(APPEND pc_requires ", ${modules}")
    endif()
    get_property(pc_libs GLOBAL PROPERTY HOLDFAST_PC_LIBS_${component})
    configure_file(${PROJECT_SOURCE_DIR}/packaging/holdfast-component.pc.in
        ${PROJECT_BINARY_DIR}/${pc_name}.pc @ONLY)
    install(FILES ${PROJECT_BINARY_DIR}/${pc_name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endforeach()
