//! The stacks that the BPF program copied, with the names of their functions.

use super::records::Sample;
use super::target::{Code, Target};
use super::unwind::{Memory, Registers, Unwinder};
use crate::program::mapped::Files;
use crate::program::preload;
use crate::statistics::{Module, Names};
use std::collections::HashMap;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// The beginning of the names of functions in Poundlock's libraries, which have those of pthread.h.
const OURS: &str = "libpoundlock:";

/// The least time between two looks at the code for the sake of one stack.
const PATIENCE: Duration = Duration::from_millis(100);

/// The names of the functions of a stack.
pub type Functions = Rc<[String]>;

/// The known stacks.
pub struct Stacks {
    unwinder: Unwinder,
    files: Files,
    /// The process's code, again when it had changed.
    codes: Vec<Code>,
    /// By its hash, the addresses of a stack with the index of the code that they belong to.
    known: HashMap<u64, (Vec<u64>, usize)>,
    names: Names,
    named: HashMap<u64, Functions>,
    compiled: Vec<(u64, u64, String)>,
    looked: Option<Instant>,
}

impl Default for Stacks {
    fn default() -> Stacks {
        Stacks {
            unwinder: Unwinder::default(),
            files: Files::default(),
            codes: Vec::new(),
            known: HashMap::new(),
            names: Names::with_debug_files(),
            named: HashMap::new(),
            compiled: Vec::new(),
            looked: None,
        }
    }
}

impl Stacks {
    /// Reads the process's code. Returns whether it has changed.
    pub fn look(&mut self, target: &Target) -> bool {
        self.looked = Some(Instant::now());
        let code = target.code(&mut self.files);
        let last = self.codes.last();
        if code.modules.is_empty() || last.is_some_and(|last| last.is_same(&code)) {
            return false;
        }
        self.codes.push(code);
        true
    }

    pub fn code(&self) -> &Code {
        self.codes.last().expect("look() came first")
    }

    /// Unwinds a copy. Returns whether the code had changed.
    pub fn take(&mut self, target: &Target, sample: &Sample, bytes: &[u8]) -> bool {
        let registers = Registers {
            instruction: sample.instruction,
            stack_pointer: sample.stack_pointer,
            frame_pointer: sample.frame_pointer,
            link: sample.link,
        };
        let is_known = self.add(sample.stack, registers, bytes);
        // A new library, or by execve() a new program.
        let is_due = self.looked.is_none_or(|looked| looked.elapsed() >= PATIENCE);
        let has_changed = !is_known && is_due && self.look(target);
        if has_changed {
            self.add(sample.stack, registers, bytes);
        }
        has_changed
    }

    /// Unwinds the stack of a thread by its registers and the bytes from its stack pointer. Returns
    /// whether all of it lies in known code.
    pub fn add(&mut self, stack: u64, registers: Registers, bytes: &[u8]) -> bool {
        let generation = self.codes.len() - 1;
        let memory = Memory { start: registers.stack_pointer, bytes };
        let modules = &self.codes[generation].modules;
        let frames = self.unwinder.unwind(modules, registers, &memory);
        let is_known = frames.iter().all(|frame| module_of(modules, *frame).is_some());
        self.known.insert(stack, (frames, generation));
        // It may have been looked up before its copy came.
        self.named.remove(&stack);
        is_known
    }

    /// The names are looked up from now on: of functions that were compiled just in time, too.
    pub fn finish(&mut self, target: &Target) {
        let compiled = target.compiled_functions();
        if compiled != self.compiled {
            self.compiled = compiled;
            self.named.clear();
        }
    }

    /// The functions of a stack, innermost first. Empty: no copy of it was kept.
    pub fn functions(&mut self, stack: u64) -> Functions {
        if let Some(named) = self.named.get(&stack) {
            return Rc::clone(named);
        }
        let named: Functions = self.lookup(stack).into();
        self.named.insert(stack, Rc::clone(&named));
        named
    }

    fn lookup(&mut self, stack: u64) -> Vec<String> {
        let Some((frames, generation)) = self.known.get(&stack) else { return Vec::new() };
        let modules = &self.codes[*generation].modules;
        let mut functions = Vec::new();
        for frame in frames {
            functions.extend(names(&mut self.names, modules, &self.compiled, *frame));
        }
        functions
    }

    /// The name of a static object, if the address lies in one.
    pub fn object(&mut self, address: u64) -> Option<String> {
        let code = self.codes.last()?;
        self.names.object(&code.modules, address)
    }
}

fn names(
    names: &mut Names,
    modules: &[Module],
    compiled: &[(u64, u64, String)],
    frame: u64,
) -> Vec<String> {
    let before = compiled.partition_point(|(start, ..)| *start < frame);
    if let Some((start, size, name)) = before.checked_sub(1).map(|index| &compiled[index])
        && frame - start <= *size
    {
        return vec![name.clone()];
    }
    match module_of(modules, frame) {
        Some(module) if preload::is_ours(&module.path) => {
            let found = names.functions_in(module, frame);
            found.iter().map(|name| format!("{OURS}{name}")).collect()
        }
        _ => names.functions(modules, frame),
    }
}

/// The module of a return address.
fn module_of(modules: &[Module], address: u64) -> Option<&Module> {
    modules.iter().rev().find(|module| (module.start..module.end).contains(&(address - 1)))
}
