// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tables of latencies between CPUs, in CSV.

/// Parses a table of `count` comma-separated rows and columns, of which either triangle may be
/// empty.
pub(super) fn parse_matrix(text: &str, count: usize) -> Result<Vec<f32>, String> {
    let mut table = vec![f32::NAN; count * count];
    let rows: Vec<&str> =
        text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#')).collect();
    if rows.len() != count {
        return Err(format!("{} rows for {count} CPUs", rows.len()));
    }
    for (i, row) in rows.iter().enumerate() {
        for (j, field) in
            row.split(',').enumerate().filter(|(j, field)| *j != i && !field.trim().is_empty())
        {
            let value: f32 = field
                .trim()
                .parse()
                .map_err(|_| format!("row {}: '{field}' is not a number", i + 1))?;
            if j >= count || !(0.01..1e6).contains(&value) {
                return Err(format!(
                    "row {}, column {}: {value} is not a latency in ns",
                    i + 1,
                    j + 1
                ));
            }
            table[i * count + j] = value;
        }
    }
    for i in 0..count {
        for j in 0..i {
            let (lower, upper) = (table[i * count + j], table[j * count + i]);
            let value = if lower.is_nan() { upper } else { lower };
            if value.is_nan() {
                return Err(format!("no latency between CPUs {j} and {i}"));
            }
            table[i * count + j] = value;
            table[j * count + i] = value;
        }
        table[i * count + i] = 0.0;
    }
    Ok(table)
}
