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
//! is continued by read-modify-writes only, as in C++20 and C23. Two accesses of which one is a write and one is plain
//! are a race if happens-before does not order them, found by vector clocks, whatever their outcome. The other one may be
//! atomic; atomic accesses are remembered only of locations that are traced.
//!
//! Messages that no thread can read any more are dropped, and what all threads know is not told apart: `encode` gives
//! equal memories equal codes, which is what makes the state space finite.

use std::fmt;
use std::ops::Range;

use xxhash_rust::xxh3::xxh3_128;

/// The most threads of a client.
pub const THREADS: usize = 8;
/// The most atomic locations of a client.
const LOCATIONS: usize = 1 << 14;
/// The distance in time between messages: how often a store can go before another is its binary logarithm.
const STEP: u32 = 1 << 16;
const NONE: u16 = u16::MAX;
/// The writer of what was there from the start.
pub const NOBODY: u8 = u8::MAX;
/// Views are widened by so many locations at a time.
const WIDER: usize = 16;

/// What threads and messages know, a view each: by thread, how far its plain accesses are ordered before; by location, its
/// newest message. All views of a memory are of one width, one behind the other: a memory is copied once a state.
#[derive(Clone, Default)]
struct Views {
    width: usize,
    slots: Vec<u32>,
    free: Vec<u16>,
}

impl Views {
    fn new(count: usize) -> Views {
        Views { width: THREADS, slots: vec![0; count * THREADS], free: Vec::new() }
    }

    fn get(&self, view: usize) -> &[u32] {
        &self.slots[view * self.width..][..self.width]
    }

    fn get_mut(&mut self, view: usize) -> &mut [u32] {
        &mut self.slots[view * self.width..][..self.width]
    }

    /// Makes room for the location of that number.
    fn widen(&mut self, location: usize) {
        if THREADS + location < self.width {
            return;
        }
        let width = THREADS + (location / WIDER + 1) * WIDER;
        let mut slots = vec![0; self.slots.len() / self.width * width];
        for (old, new) in self.slots.chunks_exact(self.width).zip(slots.chunks_exact_mut(width)) {
            new[..self.width].copy_from_slice(old);
        }
        (self.width, self.slots) = (width, slots);
    }

    /// A new view, which knows what `view` knows.
    fn copy(&mut self, view: usize) -> u16 {
        let from = view * self.width;
        if let Some(free) = self.free.pop() {
            self.slots.copy_within(from..from + self.width, free as usize * self.width);
            return free;
        }
        self.slots.extend_from_within(from..from + self.width);
        (self.slots.len() / self.width - 1) as u16
    }

    fn set(&mut self, to: usize, from: usize) {
        self.slots.copy_within(from * self.width..(from + 1) * self.width, to * self.width);
    }

    /// The view `to` learns what the view `from` knows.
    fn join(&mut self, to: usize, from: usize) {
        self.join_slots(to, from, 0);
    }

    /// The view `to` learns what the view `from` knows of locations; plain accesses are no more ordered than before.
    fn join_locations(&mut self, to: usize, from: usize) {
        self.join_slots(to, from, THREADS);
    }

    fn join_slots(&mut self, to: usize, from: usize, first: usize) {
        if to == from {
            return;
        }
        let (low, high) = self.slots.split_at_mut(to.max(from) * self.width);
        let low = &mut low[to.min(from) * self.width..][first..self.width];
        let high = &mut high[first..self.width];
        let (to, from) = if to < from { (low, high) } else { (high, low) };
        to.iter_mut().zip(from).for_each(|(mine, theirs)| *mine = (*mine).max(*theirs));
    }

    fn is_within(&self, view: usize, other: &[u32]) -> bool {
        self.get(view).iter().zip(other).all(|(mine, theirs)| mine <= theirs)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Store,
    Update,
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
    dead: bool,
    last_time: u32,
}

const UNTOUCHED: Location = Location { head: NONE, dead: false, last_time: 0 };

/// A plain object that has been accessed.
#[derive(Clone, Copy)]
struct Object {
    start: usize,
    end: usize,
    dead: bool,
}

/// A code of one of a set, of which the set's is the exclusive or.
fn code_of(words: [u64; 2]) -> u128 {
    // SAFETY: any u64 is 8 bytes.
    xxh3_128(unsafe { std::slice::from_raw_parts(words.as_ptr().cast(), size_of_val(&words)) })
}

impl Object {
    fn code(&self) -> u128 {
        code_of([self.start as u64, self.end as u64])
    }

