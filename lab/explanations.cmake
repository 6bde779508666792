# Writes the beginnings of the pages in docs/learn into the program: `holdfast-lab explain` prints what is
# documented, and cannot differ from it.

# What stands between a page's heading and its first section.
function(lab_beginning_of page result)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${page})
    file(READ ${page} text)
    string(FIND "${text}" "\n" after_heading)
    string(SUBSTRING "${text}" ${after_heading} -1 text)
    string(FIND "${text}" "\n## " end)
    string(SUBSTRING "${text}" 0 ${end} text)
    string(STRIP "${text}" text)
    # Links are for pages, not for terminals.
    string(REGEX REPLACE "\\[([^]]*)\\]\\([^)]*\\)" "\\1" text "${text}")
    set(${result} "${text}" PARENT_SCOPE)
endfunction()

function(lab_write_explanations output)
    set(entries "")
    foreach(name IN LISTS ARGN)
        lab_beginning_of(${PROJECT_SOURCE_DIR}/docs/learn/${name}.md english)
        lab_beginning_of(${PROJECT_SOURCE_DIR}/docs/learn/zh/${name}.md chinese)
        string(APPEND entries
            "    {\"${name}\",\n     R\"lab(${english})lab\",\n     R\"lab(${chinese})lab\"},\n")
    endforeach()
    configure_file(${CMAKE_CURRENT_SOURCE_DIR}/explanations.cpp.in ${output} @ONLY)
endfunction()
