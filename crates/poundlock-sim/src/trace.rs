// SPDX-License-Identifier: MIT OR Apache-2.0
//! The timeline of each thread's activities.

use crate::ids::ThreadId;
use crate::locks::event_names;
use crate::time::Time;
use serde::Serialize;

/// An event of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    Asks,
    Acquired,
    Releases,
    Parks,
    Woken,
    OnCpu(u32),
    Preempted,
    /// One of `core/events.def`.
    Event(u32),
}

/// The marks, in the order of their recording.
#[derive(Debug, Default)]
pub(crate) struct Trace {
    wanted: bool,
    pub marks: Vec<(Time, ThreadId, Mark)>,
}

impl Trace {
    pub fn new(wanted: bool) -> Trace {
        Trace { wanted, marks: vec![] }
    }

    pub fn note(&mut self, at: Time, thread: ThreadId, mark: Mark) {
        if self.wanted {
            self.marks.push((at, thread, mark));
        }
    }
}

/// An entry of a timeline in the trace event format of Chrome and Perfetto: a span (`ph` X, with
/// `dur`) or an instant (i).
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TraceEvent {
    /// The name: waits, holds, sleeps, or an event of `core/events.def`.
    pub name: String,
    /// The kind.
    pub ph: &'static str,
    /// When it began, in microseconds.
    pub ts: f64,
    /// Its duration, in microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dur: Option<f64>,
    /// The process; always 0.
    pub pid: u32,
    /// The thread.
    pub tid: u32,
}

/// When the spans that a thread is in began.
#[derive(Clone, Copy, Default)]
struct Open {
    asks: Option<Time>,
    holds: Option<Time>,
    sleeps: Option<Time>,
    off: Option<Time>,
}

impl Trace {
    /// The timeline. Spans that have not ended are omitted.
    pub fn events(&self) -> Vec<TraceEvent> {
        let names = event_names();
        let threads = self
            .marks
            .iter()
            .map(|(_, thread, _)| *thread)
            .max()
            .map_or(0, |last| last as usize + 1);
        let mut open = vec![Open::default(); threads];
        let mut events = vec![];
        for (at, thread, mark) in &self.marks {
            let now = &mut open[*thread as usize];
            let ended = match mark {
                Mark::Asks => {
                    now.asks = Some(*at);
                    None
                }
                Mark::Acquired => {
                    now.holds = Some(*at);
                    now.asks.take().map(|from| ("waits", from))
                }
                Mark::Releases => now.holds.take().map(|from| ("holds", from)),
                Mark::Parks => {
                    now.sleeps = Some(*at);
                    None
                }
                Mark::Woken => {
                    now.off = Some(*at);
                    now.sleeps.take().map(|from| ("sleeps", from))
                }
                Mark::Preempted => {
                    now.off = Some(*at);
                    None
                }
                Mark::OnCpu(_) => now.off.take().map(|from| ("ready, without a CPU", from)),
                Mark::Event(event) => {
                    let name = names[*event as usize].to_owned();
                    events.push(TraceEvent {
                        name,
                        ph: "i",
                        ts: us(*at),
                        dur: None,
                        pid: 0,
                        tid: *thread,
                    });
                    None
                }
            };
            if let Some((name, from)) = ended {
                let dur = Some(us(at.saturating_sub(from)));
                events.push(TraceEvent {
                    name: name.to_owned(),
                    ph: "X",
                    ts: us(from),
                    dur,
                    pid: 0,
                    tid: *thread,
                });
            }
        }
        events
    }
}

fn us(time: Time) -> f64 {
    time as f64 / 1e6
}
