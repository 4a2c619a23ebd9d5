//! Part of build.rs: what the C compiler makes of poundlock.h's structures, as assertions about those of lib.rs. Nothing
//! compiled is run, so that it may be for another machine: the numbers are read from the object file.

use std::fmt::Write as _;
use std::path::Path;

/// The structures: their names in C and Rust, and all of their fields.
const STRUCTURES: [(&str, &str, &[&str]); 5] = [
    (
        "pound_mutex_t",
        "pound_mutex_t",
        &["pound_tail", "pound_heir", "embedder", "pound_state", "pound_generation", "pound_spinner"],
    ),
    ("pound_lock_t", "pound_lock_t", &["pound_bytes", "pound_ops"]),
    ("pound_rwlock_t", "pound_rwlock_t", &["pound_bytes", "pound_ops"]),
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
    ("struct pound_policy", "pound_policy", &["note", "rank", "context"]),
];

/// What the numbers in the object file begin with.
const MARK: &str = "POUND LAYOUT:";

/// How many digits a number has there.
const DIGITS: usize = 4;

/// Writes the assertions to layout.rs in `out`, by `build`, which finds poundlock.h.
pub fn write(build: &cc::Build, out: &Path) {
    let source = out.join("layout.c");
    std::fs::write(&source, program()).expect("OUT_DIR is writable");
    let objects = build.clone().file(&source).compile_intermediates();
    let bytes: Vec<u8> = objects.iter().flat_map(|object| std::fs::read(object).expect("it was compiled")).collect();
    std::fs::write(out.join("layout.rs"), assertions(&mut numbers(&bytes))).expect("OUT_DIR is writable");
}

/// A C program whose data are the numbers, in the order of the structures: size, alignment, and each field's offset and size.
fn program() -> String {
    let mut text = "#include <poundlock.h>\n\n#define DIGIT(n, of) (char)('0' + (n) / (of) % 10)\n\
        #define NUMBER(n) DIGIT(n, 1000), DIGIT(n, 100), DIGIT(n, 10), DIGIT(n, 1)\n\n\
        extern const char poundlock_sys_layout[];\nconst char poundlock_sys_layout[] = {"
        .to_owned();
    MARK.chars().for_each(|c| write!(text, "'{c}', ").expect("a string takes all"));
    for (c, _, fields) in STRUCTURES {
        write!(text, "\n\tNUMBER(sizeof({c})), NUMBER(_Alignof({c})),").expect("a string takes all");
        for field in fields {
            write!(text, "\n\tNUMBER(offsetof({c}, {field})), NUMBER(sizeof((({c} *)0)->{field})),")
                .expect("a string takes all");
        }
    }
    text + "\n\tNUMBER(POUND_MUTEX_LOCKED)\n};\n"
}

/// The numbers in the object file.
fn numbers(object: &[u8]) -> impl Iterator<Item = usize> {
    let at = object.windows(MARK.len()).position(|bytes| bytes == MARK.as_bytes()).expect("the numbers are there");
    object[at + MARK.len()..].chunks(DIGITS).map(|digits| {
        std::str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok()).expect("so many numbers are there")
    })
}

fn assertions(numbers: &mut impl Iterator<Item = usize>) -> String {
    let mut next = || numbers.next().expect("so many numbers are there");
    let mut text = "const _: () = {\n    const fn size_of_field<S, F>(_: fn(&S) -> &F) -> usize {\n        \
        size_of::<F>()\n    }\n"
        .to_owned();
    for (c, rust, fields) in STRUCTURES {
        let (size, alignment, mut covered) = (next(), next(), 0);
        writeln!(text, "    assert!(size_of::<{rust}>() == {size} && align_of::<{rust}>() == {alignment});")
            .expect("a string takes all");
        for field in fields {
            let (offset, bytes) = (next(), next());
            covered += bytes;
            writeln!(
                text,
                "    assert!(std::mem::offset_of!({rust}, {field}) == {offset});\n    \
                 assert!(size_of_field(|s: &{rust}| &s.{field}) == {bytes});"
            )
            .expect("a string takes all");
        }
        assert!(size - covered < alignment, "{c} has fields that {rust} does not");
    }
    writeln!(text, "    assert!(LOCKED == {});", next()).expect("a string takes all");
    text + "};\n"
}
