//! `poundlock control` on a program that shows by which settings its threads wait.

mod common;

use common::terminal::{Screen, pseudo_terminal};
use common::{assert_refused, compile, output, poundlock, scratch, stderr, stdout};
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Stdio};
use tempfile::TempDir;

/// A running program with a control page.
struct Controlled {
    directory: TempDir,
    child: Child,
    lines: BufReader<ChildStdout>,
    /// The address of the mutex that `queue_init` initialised.
    queue: String,
}

impl Controlled {
    fn start() -> Controlled {
        Controlled::start_with(&[])
    }

    /// With further options of `poundlock run`.
    fn start_with(options: &[&str]) -> Controlled {
        let directory = scratch();
        let program = directory.path().join("controlled");
        compile(include_str!("controlled.c"), &["-g", "-O1", "-pthread"], &program);
        let mut command = poundlock(["run"]);
        command
            .arg(format!("--control={}", directory.path().display()))
            .args(options)
            .arg("--")
            .arg(program)
            .env("XDG_RUNTIME_DIR", directory.path());
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it runs");
        let lines = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut controlled = Controlled { directory, child, lines, queue: String::new() };
        controlled.become_ready();
        controlled
    }

    fn become_ready(&mut self) {
        let line = self.line();
        self.queue = line.strip_prefix("ready ").expect("a line when it is ready").to_owned();
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.lines.read_line(&mut line).expect("text");
        line.trim_end().to_owned()
    }

    /// Sends a letter.
    fn send(&mut self, letter: &str) {
        let input = self.child.stdin.as_mut().expect("a pipe");
        input.write_all(letter.as_bytes()).expect("it reads");
    }

    /// Sends a letter, and returns the line that the program prints.
    fn ask(&mut self, letter: &str) -> String {
        self.send(letter);
        self.line()
    }

    fn command(&self, arguments: &[&str]) -> std::process::Command {
        let pid = self.child.id().to_string();
        let mut command = poundlock(["control", "-p", &pid]);
        command.args(arguments);
        command
    }

    /// Runs the command, which succeeds. Returns the lines about mutexes.
    #[track_caller]
    fn control(&self, arguments: &[&str]) -> Vec<String> {
        let output = output(&mut self.command(arguments));
        assert!(output.status.success() && stderr(&output).is_empty(), "{}", stderr(&output));
        stdout(&output).lines().skip(2).map(str::to_owned).collect()
    }

    /// The files of pages that the program has made.
    fn pages(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.directory.path()).expect("its folder").flatten();
        let is_page = |path: &PathBuf| path.extension().is_some_and(|end| end == "control");
        entries.map(|entry| entry.path()).filter(is_page).collect()
    }

    fn page(&self) -> PathBuf {
        let pages = self.pages();
        assert_eq!(pages.len(), 1, "{pages:?}");
        pages.into_iter().next().expect("one")
    }
}

impl Drop for Controlled {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The words of the line about a mutex.
#[track_caller]
fn line<'a>(lines: &'a [String], name: &str) -> Vec<&'a str> {
    let words = lines.iter().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let mut found = words.filter(|words| words.first() == Some(&name));
    found.next().unwrap_or_else(|| panic!("no {name} in {lines:#?}"))
}

#[test]
fn the_locks_that_threads_waited_for_are_listed() {
    let controlled = Controlled::start();
    let lines = controlled.control(&[]);
    assert_eq!(lines.len(), 3, "{lines:#?}");
    let settings = ["shfl_ron", "4", "numa", "1024", "1", "start"];
    assert_eq!(line(&lines, "cache")[1..9], [&settings[..], &["2", "0"]].concat());
    assert_eq!(line(&lines, "table+0x28")[1..9], [&settings[..], &["1", "0"]].concat());
    let queue = line(&lines, &controlled.queue);
    assert_eq!(queue[1..9], [&settings[..], &["1", "0"]].concat());
    assert_eq!(queue[9..11], ["queue_init", &controlled.queue]);
    assert!(lines[0].trim_start().starts_with("cache "), "most waits first: {lines:#?}");
    assert_eq!(controlled.control(&["-n", "1"])[1], "and 2 more: --rows");
    assert_eq!(controlled.control(&["cache"]).len(), 1);
}

