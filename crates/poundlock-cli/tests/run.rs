//! `poundlock run` replaces itself by the program and changes only its locks. A program that cannot
//! run is a one-line error.

mod common;

use common::{
    assert_refused, compile, executable, output, poundlock, preload, scratch, stderr, stdout,
};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, Output, Stdio};

#[test]
fn wrong_locks_are_named() {
    assert_refused(&mut poundlock(["run", "-l", "mutexx", "--", "true"]), 125, &["mutexx"]);
    assert_refused(&mut poundlock(["run", "-l", "mcs,colour=red", "--", "true"]), 125, &["colour"]);
    assert_refused(&mut poundlock(["run", "-l", "mcs,wait=never", "--", "true"]), 125, &["never"]);
    assert_refused(&mut poundlock(["run", "-l", "", "--", "true"]), 125, &[]);
    assert_refused(
        &mut poundlock(["run", "--spinlock", "mcs", "--", "true"]),
        125,
        &["spin lock 'mcs'"],
    );
    assert_refused(
        &mut poundlock(["run", "--spinlock", "qspin,colour=red", "--", "true"]),
        125,
        &["colour"],
    );
    assert_refused(
        &mut poundlock(["compare", "--spinlock", "mcs", "--", "true"]),
        125,
        &["spin lock 'mcs'"],
    );
}

