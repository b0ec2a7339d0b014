//! All results of a kit in one file, and a table of the steps.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Value, json};

/// In place of what there are no results of.
const NOTHING: &str = "not measured";

/// Writes `results.json` of what the steps have left in a folder, and prints the table; true when every step has ended
/// well.
///
/// `steps.tsv` has a line per step: its name, its exit code, seconds. `about.tsv` has names and values.
///
/// # Errors
/// When these two cannot be read, or the results not be written.
pub fn write(results: &Path) -> Result<bool> {
    let steps = lines(&results.join("steps.tsv"))?;
    let about = lines(&results.join("about.tsv"))?;
    let about: BTreeMap<&str, &str> = about
        .iter()
        .filter_map(|line| line.split_once('\t'))
        .collect();
    let bench = read(&results.join("bench.json"));
    let racecheck = read(&results.join("racecheck.json"));
    let costs = read(&results.join("costs.json"));
    let (race, build, apps) = (
        read(&results.join("race.json")),
        read(&results.join("build.json")),
        read(&results.join("apps.json")),
    );
    println!(
        "{:<8} {:<12} {:>7}  what came out",
        "step", "ended", "seconds"
    );
    let mut good = true;
    let mut reported = Vec::new();
    for step in &steps {
        let mut fields = step.split('\t');
        let mut field = || fields.next().unwrap_or_default();
        let (name, code, seconds) = (field(), field(), field());
        let ended = match code {
            "0" => "well",
            "124" | "137" => "timed out",
            _ => "badly",
        };
        good &= code == "0";
        let what = match name {
            "build" => outcomes(&build),
            "race" => findings(&race),
            "apps" => outcomes(&apps),
            "costs" => compiled(&costs),
            "bench" => benchmarks(&bench),
            "racecheck" => slowdown(&racecheck),
            _ => String::new(),
        };
        println!("{name:<8} {ended:<12} {seconds:>7}  {what}");
        reported.push(json!({ "step": name, "exit": code, "seconds": seconds, "ended": ended }));
    }
    let all = json!({
        "about": about,
        "steps": reported,
        "race": race,
        "build": build,
        "apps": apps,
        "costs": costs,
        "racecheck": racecheck,
        "bench": bench,
    });
    let path = results.join("results.json");
    std::fs::write(&path, serde_json::to_string_pretty(&all)? + "\n")
        .with_context(|| format!("cannot write {}", path.display()))?;
    println!("{}", path.display());
    Ok(good)
}

fn lines(path: &Path) -> Result<Vec<String>> {
    let text =
        std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(text.lines().map(str::to_owned).collect())
}

/// What a step has left; a text when it has left nothing.
fn read(path: &Path) -> Value {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    serde_json::from_str(&text).unwrap_or_else(|_| json!(NOTHING))
}

/// `12 right, 1 wrong`
fn listed(counts: &BTreeMap<String, u64>) -> String {
    match counts.is_empty() {
        true => NOTHING.to_owned(),
        false => {
            let parts: Vec<_> = counts
                .iter()
                .map(|(what, count)| format!("{count} {what}"))
                .collect();
            parts.join(", ")
        }
    }
}

fn outcomes(list: &Value) -> String {
    let mut counts = BTreeMap::new();
    for one in list.as_array().into_iter().flatten() {
        let outcome = one["outcome"].as_str().unwrap_or("?");
        *counts.entry(outcome.to_owned()).or_default() += 1;
    }
    listed(&counts)
}

fn findings(race: &Value) -> String {
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    for row in race["folders"].as_array().into_iter().flatten() {
        for (finding, count) in row["findings"].as_object().into_iter().flatten() {
            *counts.entry(finding.replace('-', " ")).or_default() += count.as_u64().unwrap_or(0);
        }
    }
    listed(&counts)
}

/// `16 modules compiled in 1.2 s, and with checks in 20.3 s`
fn compiled(costs: &Value) -> String {
    let Some(all) = costs.as_array() else {
        return NOTHING.to_owned();
    };
    let seconds = |text: &str| {
        let of = all.iter().filter_map(|one| one[text]["seconds"].as_f64());
        of.sum::<f64>()
    };
    format!(
        "{} modules compiled in {:.1} s, and with checks in {:.1} s",
        all.len(),
        seconds("own"),
        seconds("checked")
    )
}

/// `16 of 16 programs measured, 2 runs or more`
fn benchmarks(bench: &Value) -> String {
    let Some(all) = bench["programs"].as_array() else {
        return NOTHING.to_owned();
    };
    let runs = |one: &Value| {
        let ways = ["unchecked", "checked"].map(|way| one[way]["runs"].as_u64());
        Some(ways[0]?.min(ways[1]?))
    };
    let measured: Vec<u64> = all.iter().filter_map(runs).collect();
    match measured.iter().min() {
        None => NOTHING.to_owned(),
        Some(fewest) => format!(
            "{} of {} programs measured, {fewest} runs or more",
            measured.len(),
            all.len()
        ),
    }
}

/// `12 programs, 3.21 x (geometric mean of whole processes)`
fn slowdown(racecheck: &Value) -> String {
    let ratio = |one: &Value| {
        Some(
            one["racecheck_seconds"].as_f64()?
                / one["alone_seconds"].as_f64().filter(|&s| s > 0.0)?,
        )
    };
    let all = racecheck.as_array().into_iter().flatten();
    let ratios: Vec<f64> = all.filter_map(ratio).collect();
    if ratios.is_empty() {
        return NOTHING.to_owned();
    }
    let mean = ratios.iter().map(|ratio| ratio.ln()).sum::<f64>() / ratios.len() as f64;
    format!(
        "{} programs, {:.2} x (geometric mean of whole processes)",
        ratios.len(),
        mean.exp()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_said_and_what_failed_fails() {
        let folder = tempfile::tempdir().unwrap();
        let put = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        put("about.tsv", "date\ttoday\n");
        put("steps.tsv", "race\t0\t3\n");
        let race = r#"{"folders": [{"findings": {"right": 2, "not-seen": 1}}, {"findings": {"right": 3}}]}"#;
        put("race.json", race);
        assert!(write(folder.path()).unwrap());
        let all = read(&folder.path().join("results.json"));
        assert_eq!(all["apps"], NOTHING);
        assert_eq!(all["bench"], NOTHING);
        assert_eq!(all["about"]["date"], "today");
        assert_eq!(findings(&all["race"]), "1 not seen, 5 right");
        assert_eq!(slowdown(&all["racecheck"]), NOTHING);
        let figures = json!([
            { "alone_seconds": 0.5, "racecheck_seconds": 1.0 },
            { "alone_seconds": 1.0, "racecheck_seconds": 8.0 },
            { "alone_seconds": 1.0, "racecheck_seconds": null },
        ]);
        let expected = "2 programs, 4.00 x (geometric mean of whole processes)";
        assert_eq!(slowdown(&figures), expected);
        let figures = json!({ "programs": [
            { "unchecked": { "runs": 3 }, "checked": { "runs": 2 } },
            { "unchecked": { "runs": 3 }, "checked": null },
            { "unchecked": { "runs": 3 }, "checked": { "runs": 3 } },
        ] });
        let expected = "2 of 3 programs measured, 2 runs or more";
        assert_eq!(benchmarks(&figures), expected);
        assert_eq!(benchmarks(&all["bench"]), NOTHING);
        put("steps.tsv", "race\t0\t3\nbench\t124\t60\n");
        assert!(!write(folder.path()).unwrap());
    }
}