    fn overlaps(&self, start: usize, end: usize) -> bool {
        self.start < end && start < self.end
    }
}

/// What an access does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    PlainRead,
    PlainWrite,
    /// Atomic, as the next; also of a read-modify-write that fails.
    Load,
    Store,
}

impl Access {
    fn is_plain(self) -> bool {
        matches!(self, Access::PlainRead | Access::PlainWrite)
    }

    fn writes(self) -> bool {
        matches!(self, Access::PlainWrite | Access::Store)
    }
}

/// The accesses to some bytes that not all threads know of: the last plain write, and by thread the clocks of the last
/// accesses of other kinds since.
#[derive(Clone, Copy)]
struct Cell {
    start: usize,
    end: usize,
    writer: u8,
    written: u32,
    read: [u32; THREADS],
    loaded: [u32; THREADS],
    stored: [u32; THREADS],
}

const NO_CLOCKS: [u32; THREADS] = [0; THREADS];

impl Cell {
    fn new(start: usize, end: usize) -> Cell {
        Cell { start, end, writer: 0, written: 0, read: NO_CLOCKS, loaded: NO_CLOCKS, stored: NO_CLOCKS }
    }

    fn overlaps(&self, start: usize, end: usize) -> bool {
        self.start < end && start < self.end
    }

    /// The race of `access`, by a thread whose view is `now`, with one that is remembered.
    fn race(&self, access: Access, now: &[u32]) -> Option<Fault> {
        if self.written > now[self.writer as usize] {
            return Some(Fault::Race { with: self.writer, did: "plain write" });
        }
        let others: [(bool, &[u32; THREADS], &str); 3] = [
            (access.writes(), &self.read, "plain read"),
            (access.is_plain(), &self.stored, "atomic store"),
            (access == Access::PlainWrite, &self.loaded, "atomic load"),
        ];
        others.into_iter().filter(|(conflicts, ..)| *conflicts).find_map(|(_, clocks, did)| {
            let with = (0..THREADS).find(|&thread| clocks[thread] > now[thread])? as u8;
            Some(Fault::Race { with, did })
        })
    }

    /// Remembers `access` by `thread` at its `clock`, which races with nothing.
    fn remember(&mut self, access: Access, thread: usize, clock: u32) {
        match access {
            // Happens-before is transitive: its successors come after all of its predecessors.
            Access::PlainWrite => {
                *self = Cell { writer: thread as u8, written: clock, ..Cell::new(self.start, self.end) };
            }
            Access::PlainRead => self.read[thread] = clock,
            Access::Load if self.stored[thread] == clock => {}
            Access::Load => self.loaded[thread] = clock,
            // Conflicts with all that a load conflicts with.
            Access::Store => (self.stored[thread], self.loaded[thread]) = (clock, 0),
        }
    }

    /// Forgets what all threads know. Whether something is left.
    fn forget(&mut self, floor: &[u32]) -> bool {
        if self.written <= floor[self.writer as usize] {
            (self.writer, self.written) = (0, 0);
        }
        for clocks in [&mut self.read, &mut self.loaded, &mut self.stored] {
            clocks.iter_mut().zip(floor).filter(|(clock, floor)| **clock <= **floor).for_each(|(clock, _)| *clock = 0);
        }
        self.written != 0 || [self.read, self.loaded, self.stored] != [NO_CLOCKS; 3]
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
    /// How many threads there are.
    threads: usize,
    /// First that of each thread's next operation. Where there are fences, then what each would know after an acquire fence,
    /// what each knew at its last release fence, and what sequentially consistent fences hand on. Then messages' own.
    views: Views,
    messages: Vec<Message>,
    free_messages: Vec<u16>,
    locations: Vec<Location>,
    /// The locations of which there is more to tell than their value, in order.
    busy: Vec<u16>,
    objects: Vec<Object>,
    cells: Vec<Cell>,
    /// A code of the set of all that is dead.
    dead: u128,
    /// There are fences.
    fences: bool,
}

impl Clone for Memory {
    fn clone(&self) -> Self {
        Memory {
            threads: self.threads,
            views: self.views.clone(),
            messages: self.messages.clone(),
            free_messages: self.free_messages.clone(),
            locations: self.locations.clone(),
            busy: self.busy.clone(),
            objects: self.objects.clone(),
            cells: self.cells.clone(),
            dead: self.dead,
            fences: self.fences,
        }
    }

