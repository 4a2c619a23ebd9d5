//! Bounded reading of input files.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::Path;

/// The size limit of an input file in bytes: twice the size of the largest valid input, the
/// latencies between 4,096 CPUs.
pub const MOST_TEXT: u64 = 256 << 20;

/// Reads a text file. Unlike [`std::fs::read_to_string`], it fails on an endless file such as
/// `/dev/zero`.
///
/// # Errors
///
/// If the file cannot be read, is not UTF-8, or is larger than [`MOST_TEXT`].
pub fn text(file: &Path) -> io::Result<String> {
    let mut text = String::new();
    File::open(file)?.take(MOST_TEXT + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MOST_TEXT {
        return Err(io::Error::new(
            ErrorKind::FileTooLarge,
            format!("larger than {} MiB", MOST_TEXT >> 20),
        ));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::text;
    use std::path::Path;

    #[test]
    fn an_endless_text_is_an_error() {
        let error = text(Path::new("/dev/zero")).expect_err("it never ends");
        assert_eq!(error.to_string(), "larger than 256 MiB");
    }
}
