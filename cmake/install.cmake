# Places the files so that the programs find them (DataDir() in src/base/files.h): in the build tree beside the programs,
# installed under PREFIX:
#   bin/ridgeline  bin/ridgeline-train  bin/ridgeline-train-cuda (if the CUDA toolkit was there)
#   lib/ridgeline/{plugins,libraries}/  share/ridgeline/{reports,sweeps,profiles,trainers,devices,frameworks,metrics,docs}/
#   share/ridgeline/{LICENSE,NOTICE,libraries.txt,licenses/}: the libraries that it is linked with, and their licences
#   share/ridgeline/{README.md,CHANGELOG.md,CONTRIBUTING.md}
#   share/{bash-completion/completions/ridgeline,zsh/site-functions/_ridgeline,fish/vendor_completions.d/ridgeline.fish}
#   share/ridgeline/sagemaker/: policies for AWS's identities
#   share/ridgeline/kubernetes/: manifests that a cluster's administrators apply, and the Containerfile for a bundle
foreach(data reports sweeps profiles trainers devices frameworks metrics docs)
  if(IS_DIRECTORY ${PROJECT_SOURCE_DIR}/${data})
    file(MAKE_DIRECTORY ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
    file(CREATE_LINK ${PROJECT_SOURCE_DIR}/${data} ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/${data} SYMBOLIC)
    install(DIRECTORY ${data} DESTINATION share/ridgeline PATTERN docs/site EXCLUDE)
  endif()
endforeach()

# These pages are beside docs/ as in the sources, so links to and from them work.
install(FILES LICENSE NOTICE README.md CHANGELOG.md CONTRIBUTING.md DESTINATION share/ridgeline)
file(CREATE_LINK ${PROJECT_SOURCE_DIR}/plugins/kubernetes/deploy ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/kubernetes SYMBOLIC)

foreach(program ridgeline ridgeline-train ridgeline-train-cuda)
  if(TARGET ${program})
    rl_brings_libraries(${program} ../lib/ridgeline/libraries)
    install(TARGETS ${program} RUNTIME DESTINATION bin)
  endif()
endforeach()

# The image for CPUs is built from the sources, so its Containerfile stays there. The image for GPUs needs only a bundle.
install(DIRECTORY plugins/kubernetes/deploy/ DESTINATION share/ridgeline/kubernetes
        FILES_MATCHING PATTERN "*.yaml" PATTERN "Containerfile.cuda")

install(DIRECTORY plugins/sagemaker/deploy/ DESTINATION share/ridgeline/sagemaker FILES_MATCHING PATTERN "*.json")

get_property(plugins GLOBAL PROPERTY RIDGELINE_PLUGINS)
foreach(plugin IN LISTS plugins)
  install(TARGETS ${plugin} LIBRARY DESTINATION lib/ridgeline/plugins)
endforeach()

# Each shell searches these folders by default. The scripts name the launchers, so the launchers must be built first.
if(TARGET ridgeline)
  foreach(script bash:bash-completion/completions/ridgeline zsh:zsh/site-functions/_ridgeline
                 fish:fish/vendor_completions.d/ridgeline.fish)
    string(REGEX MATCH "^(.*):(.*)$" script ${script})
    set(completion ${PROJECT_BINARY_DIR}/completions/${CMAKE_MATCH_2})
    get_filename_component(folder ${CMAKE_MATCH_2} DIRECTORY)
    add_custom_command(OUTPUT ${completion}
      COMMAND ${CMAKE_COMMAND} -E make_directory ${PROJECT_BINARY_DIR}/completions/${folder}
      COMMAND ridgeline completion ${CMAKE_MATCH_1} > ${completion}
      DEPENDS ridgeline ${plugins} VERBATIM)
    list(APPEND completions ${completion})
    install(FILES ${completion} DESTINATION share/${folder})
  endforeach()
  add_custom_target(completion ALL DEPENDS ${completions})
endif()

# Copies the libraries that the programs are linked with, so that a copy of PREFIX runs on machines without these packages.
install(CODE "execute_process(COMMAND \"${PROJECT_SOURCE_DIR}/scripts/copy-libraries.sh\"
                                      \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}\" COMMAND_ERROR_IS_FATAL ANY)")
