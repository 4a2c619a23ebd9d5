// SPDX-License-Identifier: MIT OR Apache-2.0
//! The memory: C11 without load buffering, as a view machine.
//!
//! Each atomic location has a list of messages, the stores to it in modification order. A thread's view says, by
//! location, the oldest message that it may still read; a message's view is what an acquiring reader learns. A store
//! may go before messages that its thread has not seen, but never between a read-modify-write and what it read.
//!
//! Promises: the reads that are allowed are those of RC11 (Lahav et al., PLDI'17) for relaxed, acquire, release and
//! SC-fence operations, but for two differences, both on the safe side of what compilers and processors do:
//! a read never takes its value from a store that comes later in every order (load buffering), and a release sequence
//! is continued by read-modify-writes only, as in C++20 and C23. Two accesses to a plain object that are not ordered
//! are a race, found by vector clocks, whatever their outcome.
//!
//! Messages that no thread can read any more are dropped, and what all threads know is not told apart: `encode` gives
//! equal memories equal codes, which is what makes the state space finite.

use std::fmt;

/// The most threads of a client.
pub const THREADS: usize = 8;
/// The most atomic locations of a client.
const LOCATIONS: usize = 120;
const WIDTH: usize = THREADS + LOCATIONS;
/// The distance in time between messages: how often a store can go before another is its binary logarithm.
const STEP: u32 = 1 << 16;
const NONE: u16 = u16::MAX;
/// The writer of what was there from the start.
pub const NOBODY: u8 = u8::MAX;

/// What somebody knows: by thread, how far its plain accesses are ordered before; by location, its newest message.
#[derive(Clone, Copy)]
struct View([u32; WIDTH]);

impl View {
    const EMPTY: View = View([0; WIDTH]);

    fn join(&mut self, other: &View, used: usize) {
        for (mine, theirs) in self.0[..used].iter_mut().zip(&other.0[..used]) {
            *mine = (*mine).max(*theirs);
        }
    }

    fn meet(&mut self, other: &View, used: usize) {
        for (mine, theirs) in self.0[..used].iter_mut().zip(&other.0[..used]) {
            *mine = (*mine).min(*theirs);
        }
    }

    fn is_within(&self, other: &View, used: usize) -> bool {
        self.0[..used].iter().zip(&other.0[..used]).all(|(mine, theirs)| mine <= theirs)
    }
}

#[derive(Clone, Copy)]
struct Views {
    /// What the thread's next operation knows.
    now: View,
    /// What it would know after an acquire fence.
    acquired: View,
    /// What it knew at its last release fence.
    released: View,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Store,
    Update,
    /// A plain write, e.g. of an initialisation: who has not seen it races with it.
    Plain,
}

/// A store to a location.
#[derive(Clone, Copy)]
pub struct Message {
    pub value: u64,
    /// The thread, or NOBODY.
    pub writer: u8,
    /// The step of the execution that made it.
    pub step: u32,
    time: u32,
    next: u16,
    view: u16,
    kind: Kind,
}

#[derive(Clone, Copy)]
struct Location {
    /// The oldest message that somebody can read; NONE if the location has not been accessed in this execution.
    head: u16,
    last_time: u32,
    dead: bool,
    /// By thread, the clock of its last access; kept only where freeing is checked.
    touched: [u32; THREADS],
}

const UNTOUCHED: Location = Location { head: NONE, last_time: 0, dead: false, touched: [0; THREADS] };

/// A plain object.
#[derive(Clone, Copy)]
struct Cell {
    start: usize,
    end: usize,
    writer: u8,
    written: u32,
    read: [u32; THREADS],
    dead: bool,
}

impl Cell {
    fn overlaps(&self, start: usize, end: usize) -> bool {
        self.start < end && start < self.end
    }

    fn is_fresh(&self) -> bool {
        self.written != 0 || self.read.iter().any(|&clock| clock != 0)
    }
}

/// What a thread did wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It is not ordered after what thread `with` did there.
    Race { with: u8, did: &'static str },
    /// The object's life is over.
    Dead,
    /// The engine's bounds.
    Limit(&'static str),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Race { with: NOBODY, did } => write!(f, "data race: not ordered after the {did} at the start"),
            Fault::Race { with, did } => write!(f, "data race: not ordered after the {did} by T{with}"),
            Fault::Dead => write!(f, "access to memory whose life is over"),
            Fault::Limit(what) => write!(f, "beyond this checker: {what}"),
        }
    }
}

