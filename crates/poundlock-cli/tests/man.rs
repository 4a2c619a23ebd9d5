//! The manual pages in docs/man match the command line. POUNDLOCK_WRITE_MAN=1 writes them.

use clap::{Command, CommandFactory};
use poundlock_cli::Cli;
use std::path::{Path, PathBuf};

/// Every page with its name: one for the command, and one for each visible subcommand at any depth.
fn pages() -> Vec<(PathBuf, String)> {
    let mut command = Cli::command().disable_help_subcommand(true);
    command.build();
    let mut pages = Vec::new();
    add_pages(command, "poundlock".to_owned(), &mut pages);
    pages
}

fn add_pages(command: Command, name: String, pages: &mut Vec<(PathBuf, String)>) {
    let subcommands: Vec<Command> =
        command.get_subcommands().filter(|sub| !sub.is_hide_set()).cloned().collect();
    pages.push(page(command, name.clone()));
    for subcommand in subcommands {
        let name = format!("{name}-{}", subcommand.get_name());
        add_pages(subcommand, name, pages);
    }
}

fn page(command: Command, name: String) -> (PathBuf, String) {
    let file =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/man").join(format!("{name}.1"));
    let mut text = Vec::new();
    clap_mangen::Man::new(command).title(name).render(&mut text).expect("a page");
    (file, String::from_utf8(text).expect("UTF-8"))
}

#[test]
fn the_manual_pages_are_those_of_the_command_line() {
    let write = std::env::var_os("POUNDLOCK_WRITE_MAN").is_some();
    for (file, text) in pages() {
        if write {
            std::fs::write(&file, &text).expect("docs/man takes files");
        }
        let found = std::fs::read_to_string(&file).unwrap_or_default();
        assert!(
            found == text,
            "{} is out of date: write it with POUNDLOCK_WRITE_MAN=1 cargo test --test man",
            file.display()
        );
    }
}
