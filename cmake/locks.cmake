# POUNDLOCK_LOCKS chooses the locks of a build (docs/install.md). Sets POUNDLOCK_LOCKS_DEF to the
# list that the build compiles: core/locks.def, or a copy in which OMITTED_LOCK(name) and
# OMITTED_RWLOCK(name) replace the entries of the other locks.
set(POUNDLOCK_LOCKS all CACHE STRING "Locks to build: all, or names separated by semicolons")
# The locks of pound_mutex_t and pound_rwlock_t. crates/poundlock-sys/locks.rs has the same.
set(needed shfl_mutex shfl_rw)

set(POUNDLOCK_LOCKS_DEF ${CMAKE_CURRENT_SOURCE_DIR}/core/locks.def)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${POUNDLOCK_LOCKS_DEF} core/all.h)

# Reports an incompletely added lock by name, before the compiler fails less clearly.
file(READ core/all.h all_h)
set(known "")
foreach(kind LOCK RWLOCK)
	file(STRINGS ${POUNDLOCK_LOCKS_DEF} lines REGEX "^${kind}\\(")
	foreach(line ${lines})
		string(REGEX REPLACE "^${kind}\\(([a-z_0-9]+),.*" "\\1" lock "${line}")
		set(header ${lock}.h)
		if(kind STREQUAL RWLOCK)
			set(header rw/${lock}.h)
		endif()
		if(NOT EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/core/${header})
			message(FATAL_ERROR
				"core/locks.def lists ${lock}: write core/${header}. "
				"CONTRIBUTING.md has the steps.")
		elseif(NOT all_h MATCHES "#include \"${header}\"")
			message(FATAL_ERROR
				"core/locks.def lists ${lock}: include \"${header}\" in core/all.h")
		endif()
		list(APPEND known ${lock})
	endforeach()
endforeach()

if(NOT POUNDLOCK_LOCKS STREQUAL all)
	foreach(lock ${POUNDLOCK_LOCKS})
		if(NOT lock IN_LIST known)
			message(FATAL_ERROR "POUNDLOCK_LOCKS: there is no lock '${lock}'")
		endif()
	endforeach()
	foreach(lock ${needed})
		if(NOT lock IN_LIST POUNDLOCK_LOCKS)
			message(FATAL_ERROR
				"POUNDLOCK_LOCKS lacks ${lock}, which every build needs")
		endif()
	endforeach()
	set(omitted ${known})
	list(REMOVE_ITEM omitted ${POUNDLOCK_LOCKS})
	file(READ ${POUNDLOCK_LOCKS_DEF} list)
	foreach(lock ${omitted})
		# An entry's further lines are indented.
		string(REGEX REPLACE "\n((RW)?LOCK)\\(${lock},[^\n]*(\n[ \t][^\n]*)*"
			"\n#define WITHOUT_${lock}\nOMITTED_\\1(${lock})" list "${list}")
	endforeach()
	set(POUNDLOCK_LOCKS_DEF ${CMAKE_CURRENT_BINARY_DIR}/chosen/locks.def)
	file(CONFIGURE OUTPUT ${POUNDLOCK_LOCKS_DEF} CONTENT "${list}" @ONLY)
endif()
