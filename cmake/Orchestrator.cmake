# Products and operator lists of Orchestrator in CMake projects: docs/cmake.md.
#
#   orchestrator_add_profile(<target> PROFILE <file> [OUT <folder>] [LOCKED]
#     [EXCLUDE_FROM_ALL] [JOBS <n>] [DEPENDS <file or target>...]
#     [EXECUTABLE <program> [<argument>...]])
#
#   orchestrator_gen_selected_ops(<target> [MODELS <file>...] [OPS <operator>...]
#     [OPS_DICT <json>] [YAML <file>...] [ALL] [OUTPUT_DIR <folder>] [PRIM_OPS <n>]
#     [EXCLUDE_FROM_ALL] [DEPENDS <file or target>...]
#     [EXECUTABLE <program> [<argument>...]])
#
# The program is EXECUTABLE, else the cache variable ORCHESTRATOR_EXECUTABLE, else
# `orchestrator` beside this package or on the PATH, else `python3 -m orchestrator`.

if(CMAKE_VERSION VERSION_LESS 3.20)
  message(FATAL_ERROR
    "Orchestrator needs CMake 3.20 or newer, which reads depfiles with every "
    "generator; this is ${CMAKE_VERSION}. `pip install cmake` brings a newer one.")
endif()
# The functions run with these policies, whatever the project's are.
cmake_policy(VERSION 3.20...3.31)

# Where pip puts programs, as seen from the package; no folder at all in a checkout.
set(_ORCHESTRATOR_BESIDE "${CMAKE_CURRENT_LIST_DIR}/../../../../../../bin")
set(ORCHESTRATOR_EXECUTABLE "" CACHE STRING
  "The program orchestrator, with leading arguments if it takes any; empty: look for it")

# Adds the library of a profile as a target to link with.
function(orchestrator_add_profile target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "LOCKED;EXCLUDE_FROM_ALL" "PROFILE;OUT;JOBS"
    "DEPENDS;EXECUTABLE")
  _orchestrator_check(orchestrator_add_profile "${target}"
    "PROFILE, OUT, LOCKED, EXCLUDE_FROM_ALL, JOBS, DEPENDS, EXECUTABLE")
  if(NOT arg_PROFILE)
    _orchestrator_refuse(orchestrator_add_profile "${target}" "there is no PROFILE"
      "add PROFILE <file.toml>")
  endif()
  get_filename_component(profile "${arg_PROFILE}" ABSOLUTE)
  if(NOT EXISTS "${profile}" OR IS_DIRECTORY "${profile}")
    _orchestrator_refuse(orchestrator_add_profile "${target}"
      "the profile is no file: ${profile}"
      "PROFILE is relative to the folder of this CMakeLists.txt; `orchestrator plumbing schema` describes profiles")
  endif()
  if(DEFINED arg_JOBS AND NOT arg_JOBS MATCHES "^[1-9][0-9]*$")
    _orchestrator_refuse(orchestrator_add_profile "${target}"
      "JOBS cannot be \"${arg_JOBS}\"" "give a number from 1 on, or leave JOBS out")
  endif()
  _orchestrator_profile_name("${profile}" name)
  if(NOT name)
    _orchestrator_refuse(orchestrator_add_profile "${target}"
      "no line of ${profile} gives the name of the product"
      "write name = \"...\" on a line of its own before the first [table]; CMake names the files to link after it")
  endif()
  _orchestrator_command("${arg_EXECUTABLE}" command)
  if(NOT arg_OUT)
    set(arg_OUT "orchestrator/${name}")
  endif()
  get_filename_component(out "${arg_OUT}" ABSOLUTE BASE_DIR "${CMAKE_CURRENT_BINARY_DIR}")
  _orchestrator_claim(orchestrator_add_profile "${target}" OUT "${out}")

  set(options)
  if(arg_LOCKED)
    list(APPEND options --locked)
  endif()
  if(arg_JOBS)
    list(APPEND options --jobs ${arg_JOBS})
  endif()
  set(library "${out}/lib${name}.a")
  # The stamp tells when the last build was: outputs that keep their bytes keep their
  # times, so that nothing is linked anew for a change that makes no difference.
  set(stamp "${out}/.work/cmake.stamp")
  add_custom_command(
    OUTPUT "${stamp}"
    BYPRODUCTS "${library}" "${out}/include/${name}.h" "${out}/include/orch/status.h"
    COMMAND ${command} build "${profile}" --out "${out}" ${options}
      --depfile "${stamp}.d" --depfile-target "${stamp}"
    COMMAND "${CMAKE_COMMAND}" -E touch "${stamp}"
    DEPENDS "${profile}" ${arg_DEPENDS}
    DEPFILE "${stamp}.d"
    COMMENT "Building profile ${name}"
    VERBATIM)
  _orchestrator_add_target("${target}" "${stamp}" "${out}" "${arg_EXCLUDE_FROM_ALL}")
  target_include_directories("${target}" INTERFACE "${out}/include")
  target_link_libraries("${target}" INTERFACE "${library}")
  if(NOT CMAKE_CROSSCOMPILING)
    # The kernel table of a host library is read-only, hence not position independent.
    target_link_options("${target}" INTERFACE -no-pie)
  endif()
  set_target_properties("${target}" PROPERTIES
    ORCHESTRATOR_NAME "${name}"
    ORCHESTRATOR_OUT "${out}"
    ORCHESTRATOR_LIBRARY "${library}")
  # Another name in the profile is another library to link.
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${profile}")
endfunction()