/// The memory of one moment of an execution. Locations are numbered by the caller, stably over all executions.
pub struct Memory {
    threads: Vec<Views>,
    messages: Vec<Message>,
    free_messages: Vec<u16>,
    views: Vec<View>,
    free_views: Vec<u16>,
    locations: Vec<Location>,
    cells: Vec<Cell>,
    fences: View,
    /// Whether accesses to atomic objects are remembered, so that freeing one is checked against them.
    pub track: bool,
}

impl Clone for Memory {
    fn clone(&self) -> Self {
        Memory {
            threads: self.threads.clone(),
            messages: self.messages.clone(),
            free_messages: self.free_messages.clone(),
            views: self.views.clone(),
            free_views: self.free_views.clone(),
            locations: self.locations.clone(),
            cells: self.cells.clone(),
            ..*self
        }
    }

    // Keeps the allocations: this runs once a state.
    fn clone_from(&mut self, source: &Self) {
        self.threads.clone_from(&source.threads);
        self.messages.clone_from(&source.messages);
        self.free_messages.clone_from(&source.free_messages);
        self.views.clone_from(&source.views);
        self.free_views.clone_from(&source.free_views);
        self.locations.clone_from(&source.locations);
        self.cells.clone_from(&source.cells);
        self.fences = source.fences;
        self.track = source.track;
    }
}

impl Memory {
    pub fn new(threads: usize, track: bool) -> Memory {
        let mut memory = Memory {
            threads: vec![Views { now: View::EMPTY, acquired: View::EMPTY, released: View::EMPTY }; threads],
            messages: Vec::new(),
            free_messages: Vec::new(),
            views: Vec::new(),
            free_views: Vec::new(),
            locations: Vec::new(),
            cells: Vec::new(),
            fences: View::EMPTY,
            track,
        };
        for (thread, views) in memory.threads.iter_mut().enumerate() {
            views.now.0[thread] = 1;
        }
        memory
    }

    fn used(&self) -> usize {
        THREADS + self.locations.len()
    }

    fn seen(&self, thread: usize, location: usize) -> u32 {
        self.threads[thread].now.0[THREADS + location]
    }

    fn clock(&self, thread: usize) -> u32 {
        self.threads[thread].now.0[thread]
    }

    fn new_message(&mut self, message: Message) -> u16 {
        if let Some(index) = self.free_messages.pop() {
            self.messages[index as usize] = message;
            return index;
        }
        self.messages.push(message);
        (self.messages.len() - 1) as u16
    }

    fn free_message(&mut self, index: u16) {
        self.free_view(self.messages[index as usize].view);
        self.free_messages.push(index);
    }

    fn new_view(&mut self, view: View) -> u16 {
        if let Some(index) = self.free_views.pop() {
            self.views[index as usize] = view;
            return index;
        }
        self.views.push(view);
        (self.views.len() - 1) as u16
    }

    fn free_view(&mut self, index: u16) {
        if index != NONE {
            self.free_views.push(index);
        }
    }