#[test]
fn settings_change_in_the_running_process() {
    let mut controlled = Controlled::start();
    let queue = controlled.queue.clone();
    for (mutex, letter) in [
        ("cache", "c"),
        ("table", "t"),
        ("table+0x28", "t"),
        ("queue_init", "q"),
        (queue.as_str(), "q"),
    ] {
        assert_eq!(controlled.ask(letter), "open");
        let lines = controlled.control(&[mutex, "patience=0,batch=7"]);
        assert_eq!(lines.len(), 1, "{lines:#?}");
        let words: Vec<&str> = lines[0].split_whitespace().collect();
        assert_eq!(words[2..7], ["0", "numa", "7", "1", "control"]);
        assert_eq!(controlled.ask(letter), "closed", "{mutex}");
        controlled.control(&[mutex, "shfl_mutex,policy=fifo"]);
        assert_eq!(controlled.ask(letter), "open", "{mutex}");
        controlled.control(&[mutex, "patience=0"]);
        assert_eq!(controlled.ask(letter), "closed", "{mutex}");
        let lines = controlled.control(&[mutex, "default"]);
        let words: Vec<&str> = lines[0].split_whitespace().collect();
        assert_eq!(words[2..7], ["4", "numa", "1024", "1", "start"]);
    }
    controlled.control(&["cache", "patience=0"]);
    assert_eq!(controlled.ask("t"), "open", "the others keep their settings");
    let lines = controlled.control(&[]);
    assert_eq!(line(&lines, "cache")[6], "control");
    assert_eq!(line(&lines, "table+0x28")[6], "start");
}

#[test]
fn settings_of_a_readers_writer_lock_change() {
    let mut controlled = Controlled::start_with(&["--stats"]);
    for letter in ["r", "w"] {
        assert_eq!(controlled.ask(letter), "open");
    }
    let lines = controlled.control(&["shared"]);
    let words = line(&lines, "shared");
    assert_eq!(words[1..9], ["shfl_rw", "4", "numa", "1024", "1", "start", "2", "0"]);
    // Two writers that met no one, a reader and a writer that waited.
    assert_eq!(words[11..13], ["4", "50.0%"], "{words:?}");
    let lines = controlled.control(&["shared", "patience=0,policy=fifo,spins=2"]);
    assert_eq!(line(&lines, "shared")[2..7], ["0", "fifo", "1024", "2", "control"]);
    for letter in ["r", "w"] {
        assert_eq!(controlled.ask(letter), "closed");
    }
    assert_eq!(controlled.ask("c"), "open", "mutexes keep their settings");
    controlled.control(&["shared", "default"]);
    controlled.control(&["all", "shfl_rw,patience=0"]);
    assert_eq!((controlled.ask("r"), controlled.ask("c")), ("closed".into(), "open".into()));
    let lines = controlled.control(&["all", "shfl_mutex,patience=0"]);
    assert_eq!(line(&lines, "shared")[6], "all");
    let last = &lines[lines.len() - 2..];
    assert!(last[0].starts_with("Mutexes without") && last[1].starts_with("Readers-writer locks"));
    controlled.control(&["all", "shfl_rw"]);
    assert_eq!((controlled.ask("w"), controlled.ask("c")), ("open".into(), "closed".into()));
    controlled.control(&["all", "default"]);
    assert_eq!((controlled.ask("w"), controlled.ask("c")), ("open".into(), "open".into()));
    let mut wrong = controlled.command(&["shared", "shfl_mutex,patience=0"]);
    assert_refused(&mut wrong, 125, &["it has shfl_rw"]);
    assert_eq!(controlled.ask("r"), "open");
}

