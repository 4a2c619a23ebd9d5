//! The origin of figures: machine, kernel, compilers and revision. Every `--json` document has it.

use serde::Serialize;
use std::collections::BTreeMap;
use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

/// The machine, kernel, compilers and revision behind a command's figures.
#[derive(Debug, Serialize)]
pub struct Provenance {
    poundlock: Version,
    machine: Machine,
    kernel: String,
    compiler: Compilers,
}

#[derive(Debug, Serialize)]
struct Version {
    version: &'static str,
    revision: &'static str,
}

#[derive(Debug, Serialize)]
struct Machine {
    cpu: String,
    architecture: &'static str,
    cores_online: usize,
    cores_usable: usize,
    memory_bytes: u64,
}

#[derive(Debug, Serialize)]
struct Compilers {
    locks: String,
    tools: &'static str,
}

impl Provenance {
    /// The origin of figures of this machine, with locks compiled by `locks_compiler`.
    pub fn new(locks_compiler: String) -> Provenance {
        Provenance {
            poundlock: Version {
                version: env!("CARGO_PKG_VERSION"),
                revision: env!("POUNDLOCK_REVISION"),
            },
            machine: Machine::this(),
            kernel: kernel(),
            compiler: Compilers { locks: locks_compiler, tools: env!("POUNDLOCK_RUSTC") },
        }
    }

    /// The processor's name.
    pub fn cpu(&self) -> &str {
        &self.machine.cpu
    }

    /// The machine in one line, for captions.
    pub fn machine_line(&self) -> String {
        format!("{}, {} cores, {}", self.machine.cpu, self.machine.cores_usable, self.kernel)
    }
}

/// The current time.
pub fn seconds_since_1970() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// The inherited POUNDLOCK_ variables.
pub fn environment() -> BTreeMap<String, String> {
    std::env::vars().filter(|(name, _)| name.starts_with("POUNDLOCK_")).collect()
}

impl Machine {
    fn this() -> Machine {
        let online = configured(libc::_SC_NPROCESSORS_ONLN) as usize;
        Machine {
            cpu: cpu_model(&fs::read_to_string("/proc/cpuinfo").unwrap_or_default()),
            architecture: std::env::consts::ARCH,
            cores_online: online,
            cores_usable: std::thread::available_parallelism().map_or(online, usize::from),
            memory_bytes: configured(libc::_SC_PHYS_PAGES) * configured(libc::_SC_PAGESIZE),
        }
    }
}

fn configured(name: libc::c_int) -> u64 {
    // SAFETY: sysconf has no side effects.
    u64::try_from(unsafe { libc::sysconf(name) }).unwrap_or(0)
}

/// The processor's name. x86 reports a name, arm64 numbers.
fn cpu_model(cpuinfo: &str) -> String {
    let field = |name: &str| {
        let line = cpuinfo
            .lines()
            .find(|line| line.split(':').next().is_some_and(|key| key.trim() == name))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    };
    let arm =
        || Some(format!("implementer {} part {}", field("CPU implementer")?, field("CPU part")?));
    field("model name").or_else(arm).unwrap_or_else(|| "unknown".to_owned())
}

fn kernel() -> String {
    let read = |name| {
        fs::read_to_string(format!("/proc/sys/kernel/{name}")).unwrap_or_default().trim().to_owned()
    };
    format!("{} {}", read("ostype"), read("osrelease"))
}

#[cfg(test)]
mod tests {
    use super::cpu_model;

    #[test]
    fn a_processor_has_a_name_on_either_architecture() {
        assert_eq!(
            cpu_model("processor\t: 0\nmodel\t\t: 85\nmodel name\t: Some CPU @ 2 GHz\n"),
            "Some CPU @ 2 GHz"
        );
        assert_eq!(
            cpu_model("CPU implementer\t: 0x41\nCPU part\t: 0xd0c\n"),
            "implementer 0x41 part 0xd0c"
        );
        assert_eq!(cpu_model(""), "unknown");
    }
}
