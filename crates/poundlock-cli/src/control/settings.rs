//! The settings of a lock as the word of a control page, by the code of lib/live.h.

use crate::failure::text_from_c;
use std::ffi::{CString, c_char};
use std::fmt::{self, Display, Formatter};

/// The kinds of locks whose settings can be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    Mutex,
    ReadersWriter,
}

impl Kind {
    pub const ALL: [Kind; 2] = [Kind::Mutex, Kind::ReadersWriter];

    /// The locks of this kind whose settings can be changed; the default is first.
    fn locks(self) -> &'static [&'static str] {
        match self {
            Kind::Mutex => &["shfl_mutex", "shfl_ron"],
            Kind::ReadersWriter => &["shfl_rw"],
        }
    }

    /// The lock by which a specification names settings of this kind.
    pub fn lock(self) -> &'static str {
        self.locks()[0]
    }

    /// The kind of the lock that a specification names, if it names one of these.
    pub fn of(spec: &str) -> Option<Kind> {
        let name = spec.split(',').next().unwrap_or_default();
        Kind::ALL.into_iter().find(|kind| kind.locks().contains(&name))
    }
}

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

/// The settings of a word, one by one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    pub patience: u32,
    pub policy: String,
    pub batch: u32,
    pub spins: u32,
}

impl Settings {
    /// None if the word has no valid settings.
    pub fn of(word: u64) -> Option<Settings> {
        let text = text(word)?;
        let value = |key| {
            let mut pairs = text.split(',').filter_map(|pair| pair.split_once('='));
            pairs.find(|(found, _)| *found == key).map(|(_, value)| value)
        };
        Some(Settings {
            patience: value("patience")?.parse().ok()?,
            policy: value("policy")?.to_owned(),
            batch: value("batch")?.parse().ok()?,
            spins: value("spins")?.parse().ok()?,
        })
    }

    /// The word of these settings, the same for each kind. The error is one line.
    pub fn word(&self) -> Result<u64, String> {
        word(&self.spec(Kind::Mutex))
    }

    /// The specification of a lock of this kind with these settings.
    pub fn spec(&self, kind: Kind) -> String {
        format!("{},{self}", kind.lock())
    }
}

impl Display for Settings {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Settings { patience, policy, batch, spins } = self;
        write!(f, "patience={patience},policy={policy},batch={batch},spins={spins}")
    }
}

#[cfg(test)]
mod tests {
    use super::{Kind, Settings, text, word};

    #[test]
    fn settings_one_by_one_are_those_of_the_word() {
        let seven =
            word("shfl_mutex,patience=7,policy=fifo,batch=9,spins=3").expect("right settings");
        let settings = Settings::of(seven).expect("valid settings");
        assert_eq!((settings.patience, settings.batch, settings.spins), (7, 9, 3));
        assert_eq!(settings.policy, "fifo");
        assert_eq!(settings.word(), Ok(seven));
        assert_eq!(word(&settings.spec(Kind::ReadersWriter)), Ok(seven));
        for kind in Kind::ALL {
            for lock in kind.locks() {
                let spec = format!("{lock},{settings}");
                assert_eq!((word(&spec), Kind::of(&spec)), (Ok(seven), Some(kind)), "{spec}");
            }
        }
        assert_eq!(text(seven), Some(settings.to_string()));
        assert_eq!(Settings::of(0), None);
        assert!(Settings { batch: 0, ..settings }.word().is_err());
    }
}