# Adds the headers of an operator list, for ExecuTorch's own build.
function(orchestrator_gen_selected_ops target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "ALL;EXCLUDE_FROM_ALL"
    "OPS_DICT;OUTPUT_DIR;PRIM_OPS" "MODELS;OPS;YAML;DEPENDS;EXECUTABLE")
  _orchestrator_check(orchestrator_gen_selected_ops "${target}"
    "MODELS, OPS, OPS_DICT, YAML, ALL, OUTPUT_DIR, PRIM_OPS, EXCLUDE_FROM_ALL, DEPENDS, EXECUTABLE")
  if(NOT (arg_MODELS OR arg_OPS OR arg_OPS_DICT OR arg_YAML OR arg_ALL))
    _orchestrator_refuse(orchestrator_gen_selected_ops "${target}"
      "nothing is selected" "add MODELS, OPS, OPS_DICT, YAML or ALL; all may be combined")
  endif()
  if(DEFINED arg_PRIM_OPS AND NOT arg_PRIM_OPS MATCHES "^[0-9]+$")
    _orchestrator_refuse(orchestrator_gen_selected_ops "${target}"
      "PRIM_OPS cannot be \"${arg_PRIM_OPS}\""
      "give the number of prim ops that ExecuTorch registers, or leave PRIM_OPS out")
  endif()
  _orchestrator_command("${arg_EXECUTABLE}" command)
  if(NOT arg_OUTPUT_DIR)
    set(arg_OUTPUT_DIR "orchestrator/${target}")
  endif()
  get_filename_component(out "${arg_OUTPUT_DIR}" ABSOLUTE
    BASE_DIR "${CMAKE_CURRENT_BINARY_DIR}")
  _orchestrator_claim(orchestrator_gen_selected_ops "${target}" OUTPUT_DIR "${out}")

  set(sources)
  set(files)
  foreach(model IN LISTS arg_MODELS)
    get_filename_component(model "${model}" ABSOLUTE)
    list(APPEND sources --model "${model}")
    list(APPEND files "${model}")
  endforeach()
  foreach(yaml IN LISTS arg_YAML)
    get_filename_component(yaml "${yaml}" ABSOLUTE)
    list(APPEND sources --yaml "${yaml}")
    list(APPEND files "${yaml}")
  endforeach()
  foreach(operator IN LISTS arg_OPS)
    list(APPEND sources --ops "${operator}")
  endforeach()
  if(arg_ALL)
    list(APPEND sources --all)
  endif()
  if(arg_OPS_DICT)
    # Kernel keys hold semicolons, at which CMake would cut.
    string(REPLACE ";" "\\;" dictionary "${arg_OPS_DICT}")
    list(APPEND sources --ops-dict "${dictionary}")
  endif()
  set(prim_ops)
  if(DEFINED arg_PRIM_OPS)
    set(prim_ops --prim-ops ${arg_PRIM_OPS})
  endif()
  set(list "${out}/selected_operators.yaml")
  set(stamp "${out}/.orchestrator.stamp")
  add_custom_command(
    OUTPUT "${stamp}"
    BYPRODUCTS "${list}" "${out}/selected_op_variants.h" "${out}/selected_prim_ops.h"
      "${out}/selected_max_kernel_num.h"
    COMMAND ${command} plumbing oplist ${sources} --output "${list}"
      --depfile "${stamp}.d" --depfile-target "${stamp}"
    COMMAND ${command} plumbing headers --oplist "${list}" --output-dir "${out}" ${prim_ops}
    COMMAND "${CMAKE_COMMAND}" -E touch "${stamp}"
    DEPENDS ${files} ${arg_DEPENDS}
    DEPFILE "${stamp}.d"
    COMMENT "Selecting operators for ${target}"
    VERBATIM)
  _orchestrator_add_target("${target}" "${stamp}" "${out}" "${arg_EXCLUDE_FROM_ALL}")
  target_include_directories("${target}" INTERFACE "${out}")
  set_target_properties("${target}" PROPERTIES
    ORCHESTRATOR_OUT "${out}"
    ORCHESTRATOR_SELECTED_OPERATORS "${list}")
endfunction()

# The target to link with, and the one behind it that does the work.
function(_orchestrator_add_target target stamp out exclude_from_all)
  set(all ALL)
  if(exclude_from_all)
    set(all)
  endif()
  add_custom_target("${target}_build" ${all} DEPENDS "${stamp}")
  # A folder that the user named may hold files of theirs, of whatever name, and CMake
  # does not ask whose they are: `orchestrator clean` does.
  set(made "${stamp}.d")
  string(FIND "${out}" "${CMAKE_CURRENT_BINARY_DIR}/orchestrator/" at)
  if(at EQUAL 0)
    set(made "${out}")
  endif()
  set_property(TARGET "${target}_build" PROPERTY ADDITIONAL_CLEAN_FILES "${made}")
  add_library("${target}" INTERFACE)
  add_dependencies("${target}" "${target}_build")