    fn messages_of(&self, location: usize) -> impl Iterator<Item = u16> + '_ {
        let mut next = self.locations.get(location).map_or(NONE, |l| l.head);
        std::iter::from_fn(move || {
            let index = next;
            if index == NONE {
                return None;
            }
            next = self.messages[index as usize].next;
            Some(index)
        })
    }

    /// The message at `index`.
    pub fn message(&self, index: u16) -> &Message {
        &self.messages[index as usize]
    }

    fn newest(&self, location: usize) -> u16 {
        self.messages_of(location).last().expect("an accessed location has a message")
    }

    /// The value of the newest message of `location`.
    pub fn newest_value(&self, location: usize) -> u64 {
        self.messages[self.newest(location) as usize].value
    }

    /// Begins the life of `location`, which lies at `address` and holds `value`, if it is new to this execution.
    pub fn reach(
        &mut self,
        thread: usize,
        location: usize,
        place: (usize, usize),
        value: u64,
        owner: bool,
    ) -> Result<(), Fault> {
        if location >= LOCATIONS {
            return Err(Fault::Limit("a client with so many atomic objects"));
        }
        if self.locations.len() <= location {
            self.locations.resize(location + 1, UNTOUCHED);
        }
        if self.locations[location].dead {
            if !owner {
                return Err(Fault::Dead);
            }
            self.rewrite(thread, location, value);
        }
        if self.locations[location].head == NONE {
            self.begin(location, value);
            self.adopt_cells(location, place.0, place.0 + place.1, owner)?;
        }
        Ok(())
    }

    /// Checks an atomic access by `thread` to `location`, which has been reached.
    pub fn access(&mut self, thread: usize, location: usize) -> Result<(), Fault> {
        let head = self.messages[self.locations[location].head as usize];
        if head.kind == Kind::Plain && head.time > self.seen(thread, location) {
            return Err(Fault::Race { with: head.writer, did: "plain write" });
        }
        if self.track {
            self.locations[location].touched[thread] = self.clock(thread);
        }
        Ok(())
    }

    fn begin(&mut self, location: usize, value: u64) {
        let message = Message { value, writer: NOBODY, step: 0, time: 0, next: NONE, view: NONE, kind: Kind::Store };
        self.locations[location].head = self.new_message(message);
    }

    /// A plain object turns out to be an atomic one: its last plain write becomes the location's first message.
    fn adopt_cells(&mut self, location: usize, start: usize, end: usize, owner: bool) -> Result<(), Fault> {
        for at in (0..self.cells.len()).rev() {
            let cell = self.cells[at];
            if !cell.overlaps(start, end) {
                continue;
            }
            if cell.dead && !owner {
                return Err(Fault::Dead);
            }
            if cell.written != 0 {
                self.adopt(location, &cell);
            }
            if start <= cell.start && cell.end <= end {
                self.cells.remove(at);
            }
        }
        Ok(())
    }

    fn adopt(&mut self, location: usize, cell: &Cell) {
        let (writer, slot) = (cell.writer as usize, THREADS + location);
        let learn = |view: &mut View| {
            if view.0[writer] >= cell.written {
                view.0[slot] = STEP;
            }
        };
        for views in &mut self.threads {
            learn(&mut views.now);
            learn(&mut views.acquired);
            learn(&mut views.released);
        }
        self.views.iter_mut().for_each(learn);
        learn(&mut self.fences);
        let head = self.locations[location].head as usize;
        self.messages[head] = Message { writer: cell.writer, time: STEP, kind: Kind::Plain, ..self.messages[head] };
        self.locations[location].last_time = STEP;
    }

    /// The messages that `thread` may read, oldest first, into `into`.
    pub fn readable(&self, thread: usize, location: usize, into: &mut Vec<u16>) {
        let seen = self.seen(thread, location);
        into.clear();
        into.extend(self.messages_of(location));
        // The newest message at or before what was seen is the first.
        let first = into.iter().rposition(|&m| self.messages[m as usize].time <= seen).unwrap_or(0);
        into.drain(..first);
    }

    /// Whether a store may come right after `message`.
    pub fn is_open(&self, message: u16) -> bool {
        let next = self.messages[message as usize].next;
        next == NONE || self.messages[next as usize].kind != Kind::Update
    }

    /// Whether `message` is its location's newest.
    pub fn is_newest(&self, message: u16) -> bool {
        self.messages[message as usize].next == NONE
    }

    /// `thread` reads `message`.
    pub fn read(&mut self, thread: usize, location: usize, message: u16, acquire: bool) -> u64 {
        let used = self.used();
        let Message { value, time, view, .. } = self.messages[message as usize];
        let views = &mut self.threads[thread];
        let slot = THREADS + location;
        views.now.0[slot] = views.now.0[slot].max(time);
        views.acquired.0[slot] = views.acquired.0[slot].max(time);
        if view != NONE {
            views.acquired.join(&self.views[view as usize], used);
            if acquire {
                views.now.join(&self.views[view as usize], used);
            }
        }
        value
    }

    /// `thread` stores `value` right after message `after.0`; as one step with having read that if `after.1`.
    pub fn write(
        &mut self,
        thread: usize,
        location: usize,
        after: (u16, bool),
        value: u64,
        release: bool,
        step: u32,
    ) -> Result<(), Fault> {
        let (after, update) = after;
        let used = self.used();
        let before = self.messages[after as usize];
        let time = self.time_after(location, &before)?;
        let slot = THREADS + location;
        let views = &mut self.threads[thread];
        views.now.0[slot] = time;
        views.acquired.0[slot] = time;
        let mut view = if release { views.now } else { views.released };
        view.0[slot] = time;
        if release {
            views.now.0[thread] += 1;
        }
        if update && before.view != NONE {
            view.join(&self.views[before.view as usize], used);
        }
        let view = self.new_view(view);
        let kind = if update { Kind::Update } else { Kind::Store };
        let message = Message { value, writer: thread as u8, step, time, next: before.next, view, kind };
        let message = self.new_message(message);
        self.messages[after as usize].next = message;
        Ok(())
    }

    fn time_after(&mut self, location: usize, before: &Message) -> Result<u32, Fault> {
        if before.next == NONE {
            let last = &mut self.locations[location].last_time;
            *last = last.checked_add(STEP).ok_or(Fault::Limit("an execution with so many stores"))?;
            return Ok(*last);
        }
        let next = self.messages[before.next as usize].time;
        let time = before.time + (next - before.time) / 2;
        if time == before.time {
            return Err(Fault::Limit("so many stores that go before another"));
        }
        Ok(time)
    }

    pub fn fence_acquire(&mut self, thread: usize) {
        let views = &mut self.threads[thread];
        let own = views.now.0[thread];
        views.now = views.acquired;
        views.now.0[thread] = own;
    }

    pub fn fence_release(&mut self, thread: usize) {
        let views = &mut self.threads[thread];
        views.released = views.now;
        views.now.0[thread] += 1;
    }

    /// A sequentially consistent fence.
    pub fn fence(&mut self, thread: usize) {
        let used = self.used();
        self.fence_acquire(thread);
        let views = &mut self.threads[thread];
        views.now.join(&self.fences, used);
        self.fences = views.now;
        views.acquired = views.now;
        self.fence_release(thread);
    }

    /// Lets all threads know all that has been done: in a forked child memory is what it is, and a thread that is
    /// created knows what its creator does.
    pub fn share_all(&mut self) {
        let used = self.used();
        let mut all = View::EMPTY;
        self.threads.iter().for_each(|views| all.join(&views.now, used));
        for (location, place) in self.locations.iter().enumerate() {
            all.0[THREADS + location] = place.last_time;
        }
        for (thread, views) in self.threads.iter_mut().enumerate() {
            let own = views.now.0[thread];
            views.now = all;
            views.now.0[thread] = own;
            views.acquired = views.now;
        }
    }

    /// `thread` writes the atomic `location` plainly, or begins its new life.
    fn rewrite(&mut self, thread: usize, location: usize, value: u64) {
        let old: Vec<u16> = self.messages_of(location).collect();
        old.into_iter().for_each(|message| self.free_message(message));
        let place = &mut self.locations[location];
        place.dead = false;
        place.touched = [0; THREADS];
        place.last_time += STEP;
        let time = place.last_time;
        let message = Message { value, writer: thread as u8, step: 0, time, next: NONE, view: NONE, kind: Kind::Plain };
        let message = self.new_message(message);
        self.locations[location].head = message;
        self.threads[thread].now.0[THREADS + location] = time;
        self.threads[thread].acquired.0[THREADS + location] = time;
    }

    /// Checks that a plain access by `thread` to an atomic `location` is ordered after the atomic ones.
    fn check_ordered(&self, thread: usize, location: usize, write: bool) -> Result<(), Fault> {
        let newest = &self.messages[self.newest(location) as usize];
        if newest.time > self.seen(thread, location) {
            return Err(Fault::Race { with: newest.writer, did: "store" });
        }
        let now = &self.threads[thread].now;
        let touched = &self.locations[location].touched;
        match (0..self.threads.len()).find(|&other| other != thread && touched[other] > now.0[other]) {
            Some(with) if write => Err(Fault::Race { with: with as u8, did: "atomic access" }),
            _ => Ok(()),
        }
    }

    /// A plain access by `thread` to an atomic location that lies within it. `owner`: may revive what is dead.
    pub fn plain_on_atomic(&mut self, thread: usize, location: usize, write: bool, owner: bool) -> Result<(), Fault> {
        let Some(&place) = self.locations.get(location) else { return Ok(()) };
        if place.dead {
            if !owner || !write {
                return Err(Fault::Dead);
            }
        } else if place.head != NONE {
            self.check_ordered(thread, location, write)?;
        } else {
            return Ok(());
        }
        if write {
            self.rewrite(thread, location, 0);
        }
        Ok(())
    }

    /// Whether `location` has been accessed in this execution, and lives.
    pub fn is_begun(&self, location: usize) -> bool {
        self.locations.get(location).is_some_and(|place| place.head != NONE)
    }

    /// Whether the life of `location` is over.
    pub fn is_dead(&self, location: usize) -> bool {
        self.locations.get(location).is_some_and(|place| place.dead)
    }

    /// Tells the value that a plain write has left in `location`.
    pub fn set_plain_value(&mut self, location: usize, value: u64) {
        let head = self.locations[location].head;
        if head != NONE && self.messages[head as usize].next == NONE {
            self.messages[head as usize].value = value;
        }
    }

    /// A plain access by `thread` to the bytes from `start` to `end`, where no atomic object is.
    pub fn plain(&mut self, thread: usize, start: usize, end: usize, write: bool, owner: bool) -> Result<(), Fault> {
        let now = self.threads[thread].now;
        let clock = now.0[thread];
        let mut exact = None;
        for (at, cell) in self.cells.iter_mut().enumerate().filter(|(_, cell)| cell.overlaps(start, end)) {
            if cell.dead {
                // The owner's frame has another use now; the compiler need not have told of the write that began it.
                if !owner {
                    return Err(Fault::Dead);
                }
                *cell = Cell { written: 0, read: [0; THREADS], dead: false, ..*cell };
            }
            if cell.written > now.0[cell.writer as usize % THREADS] {
                return Err(Fault::Race { with: cell.writer, did: "write" });
            }
            if write && let Some(with) = (0..THREADS).find(|&other| cell.read[other] > now.0[other]) {
                return Err(Fault::Race { with: with as u8, did: "read" });
            }
            if (cell.start, cell.end) == (start, end) {
                exact = Some(at);
            }
        }
        let at = exact.unwrap_or_else(|| {
            let at = self.cells.partition_point(|cell| (cell.start, cell.end) < (start, end));
            let cell = Cell { start, end, writer: 0, written: 0, read: [0; THREADS], dead: false };
            self.cells.insert(at, cell);
            at
        });
        let cell = &mut self.cells[at];
        if write {
            (cell.writer, cell.written, cell.read) = (thread as u8, clock, [0; THREADS]);
        } else {
            cell.read[thread] = clock;
        }
        Ok(())
    }

    /// Ends the life of the plain objects from `start` to `end`.
    pub fn kill_cells(&mut self, start: usize, end: usize) {
        for cell in self.cells.iter_mut().filter(|cell| cell.overlaps(start, end)) {
            *cell = Cell { writer: 0, written: 0, read: [0; THREADS], dead: true, ..*cell };
        }
    }

    /// Ends the life of `location`.
    pub fn kill(&mut self, location: usize) {
        let Some(place) = self.locations.get(location) else { return };
        if place.head == NONE {
            return;
        }
        let old: Vec<u16> = self.messages_of(location).collect();
        old.into_iter().for_each(|message| self.free_message(message));
        let place = &mut self.locations[location];
        place.head = NONE;
        place.dead = true;
        place.touched = [0; THREADS];
    }

    /// Drops what nobody can tell from having never been. `live` says which threads have not ended.
    pub fn collect(&mut self, live: impl Fn(usize) -> bool) {
        let used = self.used();
        let mut floor: Option<View> = None;
        for (_, views) in self.threads.iter().enumerate().filter(|(thread, _)| live(*thread)) {
            match &mut floor {
                None => floor = Some(views.now),
                Some(floor) => floor.meet(&views.now, used),
            }
        }
        let Some(floor) = floor else { return };
        for location in 0..self.locations.len() {
            self.collect_location(location, &floor, used);
        }
        for cell in &mut self.cells {
            if cell.written <= floor.0[cell.writer as usize % THREADS] {
                cell.written = 0;
            }
            for thread in 0..THREADS {
                if cell.read[thread] <= floor.0[thread] {
                    cell.read[thread] = 0;
                }
            }
        }
    }

    fn collect_location(&mut self, location: usize, floor: &View, used: usize) {
        let place = self.locations[location];
        if place.head == NONE {
            return;
        }
        let mut head = place.head;
        loop {
            let next = self.messages[head as usize].next;
            if next == NONE || self.messages[next as usize].time > floor.0[THREADS + location] {
                break;
            }
            self.free_message(head);
            head = next;
        }
        self.locations[location].head = head;
        let first = &mut self.messages[head as usize];
        if first.kind == Kind::Plain && first.time <= floor.0[THREADS + location] {
            first.kind = Kind::Store;
        }
        let mut at = head;
        while at != NONE {
            let Message { view, next, .. } = self.messages[at as usize];
            if view != NONE && self.views[view as usize].is_within(floor, used) {
                self.free_view(view);
                self.messages[at as usize].view = NONE;
            }
            at = next;
        }
        if self.track {
            for thread in 0..self.threads.len() {
                if place.touched[thread] <= floor.0[thread] {
                    self.locations[location].touched[thread] = 0;
                }
            }
        }
    }

    /// Appends a code of the memory that is the same for memories that no continuation can tell apart. Call it after
    /// `collect`, with the same `live`.
    pub fn encode(&self, live: impl Fn(usize) -> bool, into: &mut Vec<u64>) {
        let coder = Coder::new(self);
        for (_, views) in self.threads.iter().enumerate().filter(|(thread, _)| live(*thread)) {
            coder.view(&views.now, into);
            coder.view(&views.acquired, into);
            coder.view(&views.released, into);
        }
        coder.view(&self.fences, into);
        for (location, place) in self.locations.iter().enumerate() {
            self.encode_location(location, place, &coder, into);
        }
        for cell in &self.cells {
            if cell.dead || cell.is_fresh() {
                into.push(cell.start as u64 | (cell.dead as u64) << 63);
                into.push(cell.end as u64);
                coder.clock(cell.writer as usize, cell.written, into);
                (0..self.threads.len()).for_each(|thread| coder.clock(thread, cell.read[thread], into));
            }
        }
    }

    fn encode_location(&self, location: usize, place: &Location, coder: &Coder, into: &mut Vec<u64>) {
        if place.dead {
            into.push(0xdead << 32 | location as u64);
            return;
        }
        if place.head == NONE {
            return;
        }
        if self.track && place.touched.iter().any(|&clock| clock != 0) {
            into.push(0x70c4 << 32 | location as u64);
            (0..self.threads.len()).for_each(|thread| coder.clock(thread, place.touched[thread], into));
        }
        let head = &self.messages[place.head as usize];
        if head.next == NONE && head.view == NONE && head.time <= coder.base.0[THREADS + location] {
            return; // only a value, which is in the memory itself
        }
        into.push(0x10c << 32 | location as u64);
        for index in self.messages_of(location) {
            let message = &self.messages[index as usize];
            into.push(message.value);
            into.push(message.kind as u64);
            if message.view != NONE {
                coder.view(&self.views[message.view as usize], into);
            }
        }
    }
}

