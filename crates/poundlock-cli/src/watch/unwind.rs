//! Unwinds copies of stacks: by .eh_frame, which compilers write even where they keep no frame
//! pointers, and by frame pointers in code without it.

use crate::statistics::Module;
use addr2line::gimli::{
    BaseAddresses, CfaRule, EhFrame, EhFrameHdr, LittleEndian, Register, RegisterRule,
    UnwindContext, UnwindSection,
};
use object::{Object, ObjectSection, ReadCache};
use std::collections::HashMap;
use std::fs::File;
use std::path::{Path, PathBuf};

/// The registers that a frame is found by. `link` is 0 where calls push the return address.
#[derive(Clone, Copy, Debug, Default)]
pub struct Registers {
    pub instruction: u64,
    pub stack_pointer: u64,
    pub frame_pointer: u64,
    pub link: u64,
}

/// The copy of a stack.
pub struct Memory<'a> {
    pub start: u64,
    pub bytes: &'a [u8],
}

impl Memory<'_> {
    fn word(&self, address: u64) -> Option<u64> {
        let at = usize::try_from(address.checked_sub(self.start)?).ok()?;
        let bytes = self.bytes.get(at..at.checked_add(8)?)?;
        Some(u64::from_le_bytes(bytes.try_into().ok()?))
    }
}

/// Numbers of registers in DWARF.
#[cfg(target_arch = "x86_64")]
mod register {
    use super::Register;
    pub const FRAME_POINTER: Register = Register(6);
    pub const STACK_POINTER: Register = Register(7);
    pub const RETURN: Register = Register(16);
}
#[cfg(not(target_arch = "x86_64"))]
mod register {
    use super::Register;
    pub const FRAME_POINTER: Register = Register(29);
    pub const STACK_POINTER: Register = Register(31);
    pub const RETURN: Register = Register(30);
}

/// An address without the signature that arm64 may put into its upper bits.
fn code_address(word: u64) -> u64 {
    if cfg!(target_arch = "aarch64") { word & ((1 << 48) - 1) } else { word }
}

const MOST_FRAMES: usize = 64;

/// Unwinds, and keeps the tables of the files that it has read.
#[derive(Default)]
pub struct Unwinder {
    tables: HashMap<PathBuf, Option<Table>>,
    context: UnwindContext<usize>,
}

impl Unwinder {
    /// The addresses of a stack, innermost first: return addresses, and the first one as if it
    /// were.
    pub fn unwind(
        &mut self,
        modules: &[Module],
        mut at: Registers,
        memory: &Memory<'_>,
    ) -> Vec<u64> {
        let mut frames = vec![at.instruction + 1];
        while frames.len() < MOST_FRAMES {
            let Some(caller) = self.caller(modules, at, memory, frames.len() == 1) else { break };
            if caller.instruction == 0 || caller.stack_pointer < at.stack_pointer {
                break;
            }
            frames.push(caller.instruction);
            at = caller;
        }
        frames
    }

    fn caller(
        &mut self,
        modules: &[Module],
        at: Registers,
        memory: &Memory<'_>,
        innermost: bool,
    ) -> Option<Registers> {
        // The call precedes the return address.
        let code = if innermost { at.instruction } else { at.instruction - 1 };
        let module = modules.iter().rev().find(|module| (module.start..module.end).contains(&code));
        if let Some(module) = module {
            let table =
                self.tables.entry(module.path.clone()).or_insert_with_key(|path| Table::read(path));
            let code = code.wrapping_sub(module.bias);
            if let Some(step) = table.as_ref().and_then(|table| table.step(&mut self.context, code))
            {
                return step.apply(at, memory);
            }
        }
        by_frame_pointer(at, memory)
    }
}

fn by_frame_pointer(at: Registers, memory: &Memory<'_>) -> Option<Registers> {
    if at.frame_pointer < at.stack_pointer {
        return None;
    }
    Some(Registers {
        instruction: code_address(memory.word(at.frame_pointer + 8)?),
        stack_pointer: at.frame_pointer + 16,
        frame_pointer: memory.word(at.frame_pointer)?,
        link: 0,
    })
}

/// The places of the caller's registers.
struct Step {
    /// The canonical frame address: a register and an offset.
    from: Register,
    offset: i64,
    /// Offsets from the canonical frame address. None: in the register still.
    instruction: Option<i64>,
    frame_pointer: Option<i64>,
}

impl Step {
    fn apply(&self, at: Registers, memory: &Memory<'_>) -> Option<Registers> {
        let from = match self.from {
            register::STACK_POINTER => at.stack_pointer,
            register::FRAME_POINTER => at.frame_pointer,
            _ => return None,
        };
        let frame = from.checked_add_signed(self.offset)?;
        let saved = |offset: i64| memory.word(frame.checked_add_signed(offset)?);
        Some(Registers {
            instruction: code_address(match self.instruction {
                Some(offset) => saved(offset)?,
                None => at.link,
            }),
            stack_pointer: frame,
            frame_pointer: match self.frame_pointer {
                Some(offset) => saved(offset)?,
                None => at.frame_pointer,
            },
            link: 0,
        })
    }
}

/// The unwind tables of a file.
struct Table {
    frames: Vec<u8>,
    index: Vec<u8>,
    bases: BaseAddresses,
}

impl Table {
    fn read(path: &Path) -> Option<Table> {
        let data = ReadCache::new(File::open(path).ok()?);
        let file = object::File::parse(&data).ok()?;
        let section = |name| {
            let section = file.section_by_name(name)?;
            Some((section.address(), section.data().ok()?.to_vec()))
        };
        let (frames_at, frames) = section(".eh_frame")?;
        let (index_at, index) = section(".eh_frame_hdr")?;
        let mut bases = BaseAddresses::default().set_eh_frame(frames_at).set_eh_frame_hdr(index_at);
        if let Some(text) = file.section_by_name(".text") {
            bases = bases.set_text(text.address());
        }
        Some(Table { frames, index, bases })
    }

    /// None: no entry, or one that no compiler writes for a function.
    fn step(&self, context: &mut UnwindContext<usize>, code: u64) -> Option<Step> {
        let frames = EhFrame::new(&self.frames, LittleEndian);
        let index = EhFrameHdr::new(&self.index, LittleEndian).parse(&self.bases, 8).ok()?;
        let row = index
            .table()?
            .unwind_info_for_address(&frames, &self.bases, context, code, EhFrame::cie_from_offset)
            .ok()?;
        let CfaRule::RegisterAndOffset { register: from, offset } = *row.cfa() else {
            return None;
        };
        let saved = |register| match row.register(register) {
            Some(RegisterRule::Offset(offset)) => Some(offset),
            _ => None,
        };
        Some(Step {
            from,
            offset,
            instruction: saved(register::RETURN),
            frame_pointer: saved(register::FRAME_POINTER),
        })
    }
}