#[test]
fn rules_of_readers_writer_locks_change_and_other_locks_do_not() {
    let directory = scratch();
    let file = directory.path().join("rules.toml");
    let rule = |lock: &str| format!("[[rule]]\nsymbol = \"shared\"\nrwlock = \"{lock}\"\n");
    std::fs::write(&file, rule("shfl_rw,patience=0")).expect("a file");
    let options = ["--rules", &file.to_string_lossy()];
    let mut controlled = Controlled::start_with(&options);
    assert_eq!(controlled.ask("r"), "closed");
    controlled.control(&["shared", "patience=9"]);
    assert_eq!(controlled.ask("w"), "open");
    let lines = controlled.control(&["shared", "default"]);
    assert_eq!(line(&lines, "shared")[2..7], ["0", "numa", "1024", "1", "rule:1"]);
    assert_eq!(controlled.ask("w"), "closed");
    std::fs::write(&file, rule("bravo_shfl_rw,patience=0,inhibit=3")).expect("a file");
    let mut controlled = Controlled::start_with(&options);
    assert_eq!(controlled.ask("r"), "closed");
    let lines = controlled.control(&["shared", "patience=9"]);
    assert_eq!(line(&lines, "shared")[1..3], ["bravo_shfl_rw", "9"]);
    assert_eq!(controlled.ask("w"), "open");
    let mut controlled = Controlled::start_with(&["--rwlock", "fair_rw"]);
    controlled.send("r");
    let found = || {
        let output = output(&mut controlled.command(&["shared"]));
        output.status.success()
    };
    while !found() {
        std::thread::yield_now();
    }
    let why = "the process gave it fair_rw";
    assert_refused(&mut controlled.command(&["shared", "patience=0"]), 125, &[why]);
}

#[test]
fn settings_of_rules_come_back() {
    let directory = scratch();
    let file = directory.path().join("rules.toml");
    let rules = "[[rule]]\nsymbol = \"cache\"\nlock = \"shfl_mutex,patience=0\"\n";
    std::fs::write(&file, rules).expect("a file");
    let mut controlled = Controlled::start_with(&["--rules", &file.to_string_lossy()]);
    assert_eq!(controlled.ask("c"), "closed");
    controlled.control(&["cache", "patience=9"]);
    assert_eq!(controlled.ask("c"), "open");
    let lines = controlled.control(&["cache", "default"]);
    assert_eq!(line(&lines, "cache")[2..7], ["0", "numa", "1024", "1", "rule:1"]);
    assert_eq!(controlled.ask("c"), "closed");
}

/// Those of rules and of single mutexes remain; later mutexes and forked children begin with them,
/// and without.
#[test]
fn settings_of_all_mutexes_change() {
    let directory = scratch();
    let file = directory.path().join("rules.toml");
    let rules = "[[rule]]\nsymbol = \"table\"\nlock = \"shfl_mutex\"\n";
    std::fs::write(&file, rules).expect("a file");
    let mut controlled = Controlled::start_with(&["--rules", &file.to_string_lossy()]);
    let lines = controlled.control(&["all", "patience=0,batch=9"]);
    assert_eq!(line(&lines, "cache")[2..7], ["0", "numa", "9", "1", "all"]);
    assert_eq!(line(&lines, "table+0x28")[2..7], ["4", "numa", "1024", "1", "rule:1"]);
    let last = lines.last().expect("a line");
    assert!(
        last.ends_with("later ones included: patience=0,policy=numa,batch=9,spins=1"),
        "{last}"
    );
    for (letter, answer) in
        [("c", "closed"), ("q", "closed"), ("t", "open"), ("f", "open"), ("d", "destroyed")]
    {
        assert_eq!(controlled.ask(letter), answer, "{letter}");
    }
    assert_eq!(controlled.ask("n"), "initialised");
    assert_eq!(controlled.ask("q"), "closed");
    let lines = controlled.control(&["cache", "patience=9"]);
    assert_eq!(line(&lines, "cache")[6], "control");
    assert_eq!(controlled.ask("c"), "open");
    let lines = controlled.control(&["cache", "default"]);
    assert_eq!(line(&lines, "cache")[6], "all");
    assert_eq!(controlled.ask("c"), "closed");
    let lines = controlled.control(&["all", "default"]);
    assert_eq!(lines.len(), 3, "{lines:#?}");
    assert_eq!(line(&lines, "cache")[2..7], ["4", "numa", "1024", "1", "start"]);
    assert_eq!(controlled.ask("c"), "open");
    assert_refused(&mut controlled.command(&["all", "wait=spin"]), 125, &["need a rule"]);
}

