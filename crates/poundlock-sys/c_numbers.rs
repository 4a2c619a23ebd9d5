//! Part of build scripts: evaluates constant expressions with the target's C compiler.
//!
//! Nothing compiled is run, so the target may be another machine: the numbers are read from the
//! object file.

use std::fmt::Write as _;
use std::path::Path;

/// Precedes the numbers in the object file.
const MARK: &str = "POUND LAYOUT:";

/// The number of decimal digits of each number in the object file.
const DIGITS: usize = 6;

/// Returns the values of `expressions`, each less than 10^6, after `#include <header>`.
///
/// `build` has the include paths. The C file is written to `out` as `name`.c.
pub fn evaluate(
    build: &cc::Build,
    out: &Path,
    name: &str,
    header: &str,
    expressions: &[String],
) -> Vec<usize> {
    let source = out.join(name).with_extension("c");
    std::fs::write(&source, program(name, header, expressions)).expect("OUT_DIR is writable");
    let objects = build.clone().file(&source).compile_intermediates();
    let bytes: Vec<u8> = objects
        .iter()
        .flat_map(|object| std::fs::read(object).expect("the object was compiled"))
        .collect();
    numbers(&bytes, expressions.len())
}

/// A C program whose only data are the digits of all expressions.
fn program(name: &str, header: &str, expressions: &[String]) -> String {
    let digits: Vec<String> = (0..DIGITS)
        .rev()
        .map(|power| format!("(char)('0' + (n) / {} % 10)", 10usize.pow(power as u32)))
        .collect();
    let mark: String = MARK.chars().map(|c| format!("'{c}', ")).collect();
    let mut text = format!(
        "#include <stddef.h>\n#include <{header}>\n\n#define NUMBER(n) {}\n\n\
         extern const char {name}_numbers[];\nconst char {name}_numbers[] = {{{mark}",
        digits.join(", ")
    );
    for expression in expressions {
        write!(text, "\n\tNUMBER({expression}),").expect("writing to a string succeeds");
    }
    text + "\n};\n"
}

fn numbers(object: &[u8], count: usize) -> Vec<usize> {
    let at = object
        .windows(MARK.len())
        .position(|bytes| bytes == MARK.as_bytes())
        .expect("the mark is in the object");
    let digits = object[at + MARK.len()..].chunks(DIGITS).take(count);
    let numbers: Vec<usize> = digits
        .map(|digits| {
            std::str::from_utf8(digits)
                .ok()
                .and_then(|digits| digits.parse().ok())
                .expect("digits follow the mark")
        })
        .collect();
    assert_eq!(numbers.len(), count, "the object has all numbers");
    numbers
}
