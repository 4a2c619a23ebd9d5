//! `poundlock topo`, `latency` and `route`: the machine, its latencies, and the route over it.

mod common;

use common::{assert_refused, output, poundlock, scratch, stderr, stdout};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use poundlock_topology::cpus;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

fn json(command: &mut Command) -> Value {
    let output = output(command);
    assert!(output.status.success(), "{}", stderr(&output));
    serde_json::from_slice(&output.stdout).expect("it is JSON")
}

fn read(file: &Path) -> String {
    fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

fn text(path: &Path) -> &str {
    path.to_str().expect("it is UTF-8")
}

// ---- topo ----

#[test]
fn the_machine_is_shown_as_text_json_and_svg() {
    let scratch = scratch();
    let svg = scratch.path().join("machine.svg");
    let document = json(&mut poundlock(["topo", "--json", "--svg", text(&svg)]));
    assert_eq!(document["schema"], "poundlock.topo/1");
    assert!(document["machine"]["cpu"].is_string(), "{document:#}");
    let cpus = document["cpus"].as_array().expect("CPUs");
    let usable = cpus.iter().filter(|cpu| cpu["usable"] == true).count();
    assert_eq!(usable, cpus::usable().len());
    let printed = stdout(&output(&mut poundlock(["topo"])));
    for cpu in cpus {
        let number = cpu["cpu"].to_string();
        let shown = printed
            .lines()
            .skip(1)
            .flat_map(|line| line.split([' ', '+']))
            .any(|word| word == number);
        assert!(shown && cpu["socket"].is_u64() && cpu["core"].is_u64(), "{cpu} in {printed}");
        assert!(read(&svg).contains(&number));
    }
}

#[test]
fn another_machine_is_read_from_a_copy_of_its_sys() {
    let scratch = scratch();
    let put = |file: &str, text: &str| {
        let path = scratch.path().join("devices/system/cpu").join(file);
        fs::create_dir_all(path.parent().expect("it has one")).expect("folders");
        fs::write(path, text).expect("a file");
    };
    put("online", "0-3\n");
    for cpu in 0..4 {
        put(
            &format!("cpu{cpu}/topology/package_cpus_list"),
            if cpu % 2 == 0 { "0,2" } else { "1,3" },
        );
        put(&format!("cpu{cpu}/topology/core_cpus_list"), if cpu % 2 == 0 { "0,2" } else { "1,3" });
    }
    let printed = stdout(&output(poundlock(["topo", "--sysfs"]).arg(scratch.path())));
    assert!(
        printed.starts_with("2 sockets, 1 die, 1 NUMA node, 4 L3 groups, 2 cores, 4 CPUs\n"),
        "{printed}"
    );
    assert_refused(&mut poundlock(["topo", "--sysfs", "/nonexistent"]), 125, &["/nonexistent"]);
    assert_refused(
        &mut poundlock(["topo", "--svg", "/nonexistent/svg"]),
        125,
        &["/nonexistent/svg"],
    );
}

// ---- latency ----

const BRIEF: [&str; 5] = ["latency", "--samples", "3", "--round-trips", "5"];

/// Whether the process may use several CPUs: latency needs two, so the tests are skipped otherwise.
fn several_cpus() -> bool {
    let several = cpus::usable().len() > 1;
    if !several {
        assert_refused(&mut poundlock(BRIEF), 125, &["less than two CPUs"]);
    }
    several
}

#[test]
fn latencies_are_measured_kept_and_not_measured_again() {
    if !several_cpus() {
        return;
    }
    let scratch = scratch();
    let [kept, csv, svg] =
        ["kept.json", "table.csv", "map.svg"].map(|name| scratch.path().join(name));
    let files = ["--json", text(&kept), "--csv", text(&csv), "--svg", text(&svg)];
    let first = output(poundlock(BRIEF).args(files));
    assert!(first.status.success(), "{}", stderr(&first));
    let mut document: Value = serde_json::from_str(&read(&kept)).expect("JSON");
    let pairs = cpus::usable().len() * (cpus::usable().len() - 1) / 2;
    assert_eq!(
        (&document["schema"], &document["complete"]),
        (&"poundlock.latency/1".into(), &true.into())
    );
    assert_eq!(document["pairs"].as_array().map(Vec::len), Some(pairs));
    assert!(read(&svg).contains("<svg") && read(&csv).lines().count() > 1);

    // Pairs in the file are kept, and missing ones are measured.
    document["pairs"][0]["median"] = 4711.0.into();
    fs::write(&kept, document.to_string()).expect("it is ours");
    let again = output(poundlock(BRIEF).args(files));
    assert!(
        stdout(&again).contains(&format!("{pairs} of {pairs} pairs are from an earlier run")),
        "{}",
        stdout(&again)
    );
    assert!(read(&csv).contains("4711"));
    document["pairs"] = Value::Array(Vec::new());
    document["complete"] = false.into();
    fs::write(&kept, document.to_string()).expect("it is ours");
    assert!(output(poundlock(BRIEF).args(files)).status.success());
    assert!(!read(&csv).contains("4711"));

    assert_refused(
        poundlock(["latency", "--samples", "4"]).args(files),
        125,
        &["kept.json", "3 samples of 5"],
    );
    document["machine"]["cpu"] = "another".into();
    fs::write(&kept, document.to_string()).expect("it is ours");
    assert_refused(poundlock(BRIEF).args(files), 125, &["kept.json", "another machine"]);
    fs::write(&kept, "{}").expect("it is ours");
    assert_refused(poundlock(BRIEF).args(files), 125, &["kept.json", "has no latencies"]);
    assert_eq!(read(&kept), "{}", "what is refused is kept");
    assert!(output(poundlock(BRIEF).args(files).arg("--restart")).status.success());
}

/// The measurement takes longer than the test waits.
#[test]
fn an_interrupt_keeps_the_measured_pairs() {
    if !several_cpus() {
        return;
    }
    let scratch = scratch();
    let kept = scratch.path().join("kept.json");
    let mut command = poundlock([
        "latency",
        "--samples",
        "1000000",
        "--round-trips",
        "1000000",
        "--json",
        text(&kept),
    ]);
    let mut child =
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let pid = Pid::from_raw(child.id().cast_signed());
    // A signal before the handler is installed would kill the command. Its second thread starts
    // after the installation.
    let measuring =
        || fs::read_dir(format!("/proc/{pid}/task")).is_ok_and(|tasks| tasks.count() > 1);
    while !measuring() && child.try_wait().expect("it is ours").is_none() {
        std::thread::yield_now();
    }
    kill(pid, Signal::SIGINT).expect("it runs");
    let ended = child.wait_with_output().expect("it ends");
    assert_eq!(ended.status.code(), Some(130), "{}", stderr(&ended));
    assert!(stdout(&ended).contains("the same command resumes"), "{}", stdout(&ended));
    let document: Value = serde_json::from_str(&read(&kept)).expect("JSON");
    assert_eq!(
        (&document["complete"], &document["pairs"]),
        (&false.into(), &Value::Array(Vec::new()))
    );
}

#[test]
fn wrong_latency_options_are_named() {
    assert_refused(&mut poundlock(["latency", "--cpus", "0,x"]), 125, &["'0,x'"]);
    assert_refused(&mut poundlock(["latency", "--cpus", "4000-4001"]), 125, &["CPU 4000"]);
    assert_refused(&mut poundlock(["latency", "--samples", "0"]), 125, &["--samples"]);
    assert_refused(&mut poundlock(["latency", "--restart"]), 125, &["--json"]);
    if several_cpus() {
        assert_refused(
            poundlock(BRIEF).args(["--csv", "/nonexistent/csv"]),
            125,
            &["/nonexistent/csv"],
        );
    }
}

// ---- route ----

fn calibration(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../poundlock-topology/tests/matrices").join(name)
}

/// The command with an empty home folder, without a saved route.
fn route(home: &Path) -> Command {
    let mut command = poundlock(["route"]);
    command.env("HOME", home).env_remove("XDG_CONFIG_HOME");
    command
}

#[test]
fn a_matrix_alone_gives_a_short_tour() {
    let home = scratch();
    let matrix = calibration("epyc-7742-2s-256.csv");
    let output = output(route(home.path()).arg("--matrix").arg(&matrix));
    let printed = stdout(&output);
    let lines: Vec<&str> = printed.lines().collect();
    assert!(
        lines[0].starts_with("256 CPUs, tour 89") || lines[0].starts_with("256 CPUs, tour 90"),
        "{printed}"
    );
    let mut order =
        lines[1].split(' ').map(|cpu| cpu.parse().expect("a CPU")).collect::<Vec<usize>>();
    order.sort_unstable();
    assert!(order.into_iter().eq(0..256), "{printed}");

    let document =
        json(route(home.path()).args(["--json", "--cpus", "0-3,128", "--matrix"]).arg(&matrix));
    assert_eq!(document["schema"], "poundlock.route/1");
    assert_eq!(document["route"].as_array().map(Vec::len), Some(5));
    assert!(
        document["tour"]["length"].as_f64() >= document["tour"]["bound"].as_f64(),
        "{document:#}"
    );
}

/// The library accepts the route that the command saves.
#[test]
fn a_saved_route_is_in_use() {
    let home = scratch();
    let matrix = home.path().join("matrix.csv");
    let saved = home.path().join("folder/saved");
    let usable = cpus::usable();
    let size = usable.last().expect("a CPU") + 1;
    let row = |row| {
        (0..size).map(|column| if column < row { "5" } else { "" }).collect::<Vec<_>>().join(",")
            + "\n"
    };
    fs::write(&matrix, (0..size).map(row).collect::<String>()).expect("a file");
    let done = output(
        route(home.path()).arg("--matrix").arg(&matrix).arg(format!("--save={}", saved.display())),
    );
    assert!(done.status.success() && stdout(&done).contains("saved in"), "{}", stderr(&done));
    let order = stdout(&done).lines().nth(1).expect("the route").to_owned();

    let shown = output(route(home.path()).env("POUNDLOCK_ROUTE", &saved));
    let present = read(Path::new("/sys/devices/system/cpu/present"));
    if cpus::parse(&present) == Ok((0..size).collect()) {
        assert_eq!(stderr(&shown), "");
        assert!(
            stdout(&shown).contains(&format!("from '{}'", saved.display())),
            "{}",
            stdout(&shown)
        );
        let kept: Vec<&str> =
            order.split(' ').filter(|cpu| usable.contains(&cpu.parse().expect("a CPU"))).collect();
        assert_eq!(stdout(&shown).lines().nth(1), Some(&kept.join(" ")[..]));
        // The same in the user's own file.
        let done = output(route(home.path()).arg("--save").arg("--matrix").arg(&matrix));
        assert!(done.status.success(), "{}", stderr(&done));
        let own = home.path().join(".config/poundlock/route");
        assert_eq!(read(&own), read(&saved));
        assert!(stdout(&output(&mut route(home.path()))).contains(".config/poundlock/route"));
    } else {
        assert!(stderr(&shown).contains("this machine has"), "{}", stderr(&shown));
    }
}

#[test]
fn a_mismatched_saved_route_is_one_line() {
    let home = scratch();
    let wrong = home.path().join("wrong");
    fs::write(&wrong, "nonsense\n").expect("a file");
    let plain = output(&mut route(home.path()));
    let shown = output(route(home.path()).env("POUNDLOCK_ROUTE", &wrong));
    assert_eq!(stdout(&shown), stdout(&plain));
    assert_eq!(stderr(&shown).lines().count(), 1, "{}", stderr(&shown));
    assert!(
        stderr(&shown).starts_with("poundlock: ") && stderr(&shown).contains(text(&wrong)),
        "{}",
        stderr(&shown)
    );
    // Only the library reads the route, before the program's main(), and not the command: the
    // message is printed once.
    let run =
        |lock| output(poundlock(["run", "-l", lock, "--", "true"]).env("POUNDLOCK_ROUTE", &wrong));
    assert_eq!((run("ron").status.code(), stderr(&run("ron"))), (Some(0), stderr(&shown)));
    assert_eq!(stderr(&run("mcs")), "", "no route is wanted");
}

#[test]
fn an_invalid_matrix_is_named() {
    let home = scratch();
    let matrix = home.path().join("matrix.csv");
    let with = |content: &[u8], words: &[&str]| {
        fs::write(&matrix, content).expect("a file");
        assert_refused(
            route(home.path()).arg("--matrix").arg(&matrix),
            125,
            &[&["matrix.csv"], words].concat(),
        );
    };
    with(b"", &["empty"]);
    with(b"1,2\n3\n", &["line 2"]);
    with(b",\nx,\n", &["line 2", "'x'"]);
    with(b"{\"schema\": 3}", &["line 1"]);
    with(b"\xff\xfe", &["cannot read"]);
    assert_refused(route(home.path()).args(["--matrix", "/nonexistent"]), 125, &["/nonexistent"]);
    assert_refused(route(home.path()).arg("--save"), 125, &["--matrix"]);
    let matrix = calibration("apple-m1pro-8.csv");
    assert_refused(
        route(home.path()).args(["--cpus", "7-9", "--matrix"]).arg(&matrix),
        125,
        &["no CPU 8"],
    );
    assert_refused(
        route(home.path()).args(["--cpus", "z", "--matrix"]).arg(&matrix),
        125,
        &["'z'"],
    );
    let far = calibration("epyc-7742-2s-256.csv");
    if cpus::usable().len() != 256 {
        assert_refused(
            route(home.path()).arg("--save").arg("--matrix").arg(&far),
            125,
            &["0-255", "--save=FILE"],
        );
    }
    assert_refused(
        route(home.path()).arg("--save=/proc/none/route").arg("--matrix").arg(&matrix),
        125,
        &["/proc/none/route"],
    );
}
