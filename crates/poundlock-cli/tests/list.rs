//! `poundlock list` prints the properties of the locks.

mod common;

use common::{output, poundlock, stderr, stdout};
use poundlock::Setting;
use serde_json::{Value, json};

/// The keys of the listed settings, after `wait`.
fn keys(settings: &[Value]) -> Value {
    std::iter::once(json!("wait"))
        .chain(settings.iter().map(|setting| setting["key"].clone()))
        .collect()
}

/// A setting as the listing has it.
fn setting(of: &Setting) -> Value {
    let Setting { key, choices, default, least, most } = of;
    if choices.is_empty() {
        json!({ "key": key, "default": default, "least": least, "most": most })
    } else {
        json!({ "key": key, "default": choices[*default as usize], "choices": choices })
    }
}

#[test]
fn every_lock_is_listed() {
    let text = stdout(&output(&mut poundlock(["list"])));
    let json = output(&mut poundlock(["list", "--json"]));
    let listing: Value = serde_json::from_slice(&json.stdout).expect("it is JSON");
    assert_eq!(listing["schema"], "poundlock.list/1");
    assert!(
        listing["machine"]["cpu"].is_string() && listing["compiler"]["locks"].is_string(),
        "{listing:#}"
    );
    let locks = listing["locks"].as_array().expect("locks");
    let rwlocks = listing["rwlocks"].as_array().expect("rwlocks");
    assert_eq!(
        [locks.len(), rwlocks.len()],
        [poundlock::locks().count(), poundlock::rw_locks().count()]
    );
    for (listed, info) in
        locks.iter().chain(rwlocks).zip(poundlock::locks().chain(poundlock::rw_locks()))
    {
        assert_eq!(listed["name"], info.name);
        assert_eq!(listed["bytes_per_lock"], info.bytes_per_lock);
        assert_eq!(listed["bytes_per_waiter"], info.bytes_per_waiter);
        assert_eq!(listed["bytes_per_holder"], info.bytes_per_holder);
        assert_eq!(listed["wait"], info.wait);
        assert_eq!(listed["atomics_alone"], info.atomics_alone);
        assert_eq!(listed["atomics_contended"], info.atomics_contended);
        assert_eq!(
            listed["atomics_reading"].as_f64(),
            (!info.atomics_reading.is_nan()).then_some(info.atomics_reading)
        );
        let settings = listed["settings"].as_array().expect("settings");
        assert_eq!(listed["keys"], keys(settings), "{listed}");
        assert_eq!(*settings, info.settings.iter().map(setting).collect::<Vec<_>>(), "{listed}");
        let line = text
            .lines()
            .find(|line| line.split_whitespace().next() == Some(info.name))
            .unwrap_or_else(|| panic!("no {} in {text}", info.name));
        assert!(line.trim_end().ends_with(info.promise), "{line}");
        assert!(line.contains(&format!(" {} ", info.bytes_per_lock)), "{line}");
    }
}

#[test]
fn a_named_lock_is_described() {
    for info in poundlock::locks().chain(poundlock::rw_locks()) {
        let text = stdout(&output(&mut poundlock(["list", info.name])));
        assert!(text.starts_with(&format!("{}\n", info.name)), "only this lock: {text}");
        let page = format!("docs/locks/{}.md", info.name);
        let lock_size = format!("{} bytes per lock", info.bytes_per_lock);
        let waiter_size = format!("{} per waiter", info.bytes_per_waiter);
        let wait = format!("wait={} by default; spin, yield, park\n", info.wait);
        for words in [info.promise, info.paper, &wait, &page, &lock_size, &waiter_size] {
            assert!(text.contains(words), "no {words:?} in {text}");
        }
        for Setting { key, choices, default, least, most } in &info.settings {
            let words = if choices.is_empty() {
                format!(" {key}={default} by default; {least} to {most}\n")
            } else {
                let default = choices[*default as usize];
                format!(" {key}={default} by default; {}\n", choices.join(", "))
            };
            assert!(text.contains(&words), "no {words:?} in {text}");
        }
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        assert!(root.join(&page).exists(), "{page}");
    }
}

/// The option in the heading of a table of `poundlock list`, and the names in the table.
fn printed(table: &str) -> (&str, Vec<&str>) {
    let heading = table.lines().next().expect("a heading");
    let option = heading.rsplit(['(', ' ']).next().expect("an option").trim_end_matches(')');
    let rows = table.lines().skip_while(|line| !line.contains('─')).skip(1);
    (option, rows.filter_map(|row| row.split_whitespace().next()).collect())
}

#[test]
fn every_printed_name_can_be_pasted_after_the_printed_option() {
    let text = stdout(&output(&mut poundlock(["list"])));
    let tables: Vec<_> = text.split("\n\n").take(2).map(printed).collect();
    let options: Vec<_> = tables.iter().map(|(option, names)| (*option, names.len())).collect();
    assert_eq!(
        options,
        [("--lock", poundlock::locks().count()), ("--rwlock", poundlock::rw_locks().count())]
    );
    for (option, names) in tables {
        for name in names {
            let run = output(&mut poundlock(["run", "-v", option, name, "--", "true"]));
            let report = stderr(&run);
            let chosen = format!("{}={name}", option.trim_start_matches('-'));
            assert!(run.status.success(), "{option} {name}: {report}");
            assert!(report.split_whitespace().any(|word| word == chosen), "{chosen}: {report}");
        }
    }
}

#[test]
fn the_start_of_a_name_means_all_such_locks() {
    let json = output(&mut poundlock(["list", "--json", "shfl", "mcs"]));
    let listing: Value = serde_json::from_slice(&json.stdout).expect("it is JSON");
    let names = |of: &str| -> Vec<String> {
        let locks = listing[of].as_array().expect("locks").iter();
        locks.map(|lock| lock["name"].as_str().expect("a name").to_owned()).collect()
    };
    assert_eq!(
        names("locks"),
        ["mcs", "shfl_spin", "shfl_mutex", "shfl_ron"],
        "mcs is a whole name"
    );
    assert_eq!(names("rwlocks"), ["shfl_rw"]);
    common::assert_refused(
        &mut poundlock(["list", "mcz"]),
        125,
        &["no lock 'mcz'", "did you mean 'mcs'?"],
    );
}

#[test]
fn a_reader_that_closes_early_causes_no_error() {
    let command = format!("{} list | head -n 1", env!("CARGO_BIN_EXE_poundlock"));
    let output = output(std::process::Command::new("sh").args(["-c", &command]));
    assert_eq!(stderr(&output), "");
}
