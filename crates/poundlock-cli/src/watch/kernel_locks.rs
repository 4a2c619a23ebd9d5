//! Waits for locks of the kernel, by the functions of the kernel that wait.

use super::kernel::KernelWaits;
use super::records::Waits;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fs;

/// The waits at one place in the kernel.
#[derive(Debug, Serialize)]
pub struct KernelLock {
    /// Such as "mutex", or "rwsem, writing".
    pub kind: String,
    pub waits: u64,
    pub seconds: f64,
    pub longest: f64,
    /// The functions, innermost first.
    pub stack: Vec<String>,
}

/// The waits by kind and stack, the longest first.
pub fn summary(waits: &[KernelWaits]) -> Vec<KernelLock> {
    let text = fs::read_to_string("/proc/kallsyms").unwrap_or_default();
    let symbols = symbols(&text);
    let mut places: BTreeMap<(String, Vec<String>), Waits> = BTreeMap::new();
    for place in waits {
        let names = place.stack.iter().map(|address| name_of(&symbols, *address));
        let stack = without_tracing(names.collect());
        places.entry((kind_of(place.flags), stack)).or_default().add(&place.waits);
    }
    let mut locks: Vec<KernelLock> = places
        .into_iter()
        .map(|((kind, stack), waits)| KernelLock {
            kind,
            waits: waits.count,
            seconds: waits.total_ns() as f64 / 1e9,
            longest: waits.longest_ns as f64 / 1e9,
            stack,
        })
        .collect();
    locks.sort_by(|one, other| other.seconds.total_cmp(&one.seconds));
    locks
}

/// The kind by the flags of the trace point, LCB_F_* of trace/events/lock.h.
fn kind_of(flags: u32) -> String {
    const SPIN: u32 = 1;
    const READ: u32 = 2;
    const WRITE: u32 = 4;
    const RT: u32 = 8;
    const PERCPU: u32 = 16;
    const MUTEX: u32 = 32;
    let has = |flag| flags & flag != 0;
    let name = if has(MUTEX) {
        "mutex"
    } else if has(PERCPU) {
        "percpu-rwsem"
    } else if has(RT) {
        "rt-mutex"
    } else if has(SPIN) && has(READ | WRITE) {
        "rwlock"
    } else if has(SPIN) {
        "spin lock"
    } else if has(READ | WRITE) {
        "rwsem"
    } else {
        "semaphore"
    };
    let side = if has(READ) {
        ", reading"
    } else if has(WRITE) {
        ", writing"
    } else {
        ""
    };
    format!("{name}{side}")
}

/// Addresses and names of the kernel's functions, sorted.
fn symbols(kallsyms: &str) -> Vec<(u64, &str)> {
    let mut symbols: Vec<(u64, &str)> = kallsyms
        .lines()
        .filter_map(|line| {
            let mut words = line.split_whitespace();
            let address = u64::from_str_radix(words.next()?, 16).ok()?;
            words.next().filter(|kind| matches!(*kind, "t" | "T" | "w" | "W"))?;
            Some((address, words.next()?))
        })
        .collect();
    symbols.sort_unstable();
    symbols
}

/// The function of a return address.
fn name_of(symbols: &[(u64, &str)], address: u64) -> String {
    let before = symbols.partition_point(|(start, _)| *start < address);
    match before.checked_sub(1).map(|index| symbols[index]) {
        Some((start, name)) if start > 0 => name.to_owned(),
        _ => format!("{address:#x}"),
    }
}

/// A stack without the functions that the trace point itself called.
fn without_tracing(mut stack: Vec<String>) -> Vec<String> {
    let starts = ["bpf_trace_run", "__bpf_trace_", "__traceiter_"];
    let traces = |name: &String| starts.iter().any(|start| name.starts_with(start));
    stack.split_off(stack.iter().rposition(traces).map_or(0, |at| at + 1))
}

#[cfg(test)]
mod tests {
    use super::{kind_of, name_of, symbols, without_tracing};

    #[test]
    fn flags_are_named() {
        assert_eq!(kind_of(32 | 1), "mutex");
        assert_eq!(kind_of(4), "rwsem, writing");
        assert_eq!(kind_of(1 | 2), "rwlock, reading");
        assert_eq!(kind_of(1), "spin lock");
        assert_eq!(kind_of(0), "semaphore");
    }

    #[test]
    fn an_address_has_the_function_before_it() {
        let text = "0000000000000010 T first\n0000000000000020 t second [module]\n0000000000000030 d data\n";
        let symbols = symbols(text);
        assert_eq!(name_of(&symbols, 0x20), "first");
        assert_eq!(name_of(&symbols, 0x35), "second");
        assert_eq!(name_of(&symbols, 0x5), "0x5");
    }
    #[test]
    fn the_trace_point_is_cut_off() {
        let stack =
            ["_einittext", "bpf_trace_run2", "__traceiter_contention_begin", "down_read", "f"];
        let rest = without_tracing(stack.map(str::to_owned).to_vec());
        assert_eq!(rest, ["down_read", "f"]);
        assert_eq!(without_tracing(rest.clone()), rest);
    }
}
