//! Part of build.rs: the layout of poundlock.h's structures, as assertions about those of lib.rs,
//! and its fast paths, as constants.

use super::c_numbers;
use std::fmt::Write as _;
use std::path::Path;

/// The structures: their names in C and Rust, and all of their fields.
const STRUCTURES: [(&str, &str, &[&str]); 10] = [
    (
        "pound_mutex_t",
        "pound_mutex_t",
        &["pound_tail", "pound_heir", "embedder", "pound_state", "pound_generation"],
    ),
    ("pound_lock_t", "pound_lock_t", &["pound_bytes", "pound_ops"]),
    ("pound_rwlock_t", "pound_rwlock_t", &["pound_bytes", "pound_ops"]),
    ("pound_cond_t", "pound_cond_t", &["pound_last", "pound_list", "pound_generation"]),
    ("struct pound_lockable", "pound_lockable", &["lock", "unlock"]),
    ("pound_once_t", "pound_once_t", &["pound_state"]),
    ("pound_sem_t", "pound_sem_t", &["pound_state", "pound_waiters"]),
    (
        "struct pound_lock_info",
        "pound_lock_info",
        &[
            "name",
            "wait",
            "promise",
            "paper",
            "keys",
            "boxed",
            "bytes_per_lock",
            "bytes_per_waiter",
            "bytes_per_holder",
            "atomics_alone",
            "atomics_contended",
            "atomics_reading",
        ],
    ),
    ("struct pound_setting", "pound_setting", &["key", "choices", "by_default", "least", "most"]),
    ("struct pound_policy", "pound_policy", &["note", "rank", "context"]),
];

/// The states and memory orders of the fast paths, what they are compared with in C, and the state
/// of a completed once.
const FAST_PATH: [&str; 8] = [
    "POUND_MUTEX_FREE",
    "POUND_MUTEX_LOCKED",
    "POUND_MUTEX_TAKE_ORDER",
    "POUND_MUTEX_RELEASE_ORDER",
    "POUND_COND_ORDER",
    "__ATOMIC_ACQUIRE",
    "__ATOMIC_RELEASE",
    "POUND_ONCE_DONE",
];

/// The word of the default readers-writer lock: its place in the lock, its flags, and the number of
/// its topmost bit.
const RW_FAST_PATH: [&str; 6] = [
    "offsetof(struct shfl_rw, word)",
    "RW_WRITER",
    "RW_CLOSED",
    "RW_PARKED",
    "RW_READER",
    "__builtin_ctz(RW_FULL)",
];

/// Writes the assertions and constants to layout.rs in `out`. `build` finds poundlock.h and core.
pub fn write(build: &cc::Build, out: &Path) {
    let structures = STRUCTURES.iter().flat_map(|(c, _, fields)| expressions(c, fields));
    let expressions: Vec<String> = structures.chain(FAST_PATH.map(str::to_owned)).collect();
    let numbers =
        c_numbers::evaluate(build, out, "poundlock_sys_layout", "poundlock.h", &expressions);
    let mut numbers = numbers.into_iter();
    let words = RW_FAST_PATH.map(str::to_owned);
    let words = c_numbers::evaluate(build, out, "poundlock_sys_rw", "rw/shfl_rw.h", &words);
    let text = assertions(&mut numbers) + &fast_path(numbers) + &rw_fast_path(&words);
    std::fs::write(out.join("layout.rs"), text).expect("OUT_DIR is writable");
}

/// The size and alignment of a structure, then the offset and size of each field.
fn expressions(c: &str, fields: &[&str]) -> Vec<String> {
    let mut expressions = vec![format!("sizeof({c})"), format!("_Alignof({c})")];
    for field in fields {
        expressions
            .extend([format!("offsetof({c}, {field})"), format!("sizeof((({c} *)0)->{field})")]);
    }
    expressions
}

fn assertions(numbers: &mut impl Iterator<Item = usize>) -> String {
    let mut next = || numbers.next().expect("there is a number for each expression");
    let mut text = "const _: () = {\n    use std::mem::{MaybeUninit, align_of, size_of};\n\n    \
        const fn size_of_field<S, F>(_: fn(&S) -> &F) -> usize {\n        \
        size_of::<F>()\n    }\n"
        .to_owned();
    for (c, rust, fields) in STRUCTURES {
        let (size, alignment, mut covered) = (next(), next(), 0);
        writeln!(
            text,
            "    assert!(size_of::<{rust}>() == {size} && align_of::<{rust}>() == {alignment});"
        )
        .expect("writing to a string succeeds");
        for field in fields {
            let (offset, bytes) = (next(), next());
            covered += bytes;
            writeln!(
                text,
                "    assert!(size_of_field(|s: &{rust}| &s.{field}) == {bytes});\n    \
                 let structure = MaybeUninit::<{rust}>::uninit();\n    \
                 let start = structure.as_ptr();\n    \
                 // SAFETY: both pointers are within the structure.\n    \
                 assert!({offset} == unsafe {{\n        \
                 std::ptr::addr_of!((*start).{field}).cast::<u8>().offset_from(start.cast())\n    \
                 }});"
            )
            .expect("writing to a string succeeds");
        }
        assert!(size - covered < alignment, "{c} has fields that {rust} does not");
    }
    text + "};\n"
}

/// The constants of the readers-writer lock's fast paths, from the numbers of RW_FAST_PATH.
fn rw_fast_path(numbers: &[usize]) -> String {
    let [word, writer, closed, parked, reader, full] = numbers[..] else {
        panic!("there is a number for each expression");
    };
    format!(
        "const RW_WORD: usize = {word};\n\
         const RW_WRITER: u32 = {writer};\n\
         const RW_CLOSED: u32 = {closed};\n\
         const RW_PARKED: u32 = {parked};\n\
         const RW_READER: u32 = {reader};\n\
         const RW_FULL: u32 = 1 << {full};\n"
    )
}

/// The constants of the fast paths, from the numbers of FAST_PATH.
fn fast_path(numbers: impl Iterator<Item = usize>) -> String {
    let numbers: Vec<usize> = numbers.collect();
    let [free, locked, take, release, cond, acquire_order, release_order, done] = numbers[..]
    else {
        panic!("there is a number for each expression");
    };
    let order = |number| match number {
        _ if number == acquire_order => "Acquire",
        _ if number == release_order => "Release",
        _ => panic!("a fast path has memory order {number}, which this script does not know"),
    };
    format!(
        "/// The state of a mutex that is free and has no waiters.\n\
         const FREE: u32 = {free};\n\
         /// The state of a mutex that is held and has no waiters. The bit is set in every state\n\
         /// with a holder.\n\
         const LOCKED: u32 = {locked};\n\
         const TAKE_ORDER: Ordering = Ordering::{};\n\
         const RELEASE_ORDER: Ordering = Ordering::{};\n\
         const COND_ORDER: Ordering = Ordering::{};\n\
         /// The state of a once whose function has returned.\n\
         pub const POUND_ONCE_DONE: u32 = {done};\n",
        order(take),
        order(release),
        order(cond)
    )
}