endfunction()

# The product's name, as the plainest form of TOML gives it; empty without one.
function(_orchestrator_profile_name profile result)
  set(${result} "" PARENT_SCOPE)
  file(STRINGS "${profile}" lines REGEX "^[ \t]*(\\[|name[ \t]*=)" ENCODING UTF-8)
  if("${lines}" MATCHES "^[ \t]*name[ \t]*=[ \t]*[\"']([a-z][a-z0-9-]*)[\"']")
    set(${result} "${CMAKE_MATCH_1}" PARENT_SCOPE)
  endif()
endfunction()

# How to start the program.
function(_orchestrator_command given result)
  set(from "EXECUTABLE")
  if(NOT given)
    set(from "ORCHESTRATOR_EXECUTABLE")
    set(given ${ORCHESTRATOR_EXECUTABLE})
  endif()
  if(given)
    list(POP_FRONT given program)
    # NO_CACHE is newer than CMake 3.20.
    find_program(_ORCHESTRATOR_GIVEN "${program}" NO_CMAKE_FIND_ROOT_PATH)
    set(found "${_ORCHESTRATOR_GIVEN}")
    unset(_ORCHESTRATOR_GIVEN CACHE)
    if(NOT found)
      message(FATAL_ERROR
        "${from} is no program: ${program}\n"
        "Give the path of the program orchestrator, or leave it out to have it looked for.")
    endif()
    set(${result} "${found}" ${given} PARENT_SCOPE)
    return()
  endif()
  find_program(ORCHESTRATOR_PROGRAM orchestrator HINTS "${_ORCHESTRATOR_BESIDE}"
    NO_CMAKE_FIND_ROOT_PATH DOC "The program orchestrator that was found")
  mark_as_advanced(ORCHESTRATOR_PROGRAM)
  if(ORCHESTRATOR_PROGRAM)
    set(${result} "${ORCHESTRATOR_PROGRAM}" PARENT_SCOPE)
    return()
  endif()
  find_package(Python3 3.11 QUIET COMPONENTS Interpreter)
  if(Python3_Interpreter_FOUND)
    execute_process(
      COMMAND "${Python3_EXECUTABLE}" -m orchestrator --version
      RESULT_VARIABLE status OUTPUT_QUIET ERROR_QUIET)
    if(status EQUAL 0)
      set(${result} "${Python3_EXECUTABLE}" -m orchestrator PARENT_SCOPE)
      return()
    endif()
  endif()
  # Beside this folder a checkout has the project's file; a wheel has not.
  get_filename_component(root "${CMAKE_CURRENT_FUNCTION_LIST_DIR}" DIRECTORY)
  set(install "pip install pte-orchestrator")
  if(EXISTS "${root}/pyproject.toml")
    set(install "pip install -e \"${root}\"")
  endif()
  message(FATAL_ERROR
    "The program orchestrator is not installed where CMake looks for it: beside this "
    "package, on the PATH, as a module of python3.\n"
    "Install it with `${install}`, or say where it is with "
    "-DORCHESTRATOR_EXECUTABLE=<path>.")
endfunction()

# What every call has to hold; reads the caller's parsed arguments.
function(_orchestrator_check call target keywords)
  if(NOT target MATCHES "^[A-Za-z0-9_.+-]+$")
    _orchestrator_refuse(${call} "${target}" "that is no name of a target"
      "use letters, digits, _ . + and -")
  endif()
  foreach(name IN ITEMS "${target}" "${target}_build")
    if(TARGET "${name}")
      _orchestrator_refuse(${call} "${target}" "there is a target ${name} already"
        "choose another name")
    endif()
  endforeach()
  if(arg_UNPARSED_ARGUMENTS)
    list(JOIN arg_UNPARSED_ARGUMENTS " " found)
    _orchestrator_refuse(${call} "${target}" "unknown arguments: ${found}"
      "use only ${keywords}")
  endif()
  if(arg_KEYWORDS_MISSING_VALUES)
    list(JOIN arg_KEYWORDS_MISSING_VALUES ", " found)
    _orchestrator_refuse(${call} "${target}" "no value follows ${found}"
      "give one, or leave the word out")
  endif()
endfunction()

# A folder is one target's: two would undo each other's work.
function(_orchestrator_claim call target keyword folder)
  string(MD5 key "${folder}")
  get_property(owner GLOBAL PROPERTY _ORCHESTRATOR_FOLDER_${key})
  if(owner)
    _orchestrator_refuse(${call} "${target}"
      "its folder is that of target ${owner}: ${folder}"
      "give each target a folder of its own with ${keyword}")
  endif()
  set_property(GLOBAL PROPERTY _ORCHESTRATOR_FOLDER_${key} "${target}")
endfunction()

function(_orchestrator_refuse call target problem remedy)
  message(FATAL_ERROR "${call}(${target}): ${problem}\nRemedy: ${remedy}.")
endfunction()
