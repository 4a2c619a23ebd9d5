//! Output files: existing files keep their kind and permissions, and a failed write is a one-line
//! error.

mod common;

use common::{compile, output, poundlock, scratch, stderr, stdout};
use nix::sys::stat::{Mode, SFlag, makedev, mknod};
use std::ffi::OsString;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt, symlink};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;
use std::{fs, thread};

/// The inputs: a program with contention, so that the graphs are not empty, and a small machine.
const CONTENDED: &str = "
#include <pthread.h>
#include <unistd.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void *take(void *unused) { pthread_mutex_lock(&lock); pthread_mutex_unlock(&lock); return unused; }
int main(void) {
	pthread_t thread;
	pthread_mutex_lock(&lock);
	pthread_create(&thread, NULL, take, NULL);
	usleep(100000);
	pthread_mutex_unlock(&lock);
	return pthread_join(thread, NULL);
}";
const MATRIX: &str = ",0,1\n0,,\n1,50,\n";
const SMALL: &str = "-m i9-12900k -w cna-map -d 100us --warmup 10us -n 1 -t 2 -l mcs,wait=spin";

/// The input files of the commands below.
struct Inputs {
    folder: tempfile::TempDir,
}

static INPUTS: LazyLock<Inputs> = LazyLock::new(|| {
    let inputs = Inputs { folder: scratch() };
    compile(CONTENDED, &["-pthread"], &inputs.path("contended"));
    fs::write(inputs.path("matrix.csv"), MATRIX).expect("a file");
    inputs
});

impl Inputs {
    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

/// The command `line`, whose words PROGRAM and MATRIX stand for the inputs, and FILE for `file`.
fn command(line: &str, file: &Path) -> Command {
    let word = |word: &str| -> OsString {
        match word {
            "PROGRAM" => INPUTS.path("contended").into(),
            "MATRIX" => INPUTS.path("matrix.csv").into(),
            "FILE" => file.into(),
            _ => match word.strip_suffix("=FILE") {
                Some(option) => format!("{option}={}", file.display()).into(),
                None => word.into(),
            },
        }
    };
    poundlock(line.replace("SMALL", SMALL).split_whitespace().map(word))
}

/// Every option that names an output file, except for latency, which needs two CPUs, and for sim
/// advise and sim figure, which take seconds and share the writer of sim sweep.
const WRITERS: [&str; 15] = [
    "stat --json FILE -- PROGRAM",
    "stat --csv FILE -- PROGRAM",
    "profile -o FILE -- PROGRAM",
    "report -o FILE -- PROGRAM",
    "compare -l mcs -n 1 --no-native --json FILE -- true",
    "compare -l mcs -n 1 --no-native --svg FILE -- true",
    "bench loop -l mcs -t 1 --acquisitions 10 -n 1 --no-native --json FILE",
    "bench loop -l mcs -t 1 --acquisitions 10 -n 1 --no-native --svg FILE",
    "topo --svg FILE",
    "route --matrix MATRIX --save=FILE",
    "sim trace -m i9-12900k -w cna-map -d 100us --warmup 10us -t 2 -l mcs,wait=spin -o FILE",
    "sim run -m i9-12900k -w cna-map -d 100us --warmup 10us -n 1 -t 2 -l mcs,wait=spin --json FILE",
    "sim sweep SMALL --json FILE",
    "sim sweep SMALL --csv FILE",
    "sim sweep SMALL --svg FILE",
];

/// Commands that print on stdout.
const PRINTERS: [&str; 16] = [
    "--help",
    "--version",
    "run --help",
    "list",
    "list --json",
    "doctor PROGRAM",
    "doctor --json PROGRAM",
    "topo",
    "topo --json",
    "route",
    "route --json",
    "route --matrix MATRIX",
    "bench map --describe",
    "bench loop -l mcs -t 1 --acquisitions 10 -n 1 --no-native",
    "compare -l mcs -n 1 --no-native -- true",
    "sim sweep SMALL",
];

/// Runs a command of WRITERS. Fails unless it succeeds.
#[track_caller]
fn write(line: &str, file: &Path) -> std::process::Output {
    let output = output(&mut command(line, file));
    assert_eq!(output.status.code(), Some(0), "{line}: {}", stderr(&output));
    output
}

fn full() -> Stdio {
    fs::OpenOptions::new().write(true).open("/dev/full").expect("/dev/full exists on Linux").into()
}

#[test]
fn a_new_file_has_the_umasks_permissions_and_an_old_one_keeps_its_own() {
    let folder = scratch();
    for (number, line) in WRITERS.iter().enumerate() {
        let file = folder.path().join(number.to_string());
        let mut writer = command(line, &file);
        // SAFETY: umask is a bare system call, which a forked child may make.
        unsafe {
            writer.pre_exec(|| {
                libc::umask(0o027);
                Ok(())
            });
        }
        let written = output(&mut writer);
        assert_eq!(written.status.code(), Some(0), "{line}: {}", stderr(&written));
        let mode = || fs::metadata(&file).expect("it was written").permissions().mode() & 0o7777;
        assert_eq!(mode(), 0o640, "{line}");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o604)).expect("it is ours");
        fs::write(&file, "").expect("it is ours");
        write(line, &file);
        assert_eq!(mode(), 0o604, "{line}");
        assert!(fs::metadata(&file).is_ok_and(|file| file.len() > 0), "{line}");
    }
}

