# Runs at every build (cmake -P). Rewrites version.cc only if the version or the commit changed.
# In a clone, git gives the commit. In an archive that git made, commit.txt holds it (.gitattributes).
set(GIT_COMMIT "")
set(GIT_COMMIT_UNIX_S "")
if(EXISTS ${SOURCE_DIR}/.git)
  execute_process(COMMAND git -C ${SOURCE_DIR} rev-parse --verify --quiet HEAD
                  OUTPUT_VARIABLE GIT_COMMIT OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  execute_process(COMMAND git --no-optional-locks -C ${SOURCE_DIR} status --porcelain --untracked-files=no
                  OUTPUT_VARIABLE changes ERROR_QUIET)
  execute_process(COMMAND git -C ${SOURCE_DIR} log -1 --format=%ct
                  OUTPUT_VARIABLE GIT_COMMIT_UNIX_S OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(GIT_COMMIT AND changes)
    string(APPEND GIT_COMMIT "-dirty")
  endif()
else()
  file(STRINGS ${SOURCE_DIR}/cmake/commit.txt lines)
  list(POP_FRONT lines GIT_COMMIT GIT_COMMIT_UNIX_S)
endif()
if(NOT GIT_COMMIT MATCHES "^[0-9a-f]+(-dirty)?$")
  set(GIT_COMMIT "unknown")
endif()
if(NOT GIT_COMMIT_UNIX_S MATCHES "^[0-9]+$")
  set(GIT_COMMIT_UNIX_S 0)
endif()
configure_file(${SOURCE_DIR}/cmake/version.cc.in ${OUTPUT} @ONLY)