    // Keeps the allocations: this runs once a state.
    fn clone_from(&mut self, source: &Self) {
        self.threads = source.threads;
        self.views.width = source.views.width;
        self.views.slots.clone_from(&source.views.slots);
        self.views.free.clone_from(&source.views.free);
        self.messages.clone_from(&source.messages);
        self.free_messages.clone_from(&source.free_messages);
        self.locations.clone_from(&source.locations);
        self.busy.clone_from(&source.busy);
        self.objects.clone_from(&source.objects);
        self.cells.clone_from(&source.cells);
        (self.dead, self.fences) = (source.dead, source.fences);
    }
}

impl Memory {
    pub fn new(threads: usize, fences: bool) -> Memory {
        let views = if fences { 3 * threads + 1 } else { threads };
        let mut memory = Memory {
            threads,
            views: Views::new(views),
            messages: Vec::new(),
            free_messages: Vec::new(),
            locations: Vec::new(),
            busy: Vec::new(),
            objects: Vec::new(),
            cells: Vec::new(),
            dead: 0,
            fences,
        };
        for thread in 0..threads {
            memory.views.get_mut(thread)[thread] = 1;
        }
        memory
    }

    /// What `thread` would know after an acquire fence.
    fn acquired(&self, thread: usize) -> usize {
        self.threads + thread
    }

    /// What `thread` knew at its last release fence.
    fn released(&self, thread: usize) -> usize {
        2 * self.threads + thread
    }

    /// What sequentially consistent fences hand on.
    fn fenced(&self) -> usize {
        3 * self.threads
    }

    fn seen(&self, thread: usize, location: usize) -> u32 {
        self.views.get(thread)[THREADS + location]
    }

    fn clock(&self, thread: usize) -> u32 {
        self.views.get(thread)[thread]
    }

    /// There is more to tell of `location` than its value.
    fn stir(&mut self, location: usize) {
        if let Err(at) = self.busy.binary_search(&(location as u16)) {
            self.busy.insert(at, location as u16);
        }
    }