#[test]
fn no_temporary_file_remains() {
    for line in WRITERS {
        let folder = scratch();
        write(line, &folder.path().join("file"));
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 1, "{line}");
    }
}

#[test]
fn a_link_is_followed_and_a_file_keeps_its_other_names() {
    let folder = scratch();
    let [link, target, other] = ["link", "target", "other"].map(|name| folder.path().join(name));
    symlink("target", &link).expect("a link");
    for line in WRITERS {
        write(line, &link); // to a target that is not there
        assert!(
            link.is_symlink() && fs::metadata(&target).is_ok_and(|file| file.len() > 0),
            "{line}"
        );
        fs::hard_link(&target, &other).expect("another name");
        fs::write(&target, "").expect("it is ours");
        write(line, &link);
        write(line, &target);
        assert!(
            link.is_symlink() && fs::metadata(&target).is_ok_and(|file| file.nlink() == 2),
            "{line}"
        );
        assert!(fs::metadata(&other).is_ok_and(|file| file.len() > 0), "{line}");
        fs::remove_file(&target).expect("it is ours");
        fs::remove_file(&other).expect("it is ours");
    }
}

#[test]
fn a_fifo_receives_the_output_and_remains_a_fifo() {
    let folder = scratch();
    let fifo = folder.path().join("fifo");
    nix::unistd::mkfifo(&fifo, Mode::S_IRWXU).expect("a FIFO");
    for line in WRITERS {
        // Non-blocking: the reader must not block if a writer replaces the FIFO.
        let mut reader = fs::OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_NONBLOCK)
            .open(&fifo)
            .expect("a FIFO");
        let (sender, done) = std::sync::mpsc::channel::<()>();
        let reads = thread::spawn(move || {
            let mut text = Vec::new();
            loop {
                let ended = done.try_recv() != Err(std::sync::mpsc::TryRecvError::Empty);
                let read = std::io::Read::read_to_end(&mut reader, &mut text);
                if ended && !read.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock)
                {
                    return text;
                }
                thread::yield_now();
            }
        });
        write(line, &fifo);
        drop(sender);
        assert!(!reads.join().expect("it reads").is_empty(), "{line}");
        assert!(fs::symlink_metadata(&fifo).is_ok_and(|file| file.file_type().is_fifo()), "{line}");
    }
}

/// Uses a device node of its own if run as root, since root could replace /dev/null.
#[test]
fn a_device_remains_a_device() {
    let folder = scratch();
    let own = folder.path().join("null");
    let made = mknod(&own, SFlag::S_IFCHR, Mode::from_bits_truncate(0o666), makedev(1, 3)).is_ok();
    let usable = made && fs::write(&own, "x").is_ok();
    assert!(usable || !nix::unistd::geteuid().is_root(), "root makes devices");
    let device = if usable { own } else { "/dev/null".into() };
    for line in WRITERS {
        write(line, &device);
        assert!(
            fs::symlink_metadata(&device).is_ok_and(|file| file.file_type().is_char_device()),
            "{line}"
        );
    }
}

#[test]
fn a_dash_writes_to_stdout_alone() {
    let folder = scratch();
    for line in WRITERS {
        let output = output(command(line, Path::new("-")).current_dir(folder.path()));
        let text = stdout(&output);
        assert_eq!(output.status.code(), Some(0), "{line}: {}", stderr(&output));
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 0, "{line}");
        let whole = match line {
            _ if line.contains("--json") || line.contains("trace") => {
                serde_json::from_str::<serde_json::Value>(&text).is_ok()
            }
            _ if line.contains("--csv") => text.lines().all(|row| row.matches(',').count() > 10),
            _ if line.contains("--save") => {
                text.starts_with("poundlock-route 1\n") && text.ends_with("route 2 0 1\n")
            }
            _ if line.contains("report") => {
                text.starts_with("<!DOCTYPE html>") && text.ends_with("</html>")
            }
            _ => {
                text.trim_start_matches(|c| c != '<').starts_with('<')
                    && text.trim_end().ends_with("</svg>")
            }
        };
        assert!(whole, "{line}: {text}");
    }
    for two in [
        "stat --json - --csv - -- true",
        "compare --json - --svg - -- true",
        "sim sweep SMALL --json - --csv -",
    ] {
        common::assert_refused(
            &mut command(two, Path::new("")),
            125,
            &["only one file can be '-'"],
        );
    }
}

