//! Checks in functions of their own.
//!
//! An inlined check has about forty instructions and four branches, and a compiler takes more than linear time for a
//! function: for a module of Thrust with 3,300 inlined checks ptxas 13.0 takes 52 seconds, and 4 seconds where they are
//! called (docs/benchmarks.md, "Large modules"). So a function with more than [`MOST_INLINED`] of them calls its checks.
//! What they do is the same; a call takes some twenty instructions more.

use device::{LAUNCH_PARAM, PREFIX};

use crate::access::{self, Check, Which};
use crate::call::{LAUNCH, ME, Value, call};
use crate::prologue::Prologue;

/// Granules that the inlined checks of one function look at, at most.
pub const MOST_INLINED: u32 = 64;

/// The register of a check function that holds the site.
const SITE: &str = "%crc_site";

/// The functions of a module that have checks.
#[derive(Debug, Default)]
pub(crate) struct Outlined(Vec<Check>);

impl Outlined {
    /// A call of `check` for `%crc_address`, by the site `site`.
    pub(crate) fn call(&mut self, check: Check, site: &str) -> String {
        let known = self.0.iter().position(|of| *of == check);
        let number = known.unwrap_or_else(|| {
            self.0.push(check);
            self.0.len() - 1
        });
        let mut all = vec![LAUNCH];
        all.extend(arguments(&check, site));
        call(&name(number), None, &all)
    }

    /// The text of all of them.
    pub(crate) fn text(&self) -> String {
        let all = self.0.iter().enumerate();
        all.map(|(number, check)| function(number, check)).collect()
    }
}

/// The name of a function, without [`PREFIX`].
fn name(number: usize) -> String {
    format!("check_{number}")
}

/// The parameters of a check function besides the launch.
fn arguments<'a>(check: &Check, site: &'a str) -> Vec<Value<'a>> {
    let mut all = vec![
        ME,
        Value::new("b64", "%crc_address"),
        Value::new("b32", site),
    ];
    if check.target.shared {
        all.extend([
            Value::new("b64", "%crc_slot"),
            Value::new("b64", "%crc_slot_mask"),
        ]);
    }
    all
}

fn function(number: usize, check: &Check) -> String {
    let arguments = arguments(check, SITE);
    let parameter = |register: &str| register.replace('%', "");
    let parameters = arguments.iter().map(|Value { ty, text }| {
        let name = parameter(text);
        format!(", .param .{ty} {name}")
    });
    let parameters: String = parameters.collect();
    let name = name(number);
    let prologue = Prologue {
        kernel: false,
        state: false,
        slot: check.target.shared,
        sample: false,
    };
    let mut text = format!(
        "\n.func {PREFIX}{name}(.param .u64 {LAUNCH_PARAM}{parameters})\n{{{}.reg .b32 {SITE};\n.reg .b64 %crc_witness;\n\
         ld.param.u64 %crc_launch, [{LAUNCH_PARAM}];\n",
        prologue.declarations(),
    );
    for Value { ty, text: register } in arguments {
        let name = parameter(register);
        text.push_str(&format!("ld.param.{ty} {register}, [{name}];\n"));
    }
    text.push_str(&prologue.constants());
    if check.word {
        text.push_str(&access::read_words());
    }
    let which = Which {
        site: SITE,
        witness: "%crc_witness",
    };
    if check.claims() {
        text.push_str(&device::witness_of(
            which.site,
            check.target.kind,
            which.witness,
        ));
    }
    check.inline(&mut text, &which, "$crc_checked", 0);
    text + "$crc_checked:\nret;\n}\n"
}
