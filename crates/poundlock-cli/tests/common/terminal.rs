//! A terminal for commands that take one over.

use std::fs::File;
use std::io::Read;
use std::os::fd::FromRawFd;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// The two ends of a terminal: the user's, and the program's.
pub fn pseudo_terminal() -> (File, File) {
    let (mut user, mut program) = (0, 0);
    let size =
        libc::winsize { ws_row: Screen::ROWS, ws_col: Screen::COLUMNS, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: all pointers are null, which is allowed, or valid.
    let opened = unsafe {
        libc::openpty(&mut user, &mut program, std::ptr::null_mut(), std::ptr::null(), &size)
    };
    assert_eq!(opened, 0, "a pseudo-terminal");
    // SAFETY: both are open, and owned by nothing else.
    unsafe { (File::from_raw_fd(user), File::from_raw_fd(program)) }
}

/// The contents of a terminal.
pub struct Screen(Arc<Mutex<vt100::Parser>>);

impl Screen {
    pub const ROWS: u16 = 24;
    pub const COLUMNS: u16 = 100;

    pub fn of(user: &File) -> Screen {
        let parser = Arc::new(Mutex::new(vt100::Parser::new(Screen::ROWS, Screen::COLUMNS, 0)));
        let (mut user, shown) = (user.try_clone().expect("a copy"), Arc::clone(&parser));
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            // The end is an error: the program has closed the terminal.
            while let Ok(count @ 1..) = user.read(&mut bytes) {
                shown.lock().expect("no panic").process(&bytes[..count]);
            }
        });
        Screen(parser)
    }

    /// Waits until `text` is shown. Returns all that is shown.
    #[track_caller]
    pub fn await_text(&self, text: &str) -> String {
        let began = Instant::now();
        loop {
            let contents = self.0.lock().expect("no panic").screen().contents();
            if contents.contains(text) {
                return contents;
            }
            assert!(began.elapsed() < Duration::from_secs(300), "no '{text}' in:\n{contents}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}