#[test]
fn the_default_lock_is_that_of_the_preload_library() {
    let alone =
        output(Command::new("true").env("LD_PRELOAD", preload()).env("POUNDLOCK_VERBOSE", "1"));
    let run = output(poundlock(["run", "--", "true"]).env("POUNDLOCK_VERBOSE", "1"));
    let lock = |output: &Output| {
        let line = stderr(output);
        let words = line.split_whitespace();
        words.filter(|word| word.starts_with("lock=")).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(lock(&alone), ["lock=shfl_ron"]);
    assert_eq!(lock(&run), lock(&alone));
}

#[test]
fn rules_are_checked_before_the_program_starts() {
    let directory = scratch();
    let file = directory.path().join("rules.toml");
    let right = "[[rule]]\nsymbol = \"cache\"\nlock = \"shfl_mutex,patience=0\"\n";
    let run = |text: &str, lock: &str, program: &str| {
        std::fs::write(&file, text).expect("a file");
        let mut command = poundlock(["run", "-l", lock, "--rules"]);
        command.arg(&file).args(["--", program]);
        command
    };
    let environment = stdout(&output(&mut run(right, "shfl_mutex,batch=9", "env")));
    let path = file.canonicalize().expect("it exists");
    let variable = format!("POUNDLOCK_RULES={}", path.display());
    assert!(environment.lines().any(|line| line == variable), "{environment}");
    for (text, lock, why) in [
        ("[[rule]]\nsymbol = \"cache\"\nlock = \"nosuch\"\n", "shfl_mutex", "line 3: there is"),
        ("[[rule]]\nsymbol = \"cache\"\n", "shfl_mutex", "line 1: the rule has no lock"),
        ("rule = []\n", "shfl_mutex", "line 1: "),
        (right, "mcs", "rules need shfl_mutex or shfl_ron"),
        (right, "shfl_mutex,policy=fair", "rules need shfl_mutex"),
        (right, "native", "native locks"),
        (&"\n".repeat(65537), "shfl_mutex", "more than 65536 bytes"),
    ] {
        let file = file.to_string_lossy();
        assert_refused(&mut run(text, lock, "no-such-program"), 125, &[&file, why]);
    }
    for path in ["/no/such/file", "/dev/null"] {
        assert_refused(&mut poundlock(["run", "--rules", path, "--", "true"]), 125, &[path]);
    }
}

#[test]
fn wrong_usage_is_one_line() {
    assert_refused(&mut poundlock(["run", "--lok", "mcs", "--", "true"]), 125, &["--lok"]);
    assert_refused(&mut poundlock(["run", "-l", "mcs"]), 125, &["COMMAND"]);
    assert_refused(&mut poundlock(["rum"]), 125, &["rum"]);
    assert_refused(&mut poundlock(["compare", "-n", "0", "true"]), 125, &["0"]);
    assert_refused(&mut poundlock(["compare", "--timeout", "soon", "true"]), 125, &["soon"]);
    assert_refused(&mut poundlock(["compare", "--lower-is-better", "true"]), 125, &["--metric"]);
}

#[test]
fn a_missing_program_exits_127() {
    for lock in ["mcs", "native"] {
        assert_refused(
            &mut poundlock(["run", "-l", lock, "--", "no-such-program"]),
            127,
            &["'no-such-program'"],
        );
        assert_refused(
            &mut poundlock(["run", "-l", lock, "--", "/no/such/program"]),
            127,
            &["/no/such/program"],
        );
    }
}

#[test]
fn a_program_that_cannot_run_exits_126() {
    let directory = scratch();
    let file = directory.path().join("plain");
    std::fs::write(&file, "#!/bin/sh\n").expect("a file");
    for path in [file.as_os_str(), directory.path().as_os_str()] {
        let mut command = poundlock(["run", "-l", "mcs", "--"]);
        assert_refused(command.arg(path), 126, &[&path.to_string_lossy()]);
    }
}

#[test]
fn a_missing_or_invalid_preload_library_is_named() {
    let directory = scratch();
    let text = directory.path().join("text.so");
    std::fs::write(&text, "no library").expect("a file");
    let blank = directory.path().join("a b.so");
    std::fs::copy(preload(), &blank).expect("a copy");
    for (path, why) in [
        ("/no/such.so".as_ref(), "No such file"),
        (text.as_os_str(), "not an ELF"),
        (blank.as_os_str(), "a space"),
    ] {
        let mut command = poundlock(["run", "-l", "mcs", "--preload"]);
        assert_refused(
            command.arg(path).args(["--", "true"]),
            125,
            &[&path.to_string_lossy(), why],
        );
    }
    assert_refused(
        poundlock(["run", "true"]).env("POUNDLOCK_PRELOAD", "/no/such.so"),
        125,
        &["/no/such.so"],
    );
}

#[test]
fn a_preload_library_is_found_beside_the_binary_and_in_lib() {
    let directory = scratch();
    let binary = directory.path().join("bin/poundlock");
    std::fs::create_dir_all(directory.path().join("bin")).expect("a directory");
    std::fs::create_dir_all(directory.path().join("lib/poundlock")).expect("a directory");
    std::fs::create_dir_all(directory.path().join("lib64/poundlock")).expect("a directory");
    // Written by another process: a concurrent test that forks would inherit the open file, and
    // an executable that is open for writing cannot run (ETXTBSY).
    let copied = Command::new("cp").arg(env!("CARGO_BIN_EXE_poundlock")).arg(&binary).status();
    assert!(copied.is_ok_and(|status| status.success()));
    let run = || {
        let mut command = Command::new(&binary);
        command
            .env_remove("POUNDLOCK_PRELOAD")
            .env_remove("LD_PRELOAD")
            .args(["run", "-l", "mcs", "--", "env"]);
        command
    };
    assert_refused(&mut run(), 125, &["libpoundlock-preload.so", "--preload"]);
    for place in ["lib64/poundlock", "lib/poundlock", "lib", "bin"] {
        let library = directory.path().join(place).join("libpoundlock-preload.so");
        std::fs::copy(preload(), &library).expect("a copy");
        let line = format!("LD_PRELOAD={}", library.canonicalize().expect("it is there").display());
        let output = output(&mut run());
        assert!(stdout(&output).lines().any(|found| found == line), "{place}: {}", stdout(&output));
    }
}

fn run_shell(lock: &str, script: &str) -> Output {
    output(&mut poundlock(["run", "-l", lock, "--", "sh", "-c", script]))
}

#[test]
fn exit_status_passes_through() {
    for lock in ["mcs", "native"] {
        for status in [0, 1, 42, 125, 255] {
            let output = run_shell(lock, &format!("exit {status}"));
            assert_eq!(output.status.code(), Some(status), "{lock}");
            assert_eq!(stderr(&output), "", "{lock}");
        }
    }
}

#[test]
fn signals_pass_through() {
    for lock in ["mcs", "native"] {
        for signal in [libc::SIGTERM, libc::SIGKILL, libc::SIGPIPE] {
            let output = run_shell(lock, &format!("kill -{signal} $$"));
            assert_eq!(output.status.signal(), Some(signal), "{lock}");
        }
    }
}

/// Blocks a signal, restores the default action of SIGPIPE, which Python ignores, and executes the
/// program in its arguments.
const BLOCK_AND_EXEC: &str = "
import os, signal, sys
signal.signal(signal.SIGPIPE, signal.SIG_DFL)
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
os.execvp(sys.argv[1], sys.argv[1:])
";

/// The program sees the signal mask and dispositions that poundlock was started with.
#[test]
fn signal_state_passes_through() {
    let state = |setup: &str, prefix: &str| {
        let script = format!("{setup} exec {prefix} grep -E '^Sig(Blk|Ign)' /proc/self/status");
        let output = output(Command::new("/usr/bin/python3").args([
            "-c",
            BLOCK_AND_EXEC,
            "sh",
            "-c",
            &script,
        ]));
        assert!(output.status.success(), "{}", stderr(&output));
        stdout(&output)
    };
    let prefix = format!("{} run -l native --", env!("CARGO_BIN_EXE_poundlock"));
    for setup in ["", "trap '' PIPE HUP;"] {
        assert_eq!(state(setup, ""), state(setup, &prefix), "after {setup:?}");
    }
    assert_ne!(state("", ""), state("trap '' PIPE;", ""), "the test sees the difference");
}

#[test]
fn the_environment_names_library_and_lock() {
    let ours = preload();
    let variables = |lock: &str, inherited: &str| {
        let output =
            output(poundlock(["run", "-l", lock, "--", "env"]).env("LD_PRELOAD", inherited));
        let relevant =
            |line: &&str| line.starts_with("LD_PRELOAD=") || line.starts_with("POUNDLOCK_LOCK=");
        let mut lines: Vec<String> =
            stdout(&output).lines().filter(relevant).map(str::to_owned).collect();
        lines.sort();
        lines
    };
    let ours = ours.display();
    assert_eq!(
        variables("mcs,wait=spin", ""),
        [format!("LD_PRELOAD={ours}"), "POUNDLOCK_LOCK=mcs,wait=spin".to_owned()]
    );
    assert_eq!(
        variables("ttas", "libm.so.6")[0],
        format!("LD_PRELOAD={ours}:libm.so.6"),
        "prepended"
    );
    assert_eq!(
        variables("ttas", &format!("libm.so.6 {ours}"))[0],
        format!("LD_PRELOAD={ours}:libm.so.6"),
        "once"
    );
    assert_eq!(variables("native", &format!("{ours}:libm.so.6")), ["LD_PRELOAD=libm.so.6"]);
    assert_eq!(variables("native", ""), [""; 0]);
}

#[test]
fn the_lock_is_in_use() {
    let output = output(&mut poundlock([
        "run",
        "-v",
        "-l",
        "cna",
        "--",
        "/usr/bin/python3",
        "-c",
        "print('done')",
    ]));
    assert!(stderr(&output).contains("lock=cna"), "{}", stderr(&output));
    assert_eq!(stdout(&output), "done\n");
}

#[test]
fn the_spin_lock_is_in_use() {
    for (spec, name) in [("qspin,patience=3", "qspin"), ("native", "native")] {
        let output = output(&mut poundlock(["run", "-v", "--spinlock", spec, "--", "true"]));
        assert!(stderr(&output).contains(&format!("spinlock={name} ")), "{}", stderr(&output));
    }
}

/// A program that the library would break runs with its own locks, and none of Poundlock's
/// variables are in its environment.
#[test]
fn a_program_of_another_libc_or_machine_runs_natively() {
    let directory = scratch();
    let (musl, script) = (directory.path().join("musl"), directory.path().join("script"));
    let source = directory.path().join("musl.c");
    std::fs::write(&source, PRINTS_ENVIRONMENT).expect("a file");
    let built = output(Command::new("musl-gcc").arg("-o").arg(&musl).arg(&source));
    assert!(built.status.success(), "{}", stderr(&built));
    executable(&script, format!("#!{}\n", musl.display()));
    for program in [&musl, &script] {
        for arguments in
            [&["run", "-v", "--stats"][..], &["run"], &["stat"], &["profile", "-o", "/dev/null"]]
        {
            let output = output(poundlock(arguments).arg("--").arg(program));
            assert_eq!(output.status.code(), Some(7), "{arguments:?}: {}", stderr(&output));
            assert_eq!(
                stdout(&output),
                "LD_PRELOAD=(null) POUNDLOCK_LOCK=(null)\n",
                "{arguments:?}"
            );
            let error = stderr(&output);
            let line = error.lines().next().unwrap_or_default();
            assert!(
                line.contains("musl") && line.contains("its own locks"),
                "{arguments:?}: {error}"
            );
            assert!(arguments[0] != "run" || error.lines().count() == 1, "{arguments:?}: {error}");
        }
    }
    let compare = output(poundlock(["compare", "-n", "1", "-l", "mcs", "--"]).arg(&musl));
    assert_eq!(compare.status.code(), Some(125), "{}", stderr(&compare));
    assert!(stderr(&compare).contains("musl") && stderr(&compare).contains("nothing to compare"));
}

const PRINTS_ENVIRONMENT: &str = "
#include <stdio.h>
#include <stdlib.h>
static const char *get(const char *name) { const char *value = getenv(name); return value ? value : \"(null)\"; }
int main(void) { printf(\"LD_PRELOAD=%s POUNDLOCK_LOCK=%s\\n\", get(\"LD_PRELOAD\"), get(\"POUNDLOCK_LOCK\")); return 7; }
";

/// The header of the program is enough: this machine need not be able to run it.
#[test]
fn a_32_bit_program_is_reported() {
    let directory = scratch();
    let program = directory.path().join("program");
    compile("int main(void) { return 0; }", &[], &program);
    let mut content = std::fs::read(&program).expect("it was compiled");
    // Turns the first 52 bytes into the header of a 32-bit file for i386 without segments.
    content[4] = 1;
    content[18..20].copy_from_slice(&3u16.to_le_bytes());
    content[28..32].fill(0);
    content[42..46].copy_from_slice(&[32, 0, 0, 0]);
    executable(&program, content);
    let output = output(poundlock(["run", "--"]).arg(&program));
    assert!(stderr(&output).contains("is a 32-bit I386 program"), "{}", stderr(&output));
}

#[test]
fn a_privileged_program_is_reported() {
    let directory = scratch();
    let program = directory.path().join("program");
    compile("int main(void) { return 7; }", &[], &program);
    if !nix::unistd::getuid().is_root() {
        // Only root can give a program to another user. This one belongs to root on every system.
        let output = output(&mut poundlock(["run", "--", "su", "--version"]));
        return assert!(stderr(&output).contains("set-user-id"), "{}", stderr(&output));
    }
    std::os::unix::fs::chown(&program, Some(65534), None).expect("root may");
    std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o4755))
        .expect("root may");
    let output = output(poundlock(["run", "--"]).arg(&program));
    assert_eq!(output.status.code(), Some(7));
    assert!(
        stderr(&output).contains("set-user-id") && stderr(&output).lines().count() == 1,
        "{}",
        stderr(&output)
    );
}

/// The cost of `run` as counts that do not depend on the machine's speed. The program inherits the
/// process with its counts.
#[test]
fn run_reads_little_before_the_program() {
    let counts = |command: &mut Command| -> [u64; 2] {
        let text = stdout(&output(command));
        let of = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name));
            line.and_then(|value| value.trim().parse().ok())
                .unwrap_or_else(|| panic!("no {name} in {text}"))
        };
        [of("rchar:"), of("syscr:")]
    };
    let [bytes, calls] = counts(&mut poundlock(["run", "--", "cat", "/proc/self/io"]));
    let [bare_bytes, bare_calls] =
        counts(Command::new("cat").arg("/proc/self/io").env("LD_PRELOAD", preload()));
    assert!(bytes - bare_bytes < 64 << 10, "{} bytes are read", bytes - bare_bytes);
    assert!(calls - bare_calls < 60, "there are {} reads", calls - bare_calls);
}

