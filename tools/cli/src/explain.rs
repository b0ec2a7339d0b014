//! `explain`: what a rule means, with an example.

use report::rules::{self, RULES, Rule};

use crate::args::ExplainArgs;
use crate::console;
use crate::exit::{Stop, USAGE};

pub(crate) fn run(args: &ExplainArgs) -> Result<u8, Stop> {
    let text = match &args.rule {
        None => rules::page(),
        Some(id) => match Rule::find(id) {
            Some(rule) => rule.explain(),
            None => {
                let all: Vec<&str> = RULES.iter().map(|rule| rule.id.as_str()).collect();
                let message = format!("there is no rule `{id}`; the rules are {}", all.join(", "));
                return Err(Stop::new(USAGE, message));
            }
        },
    };
    console::out(text.trim_end());
    Ok(0)
}
