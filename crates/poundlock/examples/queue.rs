//! A bounded queue: producers wait until there is room, consumers until there is an element.

use poundlock::{Condvar, Mutex};
use std::collections::VecDeque;
use std::thread;

struct Queue<T> {
    elements: Mutex<VecDeque<T>>,
    room: usize,
    not_full: Condvar,
    not_empty: Condvar,
}

impl<T> Queue<T> {
    fn new(room: usize) -> Queue<T> {
        let elements = Mutex::new(VecDeque::with_capacity(room));
        Queue { elements, room, not_full: Condvar::new(), not_empty: Condvar::new() }
    }

    fn push(&self, element: T) {
        let mut elements = self.elements.lock();
        self.not_full.wait_while(&mut elements, |elements| elements.len() == self.room);
        elements.push_back(element);
        drop(elements);
        self.not_empty.notify_one();
    }

    fn pop(&self) -> T {
        let mut elements = self.elements.lock();
        self.not_empty.wait_while(&mut elements, |elements| elements.is_empty());
        let element = elements.pop_front().expect("it is not empty");
        drop(elements);
        self.not_full.notify_one();
        element
    }
}

fn main() {
    let queue = Queue::new(4);
    let sum: u64 = thread::scope(|scope| {
        scope.spawn(|| (1..=1000).for_each(|number| queue.push(number)));
        (0..1000).map(|_| queue.pop()).sum()
    });
    assert_eq!(sum, 500_500);
    println!("received 1000 numbers; their sum is {sum}");
}