    /// `thread` learns of the message of that time.
    fn learn(&mut self, thread: usize, location: usize, time: u32) {
        let slot = THREADS + location;
        let known = &mut self.views.get_mut(thread)[slot];
        *known = time.max(*known);
        if self.fences {
            let acquired = self.acquired(thread);
            let known = &mut self.views.get_mut(acquired)[slot];
            *known = time.max(*known);
        }
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

    fn free_view(&mut self, index: u16) {
        if index != NONE {
            self.views.free.push(index);
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

    /// Begins the life of `location`, which lies at `place` and holds `value`, if it is new to this execution.
    pub fn reach(
        &mut self,
        thread: usize,
        location: usize,
        place: Range<usize>,
        value: u64,
        owner: bool,
    ) -> Result<(), Fault> {
        if location >= LOCATIONS {
            return Err(Fault::Limit("a client with so many atomic objects"));
        }
        if self.locations.len() <= location {
            self.locations.resize(location + 1, UNTOUCHED);
            self.views.widen(location);
        }
        if self.locations[location].dead {
            if !owner {
                return Err(Fault::Dead);
            }
            self.rewrite(thread, location, value);
            // The compiler need not have told of the write that began it.
            self.order(thread, place.clone(), Access::PlainWrite, true)?;
        }
        if self.locations[location].head == NONE {
            self.begin(location, value);
            self.adopt_objects(place, owner)?;
        }
        Ok(())
    }

    fn begin(&mut self, location: usize, value: u64) {
        let message = Message { value, writer: NOBODY, step: 0, time: 0, next: NONE, view: NONE, kind: Kind::Store };
        self.locations[location].head = self.new_message(message);
    }

    /// Plain objects turn out to be an atomic one.
    fn adopt_objects(&mut self, place: Range<usize>, owner: bool) -> Result<(), Fault> {
        if !owner && self.objects.iter().any(|object| object.dead && object.overlaps(place.start, place.end)) {
            return Err(Fault::Dead);
        }
        self.objects.retain(|object| object.start < place.start || place.end < object.end);
        self.dead = self.code_of_dead();
        Ok(())
    }

    /// Checks that `access` by `thread` to the bytes at `place` races with no earlier one, and remembers it if `keep`.
    pub fn order(&mut self, thread: usize, place: Range<usize>, access: Access, keep: bool) -> Result<(), Fault> {
        let now = self.views.get(thread);
        let mut exact = None;
        for (at, cell) in self.cells.iter().enumerate().filter(|(_, cell)| cell.overlaps(place.start, place.end)) {
            if let Some(race) = cell.race(access, now) {
                return Err(race);
            }
            if (cell.start..cell.end) == place {
                exact = Some(at);
            }
        }
        if keep {
            let clock = now[thread];
            let at = exact.unwrap_or_else(|| {
                let at = self.cells.partition_point(|cell| (cell.start, cell.end) < (place.start, place.end));
                self.cells.insert(at, Cell::new(place.start, place.end));
                at
            });
            self.cells[at].remember(access, thread, clock);
        }
        Ok(())
    }

    /// The values that somebody can read of locations that have more than one.
    pub fn old_values(&self) -> impl Iterator<Item = u64> + '_ {
        let messages = self.busy.iter().flat_map(|&location| self.messages_of(location as usize));
        messages.map(|index| self.messages[index as usize].value)
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
        let Message { value, time, view, .. } = self.messages[message as usize];
        self.learn(thread, location, time);
        if view != NONE && self.fences {
            self.views.join(self.acquired(thread), view as usize);
        }
        if view != NONE && acquire {
            self.views.join(thread, view as usize);
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
        let before = self.messages[after as usize];
        let time = self.time_after(location, &before)?;
        self.learn(thread, location, time);
        let view = self.handed_on(thread, if update { before.view } else { NONE }, release);
        if view != NONE {
            // Who reads it learns of it by itself; so messages that tell the same are alike.
            self.views.get_mut(view as usize)[THREADS + location] = 0;
        }
        let kind = if update { Kind::Update } else { Kind::Store };
        let message = Message { value, writer: thread as u8, step, time, next: before.next, view, kind };
        let message = self.new_message(message);
        self.messages[after as usize].next = message;
        self.stir(location);
        Ok(())
    }

    /// The view of a new message of `thread`, which continues a release sequence from a message of view `before`.
    fn handed_on(&mut self, thread: usize, before: u16, release: bool) -> u16 {
        let view = if release {
            let view = self.views.copy(thread);
            self.views.get_mut(thread)[thread] += 1;
            view
        } else if self.fences {
            self.views.copy(self.released(thread))
        } else if before != NONE {
            return self.views.copy(before as usize);
        } else {
            return NONE;
        };
        if before != NONE {
            self.views.join(view as usize, before as usize);
        }
        view
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
        let own = self.clock(thread);
        self.views.set(thread, self.acquired(thread));
        self.views.get_mut(thread)[thread] = own;
    }

    pub fn fence_release(&mut self, thread: usize) {
        self.views.set(self.released(thread), thread);
        self.views.get_mut(thread)[thread] += 1;
    }

    pub fn fence_acq_rel(&mut self, thread: usize) {
        self.fence_acquire(thread);
        self.fence_release(thread);
    }

    /// A sequentially consistent fence. The order of such fences restricts what can be read and where stores can go, but is
    /// no part of happens-before, so that it orders no plain accesses.
    pub fn fence(&mut self, thread: usize) {
        self.fence_acquire(thread);
        self.views.join_locations(thread, self.fenced());
        self.views.join_locations(self.fenced(), thread);
        self.views.set(self.acquired(thread), thread);
        self.fence_release(thread);
    }

    /// Lets all threads know all that has been done: in a forked child memory is what it is, and a thread that is
    /// created knows what its creator does.
    pub fn share_all(&mut self) {
        for thread in 1..self.threads {
            self.views.join(0, thread);
        }
        let clocks: Vec<u32> = (0..self.threads).map(|thread| self.clock(thread)).collect();
        for (location, place) in self.locations.iter().enumerate() {
            self.views.get_mut(0)[THREADS + location] = place.last_time;
        }
        for (thread, clock) in clocks.into_iter().enumerate() {
            self.views.set(thread, 0);
            self.views.get_mut(thread)[thread] = clock;
            if self.fences {
                self.views.set(self.acquired(thread), thread);
            }
        }
    }

    /// `thread` writes the atomic `location` plainly, or begins its new life.
    fn rewrite(&mut self, thread: usize, location: usize, value: u64) {
        let old: Vec<u16> = self.messages_of(location).collect();
        old.into_iter().for_each(|message| self.free_message(message));
        let place = &mut self.locations[location];
        if std::mem::take(&mut place.dead) {
            self.dead ^= code_of([1, location as u64]);
        }
        place.last_time += STEP;
        let time = place.last_time;
        let message = Message { value, writer: thread as u8, step: 0, time, next: NONE, view: NONE, kind: Kind::Store };
        let message = self.new_message(message);
        self.locations[location].head = message;
        self.learn(thread, location, time);
    }

    /// A plain access by `thread` to an atomic location that lies within it, and that `order` lets pass. `owner`: may
    /// revive what is dead.
    pub fn plain_on_atomic(&mut self, thread: usize, location: usize, write: bool, owner: bool) -> Result<(), Fault> {
        let Some(&place) = self.locations.get(location) else { return Ok(()) };
        if place.dead && !(owner && write) {
            return Err(Fault::Dead);
        }
        if write && (place.dead || place.head != NONE) {
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

    /// A plain access, by a thread that owns the memory or not, to the bytes from `start` to `end`, where no atomic object is.
    pub fn plain(&mut self, start: usize, end: usize, owner: bool) -> Result<(), Fault> {
        // Objects lie within aligned words.
        let mut at = self.objects.partition_point(|object| object.start < start / 8 * 8);
        let mut known = false;
        while let Some(object) = self.objects.get_mut(at).filter(|object| object.start < end) {
            if object.overlaps(start, end) {
                // The owner's frame has another use now; the compiler need not have told of the write that began it.
                if object.dead && !owner {
                    return Err(Fault::Dead);
                }
                if std::mem::take(&mut object.dead) {
                    self.dead ^= object.code();
                }
                known |= (object.start, object.end) == (start, end);
            }
            at += 1;
        }
        if !known {
            self.objects.insert(at, Object { start, end, dead: false });
        }
        Ok(())
    }

    fn code_of_dead(&self) -> u128 {
        let places = self.locations.iter().enumerate().filter(|(_, place)| place.dead);
        let objects = self.objects.iter().filter(|object| object.dead);
        let places = places.map(|(location, _)| code_of([1, location as u64]));
        places.chain(objects.map(Object::code)).fold(0, |all, code| all ^ code)
    }

    /// Ends the life of the plain objects from `start` to `end`.
    pub fn kill_cells(&mut self, start: usize, end: usize) {
        self.cells.retain(|cell| !cell.overlaps(start, end));
        let first = self.objects.partition_point(|object| object.start < start / 8 * 8);
        let objects = self.objects[first..].iter_mut().take_while(|object| object.start < end);
        for object in objects.filter(|object| object.end > start && !object.dead) {
            object.dead = true;
            self.dead ^= object.code();
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
        self.dead ^= code_of([1, location as u64]);
    }

    /// Drops what nobody can tell from having never been. `live` are the threads that have not ended, a bit each.
    pub fn collect(&mut self, live: u32, coder: &mut Coder) {
        let mut threads = (0..self.threads).filter(|thread| live >> thread & 1 != 0);
        let Some(first) = threads.next() else { return };
        let floor = &mut coder.floor;
        floor.clear();
        floor.extend_from_slice(self.views.get(first));
        for thread in threads {
            floor.iter_mut().zip(self.views.get(thread)).for_each(|(mine, theirs)| *mine = (*mine).min(*theirs));
        }
        let mut busy = std::mem::take(&mut self.busy);
        busy.retain(|&location| self.collect_location(location as usize, floor));
        self.busy = busy;
        self.cells.retain_mut(|cell| cell.forget(floor));
    }

    /// Whether there is more to tell of `location` than its value.
    fn collect_location(&mut self, location: usize, floor: &[u32]) -> bool {
        let mut head = self.locations[location].head;
        if head == NONE {
            return false;
        }
        let known = floor[THREADS + location];
        loop {
            let next = self.messages[head as usize].next;
            if next == NONE || self.messages[next as usize].time > known {
                break;
            }
            self.free_message(head);
            head = next;
        }
        self.locations[location].head = head;
        let mut at = head;
        while at != NONE {
            let Message { view, next, .. } = self.messages[at as usize];
            if view != NONE && self.views.is_within(view as usize, floor) {
                self.free_view(view);
                self.messages[at as usize].view = NONE;
            }
            at = next;
        }
        let Message { next, view, .. } = self.messages[head as usize];
        next != NONE || view != NONE
    }

    /// Appends a code of the memory that is the same for memories that no continuation can tell apart. Call it after
    /// `collect`, with the same `live`.
    pub fn encode(&self, live: u32, coder: &mut Coder, into: &mut Vec<u64>) {
        coder.prepare(self);
        into.push(coder.slots.len() as u64);
        pack(coder.slots.iter().map(|&(slot, _)| slot as u64), into);
        let threads = || (0..self.threads).filter(|thread| live >> thread & 1 != 0);
        threads().for_each(|thread| coder.view(self.views.get(thread), into));
        if self.fences {
            for thread in threads() {
                coder.view(self.views.get(self.acquired(thread)), into);
                coder.view(self.views.get(self.released(thread)), into);
            }
            coder.view(self.views.get(self.fenced()), into);
        }
        into.push(self.busy.len() as u64);
        self.busy.iter().for_each(|&location| self.encode_location(location as usize, coder, into));
        into.extend([self.dead as u64, (self.dead >> 64) as u64]);
        for cell in &self.cells {
            into.push(cell.start as u64);
            into.push(cell.end as u64);
            into.push(u64::from(cell.writer) << 32 | coder.clock_rank(cell.writer as usize, cell.written));
            [&cell.read, &cell.loaded, &cell.stored].into_iter().for_each(|clocks| coder.clocks_of(clocks, into));
        }
    }

    fn encode_location(&self, location: usize, coder: &Coder, into: &mut Vec<u64>) {
        if self.locations[location].head == NONE {
            return into.push(u64::from(NONE) << 32 | location as u64);
        }
        into.push((self.messages_of(location).count() as u64) << 32 | location as u64);
        for index in self.messages_of(location) {
            let message = &self.messages[index as usize];
            into.push(message.value);
            into.push((message.kind as u64) << 1 | u64::from(message.view != NONE));
            if message.view != NONE {
                coder.view(self.views.get(message.view as usize), into);
            }
        }
    }
}

/// Turns times and clocks, which differ between executions that are alike, into ranks, which do not. It is kept from one
/// memory to the next for its allocations alone.
#[derive(Default)]
pub struct Coder {
    /// What all threads know.
    floor: Vec<u32>,
    /// By thread, the clocks of remembered accesses, in order.
    clocks: [Vec<u32>; THREADS],
    /// The slots of views that tell something, each with the end of its times.
    slots: Vec<(usize, usize)>,
    /// By slot, the times that an entry of a view there can be at or past, in order.
    times: Vec<u32>,
}

impl Coder {
    fn prepare(&mut self, memory: &Memory) {
        self.clocks.iter_mut().for_each(Vec::clear);
        for cell in &memory.cells {
            self.note(cell.writer as usize, cell.written);
            for clocks in [&cell.read, &cell.loaded, &cell.stored] {
                clocks.iter().enumerate().for_each(|(thread, &clock)| self.note(thread, clock));
            }
        }
        self.slots.clear();
        self.times.clear();
        for (thread, clocks) in self.clocks.iter_mut().enumerate().filter(|(_, clocks)| !clocks.is_empty()) {
            clocks.sort_unstable();
            clocks.dedup();
            self.times.extend_from_slice(clocks);
            self.slots.push((thread, self.times.len()));
        }
        for &location in &memory.busy {
            let messages = memory.messages_of(location as usize).map(|index| &memory.messages[index as usize]);
            let before = self.times.len();
            // All have seen the first.
            self.times.extend(messages.skip(1).map(|message| message.time));
            if self.times.len() > before {
                self.slots.push((THREADS + location as usize, self.times.len()));
            }
        }
    }

    fn note(&mut self, thread: usize, clock: u32) {
        if clock != 0 {
            self.clocks[thread].push(clock);
        }
    }

    fn clock_rank(&self, thread: usize, clock: u32) -> u64 {
        if clock == 0 { 0 } else { self.clocks[thread].partition_point(|&c| c <= clock) as u64 }
    }

    fn clocks_of(&self, clocks: &[u32; THREADS], into: &mut Vec<u64>) {
        pack(clocks.iter().enumerate().map(|(thread, &clock)| self.clock_rank(thread, clock)), into);
    }

    fn view(&self, view: &[u32], into: &mut Vec<u64>) {
        let mut start = 0;
        let rank = |&(slot, end): &(usize, usize)| {
            let times = &self.times[std::mem::replace(&mut start, end)..end];
            let known = view[slot];
            times.iter().map(|&time| u64::from(time <= known)).sum()
        };
        pack(self.slots.iter().map(rank), into);
    }
}

/// Appends numbers of at most 16 bits, four to a word.
fn pack(numbers: impl Iterator<Item = u64>, into: &mut Vec<u64>) {
    for (count, number) in numbers.enumerate() {
        match count % 4 {
            0 => into.push(number),
            place => *into.last_mut().expect("the word has begun") |= number << (16 * place),
        }
    }
}
