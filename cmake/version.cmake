# Run at every build (cmake -P): writes version.cc anew only where the version or the commit changed.
# In a clone the commit is asked of git; in an archive that git made it stands in commit.txt (.gitattributes).
set(GIT_COMMIT "")
if(EXISTS ${SOURCE_DIR}/.git)
  execute_process(COMMAND git -C ${SOURCE_DIR} rev-parse --verify --quiet HEAD
                  OUTPUT_VARIABLE GIT_COMMIT OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  execute_process(COMMAND git --no-optional-locks -C ${SOURCE_DIR} status --porcelain --untracked-files=no
                  OUTPUT_VARIABLE changes ERROR_QUIET)
  if(GIT_COMMIT AND changes)
    string(APPEND GIT_COMMIT "-dirty")
  endif()
else()
  file(STRINGS ${SOURCE_DIR}/cmake/commit.txt GIT_COMMIT LIMIT_COUNT 1)
endif()
if(NOT GIT_COMMIT MATCHES "^[0-9a-f]+(-dirty)?$")
  set(GIT_COMMIT "unknown")
endif()
configure_file(${SOURCE_DIR}/cmake/version.cc.in ${OUTPUT} @ONLY)
