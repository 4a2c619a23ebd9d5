//! Latencies between CPUs, read from a file: the CSV table that `poundlock latency` and the
//! core-to-core-latency project write, or the JSON of `poundlock latency`.

use crate::latency::Measurements;
use crate::tour::Distances;
use crate::{Error, MOST_CPUS, cpus};

/// Symmetric latencies between CPUs in nanoseconds.
#[derive(Clone, Debug)]
pub struct Matrix {
    /// The CPUs' numbers, in ascending order.
    pub cpus: Vec<usize>,
    /// The kernel's list of the CPUs present in the machine; the list of the measured CPUs if the
    /// file does not contain it.
    pub present: String,
    table: Vec<f64>,
}

/// The largest accepted latency: ten times the period of a timer interrupt, and small enough that
/// its number of picoseconds has 32 bits.
const MOST_NANOSECONDS: f64 = 4_000_000.0;
const PICOSECONDS: f64 = 1000.0;

impl Matrix {
    /// Parses the text of a file.
    ///
    /// # Errors
    ///
    /// If the text is invalid; the error names the place.
    pub fn parse(text: &str) -> Result<Matrix, Error> {
        if text.trim_start().starts_with('{') {
            Matrix::parse_json(text)
        } else {
            Matrix::parse_csv(text)
        }
    }

    fn parse_json(text: &str) -> Result<Matrix, Error> {
        let measurements = Measurements::parse(text)?;
        let number = |cpu| measurements.cpus.binary_search(&cpu).ok();
        let mut grid = Grid::new(measurements.cpus.len());
        for pair in &measurements.pairs {
            let (Some(a), Some(b)) = (number(pair.a), number(pair.b)) else {
                return Err(Error::new(format!(
                    "CPUs {} and {} are not both among those measured",
                    pair.a, pair.b
                )));
            };
            check(pair.median)
                .map_err(|wrong| Error::new(format!("CPUs {} and {}: {wrong}", pair.a, pair.b)))?;
            grid.put(a, b, pair.median);
        }
        grid.matrix(measurements.cpus, measurements.present)
    }

    /// Rows and columns are CPU numbers. A CPU without any value does not exist.
    fn parse_csv(text: &str) -> Result<Matrix, Error> {
        let lines: Vec<&str> = text.lines().collect();
        let count = lines.len();
        if count == 0 || text.trim().is_empty() {
            return Err(Error::new("is empty"));
        }
        if count > MOST_CPUS {
            return Err(Error::new(format!("has {count} CPUs, more than {MOST_CPUS}")));
        }
        let mut grid = Grid::new(count);
        for (row, line) in lines.iter().enumerate() {
            let cells: Vec<&str> = line.split(',').map(str::trim).collect();
            if cells.len() != count {
                return Err(Error::new(format!(
                    "line {} has {} values, but there are {count} lines",
                    row + 1,
                    cells.len()
                )));
            }
            for (column, cell) in cells
                .into_iter()
                .enumerate()
                .filter(|(column, cell)| *column != row && !cell.is_empty())
            {
                let place =
                    |wrong| Error::new(format!("line {}, value {}: {wrong}", row + 1, column + 1));
                let latency =
                    cell.parse().map_err(|_| place(format!("'{cell}' is not a number")))?;
                check(latency).map_err(place)?;
                grid.put(row, column, latency);
            }
        }
        let known = (0..count).filter(|&cpu| count == 1 || grid.knows(cpu)).collect::<Vec<usize>>();
        let present = cpus::format(&known);
        grid.matrix(known, present)
    }

    /// The latency between the CPUs at two indices of [`Matrix::cpus`].
    pub fn between(&self, a: usize, b: usize) -> f64 {
        self.table[a * self.cpus.len() + b]
    }

    /// The submatrix for the CPUs `wanted`.
    ///
    /// # Errors
    ///
    /// If one of them is not in the matrix.
    pub fn contracted(&self, wanted: &[usize]) -> Result<Matrix, Error> {
        let find = |cpu: &usize| {
            self.cpus.binary_search(cpu).map_err(|_| Error::new(format!("has no CPU {cpu}")))
        };
        let places = wanted.iter().map(find).collect::<Result<Vec<usize>, Error>>()?;
        let table =
            places.iter().flat_map(|&a| places.iter().map(move |&b| self.between(a, b))).collect();
        Ok(Matrix { cpus: wanted.to_vec(), present: self.present.clone(), table })
    }

    /// The latencies in picoseconds, as the distances of a tour.
    pub fn distances(&self) -> Distances {
        Distances::new(self.cpus.len(), |a, b| (self.between(a, b) * PICOSECONDS).round() as u32)
    }

