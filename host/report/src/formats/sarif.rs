//! SARIF 2.1.0 (OASIS standard): results with both places, and the order in which this run came to them;
//! what `verify` proves is a property of the run.

use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use serde_json::{Value, json};

use super::finding::{Finding, Level, OTHERS, Spot};
use crate::coverage;
use crate::excerpt::Shows;
use crate::model::{ExitStatus, Report, RunOutcome, Standing};
use crate::rules::RULES;

/// What a path in a URI may not hold (RFC 3986, section 3.3).
const NOT_IN_PATHS: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'%')
    .add(b':')
    .add(b'<')
    .add(b'>')
    .add(b'?')
    .add(b'[')
    .add(b'\\')
    .add(b']')
    .add(b'^')
    .add(b'`')
    .add(b'{')
    .add(b'|')
    .add(b'}');

pub(super) fn render(report: &Report, findings: &[Finding<'_>]) -> String {
    let mut rules: Vec<Value> = RULES
        .iter()
        .map(|rule| {
            json!({
                "id": rule.id,
                "shortDescription": { "text": rule.title },
                "fullDescription": { "text": rule.means },
                "help": { "text": rule.means, "markdown": rule.explain() },
            })
        })
        .collect();
    rules.extend(OTHERS.map(|(id, title)| {
        json!({
            "id": id,
            "shortDescription": { "text": title },
        })
    }));
    let mut notifications: Vec<Value> = Vec::new();
    let mut notify = |level: &str, text: &str| {
        notifications.push(json!({ "level": level, "message": { "text": text } }));
    };
    for error in &report.tool.errors {
        notify("error", error);
    }
    for why in &report.coverage.incomplete_because {
        notify("warning", why);
    }
    for note in &report.notes {
        notify("note", note);
    }
    notify("note", &coverage::coverage(report));
    let mut invocation = json!({
        // A program that fails by itself has been analysed, unless a signal or `--timeout` has cut it short.
        "executionSuccessful": report.run.exit.signal.is_none()
            && !report.run.timed_out
            && !matches!(report.summary.outcome, RunOutcome::Incomplete | RunOutcome::ToolError),
        "arguments": report.run.argv,
        "toolExecutionNotifications": notifications,
    });
    let set = |of: &mut Value, key: &str, value: Value| of[key] = value;
    if !report.run.start.is_empty() {
        set(&mut invocation, "startTimeUtc", json!(report.run.start));
    }
    // Which program of several it is of is not known.
    let exit = match report.run.others.is_empty() {
        true => report.run.exit,
        false => ExitStatus::default(),
    };
    if let Some(code) = exit.code {
        set(&mut invocation, "exitCode", json!(code));
    }
    if let Some(signal) = exit.signal {
        set(&mut invocation, "exitSignalNumber", json!(signal));
    }
    let mut invocations = vec![invocation];
    for argv in &report.run.others {
        let whole = invocations[0]["executionSuccessful"].clone();
        invocations.push(json!({ "executionSuccessful": whole, "arguments": argv }));
    }
    let results: Vec<Value> = findings.iter().map(|of| result(of, &rules)).collect();
    let mut run = json!({
        "tool": { "driver": {
            "name": "cudarun-check",
            "version": report.tool.version,
            "rules": rules,
        } },
        "columnKind": "unicodeCodePoints",
        "invocations": invocations,
        "results": results,
    });
    // What is proved is no result.
    if !report.verified.is_empty() {
        set(
            &mut run,
            "properties",
            json!({ "verified": report.verified }),
        );
    }
    let document = json!({
        "$schema": "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json",
        "version": "2.1.0",
        "runs": [run],
    });
    format!("{document:#}\n")
}

fn result(finding: &Finding<'_>, rules: &[Value]) -> Value {
    let help = match finding.help.as_str() {
        "" => String::new(),
        help => format!("\nhelp: {help}"),
    };
    let mut result = json!({
        "ruleId": finding.rule,
        "level": match finding.level {
            Level::Error => "error",
            Level::Warning => "warning",
            Level::Note => "note",
        },
        "message": { "text": format!("{}{help}", finding.message) },
    });
    if let Some(index) = rules.iter().position(|rule| rule["id"] == finding.rule) {
        result["ruleIndex"] = json!(index);
    }
    if let [first, others @ ..] = &finding.spots[..] {
        result["locations"] = json!([location(first, finding.kernel)]);
        let others: Vec<Value> = others
            .iter()
            .map(|of| related(of, finding.kernel))
            .collect();
        result["relatedLocations"] = json!(others);
    }
    if let Some(race) = finding.race {
        result["partialFingerprints"] = json!({ "cudarunCheck/v1": race.fingerprint });
        result["occurrenceCount"] = json!(race.count.max(1));
        result["properties"] = json!({
            "id": race.id,
            "certainty": race.certainty,
            "kind": race.kind,
            "space": race.space,
            "address": race.address.value,
            "launches": race.launches,
            "seeds": race.seeds,
            "explored": race.explored,
        });
        if !finding.processes.is_empty() {
            result["properties"]["processes"] = json!(finding.processes);
        }
        // One flow with a thread for each side, in the order of this run.
        let threads: Vec<Value> = finding
            .spots
            .iter()
            .enumerate()
            .map(|(order, spot)| {
                json!({ "locations": [{
                    "executionOrder": order + 1,
                    "location": related(spot, finding.kernel),
                }] })
            })
            .collect();
        if !threads.is_empty() {
            result["codeFlows"] = json!([{ "threadFlows": threads }]);
        }
    }
    if let Some(race) = finding.race {
        if let Some(by) = &race.suppressed_by {
            let suppression = json!({ "kind": "external", "justification": by.reason });
            result["suppressions"] = json!([suppression]);
        }
        if let Some(standing) = race.baseline {
            result["baselineState"] = match standing {
                Standing::New => json!("new"),
                Standing::Known => json!("unchanged"),
            };
        }
    }
    result
}

fn related(spot: &Spot<'_>, kernel: &str) -> Value {
    let mut location = location(spot, kernel);
    location["message"] = json!({ "text": spot.label });
    location
}

fn location(spot: &Spot<'_>, kernel: &str) -> Value {
    let mut region = json!({ "startLine": spot.line.max(1) });
    if let Some(columns) = &spot.columns {
        region["startColumn"] = json!(columns.start);
        region["endColumn"] = json!(columns.end);
    }
    if !spot.shown.is_empty() && spot.shows != Shows::PtxForSource {
        region["snippet"] = json!({ "text": spot.shown });
    }
    let mut names = vec![json!({ "fullyQualifiedName": spot.function, "kind": "function" })];
    if spot.function != kernel {
        names.push(json!({ "fullyQualifiedName": kernel, "kind": "function" }));
    }
    json!({
        "physicalLocation": {
            "artifactLocation": { "uri": uri(&spot.path) },
            "region": region,
        },
        "logicalLocations": names,
    })
}

/// The URI of a file, relative where its path is.
fn uri(path: &str) -> String {
    let encoded = utf8_percent_encode(path, NOT_IN_PATHS);
    match path.starts_with('/') {
        true => format!("file://{encoded}"),
        false => encoded.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uris_are_encoded() {
        assert_eq!(uri("a b/c#1.cu"), "a%20b/c%231.cu");
        assert_eq!(uri("/x/ä.cu"), "file:///x/%C3%A4.cu");
    }
}