#[test]
fn the_lock_of_a_rule_is_shown_and_does_not_change() {
    let directory = scratch();
    let file = directory.path().join("rules.toml");
    let rules = "\n[[rule]]\nsymbol = \"table+0x50\"\nlock = \"cfl_mutex\"\n";
    std::fs::write(&file, rules).expect("a file");
    let mut controlled = Controlled::start_with(&["--rules", &file.to_string_lossy(), "--stats"]);
    assert_eq!(controlled.ask("s"), "waited");
    let lines = controlled.control(&[]);
    let words = line(&lines, "table+0x50");
    assert_eq!(words[1..9], ["cfl_mutex", "-", "-", "-", "-", "rule:2", "1", "0"]);
    assert_eq!(words[11], "1", "its acquisitions are counted: {words:?}");
    let why = "the rule in line 2 gave it cfl_mutex";
    for settings in ["patience=0", "default"] {
        assert_refused(&mut controlled.command(&["table+0x50", settings]), 125, &[why]);
    }
    controlled.control(&["table", "patience=0"]);
    assert_eq!(controlled.ask("t"), "closed");
    assert_eq!(controlled.ask("s"), "waited");
    let lines = controlled.control(&[]);
    let words = line(&lines, "table+0x50");
    assert_eq!((words[7], words[11]), ("2", "2"), "{words:?}");
}

#[test]
fn statistics_are_shown_beside_the_settings() {
    let mut controlled = Controlled::start_with(&["--stats"]);
    let lines = controlled.control(&[]);
    let words = line(&lines, "cache");
    assert_eq!(words[11..13], ["4", "50.0%"], "{words:?}");
    assert_eq!(controlled.ask("c"), "open");
    let lines = controlled.control(&["cache", "patience=0", "--for", "1ms"]);
    let words = line(&lines, "cache");
    assert_eq!((words[6], words[7], words[11]), ("control", "0", "0"), "{words:?}");
    assert_eq!(controlled.ask("c"), "closed");
}

#[test]
fn a_child_and_a_new_program_have_pages_of_their_own() {
    let mut controlled = Controlled::start();
    controlled.control(&["cache", "patience=0"]);
    let idle = controlled.ask("i");
    let mut command = poundlock(["control", "-p", &idle, "cache", "patience=9"]);
    assert_refused(&mut command, 125, &["no control page yet", &idle]);
    assert_eq!(controlled.ask("f"), "open");
    assert_eq!(controlled.pages().len(), 2);
    assert_eq!(controlled.ask("c"), "closed");
    controlled.send("x");
    controlled.become_ready();
    assert_eq!(controlled.pages().len(), 3);
    assert_eq!(controlled.ask("c"), "open");
    let lines = controlled.control(&["cache", "patience=0"]);
    assert_eq!(line(&lines, "cache")[6], "control");
    assert_eq!(controlled.ask("c"), "closed");
}

#[test]
fn a_destroyed_mutex_cannot_be_changed() {
    let mut controlled = Controlled::start();
    assert_eq!(controlled.ask("d"), "destroyed");
    assert_eq!(controlled.control(&[]).len(), 2);
    let mut command = controlled.command(&["queue_init", "patience=0"]);
    assert_refused(&mut command, 125, &["no thread", "'queue_init'"]);
}

#[test]
fn several_commands_at_a_time_leave_the_settings_of_one() {
    let mut controlled = Controlled::start();
    let settings = |i: u32| format!("patience={i},policy=fifo,batch={}", 100 + i);
    let commands: Vec<Child> = (10..18)
        .map(|i| {
            let mut command = controlled.command(&["cache", &settings(i)]);
            command.stdout(Stdio::null()).spawn().expect("it runs")
        })
        .collect();
    for mut command in commands {
        assert!(command.wait().expect("it ends").success());
    }
    let lines = controlled.control(&["cache"]);
    let words = line(&lines, "cache");
    let patience: u32 = words[2].parse().expect("a number");
    assert!((10..18).contains(&patience), "{words:?}");
    assert_eq!(words[3..7], ["fifo", &(100 + patience).to_string(), "1", "control"]);
    assert_eq!(controlled.ask("c"), "open");
}

#[test]
fn wrong_requests_change_nothing() {
    let mut controlled = Controlled::start();
    for (arguments, why) in [
        (["nosuch", "patience=0"], "no thread"),
        (["table+0x50", "patience=0"], "no thread"),
        (["0x10", "patience=0"], "no thread"),
        (["cache", "patience=x"], "patience=x: not a number"),
        (["cache", "patience=0,colour=red"], "no key 'colour'"),
        (["cache", "wait=spin"], "need a rule"),
        (["cache", "policy=fair"], "need a rule"),
        (["cache", "mcs"], "need a rule"),
        (["cache", "nosuch"], "there is no lock 'nosuch'"),
        (["cache", ""], "there is no lock"),
    ] {
        assert_refused(&mut controlled.command(&arguments), 125, &[why]);
    }
    assert_eq!(line(&controlled.control(&[]), "cache")[6], "start");
    assert_eq!(controlled.ask("c"), "open");
}

