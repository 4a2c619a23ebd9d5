//! The settings of a mutex as the word of a control page, by the code of lib/live.h.

use crate::failure::text_from_c;
use std::ffi::{CString, c_char};

unsafe extern "C" {
    fn live_word_of(spec: *const c_char, error: *mut c_char, size: usize) -> u64;
    fn live_text(word: u64, text: *mut c_char) -> bool;
}

mod c {
    include!(concat!(env!("OUT_DIR"), "/live_numbers.rs"));
}

/// The word of a specification, never 0. The error is one line.
pub fn word(spec: &str) -> Result<u64, String> {
    let spec = CString::new(spec).map_err(|_| "settings cannot contain NUL".to_owned())?;
    let mut line = [0; 1024];
    // SAFETY: the specification is a C string, and the buffer has this size.
    match unsafe { live_word_of(spec.as_ptr(), line.as_mut_ptr().cast(), line.len()) } {
        0 => Err(text_from_c(&line)),
        word => Ok(word),
    }
}

/// The settings of a word as KEY=VALUE[,...]. None if it has no valid ones.
pub fn text(word: u64) -> Option<String> {
    let mut text = [0; c::LONGEST_TEXT];
    // SAFETY: the buffer has the size that the function expects.
    unsafe { live_text(word, text.as_mut_ptr().cast()) }.then(|| text_from_c(&text))
}
