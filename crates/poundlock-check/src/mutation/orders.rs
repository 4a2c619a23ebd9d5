// SPDX-License-Identifier: MIT OR Apache-2.0
//! The search for the clients of one lock that detect weaker orders.
//!
//! Orders that no likely client detects are weakened together: all of them together allow each
//! execution that one of them allows. So a client that does not detect them together needs not be
//! tried on each of them.

use anyhow::{Context, Result};
use tempfile::TempDir;

use super::attribution::{Finding, Status};
use super::detect::{Detector, Search};
use super::mutant::{self, Mutant};
use crate::catalogue::File;
use crate::compile;

/// A weaker order, and the clients to try first.
#[derive(Clone, Copy)]
pub struct Order<'a> {
    pub mutant: &'a Mutant,
    pub first: &'a [String],
}

fn new_folder() -> Result<TempDir> {
    tempfile::tempdir().context("cannot create a temporary folder")
}

/// The orders of a lock whose findings are searched, each with its search.
struct Group<'a> {
    lock: &'a str,
    orders: &'a [Order<'a>],
    searches: Vec<Search<'a>>,
    findings: Vec<Option<Finding>>,
}

impl Detector<'_> {
    /// The finding for each of `orders` in `lock`.
    pub fn attribute(&self, lock: &str, orders: &[Order]) -> Result<Vec<Finding>> {
        let folders: Vec<TempDir> = orders.iter().map(|_| new_folder()).collect::<Result<_>>()?;
        let mut group = Group { lock, orders, searches: Vec::new(), findings: Vec::new() };
        for (order, folder) in orders.iter().zip(&folders) {
            let mut search = self.search(order.mutant, folder.path())?;
            group.findings.push(self.attribute_likely(lock, order, &mut search)?);
            group.searches.push(search);
        }
        let open = (0..orders.len()).filter(|&number| group.findings[number].is_none()).collect();
        self.attribute_together(&mut group, open, 0)?;
        Ok(group.findings.into_iter().map(|finding| finding.expect("each has one")).collect())
    }

    /// The finding for `order`, if the code of `lock` is the same with it or one of the likely
    /// clients detects it.
    fn attribute_likely(
        &self,
        lock: &str,
        order: &Order,
        search: &mut Search,
    ) -> Result<Option<Finding>> {
        let files = self.changed_files(lock, search)?;
        if files.is_empty() {
            return Ok(Some(Finding::without_killer(Status::Absent, 0)));
        }
        let known = self.known.get(order.mutant.name.as_str());
        for name in order.first.iter().chain(known) {
            let own = files.iter().any(|file| Some(file.name.as_str()) == name.split('/').next());
            if own && self.try_named(search, name)?.is_some() {
                return Ok(Some(Finding::detected(name.clone())));
            }
        }
        Ok(None)
    }

    /// Searches the findings for the orders with the numbers `open`. The first `tried` clients do
    /// not detect them.
    fn attribute_together(
        &self,
        group: &mut Group,
        open: Vec<usize>,
        mut tried: usize,
    ) -> Result<()> {
        if open.is_empty() {
            return Ok(());
        }
        let mutants: Vec<&Mutant> = open.iter().map(|&at| group.orders[at].mutant).collect();
        let Some(name) = self.next_killer(group.lock, &mutants, &mut tried)? else {
            let survives = Finding::without_killer(Status::Survives, tried);
            open.into_iter().for_each(|at| group.findings[at] = Some(survives.clone()));
            return Ok(());
        };
        for &at in &open {
            let detects = self.try_named(&mut group.searches[at], &name)?.is_some();
            group.findings[at] = detects.then(|| Finding::detected(name.clone()));
        }
        let left: Vec<usize> =
            open.iter().copied().filter(|&at| group.findings[at].is_none()).collect();
        if left.len() < open.len() {
            return self.attribute_together(group, left, tried);
        }
        // The client detects several together, but none alone.
        let (first, second) = left.split_at(left.len() / 2);
        self.attribute_together(group, first.to_vec(), tried)?;
        self.attribute_together(group, second.to_vec(), tried)
    }

    /// The first client of `lock`, the cheapest first, that detects `orders` together. Skips the
    /// number of clients in `tried`, and adds those that it has tried.
    fn next_killer(
        &self,
        lock: &str,
        orders: &[&Mutant],
        tried: &mut usize,
    ) -> Result<Option<String>> {
        let folder = new_folder()?;
        let weaker = mutant::weakened(orders, self.sources, folder.path())?;
        let mut search = self.search_in(weaker, true, folder.path())?;
        let mut entries = Vec::new();
        for file in self.files.iter().filter(|file| file.subject() == lock) {
            entries.extend(self.entries(&mut search, file)?);
        }
        for entry in self.ordered(entries).iter().skip(*tried) {
            *tried += 1;
            if self.try_client(&mut search, entry).is_some() {
                return Ok(Some(entry.name.clone()));
            }
        }
        Ok(None)
    }

    /// The files of clients of `lock` whose code `search` changes.
    fn changed_files(&self, lock: &str, search: &mut Search) -> Result<Vec<&File>> {
        let mut files = Vec::new();
        for file in self.files.iter().filter(|file| file.subject() == lock) {
            self.entries(search, file)?;
            if compile::differ(self.runtime, search.folder, &file.name)? {
                files.push(file);
            }
        }
        Ok(files)
    }
}
