//! The file of a saved route. world/user/route.c reads it; docs/route.md describes the format.

use std::fmt::Write;
use std::path::{Path, PathBuf};

/// The number of CPUs per line.
const LINE: usize = 16;
/// The file with the route for all users.
pub const COMMON: &str = "/etc/poundlock/route";

/// The content of the file.
#[derive(Debug)]
pub struct Route<'a> {
    /// The CPUs' numbers, in the order of the route.
    pub cpus: &'a [usize],
    /// The kernel's list of the CPUs present. The library rejects the route on a machine with
    /// another list.
    pub present: &'a str,
    /// A short description of the machine, ignored by the library.
    pub machine: &'a str,
    /// The tour's length in nanoseconds, ignored by the library.
    pub length: f64,
}

/// The text of the file.
pub fn text(route: &Route) -> String {
    let mut text = String::from("poundlock-route 1\n");
    let machine: String =
        route.machine.chars().filter(|character| !character.is_control()).collect();
    let mut line = |kind: &str, content: &str| {
        writeln!(text, "{kind} {content}").expect("writing to a string cannot fail")
    };
    if !machine.is_empty() {
        line("machine", &machine);
    }
    line("length", &format!("{:.1} ns", route.length));
    line("present", route.present);
    line("cpus", &route.cpus.len().to_string());
    for part in route.cpus.chunks(LINE) {
        let numbers: Vec<String> = part.iter().map(usize::to_string).collect();
        line("route", &numbers.join(" "));
    }
    text
}

/// The file with the user's own route, for the values of `XDG_CONFIG_HOME` and `HOME`; None if
/// neither is an absolute path.
pub fn own_file(config: Option<&Path>, home: Option<&Path>) -> Option<PathBuf> {
    let config = config.filter(|path| path.is_absolute()).map(Path::to_owned);
    let in_home = || home.filter(|path| path.is_absolute()).map(|path| path.join(".config"));
    Some(config.or_else(in_home)?.join("poundlock/route"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_is_as_documented() {
        let cpus: Vec<usize> = (0..18).rev().collect();
        let route = Route { cpus: &cpus, present: "0-17", machine: "A\nmachine", length: 12.34 };
        let expected = "poundlock-route 1\nmachine Amachine\nlength 12.3 ns\npresent 0-17\ncpus 18\n\
                        route 17 16 15 14 13 12 11 10 9 8 7 6 5 4 3 2\nroute 1 0\n";
        assert_eq!(text(&route), expected);
    }

    #[test]
    fn the_users_file_is_where_the_library_looks() {
        let path = |text: &'static str| Some(Path::new(text));
        assert_eq!(own_file(path("/c"), path("/h")), Some("/c/poundlock/route".into()));
        assert_eq!(own_file(path("c"), path("/h")), Some("/h/.config/poundlock/route".into()));
        assert_eq!(own_file(None, path("/h")), Some("/h/.config/poundlock/route".into()));
        assert_eq!(own_file(None, path("h")), None);
        assert_eq!(own_file(None, None), None);
    }
}
