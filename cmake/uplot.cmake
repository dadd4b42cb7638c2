# uPlot (MIT) draws the plots of HTML reports: uPlot.iife.min.js, uPlot.min.css and its LICENSE stand
# in PACELINE_UPLOT_DIR afterwards, or it is empty. `script/fetch uplot` brings the package into the
# cache folder, checked; script/build does so. Without it the program builds all the same, and its
# pages have tables and no plots.
file(STRINGS ${CMAKE_CURRENT_LIST_DIR}/uplot.sha256 uplot_line LIMIT_COUNT 1)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/uplot.sha256)
string(REPLACE "  " ";" uplot_line "${uplot_line}")
list(GET uplot_line 0 uplot_digest)
list(GET uplot_line 1 uplot_name)

# The same folder as script/lib.sh: cache_folder.
if(NOT "$ENV{PACELINE_CACHE}" STREQUAL "")
  set(uplot_cache $ENV{PACELINE_CACHE})
elseif(NOT "$ENV{XDG_CACHE_HOME}" STREQUAL "")
  set(uplot_cache $ENV{XDG_CACHE_HOME}/paceline)
else()
  set(uplot_cache $ENV{HOME}/.cache/paceline)
endif()

set(PACELINE_UPLOT_DIR "")
if(EXISTS ${uplot_cache}/${uplot_name})
  file(SHA256 ${uplot_cache}/${uplot_name} uplot_found)
  if(uplot_found STREQUAL uplot_digest)
    file(ARCHIVE_EXTRACT INPUT ${uplot_cache}/${uplot_name}
         DESTINATION ${PROJECT_BINARY_DIR}/generated/uplot
         PATTERNS package/LICENSE package/dist/uPlot.iife.min.js package/dist/uPlot.min.css)
    set(PACELINE_UPLOT_DIR ${PROJECT_BINARY_DIR}/generated/uplot/package)
  else()
    message(WARNING "${uplot_cache}/${uplot_name} is damaged; HTML reports will have no plots. "
                    "Run: script/fetch uplot")
  endif()
else()
  message(WARNING "HTML reports will have no plots. To have them, run: script/fetch uplot")
endif()