#[test]
fn a_file_that_cannot_be_written_is_one_line() {
    let folder = scratch();
    for line in WRITERS.iter().filter(|line| !line.contains("--save")) {
        common::assert_refused(
            &mut command(line, Path::new("/no/such/folder/file")),
            125,
            &["/no/such/folder/file"],
        );
        let refused = output(&mut command(line, folder.path()));
        assert_eq!(refused.status.code(), Some(125), "{line}");
        assert!(stderr(&refused).contains("Is a directory"), "{line}: {}", stderr(&refused));
    }
}

/// PRINTERS, and WRITERS with stdout as their file.
fn all() -> impl Iterator<Item = &'static str> {
    PRINTERS.into_iter().chain(WRITERS)
}

#[test]
fn a_full_stdout_is_one_line() {
    for line in all() {
        let output = output(command(line, Path::new("-")).stdout(full()).stderr(Stdio::piped()));
        let error = stderr(&output);
        let own: Vec<&str> = error.lines().filter(|line| line.starts_with("poundlock: ")).collect();
        assert_eq!(output.status.code(), Some(125), "{line}: {error}");
        assert_eq!(
            own,
            ["poundlock: cannot write to stdout: No space left on device"],
            "{line}: {error}"
        );
    }
}

#[test]
fn a_closed_stdout_is_one_line() {
    for line in ["list", "--help", "topo --json", "sim sweep SMALL --csv -"] {
        let poundlock = command(line, Path::new("-"));
        let mut closed = Command::new("sh");
        closed
            .args(["-c", "exec \"$@\" >&-", "sh"])
            .arg(poundlock.get_program())
            .args(poundlock.get_args());
        let output = output(&mut closed);
        assert_eq!(output.status.code(), Some(125), "{line}: {}", stderr(&output));
        assert!(
            stderr(&output).contains("cannot write to stdout: Bad file descriptor"),
            "{line}: {}",
            stderr(&output)
        );
    }
}

/// A pipe without a reader ends the command as by SIGPIPE, even if SIGPIPE is ignored.
#[test]
fn a_closed_pipe_is_quiet() {
    for line in all() {
        for ignored in [false, true] {
            let (reader, writer) = std::io::pipe().expect("a pipe");
            drop(reader);
            let mut writes = command(line, Path::new("-"));
            // SAFETY: signal is a bare system call, which a forked child may make.
            unsafe {
                writes.pre_exec(move || {
                    libc::signal(
                        libc::SIGPIPE,
                        if ignored { libc::SIG_IGN } else { libc::SIG_DFL },
                    );
                    Ok(())
                });
            }
            let output = output(writes.stdout(writer));
            let ended = if ignored {
                output.status.code() == Some(141)
            } else {
                output.status.signal() == Some(libc::SIGPIPE)
            };
            assert!(ended, "{line}: {:?}: {}", output.status, stderr(&output));
            assert!(!stderr(&output).contains("poundlock: "), "{line}: {}", stderr(&output));
        }
    }
}

/// A command fails if its results cannot be written, but not if a message cannot.
#[test]
fn a_full_stderr_is_no_panic() {
    for (line, status) in [
        ("stat -- PROGRAM", 125),
        ("profile -o FILE -- PROGRAM", 125),
        ("report -o FILE -- PROGRAM", 0),
        ("compare -l mcs -n 1 --no-native --json - -- true", 125),
        ("compare -l mcs -n 1 --no-native -- false", 1),
        ("run no-such-program", 127),
        ("run --no-such-option", 125),
    ] {
        let folder = scratch();
        let output = output(
            command(line, &folder.path().join("file")).stderr(full()).stdout(Stdio::piped()),
        );
        assert_eq!(output.status.code(), Some(status), "{line}");
    }
}

#[test]
fn run_passes_closed_descriptors_on() {
    let state = |prefix: &[&str]| {
        let mut closed = Command::new("sh");
        closed.args(["-c", "exec \"$@\" <&-", "sh"]).args(prefix).args(["ls", "/proc/self/fd"]);
        stdout(&output(&mut closed)).lines().count()
    };
    assert_eq!(state(&[]), state(&[env!("CARGO_BIN_EXE_poundlock"), "run", "-l", "native", "--"]));
}
