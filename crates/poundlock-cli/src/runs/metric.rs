//! The figure by which runs are compared.

use super::Outcome;
use super::measure::Measured;
use crate::failure::Failure;
use regex::bytes::{Regex, RegexBuilder};

/// The figure of a run.
#[derive(Debug)]
pub enum Figure {
    /// The wall time in seconds.
    Wall,
    /// The CPU time in seconds.
    Cpu,
    /// A number in the output.
    Output(Metric),
}

impl Figure {
    /// How the run ended, and its figure if it succeeded.
    pub fn judge(&self, measured: &Measured) -> (Outcome, Option<f64>) {
        let figure = match (self, Outcome::from(measured.end)) {
            (_, failure) if failure != Outcome::Ok => return (failure, None),
            (Figure::Wall, _) => Ok(measured.wall.as_secs_f64()),
            (Figure::Cpu, _) => Ok((measured.cpu_user + measured.cpu_system).as_secs_f64()),
            (Figure::Output(metric), _) => metric.figure(&measured.output),
        };
        match figure {
            Ok(figure) => (Outcome::Ok, Some(figure)),
            Err(reason) => (Outcome::NoFigure { reason }, None),
        }
    }
}

/// A regular expression. The figure is the first group of its last match.
#[derive(Debug)]
pub struct Metric(Regex);

impl Metric {
    /// Parses the regular expression, which must have a group.
    pub fn parse(text: &str) -> Result<Metric, Failure> {
        let regex = RegexBuilder::new(text).multi_line(true).build().map_err(|error| {
            Failure::ours(format!(
                "--metric '{text}' is not a regular expression: {}",
                last_line(&error.to_string())
            ))
        })?;
        if regex.captures_len() < 2 {
            return Err(Failure::ours(format!(
                "--metric '{text}' has no group (...) around the figure"
            )));
        }
        Ok(Metric(regex))
    }

    /// Returns the figure in `output`, or the reason why there is none.
    pub fn figure(&self, output: &[u8]) -> Result<f64, String> {
        let groups = self.0.captures_iter(output).last().and_then(|groups| groups.get(1));
        let group = groups.ok_or("the metric matches nothing in the output")?;
        let text = String::from_utf8_lossy(group.as_bytes());
        let number =
            text.replace(',', "").trim().parse().ok().filter(|number: &f64| number.is_finite());
        number.ok_or_else(|| format!("the metric matches '{text}', which is not a number"))
    }
}

/// The message of a regex error; the lines before it draw the position.
fn last_line(text: &str) -> &str {
    text.lines().last().unwrap_or(text).trim_start_matches("error: ")
}

#[cfg(test)]
mod tests {
    use super::Metric;

    #[test]
    fn the_last_match_counts_and_commas_do_not() {
        let metric = Metric::parse(r"^rate: ([\d.,e+]+)").expect("a regular expression");
        assert_eq!(metric.figure(b"rate: 1\nrate: 12,345.5 ops\n\xff"), Ok(12345.5));
        assert_eq!(metric.figure(b"rate: 1e3"), Ok(1000.0));
        assert!(
            metric
                .figure(b"no rate: 1")
                .expect_err("not at a line's start")
                .contains("matches nothing")
        );
        assert!(metric.figure(b"rate: ...").expect_err("no number").contains("'...'"));
    }

    #[test]
    fn a_bad_expression_is_one_line() {
        for (text, why) in [("(", "unclosed group"), ("rate", "no group"), ("(?<x", "group name")] {
            let message = Metric::parse(text).expect_err("a bad expression").message;
            assert!(message.contains(why) && message.contains(text), "{message}");
            assert_eq!(message.lines().count(), 1, "{message}");
        }
    }
}
