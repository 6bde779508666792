# What is installed, and how others find it: holdfast-config.cmake (find_package), holdfast.pc and, for
# each guard, holdfast-guard-<store>.pc.
include(CMakePackageConfigHelpers)

get_property(holdfast_engines GLOBAL PROPERTY HOLDFAST_ENGINES)
get_target_property(holdfast_type holdfast TYPE)
set(holdfast_is_static FALSE)
if(holdfast_type STREQUAL "STATIC_LIBRARY")
    set(holdfast_is_static TRUE)
endif()
foreach(need sqlite redis)
    string(TOUPPER ${need} name)
    get_property(needed GLOBAL PROPERTY HOLDFAST_REQUIRES_${name})
    # A shared library brings what it needs itself.
    if(needed AND holdfast_type STREQUAL "STATIC_LIBRARY")
        set(holdfast_needs_${need} TRUE)
    else()
        set(holdfast_needs_${need} FALSE)
    endif()
endforeach()

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

# Each guard needs its own database's client library, so it is found only when asked for.
get_property(holdfast_guards GLOBAL PROPERTY HOLDFAST_GUARDS)
foreach(guard IN LISTS holdfast_guards)
    install(TARGETS holdfast_${guard} EXPORT holdfast_${guard}Targets
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
    install(EXPORT holdfast_${guard}Targets NAMESPACE holdfast:: DESTINATION ${config_directory})
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
if(holdfast_needs_redis)
    list(APPEND pc_requires hiredis libssl libcrypto)
endif()
list(JOIN pc_requires " " pc_requires)
configure_file(${PROJECT_SOURCE_DIR}/packaging/holdfast.pc.in ${PROJECT_BINARY_DIR}/holdfast.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/holdfast.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# Each guard has a file of its own: who checks at one database need not have the others' libraries.
set(pc_guard_sqlite "SQLite" sqlite3)
set(pc_guard_postgres "PostgreSQL" libpq)
set(pc_guard_mysql "MySQL and MariaDB" libmariadb)
set(pc_guard_redis "Redis" hiredis)
foreach(guard IN LISTS holdfast_guards)
    list(GET pc_${guard} 0 database)
    string(REPLACE "_" "-" pc_name "holdfast-${guard}")
    set(pc_description "Checks at the resource for holdfast's locks: ${database}")
    set(pc_requires "holdfast = ${PROJECT_VERSION}")
    if(holdfast_is_static)
        list(GET pc_${guard} 1 library)
        string(APPEND pc_requires ", ${library}")
    endif()
    configure_file(${PROJECT_SOURCE_DIR}/packaging/holdfast-guard.pc.in
        ${PROJECT_BINARY_DIR}/${pc_name}.pc @ONLY)
    install(FILES ${PROJECT_BINARY_DIR}/${pc_name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endforeach()
