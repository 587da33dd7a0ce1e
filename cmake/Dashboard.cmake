# Dashboard.cmake: the page at /, bundled from web/dashboard by esbuild (web/build.mjs) and embedded
# twice, plain and compressed with gzip. Its packages come from npm (scripts/deps page) and are shared by
# all builds. Building needs no network: if node or the packages are missing, or the packages do not match
# web/package-lock.json, the page is left out; CMake and GET / report the reason.
#
# Sets dashboard_sources to the sources to compile: iron__dashboard_{html,js,css}[_gz] with their lengths,
# all empty if the page is left out, and iron__dashboard_why, the reason (empty if there is a page).

set(web "${CMAKE_CURRENT_SOURCE_DIR}/web")
set(stamp "${web}/node_modules/.of-lock") # scripts/deps: the lock file that they were installed from
find_program(IRON_NODE NAMES node nodejs)
mark_as_advanced(IRON_NODE)

set(dashboard_why "")
file(SHA256 "${web}/package-lock.json" lock)
if(NOT IRON_NODE)
  set(dashboard_why "node was not found (Debian: nodejs); scripts/deps page installs it")
elseif(NOT EXISTS "${stamp}")
  set(dashboard_why "web/node_modules does not exist; scripts/deps page installs it")
else()
  file(STRINGS "${stamp}" installed LIMIT_COUNT 1)
  if(NOT installed STREQUAL lock)
    set(dashboard_why "web/node_modules does not match web/package-lock.json; scripts/deps page updates it")
  else()
    execute_process(COMMAND "${IRON_NODE}" "${web}/build.mjs" --try RESULT_VARIABLE failed OUTPUT_QUIET ERROR_QUIET)
    if(failed)
      set(dashboard_why "esbuild in web/node_modules does not run on this machine; scripts/deps page updates it")
    endif()
  endif()
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${stamp}")
endif()
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${web}/package-lock.json")

set(pages "${CMAKE_CURRENT_BINARY_DIR}/generated/pages/dashboard")
set(made index.html dashboard.js dashboard.css index.html.gz dashboard.js.gz dashboard.css.gz)
list(TRANSFORM made PREPEND "${pages}/")
file(CONFIGURE OUTPUT "${pages}/why" CONTENT "${dashboard_why}")
if(dashboard_why)
  message(STATUS "dashboard: left out, since ${dashboard_why}")
  set(pages "${pages}/none")
  foreach(name IN ITEMS index.html dashboard.js dashboard.css)
    file(CONFIGURE OUTPUT "${pages}/${name}" CONTENT "")
    file(CONFIGURE OUTPUT "${pages}/${name}.gz" CONTENT "")
  endforeach()
else()
  file(GLOB dashboard_parts CONFIGURE_DEPENDS "${web}/dashboard/*")
  add_custom_command(
    OUTPUT ${made}
    COMMAND "${IRON_NODE}" "${web}/build.mjs" "${pages}"
    DEPENDS ${dashboard_parts} "${web}/build.mjs" "${stamp}"
    COMMENT "Dashboard" VERBATIM)
endif()

set(dashboard_sources "")
foreach(part IN ITEMS html:index.html js:dashboard.js css:dashboard.css)
  string(REGEX REPLACE ":.*" "" word "${part}")
  string(REGEX REPLACE ".*:" "" name "${part}")
  iron_embed(dashboard_${word} "${pages}/${name}")
  iron_embed(dashboard_${word}_gz "${pages}/${name}.gz")
  list(APPEND dashboard_sources "${dashboard_${word}_source}" "${dashboard_${word}_gz_source}")
endforeach()
iron_embed(dashboard_why "${CMAKE_CURRENT_BINARY_DIR}/generated/pages/dashboard/why")
list(APPEND dashboard_sources "${dashboard_why_source}")