/// The start of the library: it reads the groups of CPUs that share a cache, a few lines per group,
/// and touches few pages.
#[test]
fn the_librarys_start_reads_a_line_for_a_cache() {
    let io = |command: &mut Command| {
        let text = stdout(&output(command.args(["/proc/self/io", "/proc/self/stat"])));
        let reads = text
            .lines()
            .find_map(|line| line.strip_prefix("syscr: ")?.parse::<u64>().ok())
            .expect("a count");
        let fields: Vec<&str> = text
            .lines()
            .last()
            .and_then(|line| line.rsplit(") ").next())
            .expect("stat")
            .split(' ')
            .collect();
        (reads, fields[7].parse::<u64>().expect("page faults"))
    };
    let (bare_reads, bare_faults) = io(Command::new("cat").env_remove("LD_PRELOAD"));
    let (reads, faults) = io(Command::new("cat").env("LD_PRELOAD", preload()));
    // SAFETY: has no preconditions.
    let cpus = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_CONF) }.unsigned_abs();
    assert!(
        reads - bare_reads < 8 + 8 * cpus,
        "{reads} reads, {bare_reads} without the library, on {cpus} CPUs"
    );
    assert!(faults < bare_faults + 100, "{faults} page faults, {bare_faults} without the library");
}

/// The system calls of `command`, which has one thread, also those of the programs that it becomes.
/// None if this process may not trace.
fn system_calls(command: &mut Command) -> Option<u64> {
    // SAFETY: ptrace is a system call, which may be made between fork and exec.
    unsafe {
        command.pre_exec(|| match libc::ptrace(libc::PTRACE_TRACEME) {
            -1 => Err(std::io::Error::last_os_error()),
            _ => Ok(()),
        });
    }
    // cargo extends both, and each folder in them costs a few calls.
    command.env("PATH", "/usr/bin:/bin").env_remove("LD_LIBRARY_PATH");
    let child = command.stdout(Stdio::null()).spawn().ok()?;
    let pid = libc::pid_t::try_from(child.id()).expect("a process id");
    let (mut stops, mut status) = (0, 0);
    loop {
        // SAFETY: `status` outlives the call, and `pid` is our child.
        assert_eq!(unsafe { libc::waitpid(pid, &raw mut status, 0) }, pid);
        if !libc::WIFSTOPPED(status) {
            assert_eq!(status, 0, "{command:?} ended with {status:#x}");
            return Some(stops / 2);
        }
        // Before and after each call, and once after each exec.
        stops += u64::from(libc::WSTOPSIG(status) == libc::SIGTRAP | 0x80);
        // SAFETY: `pid` is our tracee, and stopped; neither request writes to our memory.
        unsafe {
            let options = libc::PTRACE_O_TRACESYSGOOD | libc::PTRACE_O_EXITKILL;
            libc::ptrace(libc::PTRACE_SETOPTIONS, pid, 0, options);
            libc::ptrace(libc::PTRACE_SYSCALL, pid, 0, 0);
        }
    }
}

