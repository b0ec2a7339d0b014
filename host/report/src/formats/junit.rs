//! JUnit XML: a kernel is a test, and fails once for each error that was found in it.

use quick_junit::{NonSuccessKind, Report as Document, TestCase, TestCaseStatus, TestSuite};

use super::finding::{Finding, Level};
use crate::coverage;
use crate::model::Report;
use crate::words::put_in;

pub(super) fn render(report: &Report, findings: &[Finding<'_>]) -> Result<String, String> {
    let mut suite = TestSuite::new("cudarun-check");
    let errors = |of: &&Finding<'_>| of.level == Level::Error && of.suppressed().is_none();
    for finding in findings.iter().filter(errors) {
        let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
        status.set_message(&finding.message);
        status.set_type(finding.rule);
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
        let of_kernel = |of: &&Finding<'_>| of.kernel == kernel.name;
        let mut of_kernel = findings.iter().filter(of_kernel).peekable();
        if of_kernel.clone().any(|of| errors(&of)) {
            continue;
        }
        let status = match kernel.instrumented {
            true => TestCaseStatus::success(),
            false => {
                let mut status = TestCaseStatus::skipped();
                let why = kernel.why_not.as_deref();
                status.set_message(why.unwrap_or("its accesses are not checked"));
                status
            }
        };
        let mut case = case(&kernel.name, "races", status);
        if of_kernel.peek().is_some() {
            let texts: Vec<&str> = of_kernel.map(|of| of.text.as_str()).collect();
            case.set_system_out(texts.join("\n\n"));
        }
        suite.add_test_case(case);
    }
    let because = &report.coverage.incomplete_because;
    let status = match because.is_empty() {
        true => TestCaseStatus::success(),
        false => {
            let mut status = TestCaseStatus::non_success(NonSuccessKind::Error);
            status.set_message(because.join("; "));
            status.set_type("incomplete");
            status
        }
    };
    let mut case = case("cudarun-check", "coverage", status);
    let lines = [coverage::summary(report), coverage::coverage(report)];
    case.set_system_out(lines.join("\n"));
    suite.add_test_case(case);
    let mut document = Document::new("cudarun-check");
    document.add_test_suite(suite);
    document.to_string().map_err(|error| error.to_string())
}

fn case(kernel: &str, name: &str, status: TestCaseStatus) -> TestCase {
    let mut case = TestCase::new(name, status);
    case.set_classname(kernel);
    case
}
