//! `poundlock route`: the order of CPUs along which some locks hand over.

use crate::failure::Failure;
use crate::output;
use crate::output::{Page, is_stdout};
use crate::provenance::Provenance;
use clap::Args;
use poundlock_topology::input;
use poundlock_topology::machine::{Machine, SYSFS};
use poundlock_topology::matrix::Matrix;
use poundlock_topology::tour::{Effort, Tour, shortest};
use poundlock_topology::{cpus, saved};
use serde::Serialize;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

#[derive(Args, Debug)]
pub(crate) struct RouteArgs {
    /// Latencies: a JSON or CSV file of `poundlock latency`, or another such table
    #[arg(short, long, value_name = "FILE")]
    pub matrix: Option<PathBuf>,
    /// Use only these CPUs of the matrix, such as 0-3,8
    #[arg(long, value_name = "LIST", requires = "matrix")]
    pub cpus: Option<String>,
    /// Save the route in FILE [default: where the library looks for it in this user's programs]
    #[arg(long, value_name = "FILE", requires = "matrix", num_args = 0..=1, require_equals = true)]
    pub save: Option<Option<PathBuf>>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    #[serde(flatten)]
    provenance: Provenance,
    /// The file of the route or of its matrix.
    file: Option<&'a Path>,
    route: &'a [usize],
    tour: Option<Lengths>,
    saved: Option<&'a Path>,
}

/// Nanoseconds.
#[derive(Clone, Copy, Serialize)]
struct Lengths {
    length: f64,
    /// A lower bound of the length of any tour.
    bound: f64,
    /// The length of the tour in the order of CPU numbers.
    in_order: f64,
}

/// Finds a route, or shows the one in use.
pub fn route(args: &RouteArgs) -> Result<ExitCode, Failure> {
    match &args.matrix {
        Some(file) => from_matrix(args, file)?,
        None => in_use(args)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn in_use(args: &RouteArgs) -> Result<(), Failure> {
    let route = poundlock::route();
    let order: Vec<usize> = route.cpus.iter().map(|&cpu| cpu as usize).collect();
    let source = route.file.map_or("derived from the topology".to_owned(), |file| {
        format!("from '{}'", file.display())
    });
    print(args, route.file, &order, None, None, &format!("{}, {source}", count(&order)))
}

fn from_matrix(args: &RouteArgs, file: &Path) -> Result<(), Failure> {
    let text = input::text(file).map_err(|error| output::unreadable(file, &error))?;
    let wrong = |error| Failure::ours(format!("'{}': {error}", file.display()));
    let mut matrix = Matrix::parse(&text).map_err(wrong)?;
    if let Some(list) = &args.cpus {
        let wanted = cpus::parse(list).ok().filter(|wanted| !wanted.is_empty());
        let wanted = wanted.ok_or_else(|| {
            Failure::ours(format!("'{list}' is not a list of CPUs such as 0-3,8"))
        })?;
        matrix = matrix.contracted(&wanted).map_err(wrong)?;
    }
    let save_in = args.save.as_ref().map(|chosen| place(chosen.as_deref(), &matrix)).transpose()?;
    let tour = shortest(&matrix.distances(), Effort::default());
    let lengths = lengths(&matrix, &tour);
    let order: Vec<usize> = tour.order.iter().map(|&index| matrix.cpus[index]).collect();
    if let Some(file) = &save_in {
        save(file, &order, &matrix, &machine_of(&text), lengths.length)?;
    }
    print(args, Some(file), &order, Some(lengths), save_in.as_deref(), &describe(&order, lengths))
}

fn lengths(matrix: &Matrix, tour: &Tour) -> Lengths {
    let in_order: Vec<usize> = (0..matrix.cpus.len()).collect();
    let length = matrix.length(&tour.order);
    // The bound is in picoseconds and computed from rounded distances.
    Lengths {
        length,
        bound: (tour.bound as f64 / 1000.0).min(length),
        in_order: matrix.length(&in_order),
    }
}

fn count(order: &[usize]) -> String {
    format!("{} CPU{}", order.len(), if order.len() == 1 { "" } else { "s" })
}

fn describe(order: &[usize], lengths: Lengths) -> String {
    let Lengths { length, bound, in_order } = lengths;
    let above = if length > bound {
        format!("at most {:.3}% above the shortest", 100.0 * (length - bound) / bound)
    } else {
        "the shortest possible".to_owned()
    };
    let each = length / order.len() as f64;
    format!(
        "{}, tour {length:.1} ns, {each:.1} ns each: {above}. By CPU numbers: {in_order:.1} ns",
        count(order)
    )
}

fn print(
    args: &RouteArgs,
    file: Option<&Path>,
    order: &[usize],
    tour: Option<Lengths>,
    saved: Option<&Path>,
    line: &str,
) -> Result<(), Failure> {
    let page = if saved.is_some_and(is_stdout) { Page::Stderr } else { Page::Stdout };
    if args.json {
        let provenance = Provenance::new(poundlock::C_COMPILER.to_owned());
        let document =
            Document { schema: "poundlock.route/1", provenance, file, route: order, tour, saved };
        return page.show(output::json(&document)?.trim_end());
    }
    page.show(line)?;
    page.show(order.iter().map(usize::to_string).collect::<Vec<_>>().join(" "))?;
    match saved {
        Some(file) if !is_stdout(file) => page.show(format_args!("saved in '{}'", file.display())),
        _ => Ok(()),
    }
}

/// The file to save in: `chosen`, or that of the user, for which the matrix must be of this
/// machine.
fn place(chosen: Option<&Path>, matrix: &Matrix) -> Result<PathBuf, Failure> {
    if let Some(file) = chosen {
        return Ok(file.to_owned());
    }
    let here = Machine::read(Path::new(SYSFS)).map_err(Failure::ours)?.present;
    if here != matrix.present {
        return Err(Failure::ours(format!(
            "the matrix is of a machine with the CPUs {}, this machine has {here}: choose a file with --save=FILE",
            matrix.present
        )));
    }
    let variable = |name| std::env::var_os(name).map(PathBuf::from);
    saved::own_file(variable("XDG_CONFIG_HOME").as_deref(), variable("HOME").as_deref())
        .ok_or_else(|| Failure::ours("$HOME is not set: choose a file with --save=FILE"))
}

fn save(
    file: &Path,
    order: &[usize],
    matrix: &Matrix,
    machine: &str,
    length: f64,
) -> Result<(), Failure> {
    if let Some(folder) = file.parent() {
        // If this fails, so does writing, which reports the reason.
        let _ = std::fs::create_dir_all(folder);
    }
    let route = saved::Route { cpus: order, present: &matrix.present, machine, length };
    output::write(file, saved::text(&route))
}

/// The processor of the measurements, if the file names it.
fn machine_of(text: &str) -> String {
    let document: Option<Value> = serde_json::from_str(text).ok();
    let cpu = document.as_ref().and_then(|document| document.pointer("/machine/cpu")?.as_str());
    cpu.unwrap_or_default().to_owned()
}
