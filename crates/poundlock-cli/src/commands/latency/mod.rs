//! `poundlock latency`: measures the cache-line latency between CPUs.

mod table;

use crate::failure::Failure;
use crate::output::Page;
use crate::plot::heat_map;
use crate::provenance::Provenance;
use crate::{output, runs};
use clap::Args;
use poundlock_topology::cpus;
use poundlock_topology::input;
use poundlock_topology::latency::{Measurements, Settings, measure};
use poundlock_topology::machine::{Machine, SYSFS};
use serde::{Deserialize, Serialize};
use std::io::ErrorKind;
use std::path::Path;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The maximum work that is lost if the process is killed.
const SAVED_EVERY: Duration = Duration::from_secs(2);

#[derive(Args, Debug)]
pub(crate) struct LatencyArgs {
    /// CPUs, such as 0-3,8 [default: all that this process may use]
    #[arg(long, value_name = "LIST")]
    pub cpus: Option<String>,
    /// Number of samples per pair of CPUs
    #[arg(
        long, value_name = "N", default_value_t = 30,
        value_parser = clap::value_parser!(u32).range(1..=1_000_000)
    )]
    pub samples: u32,
    /// Number of round trips per sample
    #[arg(
        long, value_name = "N", default_value_t = 1000,
        value_parser = clap::value_parser!(u32).range(1..=1_000_000)
    )]
    pub round_trips: u32,
    /// Save the measurements in FILE as JSON, and resume from those in it (-: print them to stdout
    /// at the end)
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Measure all pairs again, even those in the JSON file
    #[arg(long, requires = "json")]
    pub restart: bool,
    /// Write the medians to FILE as CSV: a lower triangle with one row and column per CPU
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Write a heat map to FILE as SVG
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
}

#[derive(Serialize)]
struct Document<'a> {
    #[serde(flatten)]
    measurements: &'a Measurements,
    #[serde(flatten)]
    provenance: &'a Provenance,
}

/// Measures the missing pairs and prints the result.
pub fn latency(args: &LatencyArgs) -> Result<ExitCode, Failure> {
    let machine = Machine::read(Path::new(SYSFS)).map_err(Failure::ours)?;
    let mut session = Session::begin(args, &machine)?;
    let interrupted = runs::interrupts()?;
    let result = session.measure_all(&interrupted);
    session.save()?;
    result?;
    session.publish(&machine)?;
    let complete = session.measurements.complete;
    Ok(runs::exit_code(!complete, std::iter::empty()))
}

struct Session<'a> {
    args: &'a LatencyArgs,
    page: Page,
    provenance: Provenance,
    measurements: Measurements,
    /// The number of pairs that an earlier session measured.
    before: usize,
}

