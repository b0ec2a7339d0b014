//! JUnit XML: a kernel is a test, and fails once for each finding that fails the run; so are the program and the
//! coverage of the run.

use quick_junit::{NonSuccessKind, Report as Document, TestCase, TestCaseStatus, TestSuite};

use super::finding::{Finding, Level};
use crate::coverage;
use crate::model::{Kernel, Report};
use crate::names::base;
use crate::words::put_in;

pub(super) fn render(report: &Report, findings: &[Finding<'_>]) -> Result<String, String> {
    let mut suite = TestSuite::new("cudarun-check");
    let fails = |of: &&Finding<'_>| {
        let counts = match of.level {
            Level::Error => true,
            Level::Warning => report.summary.warnings_fail && of.race.is_some(),
            Level::Note => false,
        };
        counts && !report.summary.findings_pass && of.suppressed().is_none()
    };
    for finding in findings.iter().filter(fails) {
        let mut status = not_passed(NonSuccessKind::Failure, finding.rule, &finding.message);
        status.set_description(&finding.text);
        let mut name = format!("{} {}", finding.rule, finding.title());
        for (n, spot) in finding.spots.iter().enumerate() {
            let before = if n == 0 { ": " } else { ", " };
            put_in(
                &mut name,
                format_args!("{before}{}:{}", spot.path, spot.line),
            );
        }
        suite.add_test_case(case(finding.kernel, &name, status));
    }
    for kernel in &report.coverage.kernels {
        let of_kernel = |of: &&Finding<'_>| is_of(of, kernel);
        let of_kernel = findings.iter().filter(of_kernel);
        if of_kernel.clone().any(|of| fails(&of)) {
            continue;
        }
        let status = match not_checked(report, kernel) {
            None => TestCaseStatus::success(),
            Some(why) => {
                let mut status = TestCaseStatus::skipped();
                status.set_message(why);
                status
            }
        };
        let mut case = case(&kernel.name, "races", status);
        let shown = of_kernel.filter(|of| of.suppressed().is_none());
        let texts: Vec<&str> = shown.map(|of| of.text.as_str()).collect();
        if !texts.is_empty() {
            case.set_system_out(texts.join("\n\n"));
        }
        suite.add_test_case(case);
    }
    suite.add_test_case(case("cudarun-check", "program", ended(report)));
    let because = &report.coverage.incomplete_because;
    let status = match because.is_empty() {
        true => TestCaseStatus::success(),
        false => not_passed(NonSuccessKind::Error, "incomplete", &because.join("; ")),
    };
    let mut case = case("cudarun-check", "coverage", status);
    let lines = [coverage::summary(report), coverage::coverage(report)];
    case.set_system_out(lines.join("\n"));
    suite.add_test_case(case);
    let idle: Vec<String> = report.idle_suppressions().collect();
    if !idle.is_empty() {
        let status = match report.summary.suppressions_fail {
            false => TestCaseStatus::success(),
            true => not_passed(NonSuccessKind::Failure, "suppressions", &idle.join("; ")),
        };
        let mut case = self::case("cudarun-check", "suppressions", status);
        case.set_system_out(idle.join("\n"));
        suite.add_test_case(case);
    }
    for program in report.run.programs() {
        suite.add_property(("program", program.as_str()));
    }
    let mut document = Document::new("cudarun-check");
    document.add_test_suite(suite);
    document.to_string().map_err(|error| error.to_string())
}

/// Whether a kernel has a finding, be it that others have it too.
fn is_of(finding: &Finding<'_>, kernel: &Kernel) -> bool {
    let others = finding.race.map_or(&[][..], |race| &race.kernels);
    let name = base(&kernel.name);
    finding.kernel == kernel.name || others.iter().any(|other| *other == name)
}

/// Why nothing is known of the races of a kernel.
fn not_checked(report: &Report, kernel: &Kernel) -> Option<String> {
    if !kernel.instrumented {
        let why = kernel.why_not.as_deref();
        return Some(why.unwrap_or("its accesses are not checked").to_owned());
    }
    let mut failures = report.failures.iter();
    if let Some(failure) = failures.find(|failure| failure.kernel == kernel.name) {
        return Some(format!("a launch failed: {}", failure.message));
    }
    match kernel.launches.saturating_sub(kernel.skipped) {
        _ if kernel.launches == 0 => Some("it was not launched".to_owned()),
        0 => Some(match kernel.skipped_because.is_empty() {
            true => "its launches were not checked".to_owned(),
            false => kernel.skipped_because.join("; "),
        }),
        _ => None,
    }
}

fn not_passed(kind: NonSuccessKind, ty: &str, message: &str) -> TestCaseStatus {
    let mut status = TestCaseStatus::non_success(kind);
    status.set_message(message);
    status.set_type(ty);
    status
}

/// How the program has ended.
fn ended(report: &Report) -> TestCaseStatus {
    let exit = report.run.exit;
    let (kind, message) = match (exit.code, exit.signal) {
        _ if report.run.timed_out => (
            NonSuccessKind::Error,
            "stopped when the time of --timeout was over".to_owned(),
        ),
        (Some(0), _) => return TestCaseStatus::success(),
        (Some(code), _) => (
            NonSuccessKind::Failure,
            format!("the program exited with {code}"),
        ),
        (None, Some(signal)) => (
            NonSuccessKind::Error,
            format!("the program was killed by signal {signal}"),
        ),
        (None, None) => {
            let mut status = TestCaseStatus::skipped();
            status.set_message("the program was not started");
            return status;
        }
    };
    not_passed(kind, "program", &message)
}

fn case(kernel: &str, name: &str, status: TestCaseStatus) -> TestCase {
    let mut case = TestCase::new(name, status);
    case.set_classname(kernel);
    case
}