#[test]
fn only_the_owner_and_root_may_control() {
    if !is_root() {
        return;
    }
    let controlled = Controlled::start();
    let nobody = 65534;
    // The build's folder may be closed to others. Another process writes the copy: a child that
    // another test forks would inherit our descriptor, and a file open for writing cannot be run.
    let binary = controlled.directory.path().join("poundlock");
    let copied =
        std::process::Command::new("cp").arg(env!("CARGO_BIN_EXE_poundlock")).arg(&binary).status();
    assert!(copied.expect("cp runs").success());
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(controlled.directory.path(), mode).expect("it is ours");
    let mut command = std::process::Command::new(&binary);
    command.args(["control", "-p", &controlled.child.id().to_string(), "cache", "patience=0"]);
    command.current_dir("/").uid(nobody).gid(nobody);
    assert_refused(&mut command, 125, &["belongs to another user"]);
    assert_eq!(line(&controlled.control(&[]), "cache")[6], "start");
}

/// `top` on a terminal.
struct Top {
    child: Child,
    user: File,
    screen: Screen,
}

impl Top {
    /// The ends of the last line, which is drawn last, while all locks are shown, or one.
    const ALL: &str = "n now, m";
    const ONE: &str = "d: default";

    fn start(controlled: &Controlled) -> Top {
        let (user, program) = pseudo_terminal();
        let mut command = poundlock(["top", "--interval", "0.1", "-p"]);
        command.arg(controlled.child.id().to_string());
        command.stdin(program.try_clone().expect("a copy")).stdout(program).stderr(Stdio::piped());
        let child = command.spawn().expect("it runs");
        let screen = Screen::of(&user);
        screen.await_text(Top::ALL);
        Top { child, user, screen }
    }

    fn press(&self, keys: &str) {
        (&self.user).write_all(keys.as_bytes()).expect("it reads");
    }

    /// Shows a lock. All are idle, in an order that may change: tries one row after the other.
    fn open(&self, title: &str) {
        const ROWS: usize = 8;
        for row in (0..ROWS).cycle() {
            let (up, down) = ("\x1b[A".repeat(ROWS), "\x1b[B".repeat(row));
            self.press(&format!("{up}{down}\r"));
            if self.screen.await_text(Top::ONE).contains(title) {
                return;
            }
            self.press("\x1b");
            self.screen.await_text(Top::ALL);
        }
    }

    /// Quits, and runs the command that undoes the changes of the lock.
    fn undo(self, lock: &str) {
        self.press("q");
        let ended = self.child.wait_with_output().expect("it ends");
        let undo = stderr(&ended);
        assert!(ended.status.success(), "{undo}");
        let start = format!("{lock} keeps its settings; undo: poundlock ");
        let (_, command) = undo.split_once(&start).unwrap_or_else(|| panic!("{undo}"));
        let undone = output(&mut poundlock(command.split_whitespace()));
        assert!(undone.status.success(), "{}", stderr(&undone));
    }
}

/// Enter shows a lock, and keys change its settings.
#[test]
fn keys_of_top_change_a_lock() {
    let mut controlled = Controlled::start_with(&["--stats"]);
    let top = Top::start(&controlled);
    top.open("cache at");
    top.press("---]]");
    top.screen.await_text("patience=0,policy=numa,batch=1024,spins=4, set by control");
    top.screen.await_text("since change");
    assert_eq!(controlled.ask("c"), "closed");
    top.undo("cache");
    assert_eq!(controlled.ask("c"), "open");
}