    /// The length of the closed tour over indices of [`Matrix::cpus`], in nanoseconds.
    pub fn length(&self, order: &[usize]) -> f64 {
        order
            .iter()
            .zip(order.iter().cycle().skip(1))
            .map(|(&a, &b)| if a == b { 0.0 } else { self.between(a, b) })
            .sum()
    }
}

fn check(latency: f64) -> Result<(), String> {
    if (0.0..=MOST_NANOSECONDS).contains(&latency) {
        Ok(())
    } else {
        Err(format!("{latency} is not a latency in nanoseconds"))
    }
}

/// Latencies while they are read: the sum and number of values per pair, since a file may contain
/// both directions.
struct Grid {
    count: usize,
    cells: Vec<(f64, u32)>,
}

impl Grid {
    fn new(count: usize) -> Grid {
        Grid { count, cells: vec![(0.0, 0); count * count] }
    }

    fn put(&mut self, a: usize, b: usize, latency: f64) {
        for cell in [a * self.count + b, b * self.count + a] {
            self.cells[cell].0 += latency;
            self.cells[cell].1 += 1;
        }
    }

    fn knows(&self, cpu: usize) -> bool {
        self.cells[cpu * self.count..(cpu + 1) * self.count].iter().any(|cell| cell.1 > 0)
    }

    /// The matrix of `cpus`: all rows of the grid, or the rows with values.
    fn matrix(&self, cpus: Vec<usize>, present: String) -> Result<Matrix, Error> {
        let places: Vec<usize> =
            if cpus.len() == self.count { (0..self.count).collect() } else { cpus.clone() };
        let mut table = Vec::with_capacity(cpus.len() * cpus.len());
        for (row, &a) in places.iter().enumerate() {
            for (column, &b) in places.iter().enumerate() {
                let (sum, count) = self.cells[a * self.count + b];
                if count == 0 && row != column {
                    return Err(Error::new(format!(
                        "has no latency between CPUs {} and {}",
                        cpus[row], cpus[column]
                    )));
                }
                table.push(if row == column { 0.0 } else { sum / f64::from(count) });
            }
        }
        if cpus.is_empty() {
            return Err(Error::new("has no latencies"));
        }
        Ok(Matrix { cpus, present, table })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lower_triangle_is_mirrored() {
        let matrix = Matrix::parse(",,\n1.5,,\n2, 3.25,\n").expect("a matrix");
        assert_eq!(matrix.cpus, [0, 1, 2]);
        assert_eq!((matrix.between(0, 2), matrix.between(2, 1)), (2.0, 3.25));
        assert_eq!(matrix.length(&[0, 1, 2]), 6.75);
        assert_eq!(matrix.distances().length(&[0, 1, 2]), 6750);
    }

    #[test]
    fn a_full_table_is_averaged() {
        assert_eq!(Matrix::parse("9,1\n2,9").expect("a matrix").between(0, 1), 1.5);
    }

    #[test]
    fn cpus_without_values_are_absent() {
        let matrix = Matrix::parse(",,,\n,,,\n7,,,\n8,,9,\n").expect("a matrix");
        assert_eq!((&matrix.cpus[..], &matrix.present[..]), (&[0, 2, 3][..], "0,2-3"));
        assert_eq!((matrix.between(0, 1), matrix.between(1, 2)), (7.0, 9.0));
        let part = matrix.contracted(&[0, 3]).expect("both are there");
        assert_eq!((part.between(0, 1), part.length(&[0, 1])), (8.0, 16.0));
        assert_eq!(
            matrix.contracted(&[1]).expect_err("it is not there").to_string(),
            "has no CPU 1"
        );
    }

    #[test]
    fn a_route_of_one_cpu_has_length_zero() {
        for text in ["0", "5\n"] {
            let matrix = Matrix::parse(text).expect("a matrix");
            assert_eq!((&matrix.cpus[..], matrix.length(&[0])), (&[0][..], 0.0));
        }
    }

    #[test]
    fn errors_name_their_place() {
        let texts = [
            ("", "empty"),
            ("\n", "empty"),
            (",\n1,\n2,\n", "line 1 has 2 values, but there are 3 lines"),
            (",\nx,\n", "line 2, value 1: 'x' is not a number"),
            (",\n-1,\n", "line 2, value 1: -1 is not a latency"),
            (",\nNaN,\n", "line 2, value 1: NaN is not a latency"),
            (",\ninf,\n", "line 2, value 1: inf is not a latency"),
            (",\n1e12,\n", "line 2, value 1: 1000000000000 is not a latency"),
            (",,\n1,,\n2,,\n", "no latency between CPUs 1 and 2"),
            (",\n,\n", "has no latencies"),
            ("{", "line 1"),
            ("{\"schema\": \"poundlock.list/1\"}", "schema"),
        ];
        for (text, words) in texts {
            let error = Matrix::parse(text).expect_err(text).to_string();
            assert!(error.contains(words) && !error.contains('\n'), "{text:?}: {error}");
        }
    }
}
