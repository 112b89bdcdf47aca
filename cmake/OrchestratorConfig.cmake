# find_package(Orchestrator CONFIG): the functions of Orchestrator.cmake.
include("${CMAKE_CURRENT_LIST_DIR}/Orchestrator.cmake")