/// The row of its readers, and that of its writers, have the settings of the lock.
#[test]
fn keys_of_top_change_readers_writer_locks() {
    for lock in ["shfl_rw", "bravo_shfl_rw"] {
        let mut controlled = Controlled::start_with(&["--stats", "--rwlock", lock]);
        for letter in ["r", "w"] {
            assert_eq!(controlled.ask(letter), "open", "{lock}");
        }
        for side in ["readers", "writers"] {
            let name = format!("shared ({side})");
            let top = Top::start(&controlled);
            top.open(&format!("{name} at"));
            top.press("---]<p");
            top.screen.await_text("patience=0,policy=route,batch=512,spins=2, set by control");
            let lines = controlled.control(&["shared"]);
            let changed = [lock, "0", "route", "512", "2", "control"];
            assert_eq!(line(&lines, "shared")[1..7], changed);
            assert_eq!(controlled.ask("w"), "closed", "{lock}");
            top.undo(&name);
            let lines = controlled.control(&["shared"]);
            let default = [lock, "4", "numa", "1024", "1", "start"];
            assert_eq!(line(&lines, "shared")[1..7], default);
        }
    }
}

fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0)
}

#[test]
fn processes_without_a_page_are_reported() {
    let own = std::process::id().to_string();
    assert_refused(&mut poundlock(["control", "-p", &own]), 125, &["no control page", "--control"]);
    assert_refused(&mut poundlock(["control", "-p", "4194305"]), 125, &["no process 4194305"]);
    let mut controlled = Controlled::start();
    let page = controlled.page();
    controlled.child.kill().expect("it runs");
    // A zombie until the test waits for it: its file is stale.
    while !Path::new(&format!("/proc/{}/maps", controlled.child.id()))
        .metadata()
        .is_ok_and(|_| is_zombie(controlled.child.id()))
    {
        std::thread::yield_now();
    }
    assert_refused(&mut controlled.command(&["cache", "patience=0"]), 125, &["has ended"]);
    assert!(page.exists(), "the file stays");
    controlled.child.wait().expect("it ends");
    assert_refused(&mut controlled.command(&["cache", "patience=0"]), 125, &["no process"]);
}

fn is_zombie(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rfind(')').is_some_and(|end| stat[end..].starts_with(") Z"))
}

/// Another file under the page's name, and a damaged page, are not used. The process goes on.
#[test]
fn replaced_and_damaged_pages_are_refused() {
    let mut controlled = Controlled::start();
    let page = controlled.page();
    let right = std::fs::read(&page).expect("a page");
    let write = |at: u64, bytes: &[u8]| {
        let file = std::fs::OpenOptions::new().write(true).open(&page).expect("it is ours");
        std::os::unix::fs::FileExt::write_all_at(&file, bytes, at).expect("it is written");
    };
    for (at, why) in [(0, "damaged"), (24, "version")] {
        write(at, b"X");
        assert_refused(&mut controlled.command(&["cache", "patience=0"]), 125, &[why]);
        assert_eq!(controlled.ask("c"), "open");
        write(at, &right[at as usize..at as usize + 1]);
    }
    write(128, &vec![0xa5; right.len() - 128]);
    let lines = controlled.control(&["-n", "5000"]);
    assert!(lines.iter().all(|line| line.contains("invalid")), "{lines:#?}");
    assert_eq!(controlled.ask("c"), "open");
    write(128, &right[128..]);
    // The process has mapped the file that is gone. Only root can open that.
    std::fs::remove_file(&page).expect("it is ours");
    std::fs::write(&page, &right).expect("a replacement");
    if is_root() {
        controlled.control(&["cache", "patience=0"]);
        assert_eq!(controlled.ask("c"), "closed");
    } else {
        assert_refused(&mut controlled.command(&["cache", "patience=0"]), 125, &["cannot open"]);
    }
    assert_eq!(std::fs::read(&page).expect("a page"), right);
}

#[test]
fn run_refuses_locks_without_such_settings() {
    for (lock, why) in [
        ("mcs", "need a rule"),
        ("shfl_mutex,policy=fair", "need a rule"),
        ("native", "native locks"),
    ] {
        let mut command = poundlock(["run", "-l", lock, "--control", "--", "no-such-program"]);
        assert_refused(&mut command, 125, &["--control", why]);
    }
    let mut command = poundlock(["run", "--control=/no/such/folder", "--", "true"]);
    assert_refused(&mut command, 125, &["/no/such/folder"]);
    let folder = scratch();
    let mut command = poundlock(["run", "--control", "--", "env"]);
    let environment = stdout(&output(command.env("XDG_RUNTIME_DIR", folder.path())));
    assert!(environment.lines().any(|line| line == "POUNDLOCK_CONTROL=1"), "{environment}");
}