/// Turns times and clocks, which differ between executions that are alike, into ranks, which do not.
struct Coder<'m> {
    memory: &'m Memory,
    /// Up to here entries of views cannot be told apart.
    base: View,
    /// By thread, the clocks of remembered accesses, in order.
    clocks: [Vec<u32>; THREADS],
}

impl<'m> Coder<'m> {
    fn new(memory: &'m Memory) -> Self {
        let mut clocks: [Vec<u32>; THREADS] = Default::default();
        for cell in &memory.cells {
            note(&mut clocks[cell.writer as usize % THREADS], cell.written);
            (0..THREADS).for_each(|thread| note(&mut clocks[thread], cell.read[thread]));
        }
        if memory.track {
            for place in memory.locations.iter().filter(|place| place.head != NONE) {
                (0..THREADS).for_each(|thread| note(&mut clocks[thread], place.touched[thread]));
            }
        }
        let mut base = View([u32::MAX; WIDTH]);
        for (clocks, base) in clocks.iter_mut().zip(&mut base.0) {
            clocks.sort_unstable();
            clocks.dedup();
            if let Some(&first) = clocks.first() {
                *base = first - 1;
            }
        }
        for (location, place) in memory.locations.iter().enumerate() {
            if place.head != NONE {
                let head = &memory.messages[place.head as usize];
                // A plain write tells apart who has seen it.
                base.0[THREADS + location] = if head.kind == Kind::Plain { head.time - 1 } else { head.time };
            }
        }
        Coder { memory, base, clocks }
    }

    fn clock(&self, thread: usize, clock: u32, into: &mut Vec<u64>) {
        let rank = if clock == 0 { 0 } else { self.clocks[thread].partition_point(|&c| c <= clock) };
        into.push(rank as u64);
    }

    fn view(&self, view: &View, into: &mut Vec<u64>) {
        let used = self.memory.used();
        for slot in 0..used {
            if view.0[slot] > self.base.0[slot] {
                into.push((slot as u64) << 32 | self.rank(slot, view.0[slot]) as u64);
            }
        }
        into.push(u64::MAX);
    }

    fn rank(&self, slot: usize, entry: u32) -> usize {
        if slot < THREADS {
            return self.clocks[slot].partition_point(|&clock| clock <= entry);
        }
        let messages = self.memory.messages_of(slot - THREADS);
        messages.take_while(|&index| self.memory.messages[index as usize].time <= entry).count()
    }
}

fn note(clocks: &mut Vec<u32>, clock: u32) {
    if clock != 0 {
        clocks.push(clock);
    }
}
