// SPDX-License-Identifier: MIT OR Apache-2.0
//! Descriptions of operations, messages and source locations, for traces and error messages.

use std::ffi::c_void;

use super::state::State;
use crate::abi::{self, NO_THREAD, Site};
use crate::arena;
use crate::memory::{Memory, Span};

/// The pending operation of `thread`.
pub fn operation(state: &State, thread: usize) -> String {
    let request = &state.threads[thread].request;
    if request.site.is_null() {
        return format!("T{thread}");
    }
    let site = state.site(thread);
    let mut text = format!("T{thread} {} {}", abi::text(site.operation), abi::text(site.object));
    if request.address != 0 {
        text += &format!(" [{}]", arena::name(request.address));
    }
    text + &format!(" ({})", line_of(site))
}

/// The origin of a message.
pub fn writer(memory: &Memory, message: u16) -> String {
    let message = memory.message(message);
    match (message.writer, message.step) {
        (NO_THREAD, _) => "setup".into(),
        (writer, 0) => format!("T{writer}'s plain write"),
        (writer, step) => format!("step {step} of T{writer}"),
    }
}

/// A read of `span` at a message.
pub fn read(memory: &Memory, span: Span, message: u16) -> String {
    let stale = if memory.is_newest(message) { "" } else { ", not the newest" };
    let value = arena::value(memory.value(span, message));
    format!(" reads {value} of {}{stale}", writer(memory, memory.origin(span, message)))
}

/// File name and line of `site`.
pub fn line_of(site: &Site) -> String {
    format!("{}:{}", file_name(abi::text(site.file)), site.line)
}

/// The last part of a path.
pub fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// File name and line of the call that returns to `pc`.
pub fn line_of_call(pc: *const c_void) -> String {
    let mut text = String::new();
    backtrace::resolve(pc.wrapping_byte_sub(1).cast_mut(), |symbol| {
        let (Some(file), Some(line)) = (symbol.filename(), symbol.lineno()) else { return };
        if text.is_empty() {
            text = format!("{}:{line}", file.file_name().unwrap_or_default().to_string_lossy());
        }
    });
    if text.is_empty() { format!("{pc:?}") } else { text }
}
