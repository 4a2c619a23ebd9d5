# The command `poundlock`, built by cargo, and its completions. CMake always asks cargo, which finds
# out what is up to date.
if(CMAKE_CROSSCOMPILING)
	message(FATAL_ERROR
		"POUNDLOCK_TOOLS builds for this machine: "
		"cross-compile the command with cargo --target")
endif()
find_program(CARGO cargo REQUIRED)
# The BPF program of `poundlock watch` needs clang, whatever compiles the rest.
find_program(CLANG clang)
if(CLANG)
	set(parts --workspace)
else()
	message(STATUS "clang is missing: the command is built without `poundlock watch`")
	set(parts --package poundlock-cli --no-default-features)
endif()
set(POUNDLOCK_CARGO_TARGET_DIR ${PROJECT_BINARY_DIR}/cargo CACHE PATH "Build directory of cargo")

set(command ${POUNDLOCK_CARGO_TARGET_DIR}/release/poundlock)
set(completions ${PROJECT_BINARY_DIR}/completions)
set(write_completions "")
foreach(shell bash zsh fish)
	list(APPEND write_completions COMMAND ${command} completions ${shell} >
		${completions}/${shell})
endforeach()
# crates/poundlock-sys builds the chosen locks, too. Without a choice, the variable is not set, as
# in a build by cargo alone: cargo would otherwise compile everything again after each of the two.
set(choice --unset=POUNDLOCK_LOCKS)
if(NOT POUNDLOCK_LOCKS STREQUAL "all")
	set(choice "POUNDLOCK_LOCKS=${POUNDLOCK_LOCKS}")
endif()
add_custom_target(poundlock-tools ALL
	COMMAND ${CMAKE_COMMAND} -E env "${choice}"
	${CARGO} build --release --locked ${parts} --bin poundlock --target-dir
	${POUNDLOCK_CARGO_TARGET_DIR}
	COMMAND ${CMAKE_COMMAND} -E make_directory ${completions}
	${write_completions}
	BYPRODUCTS ${command}
	WORKING_DIRECTORY ${PROJECT_SOURCE_DIR} COMMENT "Building the command poundlock"
	USES_TERMINAL VERBATIM)

if(POUNDLOCK_INSTALL)
	install(PROGRAMS ${command} DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT tools)
	install(DIRECTORY docs/man/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT tools
		FILES_MATCHING PATTERN *.1)
	install(FILES ${completions}/bash
		DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions
		RENAME poundlock COMPONENT tools)
	install(FILES ${completions}/zsh DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions
		RENAME _poundlock COMPONENT tools)
	install(FILES ${completions}/fish
		DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d
		RENAME poundlock.fish COMPONENT tools)
	# The command finds its data relative to itself.
	set(data ${CMAKE_INSTALL_DATADIR}/poundlock)
	install(DIRECTORY machines DESTINATION ${data} COMPONENT tools FILES_MATCHING PATTERN *.toml
		PATTERN *.csv)
	install(DIRECTORY bench/figures bench/workloads DESTINATION ${data} COMPONENT tools
		FILES_MATCHING PATTERN *.toml)
endif()
