//! A problem as text, short enough to read.

use prove::problem::{Linear, Problem, Term};
use std::fmt::Write as _;

pub(crate) fn text(problem: &Problem) -> String {
    let mut text = String::new();
    for (number, symbol) in problem.symbols.iter().enumerate() {
        writeln!(text, "s{number}: {:?} in {:?}", symbol.kind, symbol.range).unwrap();
    }
    for equation in &problem.equations {
        writeln!(text, "0 = {}", form(equation)).unwrap();
    }
    for (number, access) in problem.accesses.iter().enumerate() {
        let (space, effect, bytes, loops) =
            (access.space, access.effect, access.bytes, &access.loops);
        writeln!(
            text,
            "a{number}: {space:?} {effect:?} of {bytes} in loops {loops:?}"
        )
        .unwrap();
        for row in &access.path {
            writeln!(text, "    path 0 <= {}", form(row)).unwrap();
        }
        for way in &access.alternatives {
            write!(text, "    at {}", form(&way.address)).unwrap();
            for row in &way.when {
                write!(text, ", when 0 <= {}", form(row)).unwrap();
            }
            text.push('\n');
        }
    }
    for (pair, meetings) in &problem.meetings {
        writeln!(text, "meetings of {pair:?}: {meetings:?}").unwrap();
    }
    text
}

fn form(form: &Linear) -> String {
    let mut text = form.constant.to_string();
    for Term {
        variable: symbol,
        coefficient,
    } in &form.terms
    {
        write!(text, " {coefficient:+}*s{symbol}").unwrap();
    }
    text
}