/// All system calls of the library's start, and those that `run` adds.
#[test]
fn a_start_makes_few_system_calls() {
    let Some(native) = system_calls(Command::new("true").env_remove("LD_PRELOAD")) else {
        return eprintln!("skipped: this process may not trace others");
    };
    let count = |command: &mut Command| system_calls(command).expect("as above");
    let bare = count(Command::new("true").env("LD_PRELOAD", preload()));
    let run = count(&mut poundlock(["run", "--", "true"]));
    // SAFETY: has no preconditions.
    let cpus = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_CONF) }.unsigned_abs();
    assert!(
        bare > native && run > bare,
        "{native} natively, {bare} with the library, {run} by run"
    );
    assert!(bare - native < 56 + 9 * cpus, "the library makes {} on {cpus} CPUs", bare - native);
    assert!(run - bare < 300 + 9 * cpus, "run makes {} on {cpus} CPUs", run - bare);
}

#[test]
fn a_static_program_runs_and_is_reported() {
    let directory = scratch();
    let source = "int main(void) { return 7; }";
    for (flags, told) in [(["-static"].as_slice(), true), (&["-static-pie"], true), (&[], false)] {
        let program = directory.path().join("program");
        compile(source, flags, &program);
        for lock in ["mcs", "native"] {
            let output = output(poundlock(["run", "-l", lock, "--"]).arg(&program));
            assert_eq!(output.status.code(), Some(7), "{flags:?}");
            let lines: Vec<String> = stderr(&output).lines().map(str::to_owned).collect();
            let expected = usize::from(told && lock == "mcs");
            assert_eq!(lines.len(), expected, "{lines:?} of {flags:?} under {lock}");
            assert!(lines.iter().all(|line| line.contains("statically linked")), "{lines:?}");
        }
    }
}