impl Session<'_> {
    fn begin<'a>(args: &'a LatencyArgs, machine: &Machine) -> Result<Session<'a>, Failure> {
        let usable = cpus::usable();
        let chosen = match &args.cpus {
            Some(list) => cpus::parse(list).map_err(Failure::ours)?,
            None => usable.clone(),
        };
        if let Some(cpu) = chosen.iter().find(|cpu| usable.binary_search(cpu).is_err()) {
            return Err(Failure::ours(format!("this process may not use CPU {cpu}")));
        }
        if chosen.len() < 2 {
            return Err(Failure::ours("a measurement needs two CPUs or more"));
        }
        let settings = Settings { samples: args.samples, round_trips: args.round_trips };
        let provenance = Provenance::new(poundlock::C_COMPILER.to_owned());
        let wanted = Measurements::new(machine.present.clone(), chosen, settings);
        let measurements = match args.kept_in().filter(|_| !args.restart) {
            Some(file) => resume(file, wanted, provenance.cpu())?,
            None => wanted,
        };
        let page = Page::beside([&args.json, &args.csv, &args.svg])?;
        let before = measurements.pairs.len();
        Ok(Session { args, page, provenance, measurements, before })
    }

    /// Measures all missing pairs, until an interrupt.
    fn measure_all(&mut self, interrupted: &AtomicBool) -> Result<(), Failure> {
        let progress = runs::progress(self.measurements.count() as u64);
        progress.set_position(self.before as u64);
        progress.reset_eta();
        let mut saved = Instant::now();
        for (a, b) in self.measurements.missing() {
            progress.set_message(format!("CPUs {a} and {b}"));
            let settings = self.measurements.settings;
            let Some(pair) = measure(a, b, settings, interrupted).map_err(Failure::ours)? else {
                break;
            };
            self.measurements.add(pair);
            progress.inc(1);
            if saved.elapsed() > SAVED_EVERY {
                self.save()?;
                saved = Instant::now();
            }
            if interrupted.load(Ordering::Relaxed) {
                break;
            }
        }
        progress.finish_and_clear();
        Ok(())
    }

    fn json(&self) -> Result<String, Failure> {
        output::json(&Document { measurements: &self.measurements, provenance: &self.provenance })
    }

    fn save(&self) -> Result<(), Failure> {
        self.args.kept_in().map_or(Ok(()), |file| output::write(file, self.json()?))
    }

    fn publish(&self, machine: &Machine) -> Result<(), Failure> {
        let text = format!("{}\n{}", table::render(&self.measurements, machine), self.caption());
        self.page.show(text)?;
        if let Some(file) = self.args.json.as_ref().filter(|_| self.args.kept_in().is_none()) {
            output::write(file, self.json()?)?;
        }
        if let Some(file) = self.args.csv.as_ref().filter(|_| self.measurements.complete) {
            output::write(file, self.measurements.csv())?;
        }
        if let Some(file) = &self.args.svg {
            let svg = heat_map::svg(&self.measurements, &self.provenance.machine_line());
            output::write(file, svg.map_err(output::undrawable)?)?;
        }
        Ok(())
    }

    fn caption(&self) -> String {
        let Settings { samples, round_trips } = self.measurements.settings;
        let (done, all) = (self.measurements.pairs.len(), self.measurements.count());
        let mut caption = format!(
            "Nanoseconds one way: medians of {samples} samples of {round_trips} round trips."
        );
        if self.before > 0 {
            caption += &format!(" {} of {all} pairs are from an earlier run.", self.before);
        }
        if !self.measurements.complete {
            caption += &format!(" Interrupted after {done} of {all} pairs");
            caption +=
                if self.args.kept_in().is_some() { ": the same command resumes." } else { "." };
        }
        caption
    }
}

impl LatencyArgs {
    /// The file in which measurements are saved. A device, a FIFO or stdout gets them once, at the
    /// end.
    fn kept_in(&self) -> Option<&Path> {
        let is_kept = |file: &&Path| {
            !output::is_stdout(file) && file.metadata().map_or(true, |there| there.is_file())
        };
        self.json.as_deref().filter(is_kept)
    }
}

/// Adds the measurements in `file` to those `wanted`. They must be of this machine and have the
/// same settings. A file that does not exist has none.
fn resume(file: &Path, wanted: Measurements, cpu: &str) -> Result<Measurements, Failure> {
    #[derive(Deserialize)]
    struct Origin {
        machine: Machine,
    }
    #[derive(Deserialize)]
    struct Machine {
        cpu: String,
    }
    let text = match input::text(file) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(wanted),
        read => read.map_err(|error| output::unreadable(file, &error))?,
    };
    if text.is_empty() {
        return Ok(wanted);
    }
    let wrong = |what: &dyn std::fmt::Display| {
        Failure::ours(format!(
            "'{}' {what}: choose another file, or start again with --restart",
            file.display()
        ))
    };
    let found = Measurements::parse(&text)
        .map_err(|error| wrong(&format!("has no latencies ({error})")))?;
    let origin: Origin = serde_json::from_str(&text)
        .map_err(|error| wrong(&format!("names no machine ({error})")))?;
    if origin.machine.cpu != cpu || found.present != wanted.present {
        return Err(wrong(&"is of another machine"));
    }
    if found.cpus != wanted.cpus {
        return Err(wrong(&format!(
            "has the CPUs {}, not {}",
            cpus::format(&found.cpus),
            cpus::format(&wanted.cpus)
        )));
    }
    if found.settings != wanted.settings {
        let Settings { samples, round_trips } = found.settings;
        return Err(wrong(&format!("has {samples} samples of {round_trips} round trips")));
    }
    let mut merged = wanted;
    let missing = merged.missing();
    for pair in found.pairs {
        if !missing.contains(&(pair.a, pair.b))
            || merged.pairs.iter().any(|known| (known.a, known.b) == (pair.a, pair.b))
        {
            return Err(wrong(&format!(
                "has CPUs {} and {} twice, or a CPU that was not measured",
                pair.a, pair.b
            )));
        }
        merged.add(pair);
    }
    Ok(merged)
}
