//! The model checker's clients on simulated machines: their assertions hold in all interleavings,
//! so also in the simulated ones.

use poundlock_sim::{Machine, clients, event_names, lock_names};
use std::collections::BTreeSet;
use std::path::Path;

fn machine(name: &str) -> Machine {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../machines");
    Machine::read(&folder.join(format!("{name}.toml"))).expect("a machine")
}

#[test]
fn every_lock_has_clients() {
    let having: BTreeSet<&str> = clients().iter().map(|client| client.lock()).collect();
    let all: BTreeSet<&str> = lock_names(false).into_iter().chain(lock_names(true)).collect();
    assert_eq!(having, all);
    assert!(clients().len() > 20 * all.len());
}

#[test]
fn clients_hold_on_one_socket_and_on_four() {
    let mut contended = BTreeSet::new();
    let at = event_names().iter().position(|name| *name == "contended").expect("the event");
    for name in ["i9-12900k", "gold-6130"] {
        let machine = machine(name);
        for client in clients() {
            let counts = client
                .simulate(&machine, 1)
                .unwrap_or_else(|wrong| panic!("{}: {wrong}", client.name()));
            if counts[at] > 0 {
                contended.insert(client.lock());
            }
        }
    }
    let all: BTreeSet<&str> = lock_names(false).into_iter().chain(lock_names(true)).collect();
    assert_eq!(contended, all, "all have waited");
}
